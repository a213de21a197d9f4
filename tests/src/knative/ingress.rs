//! An ingress of Knative's, as far as activators and queue-proxies meet it: contract §5.2 to §5.4.
//!
//! It chooses a revision by the shares of a Service's traffic, sends requests to the addresses that stand
//! behind the revision's public Service, names it by headers over what a client wrote, rewrites the Host of
//! mapped names, and asks whether its routes are programmed, by probes through itself. Not played: tags, TLS.

mod routes;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use kube::Client;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::forwarding::{
    HopClient, NAMESPACE_HEADER, ORIGINAL_HOST, REVISION_HEADER, StandInBody, host_of, plain,
    probe_connection, serve, set,
};
use super::keys;
use super::kind_watch::watch_kind;
use super::objects::{PlayedKind, text as text_at};
use super::request_gate::{NETWORK_HASH, NETWORK_PROBE, text};
use routes::{IngressRoute, IngressRoutes};

/// The port at which clients come in.
const GATEWAY_PORT: u16 = 8080;
/// Where a test reads which hosts are programmed.
const VERDICTS_PORT: u16 = 8081;
/// The ConfigMap of mapped names in the system namespace.
const MAPPED: &str = "stand-in-ingress";
const PROBE_EVERY: Duration = Duration::from_millis(500);
const PROBE_LIMIT: Duration = Duration::from_secs(1);
/// The hash that a prober sends; the gateway puts that of its route in its place.
const OVERRIDE: &str = "override";

/// The parts of the ingress that every request needs.
struct IngressState {
    routes: Mutex<IngressRoutes>,
    forwarder: HopClient,
    /// The number of requests so far, by which addresses take turns.
    turns: AtomicUsize,
    /// What the last probe of each host brought.
    verdicts: Mutex<BTreeMap<String, ProbeVerdict>>,
}

/// What a prober makes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeVerdict {
    /// The host leads where the route says, or to an app that knows no probes: its route is ready.
    Programmed,
    /// It is asked again, and its route is not ready.
    Retried(u16),
}

/// The verdict about an answer: one of another version of the route is asked for again.
fn verdict(status: StatusCode, hash: &str, expected: &str) -> ProbeVerdict {
    match status {
        StatusCode::OK if hash.is_empty() || hash == expected => ProbeVerdict::Programmed,
        StatusCode::OK | StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE => {
            ProbeVerdict::Retried(status.as_u16())
        }
        _ => ProbeVerdict::Programmed,
    }
}

/// Plays an ingress until it is told to end.
pub async fn run() -> anyhow::Result<()> {
    let client = Client::try_default().await.context("the ingress runs in a pod of a cluster")?;
    let state = Arc::new(IngressState {
        routes: Mutex::default(),
        forwarder: HopClient::new(),
        turns: AtomicUsize::new(0),
        verdicts: Mutex::default(),
    });
    let mut term = signal(SignalKind::terminate())?;
    let requests = Arc::clone(&state);
    let requests = serve(GATEWAY_PORT, move |request| Arc::clone(&requests).answer(request));
    let pages = Arc::clone(&state);
    let pages = serve(VERDICTS_PORT, move |_| std::future::ready(pages.verdicts_page()));
    // All are cancelled when the first ends: the process ends then.
    tokio::select! {
        _ = term.recv() => Ok(()),
        served = requests => served,
        served = pages => served,
        () = watch_objects(client, &state) => anyhow::bail!("the watches have ended"),
        () = state.probe_for_ever() => anyhow::bail!("the probes have ended"),
    }
}

/// Watches until the process ends.
async fn watch_objects(client: Client, state: &IngressState) {
    let noting = move |note: fn(&mut IngressRoutes, &Value, bool)| {
        move |object: &Value, is_there: bool| {
            note(&mut state.routes.lock().unwrap_or_else(PoisonError::into_inner), object, is_there);
        }
    };
    tokio::join!(
        watch_kind(client.clone(), PlayedKind::KnativeService, noting(IngressRoutes::note_service)),
        watch_kind(client.clone(), PlayedKind::Endpoints, noting(IngressRoutes::note_endpoints)),
        watch_kind(client, PlayedKind::ConfigMap, noting(note_config_map)),
    );
}

fn note_config_map(routes: &mut IngressRoutes, object: &Value, _is_there: bool) {
    if text_at(object, "/metadata/name") == MAPPED {
        routes.note_mapped(object);
    }
}

impl IngressState {
    /// The route of the next request for a host.
    fn route(&self, host: &str) -> Option<IngressRoute> {
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        self.routes.lock().unwrap_or_else(PoisonError::into_inner).take_turn(host)
    }

    /// The version of the route of a host, by which a prober knows its answer.
    fn version(&self, host: &str) -> Option<String> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner).version(host)
    }

    async fn answer(self: Arc<Self>, mut request: Request<Incoming>) -> Response<StandInBody> {
        let host = host_of(&request);
        let Some(route) = self.route(&host) else { return plain(StatusCode::NOT_FOUND, "no route\n") };
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let Some(to) = route.addresses.get(turn % route.addresses.len().max(1)).copied() else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "no healthy upstream\n");
        };
        onward(request.headers_mut(), &host, &route);
        self.forwarder.forward(request, to, to.port() == keys::H2C_PORT, ()).await
    }

    /// A line for each host: its name, and `programmed` or the status that a prober asks again for.
    fn verdicts_page(&self) -> Response<StandInBody> {
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = verdicts.iter().map(|(host, verdict)| match verdict {
            ProbeVerdict::Programmed => format!("{host} programmed\n"),
            ProbeVerdict::Retried(status) => format!("{host} {status}\n"),
        });
        plain(StatusCode::OK, lines.collect::<String>())
    }

    /// Asks itself for each host, again and again.
    async fn probe_for_ever(&self) {
        loop {
            let hosts = self.routes.lock().unwrap_or_else(PoisonError::into_inner).hosts();
            let mut verdicts = BTreeMap::new();
            for host in hosts {
                let Some(version) = self.version(&host) else { continue };
                let asked = tokio::time::timeout(PROBE_LIMIT, probe(&host)).await;
                let found = match asked {
                    Ok(Ok((status, hash))) => verdict(status, &hash, &version),
                    Ok(Err(_)) | Err(_) => ProbeVerdict::Retried(0),
                };
                verdicts.insert(host, found);
            }
            *self.verdicts.lock().unwrap_or_else(PoisonError::into_inner) = verdicts;
            tokio::time::sleep(PROBE_EVERY).await;
        }
    }
}

/// The headers with which a request goes on: those that name the revision are the ingress's own word.
fn onward(headers: &mut HeaderMap, host: &str, route: &IngressRoute) {
    set(headers, REVISION_HEADER, &route.revision);
    set(headers, NAMESPACE_HEADER, &route.namespace);
    headers.remove(ORIGINAL_HOST);
    match &route.rewritten_host {
        Some(rewritten) => {
            set(headers, ORIGINAL_HOST, host);
            set(headers, "host", rewritten);
        }
        None => set(headers, "host", host),
    }
    if text(headers, NETWORK_HASH) == OVERRIDE {
        set(headers, NETWORK_HASH, &route.version);
    }
}

/// One probe of a host, through the gateway: the status, and the hash that came back.
async fn probe(host: &str) -> anyhow::Result<(StatusCode, String)> {
    let gateway = SocketAddr::from((Ipv4Addr::LOCALHOST, GATEWAY_PORT));
    let mut sender = probe_connection(gateway).await?;
    let request = Request::get("/healthz")
        .header("host", host)
        .header("user-agent", "Knative-Ingress-Probe")
        .header(NETWORK_PROBE, "probe")
        .header(NETWORK_HASH, OVERRIDE)
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    Ok((response.status(), text(response.headers(), NETWORK_HASH).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_ready_by_its_own_hash_or_by_an_app_without_probes() {
        let of = |status: u16, hash: &str| {
            verdict(StatusCode::from_u16(status).expect("a status"), hash, "shop/hello-00001=100")
        };
        assert_eq!(of(200, "shop/hello-00001=100"), ProbeVerdict::Programmed);
        assert_eq!(of(200, "shop/hello-00000=100"), ProbeVerdict::Retried(200), "the version before");
        assert_eq!(of(200, ""), ProbeVerdict::Programmed);
        for status in [404, 503] {
            assert_eq!(of(status, ""), ProbeVerdict::Retried(status), "the route would never be ready");
        }
        assert_eq!(of(500, ""), ProbeVerdict::Programmed);
    }

    #[test]
    fn words_of_a_client_about_the_revision_are_written_over() {
        let mut route = IngressRoute {
            namespace: "shop".to_owned(),
            revision: "hello-00001".to_owned(),
            version: "shop/hello-00001=100".to_owned(),
            rewritten_host: None,
            addresses: Vec::new(),
        };
        let mut headers = HeaderMap::new();
        for name in [REVISION_HEADER, NAMESPACE_HEADER, ORIGINAL_HOST, NETWORK_HASH] {
            set(&mut headers, name, OVERRIDE);
        }
        onward(&mut headers, "hello.shop.example.com", &route);
        let read = |headers: &HeaderMap, name| text(headers, name).to_owned();
        assert_eq!(read(&headers, REVISION_HEADER), "hello-00001");
        assert_eq!(read(&headers, NAMESPACE_HEADER), "shop");
        assert_eq!(read(&headers, NETWORK_HASH), "shop/hello-00001=100");
        assert_eq!(read(&headers, "host"), "hello.shop.example.com");
        assert_eq!(read(&headers, ORIGINAL_HOST), "");
        route.rewritten_host = Some("hello.shop.svc.cluster.local".to_owned());
        onward(&mut headers, "www.example.org", &route);
        assert_eq!(read(&headers, "host"), "hello.shop.svc.cluster.local");
        assert_eq!(read(&headers, ORIGINAL_HOST), "www.example.org");
    }
}
