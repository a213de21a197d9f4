//! The whole autoscaler over real links on loopback: a platform that the test plays, activators and pods that
//! it plays too.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use link::{AcceptedLink, Acceptor, ActivatorOrder, PodOrder, Reader, RefusedLinks, Writer};
use orchestration::{
    ActivatorFacts, ActivatorLife, AppOutput, Entrance, Fence, Order, PlatformFact, PlatformOrder, PodFacts,
    PodFailure, RevisionFacts, Subject,
};
use platform::{HistoryShelf, Seat, ShelfFault, ShelfFuture, ShelvedDay, Subscription};
use runtime::{Clock, MetricsRegistry};
use scaling::{PodPhase, RevisionOrigin};
use settings::{ClusterConfig, FloorCause, RevisionSettings};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tower::ServiceExt;
use vocabulary::{
    ActivatorHello, ActivatorWord, Assignment, BootId, Bucket, Concurrency, Epoch, HopKey, LinkVersion, Load,
    Ownership, PodCount, PodExits, PodHello, PodName, PodState, PodWord, PresentCount, ReplicaName,
    RequestTimeouts, RevisionLoad, RevisionName, Routing, Sample, Timestamp, Version,
};

use super::*;
use crate::api_types::{ApiError, DemandView, ProblemList, RevisionDetail, RevisionList, SeriesView};

/// Nothing here takes longer; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<Value>(what: &str, future: impl Future<Output = Value>) -> Value {
    let Ok(value) = tokio::time::timeout(PATIENCE, future).await else { panic!("{what} did not happen") };
    value
}

/// The platform as the test plays it.
struct FakePlatform {
    facts: Mutex<Option<mpsc::Receiver<PlatformFact>>>,
    commands: mpsc::Sender<Order>,
    renew_every: Option<Duration>,
    renewals: Arc<AtomicUsize>,
    shelf: Option<Arc<MemoryShelf>>,
}

/// A shelf that keeps what it is given.
#[derive(Default)]
struct MemoryShelf {
    days: Mutex<BTreeMap<u64, ShelvedDay>>,
    is_unreadable: AtomicBool,
}

impl HistoryShelf for MemoryShelf {
    fn piece_bytes_max(&self) -> usize {
        1 << 20
    }

    fn read(&self, _bucket: Bucket) -> ShelfFuture<'_, Vec<ShelvedDay>> {
        let days = self.days.lock().unwrap().values().cloned().collect();
        let is_unreadable = self.is_unreadable.load(Ordering::Relaxed);
        let refused = Err(ShelfFault::Failed("the test wants it".to_owned()));
        Box::pin(std::future::ready(if is_unreadable { refused } else { Ok(days) }))
    }

    fn write(&self, _fence: Fence, day: ShelvedDay) -> ShelfFuture<'_, ()> {
        self.days.lock().unwrap().insert(day.day, day);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What a world has that others have not.
#[derive(Default)]
struct WorldExtras {
    renew_every: Option<Duration>,
    history: Option<HistorySource>,
    shelf: Option<Arc<MemoryShelf>>,
}

impl Platform for FakePlatform {
    fn subscribe(&self, owner: &ReplicaName) -> Subscription {
        assert_eq!(owner.as_str(), "autoscaler");
        let facts = self.facts.lock().unwrap().take().expect("one subscription per platform");
        let seat = FakeSeat { commands: self.commands.clone(), renewals: Arc::clone(&self.renewals) };
        Subscription { facts, seat: Box::new(seat), renew_every: self.renew_every }
    }

    fn history_shelf(&self) -> Option<Arc<dyn HistoryShelf>> {
        Some(Arc::<MemoryShelf>::clone(self.shelf.as_ref()?))
    }
}

struct FakeSeat {
    commands: mpsc::Sender<Order>,
    renewals: Arc<AtomicUsize>,
}

impl Seat for FakeSeat {
    fn execute(&self, order: PlatformOrder) {
        self.commands.try_send(order.what).expect("the test reads the commands");
    }

    fn renew(&self) {
        self.renewals.fetch_add(1, Ordering::Relaxed);
    }
}

struct World {
    autoscaler: Autoscaler,
    facts: mpsc::Sender<PlatformFact>,
    commands: mpsc::Receiver<Order>,
    renewals: Arc<AtomicUsize>,
}

impl World {
    fn start(epoch: u64) -> Self {
        Self::start_with(epoch, WorldExtras::default())
    }

    fn start_with(epoch: u64, extras: WorldExtras) -> Self {
        let WorldExtras { renew_every, history, shelf } = extras;
        let (facts, receiver) = mpsc::channel(1024);
        let (orders, commands) = mpsc::channel(1024);
        let renewals = Arc::<AtomicUsize>::default();
        let platform = Arc::new(FakePlatform {
            facts: Mutex::new(Some(receiver)),
            commands: orders,
            renew_every,
            renewals: Arc::clone(&renewals),
            shelf,
        });
        let metrics = AutoscalerMetrics::register(&MetricsRegistry::default());
        facts
            .try_send(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(epoch))))
            .expect("the first of many");
        let config = AutoscalerConfig {
            name: ReplicaName::new("autoscaler"),
            clock: Clock::start(),
            metrics,
            dialler: Arc::new(link::TcpDialler),
            choice: ActivatorChoice::All,
            record: RecordChoice::Nowhere,
            stats: StatDesk::default(),
            history,
        };
        Self { autoscaler: Autoscaler::start(config, platform), facts, commands, renewals }
    }

    async fn say(&self, event: PlatformFact) {
        self.facts.send(event).await.expect("the autoscaler listens");
    }

    /// One revision with `wanted` pods, one activator, and the end of the beginning.
    async fn begin(&self, wanted: u32, pods: Vec<PodFacts>, activators: &[&TestActivator]) {
        self.say(PlatformFact::ConfigChanged(Arc::new(ClusterConfig::default()))).await;
        self.say(PlatformFact::RevisionChanged(revision(wanted))).await;
        self.say(PlatformFact::PodsChanged { revision: name(), pods }).await;
        let activators = activators.iter().map(|activator| activator.facts()).collect();
        self.say(PlatformFact::ActivatorsChanged(activators)).await;
        self.say(PlatformFact::Synced).await;
    }

    /// The next command of interest.
    async fn command<Value>(&mut self, what: &str, wanted: impl Fn(Order) -> Option<Value>) -> Value {
        soon(what, async {
            loop {
                let command = self.commands.recv().await.expect("the autoscaler lives");
                if let Some(value) = wanted(command) {
                    return value;
                }
            }
        })
        .await
    }

    async fn released(&mut self) -> PodName {
        self.command(
            "a release",
            |order| {
                if let Order::ReleasePod { pod, .. } = order { Some(pod) } else { None }
            },
        )
        .await
    }

    async fn scaled(&mut self) -> (PodCount, Vec<PodName>) {
        self.command("a scale order", |order| {
            if let Order::ScaleTo { to, end_first, .. } = order { Some((to, end_first)) } else { None }
        })
        .await
    }

    async fn noted(&mut self, pod: &str, state: PodState) {
        self.command("a noted pod state", |order| {
            if let Order::NotePodState { pod: noted, state: said, .. } = order {
                (noted.as_str() == pod && said == state).then_some(())
            } else {
                None
            }
        })
        .await;
    }

    /// Waits until readers find everything that the loop knows now.
    async fn published(&self) {
        let reader = &self.autoscaler.api.snapshots;
        let now = reader.now();
        soon("a later snapshot", async {
            while reader.read().is_none_or(|latest| latest.at < now) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn get(&self, path: &str) -> (StatusCode, Vec<u8>) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = soon("an answer", self.autoscaler.router().oneshot(request)).await.unwrap();
        let status = response.status();
        (status, axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec())
    }
}

fn name() -> RevisionName {
    RevisionName::parse("default/service/hello").unwrap()
}

pub(crate) fn revision(wanted: u32) -> Arc<RevisionFacts> {
    let annotations = BTreeMap::from([("autoscaling.knative.dev/target".to_owned(), "10".to_owned())]);
    let settings = RevisionSettings::read(&annotations, &ClusterConfig::default(), None).unwrap().value;
    Arc::new(RevisionFacts {
        name: name(),
        settings,
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        progress_deadline: settings::PROGRESS_DEADLINE_DEFAULT,
        entrances: vec![Entrance::Host("hello.default.example.com".to_owned())],
        url: None,
        hop_keys: vec![HopKey::new("key".to_owned())],
        wanted: PodCount::new(wanted),
        may_write: true,
        reachable: true,
        floor: PodCount::ZERO,
        floor_cause: FloorCause::default(),
        waiting_page: vocabulary::WaitingPage::Off,
        hold: None,
        origin: RevisionOrigin::Found,
        template: "hello-00001".to_owned(),
        other_autoscaler: None,
    })
}

/// A queue-proxy as the test plays it.
struct FakePod {
    name: &'static str,
    acceptor: Acceptor<PodOrder, PodWord>,
    address: SocketAddr,
}

impl FakePod {
    async fn bind(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { name, acceptor: Acceptor::new(listener, None, RefusedLinks::default()), address }
    }

    fn facts(&self) -> PodFacts {
        PodFacts {
            name: PodName::new(self.name),
            phase: PodPhase::Running,
            leaving: false,
            ends_in: None,
            platform_ready: None,
            requests: Some(self.address),
            exits: PodExits::default(),
            link: Some(self.address.into()),
            adoption: None,
            outdated: false,
            awaits_core: false,
            trouble: None,
            trouble_without_output: None,
            hold: None,
            details: BTreeMap::from([("app_pid".to_owned(), "4711".to_owned())]),
        }
    }

    fn leaving(&self) -> PodFacts {
        PodFacts { leaving: true, ..self.facts() }
    }

    /// Takes the link and says hello.
    async fn link(&mut self, state: PodState) -> AcceptedLink<PodOrder, PodWord> {
        let mut accepted = soon("a link to a pod", self.acceptor.accept()).await;
        let hello = PodHello {
            speaks: LinkVersion::CURRENT,
            pod: PodName::new(self.name),
            boot: BootId(1),
            state,
            detail: String::new(),
            container_concurrency: 0,
            timeouts: RequestTimeouts::default(),
            current_second: 0,
            history: Vec::new(),
        };
        accepted.writer.send(&PodWord::Hello(hello)).await.unwrap();
        accepted
    }
}

/// An activator as the test plays it.
struct TestActivator {
    name: &'static str,
    acceptor: Acceptor<ActivatorOrder, ActivatorWord>,
    address: SocketAddr,
}

struct ActivatorEnd {
    reader: Reader<ActivatorOrder>,
    writer: Writer<ActivatorWord>,
}

impl TestActivator {
    async fn bind(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { name, acceptor: Acceptor::new(listener, None, RefusedLinks::default()), address }
    }

    fn facts(&self) -> ActivatorFacts {
        ActivatorFacts {
            name: ReplicaName::new(self.name),
            link: self.address.into(),
            life: ActivatorLife::Ready,
        }
    }

    async fn link(&mut self, boot: u64, routings: Vec<(RevisionName, Routing)>) -> ActivatorEnd {
        let accepted = soon("a link to an activator", self.acceptor.accept()).await;
        assert_eq!(accepted.first, ActivatorOrder::Heartbeat, "nothing is said before the hello");
        let mut writer = accepted.writer;
        let hello = ActivatorHello {
            speaks: LinkVersion::CURRENT,
            activator: ReplicaName::new(self.name),
            boot: BootId(boot),
            current_second: 0,
            history: Vec::new(),
            present: Vec::new(),
            routings,
        };
        writer.send(&ActivatorWord::Hello(hello)).await.unwrap();
        ActivatorEnd { reader: accepted.reader, writer }
    }
}

impl ActivatorEnd {
    async fn next(&mut self) -> ActivatorOrder {
        loop {
            let order = soon("an order", self.reader.next()).await.unwrap().expect("the link is up");
            if order != ActivatorOrder::Heartbeat {
                return order;
            }
        }
    }

    /// Everything between `SyncBegin` and `SyncEnd`.
    async fn synced(&mut self) -> Vec<Assignment> {
        assert!(matches!(self.next().await, ActivatorOrder::SyncBegin { .. }));
        let mut assignments = Vec::new();
        loop {
            match self.next().await {
                ActivatorOrder::Assign(assignment) => assignments.push(*assignment),
                ActivatorOrder::SyncEnd => return assignments,
                other @ (ActivatorOrder::SyncBegin { .. }
                | ActivatorOrder::Forget { .. }
                | ActivatorOrder::Released { .. }
                | ActivatorOrder::Remove { .. }
                | ActivatorOrder::Heartbeat) => {
                    panic!("{other:?} within a sync")
                }
            }
        }
    }

    /// The first assignment that shows what is awaited.
    async fn assigned(&mut self, shows: impl Fn(&Assignment) -> bool) -> Assignment {
        loop {
            if let ActivatorOrder::Assign(assignment) = self.next().await
                && shows(&assignment)
            {
                return *assignment;
            }
        }
    }

    async fn acknowledge(&mut self, version: Version) {
        self.writer.send(&ActivatorWord::Acknowledged { revision: name(), version }).await.unwrap();
    }
}

fn states(assignment: &Assignment) -> Vec<(&str, PodState)> {
    assignment.pods.iter().map(|pod| (pod.pod.as_str(), pod.state)).collect()
}

#[tokio::test]
async fn the_first_request_asks_for_a_pod_and_the_ready_pod_reaches_the_activator() {
    let mut world = World::start(1);
    let mut activator = TestActivator::bind("a").await;
    world.begin(0, Vec::new(), &[&activator]).await;
    let mut end = activator.link(1, Vec::new()).await;
    let synced = end.synced().await;
    assert_eq!(synced.len(), 1);
    assert_eq!((synced[0].version.epoch, synced[0].routing), (Epoch(1), Routing::ThroughActivator));
    assert_eq!(synced[0].waiting_for, "the autoscaler to ask for a pod");

    let count = PresentCount { in_flight: 1, waiting: 1 };
    let present = ActivatorWord::Present { revision: name(), count, oldest_wait: Duration::ZERO };
    end.writer.send(&present).await.unwrap();
    assert_eq!(world.scaled().await.0, PodCount::ONE);

    let mut pod = FakePod::bind("p1").await;
    world.say(PlatformFact::RevisionChanged(revision(1))).await;
    world.say(PlatformFact::PodsChanged { revision: name(), pods: vec![pod.facts()] }).await;
    let unheard = end.assigned(|assignment| !assignment.pods.is_empty()).await;
    assert_eq!(states(&unheard), [("p1", PodState::Unheard)]);
    let mut pod_end = pod.link(PodState::Starting).await;
    let PodOrder::Settings(settings) = &pod_end.first else { panic!("settings come first") };
    assert_eq!(
        (settings.routing, settings.hop_keys.as_slice()),
        (Routing::ThroughActivator, &[HopKey::new("key".to_owned())][..])
    );
    world.noted("p1", PodState::Starting).await;
    pod_end.writer.send(&PodWord::State { state: PodState::Ready, detail: String::new() }).await.unwrap();
    let ready = end.assigned(|assignment| states(assignment) == [("p1", PodState::Ready)]).await;
    assert!(ready.version > unheard.version && ready.waiting_for.is_empty());
    world.noted("p1", PodState::Ready).await;
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn frames_that_do_not_name_a_revision_dilute_nothing() {
    let mut world = World::start(1);
    let mut activator = TestActivator::bind("a").await;
    world.begin(0, Vec::new(), &[&activator]).await;
    let mut end = activator.link(1, Vec::new()).await;
    end.synced().await;
    end.writer.send(&ActivatorWord::Loads { second: 0, loads: Vec::new() }).await.unwrap();
    // Exactly two pods' worth; averaged with a second of nothing it would be one's.
    let load = Load { concurrency: Concurrency::clamped(14.0), queued: 14, ..Load::default() };
    let loads =
        vec![RevisionLoad { revision: name(), load, oldest_wait: Duration::ZERO, callers: Vec::new() }];
    end.writer.send(&ActivatorWord::Loads { second: 1, loads }).await.unwrap();
    assert_eq!(world.scaled().await.0, PodCount::new(2));
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn a_leaving_pod_is_released_once_every_activator_acknowledged() {
    let mut world = World::start(1);
    let (mut one, mut two) = (TestActivator::bind("a").await, TestActivator::bind("b").await);
    let mut pod = FakePod::bind("p1").await;
    world.begin(1, vec![pod.facts()], &[&one, &two]).await;
    let (mut one, mut two) = (one.link(1, Vec::new()).await, two.link(1, Vec::new()).await);
    one.synced().await;
    two.synced().await;
    let _pod_end = pod.link(PodState::Ready).await;
    one.assigned(|assignment| states(assignment) == [("p1", PodState::Ready)]).await;

    world.say(PlatformFact::PodsChanged { revision: name(), pods: vec![pod.leaving()] }).await;
    let is_draining = |assignment: &Assignment| states(assignment) == [("p1", PodState::Draining)];
    let draining = one.assigned(is_draining).await;
    assert_eq!(two.assigned(is_draining).await.version, draining.version);
    one.acknowledge(draining.version).await;
    two.acknowledge(Version { counter: draining.version.counter - 1, ..draining.version }).await;
    // Both words have been taken in once the loop has answered about a later one.
    one.writer
        .send(&ActivatorWord::Present {
            revision: name(),
            count: PresentCount { in_flight: 900, waiting: 900 },
            oldest_wait: Duration::ZERO,
        })
        .await
        .unwrap();
    let before_release = world.command("a scale order before the release", Some).await;
    let mut command = before_release;
    loop {
        assert!(
            !matches!(command, Order::ReleasePod { .. }),
            "released before the second activator acknowledged"
        );
        if matches!(command, Order::ScaleTo { .. }) {
            break;
        }
        command = world.command("another", Some).await;
    }
    two.acknowledge(draining.version).await;
    assert_eq!(world.released().await.as_str(), "p1");
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn a_rebuilt_autoscaler_goes_on_with_the_routing_in_force() {
    let mut world = World::start(2);
    let mut activator = TestActivator::bind("a").await;
    let mut pod = FakePod::bind("p1").await;
    world.begin(3, vec![pod.facts()], &[&activator]).await;
    let mut end = activator.link(1, vec![(name(), Routing::Direct)]).await;
    let synced = end.synced().await;
    assert_eq!((synced[0].routing, synced[0].version.epoch), (Routing::Direct, Epoch(2)));
    let accepted = pod.link(PodState::Ready).await;
    let PodOrder::Settings(settings) = accepted.first else { panic!("settings come first") };
    assert_eq!(settings.routing, Routing::Direct);
    soon("the stop", world.autoscaler.stop()).await;
    assert!(
        std::iter::from_fn(|| world.commands.try_recv().ok())
            .all(|command| !matches!(command, Order::ScaleTo { .. })),
        "a restart changes no count"
    );
}

#[tokio::test]
async fn a_misbehaving_link_disturbs_no_other() {
    let mut world = World::start(1);
    let mut pods = Vec::new();
    for pod in ["garbage", "good", "impostor", "silent"] {
        pods.push(FakePod::bind(pod).await);
    }
    let facts = pods.iter().map(FakePod::facts).collect();
    world.begin(4, facts, &[]).await;
    let [garbage, good, impostor, silent] = &mut pods[..] else { panic!("four pods") };
    let mut garbage_end = garbage.link(PodState::Ready).await;
    let _silent = soon("a link", silent.acceptor.accept()).await;
    garbage_end
        .writer
        .send(&PodWord::Present(PresentCount { in_flight: u32::MAX, waiting: u32::MAX }))
        .await
        .unwrap();
    let second_hello = PodHello {
        speaks: LinkVersion::CURRENT,
        pod: PodName::new("garbage"),
        boot: BootId(1),
        state: PodState::Ready,
        detail: String::new(),
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        current_second: 0,
        history: Vec::new(),
    };
    garbage_end.writer.send(&PodWord::Hello(second_hello.clone())).await.unwrap();
    assert!(
        soon("the cut", async {
            loop {
                match garbage_end.reader.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return true,
                }
            }
        })
        .await
    );
    let mut impostor_end = soon("a link", impostor.acceptor.accept()).await;
    impostor_end.writer.send(&PodWord::Hello(second_hello)).await.unwrap();
    let _good = good.link(PodState::Ready).await;
    world.noted("good", PodState::Ready).await;
    // The one that was cut off is dialled again.
    let _again = garbage.link(PodState::Unready).await;
    world.noted("garbage", PodState::Unready).await;
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn facts_and_words_about_strangers_are_ignored() {
    let world = World::start(1);
    let stranger = RevisionName::parse("other/service/gone").unwrap();
    let mut activator = TestActivator::bind("a").await;
    world.say(PlatformFact::PodsChanged { revision: stranger.clone(), pods: Vec::new() }).await;
    world.say(PlatformFact::RevisionRemoved(stranger.clone())).await;
    world.begin(0, Vec::new(), &[&activator]).await;
    let mut end = activator.link(1, vec![(stranger.clone(), Routing::Direct)]).await;
    end.synced().await;
    let count = PresentCount { in_flight: 1, waiting: 1 };
    end.writer
        .send(&ActivatorWord::Present { revision: stranger.clone(), count, oldest_wait: Duration::ZERO })
        .await
        .unwrap();
    end.writer
        .send(&ActivatorWord::Acknowledged {
            revision: stranger,
            version: Version { epoch: Epoch(9), counter: 9 },
        })
        .await
        .unwrap();
    assert_eq!(world.get("/healthz").await.0, StatusCode::OK);
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn a_removed_revision_is_taken_from_the_activators() {
    let world = World::start(1);
    let mut activator = TestActivator::bind("a").await;
    world.begin(0, Vec::new(), &[&activator]).await;
    let mut end = activator.link(1, Vec::new()).await;
    let synced = end.synced().await;
    world.say(PlatformFact::RevisionRemoved(name())).await;
    let ActivatorOrder::Remove { revision, version } = end.next().await else { panic!("a removal") };
    assert!(revision == name() && version > synced[0].version);
    world.published().await;
    assert_eq!(world.get("/v1/revisions/default/service/hello").await.0, StatusCode::NOT_FOUND);
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn a_reader_that_heard_of_readiness_finds_the_revisions_at_once() {
    let world = World::start(1);
    world.begin(0, Vec::new(), &[]).await;
    soon("readiness", async { while world.get("/ready").await.0 != StatusCode::OK {} }).await;
    assert_eq!(world.get("/v1/revisions/default/service/hello").await.0, StatusCode::OK);
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn an_activator_whose_link_breaks_is_told_everything_again() {
    let world = World::start(1);
    let mut activator = TestActivator::bind("a").await;
    world.begin(0, Vec::new(), &[&activator]).await;
    let mut end = activator.link(1, Vec::new()).await;
    let before = end.synced().await;
    drop(end);
    let mut end = activator.link(1, Vec::new()).await;
    assert_eq!(end.synced().await, before, "nothing changed, so the versions are the same");
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn the_api_shows_the_past_of_a_revision_and_refuses_another_range() {
    let mut world = World::start(1);
    let mut pod = FakePod::bind("p1").await;
    world.begin(2, vec![pod.facts()], &[]).await;
    let _end = pod.link(PodState::Ready).await;
    world.noted("p1", PodState::Ready).await;
    world.published().await;
    for (range, steps) in [("15m", 900), ("24h", 1440), ("30d", 720)] {
        let (status, body) =
            world.get(&format!("/v1/revisions/default/service/hello/series?range={range}")).await;
        let series: SeriesView = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, series.range.as_str()), (StatusCode::OK, range));
        assert_eq!((series.wanted.len(), series.concurrency_max.len()), (steps, steps));
    }
    let (status, body) = world.get("/v1/revisions/default/service/hello/series?range=1h").await;
    let error: ApiError = serde_json::from_slice(&body).unwrap();
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error.error, r#"the parameter range is "1h"; write one of 15m, 24h, 30d"#);
    let (status, _) = world.get("/v1/revisions/default/service/none/series?range=24h").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    soon("the stop", world.autoscaler.stop()).await;
}

#[tokio::test]
async fn the_api_shows_revisions_pods_and_problems() {
    let mut world = World::start(1);
    let mut pod = FakePod::bind("p1").await;
    let crashed = PodFacts {
        name: PodName::new("p2"),
        link: None,
        requests: None,
        trouble: Some("the app exited with code 3".to_owned()),
        ..pod.facts()
    };
    world.begin(2, vec![pod.facts(), crashed], &[]).await;
    world
        .say(PlatformFact::ProblemsChanged {
            about: Subject::Configuration,
            problems: vec!["config.yaml: no".to_owned()],
        })
        .await;
    let _end = pod.link(PodState::Ready).await;
    world.noted("p1", PodState::Ready).await;
    world.published().await;

    let (status, body) = world.get("/v1/revisions").await;
    let list: RevisionList = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, list.version, list.revisions.len()), (StatusCode::OK, 1, 1));
    assert_eq!(list.problems, ["config.yaml: no"]);
    let summary = &list.revisions[0];
    assert_eq!(
        (summary.name.clone(), summary.ready_pods, summary.mode.as_str()),
        (name(), PodCount::ONE, "panic")
    );
    assert_eq!(summary.why_not_ready.as_deref(), Some("pod p2: the app exited with code 3"));

    let (status, body) = world.get("/v1/revisions/default/service/hello").await;
    let detail: RevisionDetail = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, detail.pods.len()), (StatusCode::OK, 2));
    let view = &detail.pods[0];
    assert_eq!((view.name.as_str(), view.state, view.linked), ("p1", PodState::Ready, true));
    assert_eq!(view.details["app_pid"], "4711");
    assert_eq!(detail.pods[1].trouble.as_deref(), Some("the app exited with code 3"));

    let (_, body) = world.get("/v1/problems").await;
    let problems: ProblemList = serde_json::from_slice(&body).unwrap();
    assert_eq!(problems.problems, ["config.yaml: no"]);
    assert_eq!(world.get("/v1/revisions/default/service/none").await.0, StatusCode::NOT_FOUND);

    let router = world.autoscaler.router();
    soon("the stop", world.autoscaler.stop()).await;
    let request = Request::builder().uri("/healthz").body(Body::empty()).unwrap();
    assert_eq!(router.oneshot(request).await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// What the API of `ebb up` says to those who may not read logs.
#[tokio::test]
async fn answers_repeat_what_apps_printed_only_where_it_may_be_shown() {
    let mut world = World::start(1);
    let mut pod = FakePod::bind("p1").await;
    let reason = "the app exited with code 3".to_owned();
    let crashed = PodFacts {
        name: PodName::new("p2"),
        link: None,
        trouble: Some(format!("{reason}: the password is secret")),
        trouble_without_output: Some(reason.clone()),
        ..pod.facts()
    };
    world.begin(2, vec![pod.facts(), crashed], &[]).await;
    let failure = PodFailure {
        pod: PodName::new("p2"),
        at: Timestamp::from_secs(1),
        reason,
        last_lines: vec!["the password is secret".to_owned()],
    };
    let fact = PlatformFact::PodFailed { revision: name(), failure };
    world.say(fact).await;
    let _end = pod.link(PodState::Ready).await;
    world.noted("p1", PodState::Ready).await;
    world.published().await;
    for path in ["/v1/revisions", "/v1/revisions/default/service/hello"] {
        let asked = async |output| {
            let mut request = Request::builder().uri(path).body(Body::empty()).unwrap();
            request.extensions_mut().insert(output);
            let response = soon("an answer", world.autoscaler.router().oneshot(request)).await.unwrap();
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        };
        let shown = asked(AppOutput::Shown).await;
        assert!(shown.contains("secret") && !shown.contains(AppOutput::ADVICE), "{shown}");
        let withheld = asked(AppOutput::Withheld).await;
        assert!(!withheld.contains("secret") && withheld.contains("exited with code 3"), "{withheld}");
        assert_eq!(withheld.contains(AppOutput::ADVICE), path.ends_with("hello"), "{withheld}");
        assert!(world.get(path).await.1.windows(6).any(|part| part == b"secret"), "on a cluster");
    }
}

/// A pod that reports the same concurrency every second of the paused clock, as long as its behaviour is to
/// talk.
struct SteadyPod {
    facts: PodFacts,
    behaviour: watch::Sender<Behaviour>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    /// Reports its load once a second.
    Talks,
    /// Keeps the connection and says nothing.
    Stalls,
    /// Closes every connection at once.
    Cuts,
}

impl SteadyPod {
    async fn start(name: &'static str, concurrency: f64) -> Self {
        let pod = FakePod::bind(name).await;
        let facts = pod.facts();
        let (behaviour, receiver) = watch::channel(Behaviour::Talks);
        let task = tokio::spawn(steady(
            pod,
            Load { concurrency: Concurrency::new(concurrency).unwrap(), ..Load::default() },
            receiver,
        ));
        Self { facts, behaviour, task }
    }
}

/// Every link begins with a hello that remembers the last minute.
async fn steady(mut pod: FakePod, load: Load, mut behaviour: watch::Receiver<Behaviour>) {
    let clock = Clock::start();
    let begin = clock.now();
    let second = || 1000 + clock.now().saturating_since(begin).as_secs();
    loop {
        let AcceptedLink { mut reader, mut writer, .. } = pod.acceptor.accept().await;
        let now = *behaviour.borrow_and_update();
        if now == Behaviour::Cuts {
            continue;
        }
        let history = (second() - 60..second()).map(|second| Sample { second, load }).collect();
        let hello = PodHello {
            speaks: LinkVersion::CURRENT,
            pod: PodName::new(pod.name),
            boot: BootId(1),
            state: PodState::Ready,
            detail: String::new(),
            container_concurrency: 0,
            timeouts: RequestTimeouts::default(),
            current_second: second(),
            history,
        };
        if now == Behaviour::Talks && writer.send(&PodWord::Hello(hello)).await.is_err() {
            continue;
        }
        loop {
            tokio::select! {
                order = reader.next() => if !matches!(order, Ok(Some(_))) { break },
                Ok(()) = behaviour.changed() => if *behaviour.borrow_and_update() == Behaviour::Cuts { break },
                () = tokio::time::sleep(Duration::from_secs(1)), if *behaviour.borrow() == Behaviour::Talks => {
                    let sample = Sample { second: second() - 1, load };
                    if writer.send(&PodWord::Load { sample, usage: None, late_bytes: None }).await.is_err() {
                        break;
                    }
                }
            }
        }
    }
}

/// A revision that has three pods, needs them, and is to have at least `min_scale`.
fn steady_revision(min_scale: u32) -> RevisionFacts {
    let annotations = [("target", 10), ("target-burst-capacity", 0), ("min-scale", min_scale)]
        .map(|(name, value)| (format!("autoscaling.knative.dev/{name}"), value.to_string()));
    let settings =
        RevisionSettings::read(&BTreeMap::from(annotations), &ClusterConfig::default(), None).unwrap().value;
    RevisionFacts { settings, ..RevisionFacts::clone(&revision(3)) }
}

/// Three pods at exactly the load that needs three, and a path that stays direct.
async fn steady_world(epoch: u64, pods: &[SteadyPod]) -> World {
    let world = World::start(epoch);
    world.tell_steady(pods).await;
    world
}

impl World {
    async fn tell_steady(&self, pods: &[SteadyPod]) {
        self.say(PlatformFact::ConfigChanged(Arc::new(ClusterConfig::default()))).await;
        self.say(PlatformFact::RevisionChanged(Arc::new(steady_revision(0)))).await;
        let pods = pods.iter().map(|pod| pod.facts.clone()).collect();
        self.say(PlatformFact::PodsChanged { revision: name(), pods }).await;
        self.say(PlatformFact::ActivatorsChanged(Vec::new())).await;
        self.say(PlatformFact::Synced).await;
    }
}

async fn three_steady_pods() -> Vec<SteadyPod> {
    let mut pods = Vec::new();
    for name in ["p1", "p2", "p3"] {
        pods.push(SteadyPod::start(name, 7.0).await);
    }
    pods
}

/// The standby too: it is told everything but that anything is its own.
#[tokio::test]
async fn it_is_ready_once_it_knows_what_is_there() {
    let world = World::start(1);
    world.say(PlatformFact::ConfigChanged(Arc::new(ClusterConfig::default()))).await;
    let (status, why) = world.get("/ready").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{why:?}");
    assert_eq!(world.get("/healthz").await.0, StatusCode::OK);
    world.say(PlatformFact::Synced).await;
    // The fact and the question come by channels of their own.
    while world.get("/ready").await.0 != StatusCode::OK {}
}

/// Each edit comes sooner after the last publication than news are published: a reader that asks at once
/// finds the edit before.
#[tokio::test(start_paused = true)]
async fn after_a_health_check_readers_find_everything_that_the_loop_knew() {
    let mut world = World::start(1);
    world.begin(3, Vec::new(), &[]).await;
    for number in 1..=5 {
        let template = format!("hello-{number:05}");
        let facts = RevisionFacts { template: template.clone(), ..RevisionFacts::clone(&revision(3)) };
        world.say(PlatformFact::RevisionChanged(Arc::new(facts))).await;
        world.pass(Duration::from_millis(1)).await;
        assert_eq!(world.get("/healthz").await.0, StatusCode::OK);
        assert_eq!(world.detail().await.summary.template, template);
    }
}

impl World {
    /// Lets that much time pass; returns the counts asked for meanwhile.
    async fn pass(&mut self, time: Duration) -> Vec<PodCount> {
        tokio::time::sleep(time).await;
        let commands = std::iter::from_fn(|| self.commands.try_recv().ok());
        let counts =
            commands.filter_map(|order| if let Order::ScaleTo { to, .. } = order { Some(to) } else { None });
        counts.collect()
    }

    async fn detail(&self) -> RevisionDetail {
        let (_, body) = self.get("/v1/revisions/default/service/hello").await;
        serde_json::from_slice(&body).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn at_steady_load_a_restart_changes_no_count() {
    let pods = three_steady_pods().await;
    for epoch in 1..=3 {
        let mut world = steady_world(epoch, &pods).await;
        assert_eq!(world.pass(Duration::from_secs(100)).await, [], "epoch {epoch}");
        let detail = world.detail().await;
        assert_eq!((detail.summary.wanted, detail.summary.ready_pods), (PodCount::new(3), PodCount::new(3)));
        assert_eq!(detail.summary.desired, Some(PodCount::new(3)), "{:?}", detail.summary);
        world.autoscaler.stop().await;
    }
    assert!(pods.iter().all(|pod| !pod.task.is_finished()));
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_config_map_brings_back_no_old_count() {
    let pods = three_steady_pods().await;
    let mut world = steady_world(1, &pods).await;
    assert_eq!(world.pass(Duration::from_secs(10)).await, []);
    world.say(PlatformFact::RevisionChanged(Arc::new(steady_revision(4)))).await;
    assert_eq!(world.pass(Duration::from_secs(10)).await, [PodCount::new(4)]);
    // From now on the platform has four, and says nothing of it: it was told.
    let config = ClusterConfig { allow_zero_initial_scale: true, ..ClusterConfig::default() };
    world.say(PlatformFact::ConfigChanged(Arc::new(config))).await;
    assert_eq!(world.pass(Duration::from_secs(10)).await, [], "nothing is to be corrected");
    assert_eq!(world.detail().await.summary.wanted, PodCount::new(4));
}

#[tokio::test(start_paused = true)]
async fn neither_a_stalled_link_nor_a_cut_one_scales_down() {
    let pods = three_steady_pods().await;
    let mut world = steady_world(1, &pods).await;
    assert_eq!(world.pass(Duration::from_secs(100)).await, []);
    for behaviour in [Behaviour::Stalls, Behaviour::Cuts] {
        for pod in &pods[1..] {
            pod.behaviour.send_replace(behaviour);
        }
        assert_eq!(world.pass(Duration::from_secs(90)).await, [], "{behaviour:?}");
        let detail = world.detail().await;
        let seen: Vec<_> = detail.pods.iter().map(|pod| (pod.linked, pod.state)).collect();
        let (up, down) = ((true, PodState::Ready), (false, PodState::Ready));
        assert_eq!(seen, [up, down, down], "{behaviour:?}: a lost link changes no readiness");
        let trouble = detail.pods[1].trouble.as_deref().unwrap_or_default();
        assert!(trouble.starts_with("the autoscaler has no link to it"), "{trouble:?}");
        for pod in &pods {
            pod.behaviour.send_replace(Behaviour::Talks);
        }
        assert_eq!(world.pass(Duration::from_secs(100)).await, [], "after {behaviour:?}");
        assert!(world.detail().await.pods.iter().all(|pod| pod.linked && pod.trouble.is_none()));
    }
    world.autoscaler.stop().await;
}

/// How many seconds, minutes or hours of this range the API knows.
async fn known_spans(world: &World, range: &str) -> usize {
    let (_, body) = world.get(&format!("/v1/revisions/default/service/hello/series?range={range}")).await;
    let series: SeriesView = serde_json::from_slice(&body).unwrap();
    series.seconds.iter().flatten().count()
}

/// A store in memory, with what stands in it.
fn source_of(store: &HistoryStore) -> HistorySource {
    let mut read = UnclaimedHistories::default();
    read.extend(store.read().histories);
    HistorySource { store: store.clone(), read }
}

#[tokio::test(start_paused = true)]
async fn a_restored_history_is_the_past_that_the_api_shows() {
    let pods = three_steady_pods().await;
    let store = HistoryStore::in_memory();
    let mut known = Vec::new();
    for (epoch, seconds) in [(1, 50), (2, 5)] {
        let extras = WorldExtras { history: Some(source_of(&store)), ..WorldExtras::default() };
        let mut world = World::start_with(epoch, extras);
        world.tell_steady(&pods).await;
        world.pass(Duration::from_secs(seconds)).await;
        known.push(known_spans(&world, "15m").await);
        world.autoscaler.stop().await;
    }
    assert!(known[0] >= 40 && known[1] >= known[0], "{known:?}");
}

#[tokio::test(start_paused = true)]
async fn an_owner_goes_on_with_the_minutes_that_the_one_before_left_on_the_platforms_shelf() {
    let pods = three_steady_pods().await;
    let shelf = Arc::<MemoryShelf>::default();
    let mut known = Vec::new();
    for (epoch, seconds) in [(1, 130), (2, 5)] {
        let extras = WorldExtras { shelf: Some(Arc::clone(&shelf)), ..WorldExtras::default() };
        let mut world = World::start_with(epoch, extras);
        world.tell_steady(&pods).await;
        world.pass(Duration::from_secs(seconds)).await;
        known.push(known_spans(&world, "24h").await);
        world.autoscaler.stop().await;
    }
    assert!(known[0] >= 2 && known[1] >= known[0], "{known:?}");
    // An owner that cannot read what is there writes nothing in its place.
    let before = shelf.days.lock().unwrap().clone();
    shelf.is_unreadable.store(true, Ordering::Relaxed);
    let extras = WorldExtras { shelf: Some(Arc::clone(&shelf)), ..WorldExtras::default() };
    let mut world = World::start_with(3, extras);
    world.tell_steady(&pods).await;
    world.pass(Duration::from_secs(650)).await;
    world.autoscaler.stop().await;
    assert!(!before.is_empty() && *shelf.days.lock().unwrap() == before);
}

#[tokio::test(start_paused = true)]
async fn a_past_that_a_person_tells_of_is_remembered_where_prediction_reads_it() {
    let page = "/v1/revisions/default/service/hello/demand";
    let mut world = World::start(1);
    world.begin(1, Vec::new(), &[]).await;
    world.pass(Duration::from_secs(2)).await;
    let told = r#"{"version": 1, "name": "a/b/c", "metric": "concurrency", "first_ms_ago": 600000, "minutes": [[1, 2], null, [3, 3]]}"#;
    let tell = async |world: &World| {
        let request = Request::builder().method("PUT").uri(page).header("content-type", "application/json");
        let request = request.body(Body::from(told)).unwrap();
        let imports = Autoscaler::imports_of([&world.autoscaler]);
        soon("an answer", imports.oneshot(request)).await.unwrap().status()
    };
    assert_eq!(tell(&world).await, StatusCode::CONFLICT, "prediction is off");
    let annotations = BTreeMap::from([("ebb.dev/prediction".to_owned(), "observe".to_owned())]);
    let settings = RevisionSettings::read(&annotations, &ClusterConfig::default(), None).unwrap().value;
    let predicted = RevisionFacts { settings, ..RevisionFacts::clone(&revision(1)) };
    world.say(PlatformFact::RevisionChanged(Arc::new(predicted))).await;
    world.pass(Duration::from_secs(2)).await;
    assert_eq!(tell(&world).await, StatusCode::OK);
    world.pass(Duration::from_secs(2)).await;
    let (_, body) = world.get(page).await;
    let known: DemandView = serde_json::from_slice(&body).unwrap();
    assert_eq!(known.minutes.iter().flatten().count(), 2, "{known:?}");
    assert!((540_000..=660_000).contains(&known.first_ms_ago), "{known:?}");
    world.autoscaler.stop().await;
}

/// By the task that decides, so that one that hangs loses its lease.
#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_by_the_loop_itself_and_only_where_another_owner_could_have_it() {
    for (renew_every, expected) in [(Some(Duration::from_secs(5)), 6), (None, 0)] {
        let world = World::start_with(1, WorldExtras { renew_every, ..WorldExtras::default() });
        tokio::time::sleep(Duration::from_secs(32)).await;
        assert_eq!(world.renewals.load(Ordering::Relaxed), expected, "{renew_every:?}");
        world.autoscaler.stop().await;
    }
}
