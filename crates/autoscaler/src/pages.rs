//! What the programs that serve people over `axum` have in common: the server, the page of metrics, and
//! keeping other people's web pages out.
//!
//! The proxies serve their pages over their own stack, and link no `axum`. How much a reader of pages may
//! have is the same for all of them, and stands in `runtime`.

mod server;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use runtime::{MetricsFormat, MetricsRegistry, TrustedHosts};

pub use server::PageServer;

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
