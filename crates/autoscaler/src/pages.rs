//! What the programs that serve people over `axum` have in common: the server, the page of metrics, and
//! keeping other people's web pages out.
//!
//! The proxies serve their pages over their own stack, and link no `axum`. How much a reader of pages may
//! have is the same for all of them, and stands in `runtime`.

mod server;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use runtime::{MetricsFormat, MetricsRegistry, TrustedHosts};

pub use server::PageServer;

use crate::api::refusal;

/// The router for `GET /metrics`, in the text format of Prometheus.
pub fn metrics_router(registry: MetricsRegistry) -> Router {
    Router::new().route(
        "/metrics",
        get(move |headers: HeaderMap| async move {
            let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
            let format = MetricsFormat::asked_for(accept);
            ([(CONTENT_TYPE, format.content_type())], format.of_page(registry.encode()))
        }),
    )
}

/// The same pages for clients alone that speak from the loopback address of this pod, as a port-forward does:
/// the API server asks for the right to open one. A sidecar that passes the requests of other pods on speaks
/// from another address of the loopback network (127.0.0.6), or from that of the pod.
pub fn only_port_forwards(router: Router) -> Router {
    router.route_layer(from_fn(forwarded_or_refused))
}

async fn forwarded_or_refused(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    if peer.is_some_and(|peer| own.contains(&peer.to_canonical())) {
        return next.run(request).await;
    }
    let why = "a past is taken through a port-forward alone: any client that reaches this address could raise counts; write `ebb forecast NAME --import FILE`, or open one with kubectl port-forward";
    refusal(StatusCode::FORBIDDEN, why.to_owned())
}

/// The same pages, of which those that are not open refuse foreign requests with 403. `explain` makes an
/// answer of the reason, in the form that these pages give to errors.
pub fn refuse_foreign(
    router: Router,
    trusted: TrustedHosts,
    explain: fn(StatusCode, String) -> Response,
) -> Router {
    let trusted = Arc::new(trusted);
    router.layer(from_fn(move |request: Request, next: Next| {
        let checked = trusted.check(request.uri(), request.headers());
        async move {
            match checked {
                Ok(()) => next.run(request).await,
                Err(foreign) => explain(StatusCode::FORBIDDEN, foreign.to_string()),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::put;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_page_for_port_forwards_refuses_clients_of_the_network() {
        let router = only_port_forwards(Router::new().route("/past", put(|| async { "taken" })));
        let router = Router::new().route("/past", get(|| async { "known" })).merge(router);
        let status = async |method: &str, peer: Option<&str>| {
            let mut request = axum::http::Request::builder().method(method).uri("/past");
            if let Some(peer) = peer {
                let peer: SocketAddr = peer.parse().expect("the test's addresses are valid");
                request = request.extension(ConnectInfo(peer));
            }
            let request = request.body(Body::empty()).expect("a request");
            router.clone().oneshot(request).await.expect("it answers").status()
        };
        for own in ["127.0.0.1:4000", "[::1]:4000", "[::ffff:127.0.0.1]:4000"] {
            assert_eq!(status("PUT", Some(own)).await, StatusCode::OK, "{own}");
        }
        for other in [Some("10.1.2.3:4000"), Some("127.0.0.6:4000"), Some("[fd00::1]:4000"), None] {
            assert_eq!(status("PUT", other).await, StatusCode::FORBIDDEN, "{other:?}");
            assert_eq!(status("GET", other).await, StatusCode::OK, "reading is for all");
        }
    }
}
