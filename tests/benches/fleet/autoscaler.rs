//! Runs the real autoscaler on made-up facts.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc as thread_channel};
use std::thread;

use anyhow::{Context, bail};
use autoscaler::{
    ActivatorChoice, Autoscaler, AutoscalerConfig, AutoscalerMetrics, HistorySource, HistoryStore,
    RecordChoice, RecordTarget, StatDesk,
};
use axum::routing::get;
use link::{Dial, TcpDialler, TlsDialler};
use orchestration::{
    ActivatorFacts, ActivatorLife, Entrance, Order, PlatformFact, PlatformOrder, PodFacts, RevisionFacts,
};
use platform::{Platform, Seat, Subscription};
use recording::RecordedNames;
use runtime::{Clock, MetricsRegistry};
use scaling::{PodPhase, RevisionOrigin};
use settings::hpa::reading::HpaDocument;
use settings::hpa::{
    ContainerRequests, MetricSpec, PodRequests, ResourceName, ResourceRequests, ResourceTarget,
};
use settings::{ClusterConfig, RevisionSettings};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use vocabulary::{
    Epoch, HopKey, LinkAddress, LinkChannel, LinkRole, MilliValue, Ownership, PodCount, PodExits,
    ReplicaName, RequestTimeouts,
};

use crate::fleet::histories::{HistoryFolder, known_before};
use crate::fleet::recorded::RecordFolder;
use crate::fleet::shape::{FleetClass, FleetLinks, Shape};
use crate::fleet::trust::TrustFolder;

/// What the process is told.
pub(crate) struct Settings {
    pub(crate) shape: Shape,
    /// Where all pods take links, each on its own address.
    pub(crate) pods: u16,
    /// The port at which the activator listens.
    pub(crate) activator: u16,
    pub(crate) epoch: u64,
    /// Where certificates lie, if links are TLS.
    pub(crate) trust: TrustFolder,
    /// Where the records of histories lie, if they are asked for.
    pub(crate) histories: HistoryFolder,
    pub(crate) place: LoopPlace,
    /// Where the run is recorded, if it is.
    pub(crate) record: Option<RecordFolder>,
}

/// More than any run writes, so that nothing is removed.
const RECORD_BYTES_MAX: u64 = 16 << 30;

/// The name of the thread on which the event loop runs, where it has one of its own.
pub(crate) const LOOP_THREAD: &str = "event-loop";

/// Where the event loop runs, and all links with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopPlace {
    /// On the threads that serve the API too, as in `ebb up`.
    SharedThreads,
    /// On a thread of its own, so that its CPU time is known apart from that of the API.
    OwnThread,
}

impl LoopPlace {
    pub(crate) fn for_readers(readers: Option<u32>) -> Self {
        if readers.is_some() { Self::OwnThread } else { Self::SharedThreads }
    }
}

impl fmt::Display for LoopPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::SharedThreads => "shared",
            Self::OwnThread => "own",
        })
    }
}

impl FromStr for LoopPlace {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "shared" => Ok(Self::SharedThreads),
            "own" => Ok(Self::OwnThread),
            other => bail!("{other:?} is no place of an event loop"),
        }
    }
}

impl Settings {
    fn dialler(&self) -> anyhow::Result<Arc<dyn Dial>> {
        Ok(match self.shape.links {
            FleetLinks::Plain => Arc::new(TcpDialler),
            FleetLinks::Tls => Arc::new(TlsDialler::new(&self.trust.identity(LinkRole::Autoscaler)?)?),
        })
    }

    fn address(&self, socket: SocketAddr, secured: LinkChannel) -> LinkAddress {
        let channel = match self.shape.links {
            FleetLinks::Plain => LinkChannel::Plain,
            FleetLinks::Tls => secured,
        };
        LinkAddress { socket, token: None, channel }
    }
}

/// Tells the facts once, and counts orders that would change a replica count.
struct Facts {
    events: Mutex<Option<mpsc::Receiver<PlatformFact>>>,
    wanted: PodCount,
    changes: Arc<AtomicU64>,
}

impl Platform for Facts {
    fn subscribe(&self, _owner: &ReplicaName) -> Subscription {
        let facts = self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        let facts = facts.expect("one autoscaler subscribes once");
        let seat = CountingSeat { wanted: self.wanted, changes: Arc::clone(&self.changes) };
        Subscription { facts, seat: Box::new(seat), renew_every: None }
    }
}

struct CountingSeat {
    wanted: PodCount,
    changes: Arc<AtomicU64>,
}

impl Seat for CountingSeat {
    fn execute(&self, order: PlatformOrder) {
        if let Order::ScaleTo { to, .. } = order.what
            && to != self.wanted
        {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn renew(&self) {}
}

/// Runs until it is killed.
pub(crate) fn play(settings: &Settings) -> anyhow::Result<()> {
    tests::bench::machine::raise_open_files()?;
    // As many as `ebb up` gives to everything but requests.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", serde_json::json!({ "api": listener.local_addr()?.port() }));
    let (sender, events) = mpsc::channel(1024);
    let wanted = PodCount::new(settings.shape.pods_each);
    let unclaimed = known_before(settings.shape);
    let facts = Arc::new(Facts { events: Mutex::new(Some(events)), wanted, changes: Arc::default() });
    let config = AutoscalerConfig {
        name: ReplicaName::new("autoscaler"),
        clock: Clock::start(),
        metrics: AutoscalerMetrics::register(&MetricsRegistry::default()),
        dialler: settings.dialler()?,
        choice: ActivatorChoice::All,
        record: settings.record.as_ref().map_or(RecordChoice::Nowhere, |folder| {
            RecordChoice::At(RecordTarget {
                folder: folder.path().to_owned(),
                bytes_max: RECORD_BYTES_MAX,
                version: "fleet",
                names: RecordedNames::Plain,
            })
        }),
        stats: StatDesk::default(),
        history: Some(HistorySource { store: HistoryStore::in_memory(), read: unclaimed.clone() }),
    };
    let platform = Arc::<Facts>::clone(&facts);
    let autoscaler = match settings.place {
        LoopPlace::SharedThreads => Autoscaler::start(config, platform),
        LoopPlace::OwnThread => start_on_own_thread(config, platform)?,
    };
    let changes = get(async move || facts.changes.load(Ordering::Relaxed).to_string());
    let histories = {
        let (folder, shape) = (settings.histories.clone(), settings.shape);
        let events = sender.clone();
        get(async move || match folder.restore(&mut unclaimed.clone(), shape) {
            // A fact, at which the autoscaler looks for the past of its revisions.
            Ok(restored) => match events.send(PlatformFact::Synced).await {
                Ok(()) => restored.to_string(),
                Err(error) => error.to_string(),
            },
            Err(error) => format!("{error:#}"),
        })
    };
    let router = autoscaler.router().route("/bench/changes", changes).route("/bench/histories", histories);
    tokio::spawn(async move { axum::serve(listener, router).await });
    tell(settings, &sender).await?;
    // The subscription ends with its sender, and the autoscaler with its last handle.
    std::future::pending::<()>().await;
    drop((sender, autoscaler));
    Ok(())
}

/// Starts an autoscaler whose tasks run on one thread, until the process ends.
fn start_on_own_thread(config: AutoscalerConfig, platform: Arc<Facts>) -> anyhow::Result<Autoscaler> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (started, autoscaler) = thread_channel::channel();
    thread::Builder::new().name(LOOP_THREAD.to_owned()).spawn(move || {
        runtime.block_on(async {
            // The other end waits for it.
            let _ = started.send(Autoscaler::start(config, platform));
            std::future::pending::<()>().await;
        });
    })?;
    autoscaler.recv().context("the thread of the event loop ended")
}

async fn tell(settings: &Settings, events: &mpsc::Sender<PlatformFact>) -> anyhow::Result<()> {
    let cluster = Arc::new(ClusterConfig::default());
    let annotations = [("target", "10"), ("min-scale", "1"), ("class", settings.shape.class.name())]
        .map(|(key, value)| (format!("autoscaling.knative.dev/{key}"), value.to_owned()));
    let annotations: BTreeMap<String, String> = annotations.into_iter().collect();
    let checked = RevisionSettings::read(&annotations, &cluster, None);
    let of_class_kpa = checked.map_err(|problems| anyhow::anyhow!("{problems:?}"))?.value;
    let settings_of_revision = match settings.shape.class {
        FleetClass::Kpa | FleetClass::Ahpa => of_class_kpa,
        FleetClass::Hpa => settings_of_class_hpa(),
    };
    let ownership = Ownership::of_everything(Epoch(settings.epoch));
    events.send(PlatformFact::OwnershipChanged(ownership)).await?;
    events.send(PlatformFact::ConfigChanged(Arc::clone(&cluster))).await?;
    for index in 0..settings.shape.revisions {
        let facts = revision(index, settings.shape, settings_of_revision.clone());
        events.send(PlatformFact::RevisionChanged(Arc::new(facts))).await?;
        let first = index * settings.shape.pods_each;
        let pods = (first..first + settings.shape.pods_each).map(|pod| facts_of_pod(pod, settings));
        let revision = Shape::revision(index);
        events.send(PlatformFact::PodsChanged { revision, pods: pods.collect() }).await?;
    }
    let link = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.activator));
    let activators = vec![ActivatorFacts {
        name: ReplicaName::new("activator-1"),
        link: settings.address(link, LinkChannel::TlsOfActivator),
        life: ActivatorLife::Ready,
    }];
    events.send(PlatformFact::ActivatorsChanged(activators)).await?;
    events.send(PlatformFact::Synced).await?;
    Ok(())
}

/// 80 % of a tenth of a core, and seven requests in flight.
fn settings_of_class_hpa() -> RevisionSettings {
    let target = ResourceTarget::Utilization(80);
    let metrics = vec![
        MetricSpec::Resource { resource: ResourceName::Cpu, container: None, target },
        MetricSpec::Own { metric: settings::Metric::Concurrency, target: MilliValue::new(7000) },
    ];
    let document = HpaDocument { min: PodCount::ONE, max: PodCount::new(100), metrics, behavior: None };
    let requests = ResourceRequests { cpu: Some(MilliValue::new(100)), ..ResourceRequests::default() };
    let container = ContainerRequests { name: "app".into(), requests };
    RevisionSettings {
        document: Some(Box::new(document)),
        requests: PodRequests { pod_level: None, containers: vec![container] },
        ..RevisionSettings::default()
    }
}

fn revision(index: u32, shape: Shape, settings: RevisionSettings) -> RevisionFacts {
    RevisionFacts {
        name: Shape::revision(index),
        settings,
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        progress_deadline: settings::PROGRESS_DEADLINE_DEFAULT,
        entrances: vec![Entrance::Host(format!("revision-{index:05}.default.example.com"))],
        url: None,
        hop_keys: vec![HopKey::new("0123456789abcdef0123456789abcdef".to_owned())],
        wanted: PodCount::new(shape.pods_each),
        may_write: true,
        reachable: true,
        floor: PodCount::ZERO,
        floor_cause: settings::FloorCause::default(),
        waiting_page: vocabulary::WaitingPage::Off,
        hold: None,
        origin: RevisionOrigin::Found,
        template: format!("revision-{index:05}-00001"),
        other_autoscaler: None,
    }
}

fn facts_of_pod(pod: u32, settings: &Settings) -> PodFacts {
    let address = SocketAddr::from((Shape::address(pod), settings.pods));
    PodFacts {
        name: Shape::pod(pod),
        phase: PodPhase::Running,
        leaving: false,
        ends_in: None,
        platform_ready: None,
        requests: Some(address),
        exits: PodExits::default(),
        link: Some(settings.address(address, LinkChannel::TlsOfPod)),
        adoption: None,
        outdated: false,
        awaits_core: false,
        trouble: None,
        trouble_without_output: None,
        hold: None,
        details: BTreeMap::new(),
    }
}
