//! The small servers beside the request port: health and drain, Knative's stat, Prometheus.

use std::rc::Rc;
use std::time::Duration;

use dataplane::{
    Body, Connection, Drain, MemoryBudget, PageService, Request, Response, metrics_page, names, plain_line,
};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use prost::Message;
use runtime::{Clock, PageKind, PageLimits, TrustedHosts};
use tokio_util::sync::CancellationToken;
use vocabulary::{DRAIN_HOOK_PATH, PodName};

use crate::health::{Health, START_EXPECTED_WITHIN};
use crate::load::LoadBook;
use crate::metrics::{Levels, QueueProxyMetrics};
use crate::own_peers::OwnPeers;
use crate::stack::probes;
use crate::stat;

/// How long `/wait-for-drain` waits for a drain to begin. The app's container asks as it is told to stop, and
/// the queue-proxy, which is told at the same time, may hear of it seconds later on a busy node. A container
/// that is restarted without its pod asks too, and must not wait for ever.
const DRAIN_EXPECTED_WITHIN: Duration = Duration::from_secs(10);

/// The places that a pod keeps for readers of its pages. Its long reads wait for the drain. Those of the pod
/// itself and of its node are the hooks of its containers: more than a pod has containers. As many others may
/// wait beside them. Together they are as many as in other programs.
pub(crate) const PAGE_LIMITS: PageLimits =
    PageLimits { long_reads: 16, own_long_reads: 16, ..PageLimits::STANDARD };

/// Pages of the admin port.
const PAGES: [&str; 3] = ["/healthz", "/ready", DRAIN_HOOK_PATH];

/// The admin port: probes, `/healthz`, `/ready`, `/wait-for-drain`. No page begins a drain: every caller that
/// reaches the pod could take it out of service.
pub(crate) struct PodAdminPages {
    pub(crate) health: Rc<Health>,
    pub(crate) clock: Clock,
    pub(crate) trusted: TrustedHosts,
    /// The peers from which the hooks of the pod's containers are asked.
    pub(crate) own_peers: Rc<OwnPeers>,
    /// Cancelled when the drain begins.
    pub(crate) leaving: CancellationToken,
    /// Cancelled when the last request has ended.
    pub(crate) left: CancellationToken,
}

impl PageService for PodAdminPages {
    async fn page(self: Rc<Self>, request: Request<Body>) -> Response<Body> {
        if is_probe_request(&request) {
            return probes::answer(request.headers(), self.health.state());
        }
        if let Err(foreign) = self.trusted.check(request.uri(), request.headers()) {
            return plain_line(StatusCode::FORBIDDEN, &foreign.to_string());
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/healthz") => Response::new(Body::full("ok\n")),
            (&Method::GET, "/ready") => self.ready().await,
            (_, DRAIN_HOOK_PATH) => self.wait_for_drain().await,
            _ => plain_line(StatusCode::NOT_FOUND, "no such page"),
        }
    }

    fn kind_of(&self, request: &Request<Body>, connection: &Connection) -> PageKind {
        match request.uri().path() {
            _ if is_probe_request(request) => PageKind::Probe,
            DRAIN_HOOK_PATH if self.own_peers.are_at(connection) => PageKind::OwnLongRead,
            DRAIN_HOOK_PATH => PageKind::LongRead,
            path => PageKind::of_path(path),
        }
    }
}

/// Whether the request is a probe of Knative's kind. Kubelet asks for a page by its path, too; with Knative's
/// header a request is a probe, whatever its path.
fn is_probe_request(request: &Request<Body>) -> bool {
    let (headers, path) = (request.headers(), request.uri().path());
    let is_page = PAGES.contains(&path) && headers.get(names::K_NETWORK_PROBE).is_none();
    !is_page && (probes::is_prober(headers) || probes::is_probe(headers))
}

impl PodAdminPages {
    /// A pod that drains serves the requests that still come, so it is ready as long as its app is: clients
    /// that go by the platform's word send requests there while no other pod is ready.
    async fn ready(&self) -> Response<Body> {
        self.health.started(START_EXPECTED_WITHIN, self.clock).await;
        if self.health.is_app_ready() {
            return Response::new(Body::full("ready\n"));
        }
        let state = format!("{:?}: {}", self.health.state(), self.health.detail());
        plain_line(StatusCode::SERVICE_UNAVAILABLE, &state.to_lowercase())
    }

    /// Answers when the last request has ended, so that the app is not told to stop before.
    async fn wait_for_drain(&self) -> Response<Body> {
        // Cancelling loses nothing: both only wait.
        let begun = tokio::select! {
            () = self.leaving.cancelled() => true,
            () = self.clock.sleep_until(self.clock.now() + DRAIN_EXPECTED_WITHIN) => false,
        };
        if begun {
            self.left.cancelled().await;
        }
        Response::new(Body::empty())
    }
}

/// Port 9090: `GET /metrics` is Knative's stat.
pub(crate) struct StatPages {
    pub(crate) pod: PodName,
    pub(crate) load: Rc<LoadBook>,
    pub(crate) trusted: TrustedHosts,
}

impl PageService for StatPages {
    async fn page(self: Rc<Self>, request: Request<Body>) -> Response<Body> {
        if let Some(refusal) = not_metrics(&request, &self.trusted) {
            return refusal;
        }
        let message = stat::current(self.pod.as_str(), &self.load).encode_to_vec();
        let mut response = Response::new(Body::full(message));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(stat::CONTENT_TYPE));
        response
    }
}

/// Port 9091: `GET /metrics` for Prometheus.
pub(crate) struct PodMetricsPages {
    pub(crate) metrics: Rc<QueueProxyMetrics>,
    pub(crate) load: Rc<LoadBook>,
    pub(crate) health: Rc<Health>,
    pub(crate) drain: Drain,
    pub(crate) memory: &'static MemoryBudget,
    pub(crate) trusted: TrustedHosts,
}

impl PageService for PodMetricsPages {
    async fn page(self: Rc<Self>, request: Request<Body>) -> Response<Body> {
        if let Some(refusal) = not_metrics(&request, &self.trusted) {
            return refusal;
        }
        let page = self.metrics.page(&Levels {
            in_flight: self.load.held(),
            waiting: self.load.all_waiting(),
            connections: self.drain.connections(),
            upgraded: self.drain.upgraded(),
            memory: self.memory,
            state: self.health.state(),
        });
        metrics_page(request.headers(), page)
    }
}

/// The refusal of a request that asks a port of metrics for another page, or that a foreign web page may have
/// sent.
fn not_metrics(request: &Request<Body>, trusted: &TrustedHosts) -> Option<Response<Body>> {
    if request.uri().path() != "/metrics" {
        return Some(plain_line(StatusCode::NOT_FOUND, "no such page"));
    }
    let foreign = trusted.check(request.uri(), request.headers()).err()?;
    Some(plain_line(StatusCode::FORBIDDEN, &foreign.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> PodAdminPages {
        PodAdminPages {
            health: Health::new(),
            clock: Clock::start(),
            trusted: TrustedHosts::default(),
            own_peers: Rc::new(OwnPeers::PodAndNode(Vec::new())),
            leaving: CancellationToken::new(),
            left: CancellationToken::new(),
        }
    }

    #[test]
    fn the_pages_of_a_pod_take_as_many_descriptors_as_those_of_other_programs() {
        assert_eq!(PAGE_LIMITS.descriptors(), PageLimits::STANDARD.descriptors());
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_that_does_not_come_is_waited_for_ten_seconds() {
        let pages = pages();
        let began_at = pages.clock.now();
        pages.wait_for_drain().await;
        assert_eq!(pages.clock.now().saturating_since(began_at), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_comes_late_is_waited_for_to_its_end() {
        let pages = pages();
        let began_at = pages.clock.now();
        let draining = async {
            pages.clock.sleep_until(began_at + Duration::from_secs(9)).await;
            pages.leaving.cancel();
            pages.clock.sleep_until(began_at + Duration::from_secs(60)).await;
            pages.left.cancel();
        };
        tokio::join!(pages.wait_for_drain(), draining);
        assert_eq!(pages.clock.now().saturating_since(began_at), Duration::from_secs(60));
    }
}
