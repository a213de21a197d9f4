//! Knative's queue-proxy, as far as an autoscaler, an activator and an app meet it: contract §6 and §7.2.
//!
//! It takes requests at its port and passes them to the app with every header but those that are its own, so
//! that the app shows what reached it; it answers probes by the app's readiness, and says its load on a page.
//! Not played: TLS, metrics of requests, the request log, full duplex, the cut of WebSockets in a drain.

mod app_probe;
mod proxy_settings;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use prost::Message as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::forwarding::{
    HopClient, NAMESPACE_HEADER, ORIGINAL_HOST, PROXY_REQUEST, REVISION_HEADER, StandInBody, plain, probed,
    serve, set,
};
use super::keys;
use super::load_meter::{PeriodLoad, PeriodMeter, RequestOrigin};
use super::request_gate::{ProbeAnswer, QueueGate, queue_gate, text};
use super::stat_bytes::PushedStat;
use crate::bench::clock;
use proxy_settings::ControllerEnvironment;

const REPORT_EVERY: Duration = Duration::from_secs(1);
/// How long no request may have come before a pod that drains ends. Knative waits for 30 s; tests for less.
const QUIET: Duration = Duration::from_secs(2);
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// Requests that may wait for each slot.
const QUEUE_PER_SLOT: usize = 10;

/// The parts of the queue-proxy that every request needs.
struct QueueProxyState {
    settings: ControllerEnvironment,
    forwarder: HopClient,
    begun: Duration,
    meter: Mutex<PeriodMeter>,
    /// The load of the last whole period.
    reported: Mutex<PeriodLoad>,
    /// Room in the app; `None` without a limit.
    slots: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
    is_draining: AtomicBool,
    last_request: Mutex<Duration>,
}

/// Plays a queue-proxy until it has drained.
pub async fn run() -> anyhow::Result<()> {
    let settings = ControllerEnvironment::read(|name| std::env::var(name).ok())?;
    let now = clock::now();
    let state = Arc::new(QueueProxyState {
        forwarder: HopClient::new(),
        begun: now,
        meter: Mutex::new(PeriodMeter::new(now)),
        reported: Mutex::default(),
        slots: (settings.limit > 0).then(|| Arc::new(Semaphore::new(settings.limit))),
        waiting: AtomicUsize::new(0),
        is_draining: AtomicBool::new(false),
        last_request: Mutex::new(now),
        settings,
    });
    let mut term = signal(SignalKind::terminate())?;
    let ended = async {
        term.recv().await;
        state.drain().await;
    };
    let requests = Arc::clone(&state);
    let requests = serve(state.settings.port, move |request| Arc::clone(&requests).answer(request));
    let loads = Arc::clone(&state);
    let loads = serve(keys::STAT_PORT, move |_| std::future::ready(loads.load_page()));
    let hooks = Arc::clone(&state);
    let hooks = serve(keys::DRAIN_PORT, move |_| {
        let state = Arc::clone(&hooks);
        async move {
            state.drain().await;
            plain(StatusCode::OK, "")
        }
    });
    // All are cancelled when the pod has drained: the process ends then.
    tokio::select! {
        () = ended => Ok(()),
        served = requests => served,
        served = loads => served,
        served = hooks => served,
        () = state.report_for_ever() => anyhow::bail!("the reports have ended"),
    }
}

impl QueueProxyState {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<StandInBody> {
        match queue_gate(request.headers(), self.is_draining.load(Ordering::Relaxed)) {
            QueueGate::Answer(answer) => probed(answer),
            QueueGate::AskApp => {
                let is_ready = self.settings.probe.is_ready().await;
                let (status, body) =
                    if is_ready { (StatusCode::OK, "queue") } else { (StatusCode::SERVICE_UNAVAILABLE, "") };
                probed(ProbeAnswer::new(status, body))
            }
            QueueGate::Pass => self.pass(request).await,
        }
    }

    async fn pass(self: Arc<Self>, mut request: Request<Incoming>) -> Response<StandInBody> {
        let is_proxied = text(request.headers(), PROXY_REQUEST) == "activator";
        let origin = if is_proxied { RequestOrigin::Activator } else { RequestOrigin::Client };
        let counted = RequestInApp::new(&self, origin);
        let handled = async {
            let Ok(slot) = self.slot().await else {
                return plain(StatusCode::SERVICE_UNAVAILABLE, "pending request queue full\n");
            };
            for_the_app(request.headers_mut());
            let app = SocketAddr::from((Ipv4Addr::LOCALHOST, self.settings.user_port));
            let speaks_h2c = self.settings.port == keys::H2C_PORT;
            self.forwarder.forward(request, app, speaks_h2c, (counted, slot)).await
        };
        let answered = tokio::time::timeout(self.settings.timeout, handled).await;
        answered.unwrap_or_else(|_| plain(StatusCode::GATEWAY_TIMEOUT, "request timeout"))
    }

    /// Waits for room; `Err` when too many wait already.
    async fn slot(&self) -> Result<Option<OwnedSemaphorePermit>, QueueIsFull> {
        let Some(slots) = &self.slots else { return Ok(None) };
        if let Ok(free) = Arc::clone(slots).try_acquire_owned() {
            return Ok(Some(free));
        }
        let waiting = WaitingRequestCount::new(&self.waiting);
        if waiting.among > self.settings.limit * QUEUE_PER_SLOT {
            return Err(QueueIsFull);
        }
        let slot = Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed");
        Ok(Some(slot))
    }

    /// Begins to drain; returns once no request is in flight and none has come for a while.
    async fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        let begun = clock::now();
        loop {
            let last = *self.last_request.lock().unwrap_or_else(PoisonError::into_inner);
            let is_busy = self.meter.lock().unwrap_or_else(PoisonError::into_inner).is_busy();
            if !is_busy && clock::since(last.max(begun)) >= QUIET {
                return;
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    }

    async fn report_for_ever(&self) {
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        loop {
            ticks.tick().await;
            let load = self.meter.lock().unwrap_or_else(PoisonError::into_inner).report(clock::now());
            *self.reported.lock().unwrap_or_else(PoisonError::into_inner) = load;
        }
    }

    /// The page that an autoscaler scrapes: one bare stat.
    fn load_page(&self) -> Response<StandInBody> {
        let load = *self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let stat = PushedStat {
            pod_name: self.settings.pod.clone(),
            concurrency: load.concurrency,
            proxied_concurrency: load.proxied_concurrency,
            requests: load.requests,
            proxied_requests: load.proxied_requests,
            uptime: clock::since(self.begun).as_secs_f64(),
        };
        let mut page = plain(StatusCode::OK, stat.encode_to_vec());
        set(page.headers_mut(), "content-type", "application/protobuf");
        page
    }
}

/// Headers as the app gets them: the host that the client meant, and none of the proxies' own names.
fn for_the_app(headers: &mut HeaderMap) {
    let host = text(headers, ORIGINAL_HOST).to_owned();
    if !host.is_empty() {
        set(headers, "host", &host);
    }
    for name in [ORIGINAL_HOST, REVISION_HEADER, NAMESPACE_HEADER] {
        headers.remove(name);
    }
}

/// More requests wait than a queue holds.
struct QueueIsFull;

/// A request that is load until this is dropped.
struct RequestInApp {
    state: Arc<QueueProxyState>,
    origin: RequestOrigin,
}

impl RequestInApp {
    fn new(state: &Arc<QueueProxyState>, origin: RequestOrigin) -> Self {
        let now = clock::now();
        *state.last_request.lock().unwrap_or_else(PoisonError::into_inner) = now;
        state.meter.lock().unwrap_or_else(PoisonError::into_inner).arrived(origin, now);
        Self { state: Arc::clone(state), origin }
    }
}

impl Drop for RequestInApp {
    fn drop(&mut self) {
        let mut meter = self.state.meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.ended(self.origin, clock::now());
    }
}

/// One of the requests that wait, until it is dropped.
struct WaitingRequestCount<'s> {
    count: &'s AtomicUsize,
    /// The number of requests that wait, this one among them.
    among: usize,
}

impl<'s> WaitingRequestCount<'s> {
    fn new(count: &'s AtomicUsize) -> Self {
        Self { count, among: count.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for WaitingRequestCount<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_app_gets_the_host_that_the_client_meant_and_every_other_header() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "10.0.0.1:8012"),
            (ORIGINAL_HOST, "shop.example.com"),
            (REVISION_HEADER, "a"),
            (NAMESPACE_HEADER, "b"),
            (PROXY_REQUEST, "activator"),
            ("ebb-made-up", "shows"),
        ] {
            set(&mut headers, name, value);
        }
        for_the_app(&mut headers);
        let mut left: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("text"))).collect();
        left.sort_unstable();
        let expected = [("ebb-made-up", "shows"), ("host", "shop.example.com"), (PROXY_REQUEST, "activator")];
        assert_eq!(left, expected);
    }
}
