//! The neighbours of an activator.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::link::{ActivatorOrder, Reader, Writer};
use activator::{
    Activator, ActivatorConfig, ActivatorMetrics, ActivatorPlace, Limits, Listeners, TrustedForwarders,
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use runtime::{Clock, MetricsRegistry};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use vocabulary::{
    ActivatorWord, Assignment, Epoch, HopKey, LinkAddress, LinkToken, Ownership, PodAssignment, PodExits,
    PodName, PodState, ReplicaName, RevisionName, Slice, Version,
};

pub(crate) const HOST: &str = "hello.default.example.com";
pub(crate) const HOP_KEY: &str = "secret";

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
pub(crate) async fn within<T>(what: &str, happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, happens).await.unwrap_or_else(|_| panic!("{what}: did not happen"))
}

/// Looks again and again until a condition holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// As our programs listen: hundreds may connect at once, and what a short backlog drops is tried again after
/// seconds.
fn listen() -> std::net::TcpListener {
    runtime::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

fn link_address(listener: &std::net::TcpListener) -> LinkAddress {
    LinkAddress { token: Some(LinkToken::new([7; 16])), ..listener.local_addr().unwrap().into() }
}

/// An activator with its links.
pub(crate) struct World {
    pub(crate) activator: Activator,
    pub(crate) address: SocketAddr,
    pub(crate) link_address: LinkAddress,
    pub(crate) metrics: MetricsRegistry,
    requests: std::net::TcpListener,
}

impl World {
    pub(crate) fn start() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::at(limits, ActivatorPlace::Ebb)
    }

    /// In the place of Knative's activators, in a cluster of the usual domain.
    pub(crate) fn in_knatives_place() -> Self {
        Self::at(Limits::default(), ActivatorPlace::Knative { domain: "cluster.local".to_owned() })
    }

    fn at(limits: Limits, place: ActivatorPlace) -> Self {
        let requests = listen();
        let link = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, link_address) = (requests.local_addr().unwrap(), link_address(&link));
        let metrics = MetricsRegistry::default();
        let counts = ActivatorMetrics::register(&metrics);
        let config = ActivatorConfig {
            name: ReplicaName::new("activator-1"),
            workers: 2,
            limits,
            clock: Clock::start(),
            connections: counts.connection_budget(20_000),
            metrics: counts,
            reporting: tokio::sync::watch::channel(std::sync::Arc::default()).1,
            log_format: runtime::LogFormat::Text,
            forwarders: TrustedForwarders::default(),
            place,
        };
        let listeners = Listeners {
            requests: requests.try_clone().unwrap(),
            more_requests: None,
            tls: None,
            link,
            link_access: link_address.token.into(),
        };
        let activator = Activator::start(config, listeners).unwrap();
        Self { activator, address, link_address, metrics, requests }
    }

    /// A second activator on the same request socket.
    pub(crate) fn another(&self) -> Self {
        let link = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let link_address = link_address(&link);
        let metrics = MetricsRegistry::default();
        let counts = ActivatorMetrics::register(&metrics);
        let config = ActivatorConfig {
            name: ReplicaName::new("activator-2"),
            workers: 2,
            limits: Limits::default(),
            clock: Clock::start(),
            connections: counts.connection_budget(20_000),
            metrics: counts,
            reporting: tokio::sync::watch::channel(std::sync::Arc::default()).1,
            log_format: runtime::LogFormat::Text,
            forwarders: TrustedForwarders::default(),
            place: ActivatorPlace::Ebb,
        };
        let requests = self.requests.try_clone().unwrap();
        let listeners = Listeners {
            requests: requests.try_clone().unwrap(),
            more_requests: None,
            tls: None,
            link,
            link_access: link_address.token.into(),
        };
        let activator = Activator::start(config, listeners).unwrap();
        Self { activator, address: self.address, link_address, metrics, requests }
    }

    /// Dials the link and syncs these assignments.
    pub(crate) async fn synced(&self, assignments: &[Assignment]) -> Autoscaler {
        let mut autoscaler = Autoscaler::dial(self.link_address).await;
        autoscaler.sync(assignments).await;
        within("the sync", self.activator.synced()).await;
        autoscaler
    }

    /// The value of a metric, all its series added up.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.metrics.encode();
        let series = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ') || rest.starts_with('{'))
        });
        series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

/// The autoscaler's end of a link. Reports are collected as they come, and from its first order on it is
/// never silent for long.
pub(crate) struct Autoscaler {
    writer: Arc<tokio::sync::Mutex<Writer<ActivatorOrder>>>,
    reports: Arc<Mutex<Vec<ActivatorWord>>>,
    reading: tokio::task::JoinHandle<()>,
    beating: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Autoscaler {
    fn drop(&mut self) {
        self.reading.abort();
        self.beating.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Autoscaler {
    pub(crate) async fn dial(address: LinkAddress) -> Self {
        let (reader, writer) = ::link::dial(address).await.unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let reading = tokio::spawn(collect(reader, Arc::clone(&reports)));
        Self { writer: Arc::new(writer.into()), reports, reading, beating: None }
    }

    /// Waits until the activator has closed the connection.
    pub(crate) async fn closed(&self) {
        until("the end of the connection", || self.reading.is_finished()).await;
    }

    pub(crate) async fn send(&mut self, order: ActivatorOrder) {
        self.writer.lock().await.send(&order).await.unwrap();
        let writer = &self.writer;
        self.beating.get_or_insert_with(|| tokio::spawn(beat(Arc::clone(writer))));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.reading.is_finished()
    }

    pub(crate) async fn sync(&mut self, assignments: &[Assignment]) {
        self.sync_of("autoscaler", Ownership::of_everything(Epoch(1)), assignments).await;
    }

    /// Tells everything in these buckets.
    pub(crate) async fn sync_of(&mut self, owner: &str, ownership: Ownership, assignments: &[Assignment]) {
        let owner = ReplicaName::new(owner);
        self.send(ActivatorOrder::SyncBegin { owner, ownership }).await;
        for assignment in assignments {
            self.send(ActivatorOrder::Assign(Box::new(assignment.clone()))).await;
        }
        self.send(ActivatorOrder::SyncEnd).await;
    }

    /// Sends an assignment and waits until it is acknowledged.
    pub(crate) async fn assign(&mut self, assignment: &Assignment) {
        self.send(ActivatorOrder::Assign(Box::new(assignment.clone()))).await;
        self.acknowledged(&assignment.revision, assignment.version).await;
    }

    pub(crate) async fn acknowledged(&self, revision: &RevisionName, version: Version) {
        let wanted = ActivatorWord::Acknowledged { revision: revision.clone(), version };
        self.report("the acknowledgement", |report| (*report == wanted).then_some(())).await;
    }

    /// The first report, so far or to come, that `choose` takes.
    pub(crate) async fn report<T>(&self, what: &str, choose: impl Fn(&ActivatorWord) -> Option<T>) -> T {
        within(what, async {
            loop {
                if let Some(chosen) = self.reports.lock().unwrap().iter().find_map(&choose) {
                    return chosen;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
    }

    pub(crate) fn reports(&self) -> Vec<ActivatorWord> {
        self.reports.lock().unwrap().clone()
    }
}

/// Until the activator hangs up.
async fn beat(writer: Arc<tokio::sync::Mutex<Writer<ActivatorOrder>>>) {
    loop {
        tokio::time::sleep(::link::HEARTBEAT_EVERY).await;
        if writer.lock().await.send(&ActivatorOrder::Heartbeat).await.is_err() {
            return;
        }
    }
}

async fn collect(mut reader: Reader<ActivatorWord>, reports: Arc<Mutex<Vec<ActivatorWord>>>) {
    while let Ok(Some(report)) = reader.next().await {
        reports.lock().unwrap().push(report);
    }
}

/// An assignment of `default/service/hello` that a test changes as it likes.
pub(crate) fn assignment(counter: u64, pods: &[(&str, SocketAddr, PodState)]) -> Assignment {
    Assignment {
        hosts: vec![HOST.to_owned()],
        pods: pods
            .iter()
            .map(|&(name, address, state)| PodAssignment {
                pod: PodName::new(name),
                address,
                exits: PodExits::default(),
                state,
                slots: 0,
                slice: Slice::Undivided,
                is_plain: false,
            })
            .collect(),
        hop_keys: vec![HopKey::new(HOP_KEY.to_owned())],
        waiting_for: "the app exits at once: exit code 3".to_owned(),
        ..Assignment::of_nothing(
            RevisionName::parse("default/service/hello").unwrap(),
            Version { epoch: Epoch(1), counter },
        )
    }
}

/// With that containerConcurrency, all of it this activator's.
pub(crate) fn with_concurrency(mut assignment: Assignment, limit: u32) -> Assignment {
    assignment.container_concurrency = limit;
    for pod in &mut assignment.pods {
        pod.slots = limit;
    }
    assignment
}

type Answer = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;

/// What a pod saw of a request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    pub(crate) version: http::Version,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
}

/// A pod's queue-proxy. It reads a request's body, waits for a permit, and answers 200 with that body; or
/// refuses to start it.
#[derive(Clone)]
pub(crate) struct Pod {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    running: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
    /// Each request takes one for good.
    pub(crate) permits: Arc<Semaphore>,
    /// How many requests are refused as not started.
    pub(crate) refusals: Arc<AtomicUsize>,
    /// How many requests that are to go at once, or are not measured, find no room.
    pub(crate) full: Arc<AtomicUsize>,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Pod {
    /// A pod that answers at once.
    pub(crate) fn start() -> Self {
        let pod = Self::held();
        pod.permits.add_permits(Semaphore::MAX_PERMITS / 2);
        pod
    }

    /// A pod that answers one request for each permit that is added.
    pub(crate) fn held() -> Self {
        let listener = TcpListener::from_std(listen()).unwrap();
        let pod = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            running: Arc::default(),
            most_at_once: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
            refusals: Arc::default(),
            full: Arc::default(),
            connections: Arc::default(),
        };
        tokio::spawn(pod.clone().accept(listener));
        pod
    }

    async fn accept(self, listener: TcpListener) {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let pod = self.clone();
            pod.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let answering = {
                    let pod = pod.clone();
                    hyper::service::service_fn(move |request| {
                        let answer = pod.clone().answer(request);
                        async move { Ok::<_, std::convert::Infallible>(answer.await) }
                    })
                };
                let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection_with_upgrades(TokioIo::new(socket), answering).await;
                pod.connections.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }

    fn answer(self, request: Request<Incoming>) -> Answer {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let mut seen = Seen {
                headers: head.headers,
                version: head.version,
                path: head.uri.path().to_owned(),
                body: None,
            };
            let is_to_be_refused = |left: &AtomicUsize| {
                left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
            };
            let waits_nowhere_else =
                ["ebb-no-queue", "ebb-unmeasured"].iter().any(|name| seen.headers.contains_key(*name));
            let is_full = waits_nowhere_else && is_to_be_refused(&self.full);
            if is_full || is_to_be_refused(&self.refusals) {
                self.seen.lock().unwrap().push(seen);
                let mut response = Response::new(Full::from("not here\n"));
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response.headers_mut().insert("ebb-not-started", "1".parse().unwrap());
                if is_full {
                    let error = "queue-full; detail=\"1 request runs\"";
                    response.headers_mut().insert("ebb-error", error.parse().unwrap());
                }
                return response;
            }
            let _running = Running::new(&self);
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            seen.body = Some(body.clone());
            self.seen.lock().unwrap().push(seen);
            self.permits.acquire().await.unwrap().forget();
            Response::new(Full::new(body))
        })
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.path).collect()
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }
}

/// Counts a request as running while it lives: dropped too when the activator breaks the exchange off.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(pod: &Pod) -> Self {
        let now = pod.running.fetch_add(1, Ordering::SeqCst) + 1;
        pod.most_at_once.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(&pod.running))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The answer that a client of the activator got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A client of the activator.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client<ConnectTo, Full<Bytes>>,
    host: &'static str,
}

/// Connects to one address, whatever the host of a request is.
#[derive(Clone)]
struct ConnectTo(SocketAddr);

impl tower::Service<http::Uri> for ConnectTo {
    type Response = TokioIo<TcpStream>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let connecting = TcpStream::connect(self.0);
        Box::pin(async move {
            let stream = connecting.await?;
            // A request that is broken off ends with a reset: a plain close behind a whole request looks like
            // the end of the sending side, whose client may still read its answer.
            stream.set_zero_linger()?;
            Ok(TokioIo::new(stream))
        })
    }
}

impl Caller {
    pub(crate) fn http1(world: &World) -> Self {
        let client = Client::builder(TokioExecutor::new()).build(ConnectTo(world.address));
        Self { client, host: HOST }
    }

    pub(crate) fn http2(world: &World) -> Self {
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build(ConnectTo(world.address));
        Self { client, host: HOST }
    }

    pub(crate) fn to(&self, host: &'static str) -> Self {
        Self { host, ..self.clone() }
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.send(Request::get(path).body(Full::default()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Got {
        self.send(Request::post(path).body(Full::new(body.into())).unwrap()).await
    }

    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Got {
        *request.uri_mut() = format!("http://{}{}", self.host, request.uri()).parse().unwrap();
        let response = within("the answer", self.client.request(request)).await.unwrap();
        let (head, body) = response.into_parts();
        let body = within("the body", body.collect()).await.unwrap().to_bytes();
        Got { status: head.status, headers: head.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// Sends a request in a task of its own, which returns the answer.
    pub(crate) fn start(&self, path: &str) -> tokio::task::JoinHandle<Got> {
        let (caller, path) = (self.clone(), path.to_owned());
        tokio::spawn(async move { caller.get(&path).await })
    }
}
