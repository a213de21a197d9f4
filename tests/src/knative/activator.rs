//! Knative's activator, as far as an autoscaler and clients meet it: contract §7.3, data plane §3.
//!
//! It takes requests for revisions, holds them while no pod has room, finds ready pods by probes, and pushes
//! its load over a WebSocket. Not played: meshes, TLS, traces.

mod backends;
mod push_link;
mod served_revisions;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::forwarding::{
    HopClient, NAMESPACE_HEADER, ORIGINAL_HOST, PROXY_REQUEST, REVISION_HEADER, StandInBody, host_of, plain,
    probed, serve, set,
};
use super::keys;
use super::request_gate::{activator_gate, text};
use push_link::LoadReporter;
use served_revisions::{RevisionKey, ServedRevisions};

/// Frames that wait for the connection to the autoscaler. One that finds no room is lost, as in Knative.
const FRAMES_WAITING_MAX: usize = 100;
/// The domain of the cluster of tests.
const DOMAIN: &str = "cluster.local";
/// How long Knative's activator takes requests after it is told to end; `STAND_IN_DRAIN` overrides it.
const DRAIN: Duration = Duration::from_secs(45);
/// Between two looks at what is in flight after that.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// The names that a pod of the activator is given.
#[derive(Clone, Debug)]
struct ActivatorPodNames {
    pod: String,
    address: IpAddr,
    system: String,
}

impl ActivatorPodNames {
    fn read() -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
        Ok(Self {
            pod: variable("POD_NAME")?,
            address: variable("POD_IP")?.parse().context("POD_IP is no address")?,
            system: variable("SYSTEM_NAMESPACE")?,
        })
    }
}

/// How long the activator takes requests after it is told to end.
fn drain_time(asked: Option<&str>) -> anyhow::Result<Duration> {
    let Some(asked) = asked else { return Ok(DRAIN) };
    let seconds = asked.parse::<u64>().context("STAND_IN_DRAIN is no number of seconds")?;
    Ok(Duration::from_secs(seconds))
}

/// The parts of the activator that every request needs.
#[derive(Clone)]
struct ActivatorState {
    revisions: Arc<ServedRevisions>,
    reporter: Arc<LoadReporter>,
    forwarder: HopClient,
    /// Whether the autoscaler is connected.
    is_linked: Arc<AtomicBool>,
    is_ending: Arc<AtomicBool>,
}

/// Plays an activator until it is told to end.
pub async fn run() -> anyhow::Result<()> {
    let identity = ActivatorPodNames::read()?;
    let client = Client::try_default().await.context("the activator runs in a pod of a cluster")?;
    let (frames, waiting) = mpsc::channel::<Bytes>(FRAMES_WAITING_MAX);
    let state = ActivatorState {
        revisions: ServedRevisions::new(identity.address),
        reporter: LoadReporter::new(&identity.pod, frames),
        forwarder: HopClient::new(),
        is_linked: Arc::default(),
        is_ending: Arc::default(),
    };
    let drain = drain_time(std::env::var("STAND_IN_DRAIN").ok().as_deref())?;
    let mut term = signal(SignalKind::terminate())?;
    let serving = |port| {
        let state = state.clone();
        serve(port, move |request| state.clone().answer(request))
    };
    let ended = async {
        term.recv().await;
        state.is_ending.store(true, Ordering::Relaxed);
        tokio::time::sleep(drain).await;
        // What it holds by then is answered, as by a server of Knative's that is shut down.
        while state.reporter.is_busy() {
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    };
    // All are cancelled when the first ends: the process ends then.
    tokio::select! {
        () = ended => Ok(()),
        served = serving(keys::HTTP1_PORT) => served,
        served = serving(keys::H2C_PORT) => served,
        () = backends::watch_objects(client.clone(), Arc::clone(&state.revisions)) => {
            anyhow::bail!("the watches have ended")
        }
        () = state.reporter.report_for_ever() => anyhow::bail!("the reports have ended"),
        linked = push_link::keep(client, &identity.system, waiting, &state.is_linked) => linked,
    }
}

impl ActivatorState {
    async fn answer(self, request: Request<Incoming>) -> Response<StandInBody> {
        let health = match (self.is_ending.load(Ordering::Relaxed), self.is_linked.load(Ordering::Relaxed)) {
            (true, _) => Err("received SIGTERM from kubelet"),
            (false, false) => Err("connection has not yet been established"),
            (false, true) => Ok(()),
        };
        if let Some(answer) = activator_gate(request.headers(), health) {
            return probed(answer);
        }
        let host = host_of(&request);
        let key = revision_of(request.headers(), &host);
        let Some(revision) = key.as_ref().and_then(|key| self.revisions.get(key)) else {
            let name = key.map(|key| key.name).unwrap_or_default();
            let body =
                format!("Error getting active endpoint: revision.serving.knative.dev {name:?} not found\n");
            return plain(StatusCode::NOT_FOUND, body);
        };
        // A request that waits for a pod is load, too.
        let in_flight = self.reporter.arrived(&revision.key);
        let (timeout, port) = (revision.timeout, revision.port);
        let throttled = async {
            let room = revision.throttler.reserve().await;
            let to = SocketAddr::new(room.pod, port);
            let request = onward(request, &host);
            self.forwarder.forward(request, to, port == keys::H2C_PORT, (room, in_flight)).await
        };
        let answered = tokio::time::timeout(timeout, throttled).await;
        answered.unwrap_or_else(|_| plain(StatusCode::GATEWAY_TIMEOUT, "activator request timeout"))
    }
}

/// The revision that a request is for: by the headers of an ingress, else by the host of the public Service.
fn revision_of(headers: &http::HeaderMap, host: &str) -> Option<RevisionKey> {
    let (name, namespace) = (text(headers, REVISION_HEADER), text(headers, NAMESPACE_HEADER));
    if !name.is_empty() && !namespace.is_empty() {
        return Some(RevisionKey::new(namespace, name));
    }
    let mut parts = host.splitn(4, '.');
    let (name, namespace, svc, domain) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let domain = domain.split(':').next().unwrap_or_default();
    (svc == "svc" && domain == DOMAIN).then(|| RevisionKey::new(namespace, name))
}

/// The request as a queue-proxy gets it. A host that an ingress has noted wins.
fn onward(mut request: Request<Incoming>, host: &str) -> Request<Incoming> {
    let headers = request.headers_mut();
    if text(headers, ORIGINAL_HOST).is_empty() {
        set(headers, ORIGINAL_HOST, host);
    }
    set(headers, PROXY_REQUEST, "activator");
    for name in [REVISION_HEADER, NAMESPACE_HEADER, "host"] {
        headers.remove(name);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_named_by_both_headers_or_by_the_host_of_its_service() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> http::HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            };
            pairs.iter().map(pair).collect()
        };
        let found = |pairs: &[_], host: &str| {
            revision_of(&headers(pairs), host).map(|key| format!("{}/{}", key.namespace, key.name))
        };
        let both = [(REVISION_HEADER, "a-00001"), (NAMESPACE_HEADER, "one")];
        assert_eq!(found(&both, "user.example.com").as_deref(), Some("one/a-00001"));
        let host = "b-00001.two.svc.cluster.local";
        assert_eq!(found(&both[..1], host).as_deref(), Some("two/b-00001"));
        assert_eq!(found(&[], &format!("{host}:80")).as_deref(), Some("two/b-00001"));
        for other in ["b-00001.two.svc", "b-00001.two.svc.example.com", "b.example.com", ""] {
            assert_eq!(found(&[], other), None, "{other}");
        }
    }
}
