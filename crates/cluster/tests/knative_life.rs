//! One Service of an installed Knative from apply to zero and back (contract §1.2, §4.4, §7.3): the whole
//! control loop and the whole state of the cluster, before a controller, an activator and queue-proxies that
//! do as Knative's do; or with an activator of ebb's. Nothing of it runs: time passes by the second.

#[path = "shared/knative_objects.rs"]
mod knative_objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::knative::{
    BucketCount, DeskWrite, PodAutoscalerRecord, ServerlessRecord, ServerlessWrite, public_slice,
    revision_deployment,
};
use cluster::resources::{ObjectKey, pod};
use cluster::{
    Change, ClusterEvent, ClusterKeys, ClusterState, ClusterStateConfig, ClusterWrite, Failure, Installation,
    KnativeNews, LEASE, Moment, News, ScaleAnswer, SeatNumber, ShownPod, WriteAnswer, read_lease,
};
use jiff::Timestamp as WallTime;
use knative_objects::{
    autoscaler, carried_out_status, condition, deployment, labels, pod_object, read, revision, slice_object,
    status_in_words,
};
use orchestration::{
    ActivatorChoice, ControlCommand, ControlEvent, LinkId, Orchestrator, OrchestratorSettings, OrderOutcome,
    Peer,
};
use serde_json::{Value, json};
use vocabulary::{
    ActivatorHello, ActivatorWord, Assignment, BootId, Concurrency, LinkChannel, LinkVersion, Load, PodHello,
    PodName, PodState, PodWord, PresentCount, ReplicaName, RequestRate, RequestTimeouts, RevisionLoad,
    Sample, Timestamp,
};

const SEAT: SeatNumber = SeatNumber(1);
const ACTIVATOR_ADDRESS: &str = "10.1.0.1";
/// A pod is ready so many seconds after it was made.
const POD_STARTS_FOR: u64 = 2;

/// The activator in front of the revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestedActivator {
    Knatives,
    Ebbs,
    /// One of ebb's that acknowledges nothing.
    EbbsMute,
}

struct Life {
    activator: TestedActivator,
    /// What an activator of ebb's was told last of the revision.
    assigned: Option<Arc<Assignment>>,
    state: ClusterState,
    control: Orchestrator,
    second: u64,
    version: u64,
    autoscaler: Value,
    service: Option<Value>,
    /// What the controller wrote last: addresses of clients, and the generation that it carried out.
    carried_out: (Vec<String>, i64),
    replicas: u32,
    /// Pods by their names, with the second in which each was made.
    pods: BTreeMap<String, u64>,
    made: u64,
    links: BTreeMap<LinkId, Option<PodName>>,
    /// The requests that the activator holds.
    held: u32,
    /// Every write but those of the Lease, in words.
    writes: Vec<String>,
}

fn key(name: &str) -> ObjectKey {
    ObjectKey { namespace: "default".to_owned(), name: name.to_owned() }
}

fn activator_key() -> ObjectKey {
    ObjectKey { namespace: "knative-serving".to_owned(), name: "activator-1".to_owned() }
}

impl Life {
    /// `hello-00001` as Knative's controller has just made it, and one activator of Knative's.
    fn applied() -> Self {
        Self::behind(TestedActivator::Knatives)
    }

    fn behind(tested: TestedActivator) -> Self {
        let installation =
            Installation::Knative { buckets: BucketCount::default(), domain: "cluster.local".to_owned() };
        let state = ClusterState::new(ClusterStateConfig {
            name: ReplicaName::new("autoscaler-x_10.0.0.9"),
            installation,
            keys: ClusterKeys::new(b"hop", b"slice"),
            salt: 1,
        });
        let mut autoscaler = autoscaler();
        autoscaler["metadata"]["annotations"]["autoscaling.knative.dev/window"] = json!("10s");
        let choice = ActivatorChoice::AllOfWhichSomeShare;
        let settings = OrchestratorSettings { choice, ..OrchestratorSettings::default() };
        let mut life = Self {
            activator: tested,
            assigned: None,
            state,
            control: Orchestrator::new(settings),
            second: 1000,
            version: 10,
            autoscaler,
            service: None,
            carried_out: (Vec::new(), 0),
            replicas: 1,
            pods: BTreeMap::new(),
            made: 0,
            links: BTreeMap::new(),
            held: 0,
            writes: Vec::new(),
        };
        let moment = life.moment();
        life.state.handle(ClusterEvent::SeatTaken(SEAT), moment);
        let labels = json!({"app": "activator"});
        let mut activator = pod_object("activator-1", "knative-serving", &labels, ACTIVATOR_ADDRESS, "True");
        if tested != TestedActivator::Knatives {
            let ports = json!([{"name": "link", "containerPort": 8024}]);
            activator["spec"]["containers"] = json!([{"name": "activator", "ports": ports}]);
        }
        life.show(News::Activator(Change::Put(activator_key(), pod::read(&read(&activator)))));
        life.show_deployment();
        life.show_autoscaler();
        life.list();
        life.turn();
        life
    }

    /// Every first list is complete.
    fn list(&mut self) {
        let only = |name: &str| BTreeSet::from([key(name)]);
        self.show(News::Config(Change::Listed(BTreeSet::new())));
        self.show(News::Pod(Change::Listed(BTreeSet::new())));
        self.show(News::Activator(Change::Listed([activator_key()].into())));
        self.show(News::Lease(Change::Listed(BTreeSet::new())));
        for news in [
            KnativeNews::PodAutoscaler(Change::Listed(only("hello-00001"))),
            KnativeNews::ServerlessService(Change::Listed(BTreeSet::new())),
            KnativeNews::Deployment(Change::Listed(only("hello-00001-deployment"))),
            KnativeNews::PublicSlice(Change::Listed(BTreeSet::new())),
            KnativeNews::AutoscalerPod(Change::Listed(BTreeSet::new())),
            KnativeNews::ProgressDeadline(Change::Listed(BTreeSet::new())),
        ] {
            self.show(News::Knative(news));
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_secs(self.second)
    }

    fn moment(&self) -> Moment {
        let wall: WallTime = "2026-11-22T10:00:00Z".parse().expect("a time");
        Moment { wall: wall + Duration::from_secs(self.second), axis: self.now() }
    }

    fn show(&mut self, news: News) {
        let moment = self.moment();
        self.state.handle(ClusterEvent::Shown(Box::new(news)), moment);
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn show_deployment(&mut self) {
        let object = deployment(self.replicas, &self.next_version());
        let deployment = revision_deployment(&read(&object)).map(Box::new);
        let change = Change::Put(key("hello-00001-deployment"), deployment);
        self.show(News::Knative(KnativeNews::Deployment(change)));
    }

    fn show_autoscaler(&mut self) {
        let record = Box::new(PodAutoscalerRecord::read(&read(&self.autoscaler)));
        self.show(News::Knative(KnativeNews::PodAutoscaler(Change::Put(key("hello-00001"), record))));
    }

    fn show_service(&mut self) {
        let version = self.next_version();
        let service = self.service.as_mut().expect("there is a service");
        service["metadata"]["resourceVersion"] = json!(version);
        let record = Box::new(ServerlessRecord::read(&read(service)));
        self.show(News::Knative(KnativeNews::ServerlessService(Change::Put(key("hello-00001"), record))));
    }

    fn is_ready(&self, made_at: u64) -> bool {
        self.second >= made_at + POD_STARTS_FOR
    }

    /// Knative's controller, Kubernetes' and kubelet do what there is to do.
    fn run_controllers(&mut self) {
        while self.pods.len() > usize::try_from(self.replicas).expect("few pods") {
            let (name, _) = self.pods.pop_last().expect("there is one");
            self.show(News::Pod(Change::Gone(key(&name))));
        }
        while self.pods.len() < usize::try_from(self.replicas).expect("few pods") {
            self.made += 1;
            self.pods.insert(format!("hello-00001-deployment-{}", self.made), self.second);
        }
        for (name, made_at) in self.pods.clone() {
            let ready = if self.is_ready(made_at) { "True" } else { "False" };
            let pod = pod_object(&name, "default", &labels(), &address_of(&name), ready);
            self.show(News::Pod(Change::Put(key(&name), ShownPod::read(&read(&pod)))));
        }
        self.carry_out();
    }

    /// The `ServerlessService` is carried out: without a ready pod clients get activators, whatever it says.
    fn carry_out(&mut self) {
        let Some(service) = &self.service else { return };
        let generation = service["metadata"]["generation"].as_i64().unwrap_or_default();
        let ready: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, made_at)| self.is_ready(**made_at))
            .map(|(name, _)| address_of(name))
            .collect();
        let is_served = service["spec"]["mode"] == "Serve" && !ready.is_empty();
        let addresses = if is_served { ready } else { vec![ACTIVATOR_ADDRESS.to_owned()] };
        if self.carried_out == (addresses.clone(), generation) {
            return;
        }
        self.carried_out = (addresses.clone(), generation);
        let now = self.moment().wall.to_string();
        let populated = if is_served { "False" } else { "True" };
        let service = self.service.as_mut().expect("there is a service");
        service["status"] = carried_out_status(service, populated, &now);
        self.show_service();
        let change = Change::Put(key("hello-00001-x"), public_slice(&read(&slice_object(&addresses))));
        self.show(News::Knative(KnativeNews::PublicSlice(change)));
    }

    /// Lets so many seconds pass.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            if self.second.is_multiple_of(5) {
                let moment = self.moment();
                self.state.handle(ClusterEvent::SeatRenewed(SEAT), moment);
            }
            self.run_controllers();
            self.turn();
            self.report();
        }
    }

    /// The activator and each pod tell their last second.
    fn report(&mut self) {
        let load = Load {
            concurrency: Concurrency::new(f64::from(self.held)).expect("a load"),
            request_rate: RequestRate::new(f64::from(self.held)).expect("a rate"),
            ..Load::default()
        };
        let of =
            RevisionLoad { revision: revision(), load, oldest_wait: Duration::ZERO, callers: Vec::new() };
        let loads = if self.held > 0 { vec![of] } else { Vec::new() };
        let through =
            Load { proxied_concurrency: load.concurrency, proxied_request_rate: load.request_rate, ..load };
        for (link, pod) in self.links.clone() {
            let second = self.second - 1;
            let event = if pod.is_some() {
                let sample = Sample { second, load: through };
                let word = PodWord::Load { sample, usage: None, late_bytes: None };
                ControlEvent::PodSpoke { link, word }
            } else {
                let word = ActivatorWord::Loads { second, loads: loads.clone() };
                ControlEvent::ActivatorSpoke { link, word }
            };
            self.tell(event);
        }
        self.turn();
    }

    /// A request comes to the activator, which says so at once.
    fn request(&mut self) {
        self.held = 1;
        let link = self.links.iter().find(|(_, pod)| pod.is_none()).map(|(link, _)| *link);
        let count = PresentCount { in_flight: 1, waiting: 0 };
        let word = ActivatorWord::Present { revision: revision(), count, oldest_wait: Duration::ZERO };
        self.tell(ControlEvent::ActivatorSpoke { link: link.expect("it is heard"), word });
        self.turn();
    }

    fn tell(&mut self, event: ControlEvent) {
        let now = self.now();
        self.control.handle(event, now);
        self.obey();
    }

    /// Does everything that follows now.
    fn turn(&mut self) {
        loop {
            let (moment, now) = (self.moment(), self.now());
            self.state.settle(moment);
            let mut is_at_rest = true;
            while let Some(fact) = self.state.next_fact(now) {
                is_at_rest = false;
                self.tell(ControlEvent::Platform(fact));
            }
            while let Some(write) = self.state.next_write() {
                is_at_rest = false;
                let answer = self.perform(write);
                self.state.handle(ClusterEvent::Answered(answer), moment);
            }
            if self.control.next_deadline().is_some_and(|deadline| deadline <= now) {
                is_at_rest = false;
                self.control.advance(now);
                self.obey();
            }
            if is_at_rest {
                return;
            }
        }
    }

    fn obey(&mut self) {
        let mut words = Vec::new();
        while let Some(command) = self.control.next_command() {
            let moment = self.moment();
            match command {
                ControlCommand::Order(order) => {
                    self.state.handle(ClusterEvent::OrderGiven(SEAT, order), moment);
                }
                ControlCommand::Publish { revision, decision } => {
                    let (intended, activators) = (decision.intended, decision.activators);
                    let decided = ClusterEvent::Decided { seat: SEAT, revision, intended, activators };
                    self.state.handle(decided, moment);
                }
                ControlCommand::OpenLink { link, peer, address, .. } => {
                    words.push(self.hello(link, peer, address.channel));
                }
                ControlCommand::CloseLink { link } => drop(self.links.remove(&link)),
                ControlCommand::Sync { activator, assignments, .. } => {
                    words.extend(assignments.into_iter().filter_map(|one| self.take(activator, one)));
                }
                ControlCommand::Assign { activator, assignment, .. } => {
                    words.extend(self.take(activator, assignment));
                }
                ControlCommand::Unassign { .. } | ControlCommand::ReleaseActivator { .. } => {
                    panic!("the revision and the activator stay: {command:?}")
                }
                ControlCommand::TellPod { .. } | ControlCommand::AskMetrics { .. } => {}
            }
        }
        for word in words {
            self.tell(word);
        }
    }

    /// An activator is told of the revision, and says that it goes by that, unless it is mute.
    fn take(&mut self, link: LinkId, assignment: Arc<Assignment>) -> Option<ControlEvent> {
        assert_ne!(self.activator, TestedActivator::Knatives, "an activator of Knative's is told nothing");
        let (revision, version) = (assignment.revision.clone(), assignment.version);
        self.assigned = Some(assignment);
        let word = ActivatorWord::Acknowledged { revision, version };
        (self.activator == TestedActivator::Ebbs).then_some(ControlEvent::ActivatorSpoke { link, word })
    }

    /// What the task of a peer without a link says first.
    fn hello(&mut self, link: LinkId, peer: Peer, channel: LinkChannel) -> ControlEvent {
        let (speaks, boot, current_second) = (LinkVersion::CURRENT, BootId(link.0), self.second);
        match peer {
            Peer::Activator { name } => {
                let is_pushed = self.activator == TestedActivator::Knatives;
                let expected = if is_pushed { LinkChannel::Pushed } else { LinkChannel::TlsOfActivator };
                assert_eq!(channel, expected);
                self.links.insert(link, None);
                let hello = ActivatorHello {
                    speaks,
                    activator: name,
                    boot,
                    current_second,
                    history: Vec::new(),
                    present: Vec::new(),
                    routings: Vec::new(),
                };
                ControlEvent::ActivatorSpoke { link, word: ActivatorWord::Hello(hello) }
            }
            Peer::Pod { name, .. } => {
                assert_eq!(channel, LinkChannel::Scraped);
                self.links.insert(link, Some(name.clone()));
                let hello = PodHello {
                    speaks,
                    pod: name,
                    boot,
                    state: PodState::Unheard,
                    detail: String::new(),
                    container_concurrency: 0,
                    timeouts: RequestTimeouts::default(),
                    current_second,
                    history: Vec::new(),
                };
                ControlEvent::PodSpoke { link, word: PodWord::Hello(hello) }
            }
        }
    }

    fn perform(&mut self, write: ClusterWrite) -> WriteAnswer {
        match write {
            ClusterWrite::Lease(which, name, write) => {
                let version = self.next_version();
                let lease = json!({
                    "metadata": {"name": name, "resourceVersion": version},
                    "spec": {"holderIdentity": write.holder, "leaseTransitions": write.transitions,
                        "leaseDurationSeconds": LEASE.as_secs()},
                });
                WriteAnswer::Lease(which, Ok(read_lease(&read(&lease))))
            }
            ClusterWrite::Count { write, .. } => {
                self.writes.push(format!("count {}", write.to));
                self.replicas = write.to.value();
                self.show_deployment();
                let answer = ScaleAnswer { outcome: OrderOutcome::Done, version: None };
                WriteAnswer::Count(write.revision, Ok(answer))
            }
            ClusterWrite::Revision { revision, write, .. } => {
                let object = write.object();
                self.write(write);
                WriteAnswer::Revision(revision, object, Ok::<_, Failure>(()))
            }
            ClusterWrite::Event(_) => WriteAnswer::Event(Ok(())),
            ClusterWrite::Slices { .. } | ClusterWrite::Takeover { .. } => {
                panic!("in an installed Knative no slice is ebb's: {write:?}")
            }
        }
    }

    fn write(&mut self, write: DeskWrite) {
        match write {
            DeskWrite::Service(write) => {
                let mut service = match write {
                    ServerlessWrite::Create(object) => object,
                    ServerlessWrite::Replace { spec, .. } => {
                        let mut service = self.service.clone().expect("there is a service");
                        service["spec"] = spec;
                        service
                    }
                };
                let generation = service["metadata"]["generation"].as_i64().unwrap_or_default();
                service["metadata"]["generation"] = json!(generation + 1);
                service["metadata"]["uid"] = json!("sks1");
                self.writes.push(format!("service {}", service["spec"]["mode"].as_str().unwrap_or_default()));
                self.service = Some(service);
                self.show_service();
            }
            DeskWrite::Status(write) => {
                let status = write.patch()["status"].clone();
                let is_initialized = condition(&status, "ScaleTargetInitialized")["status"] == "True";
                let is_failed = condition(&status, "Ready")["status"] == "False";
                assert!(is_initialized || !is_failed, "the revision would fail for good: {status}");
                self.writes.push("status".to_owned());
                self.autoscaler["status"] = status;
                self.autoscaler["metadata"]["resourceVersion"] = json!(self.next_version());
                self.show_autoscaler();
            }
        }
    }

    /// Ready with its reason, and the two counts, as `kubectl get kpa` shows them.
    fn status(&self) -> String {
        status_in_words(&self.autoscaler["status"])
    }
}

fn address_of(pod: &str) -> String {
    let number = pod.rsplit('-').next().unwrap_or_default();
    format!("10.0.0.{number}")
}

#[test]
fn a_service_gets_ready_goes_to_zero_and_comes_back_with_its_next_request() {
    let mut life = Life::applied();
    assert_eq!(life.status(), "Unknown Queued -1 0");
    life.pass(6);
    assert_eq!(life.status(), "True 1 1", "{:?}", life.writes);

    life.pass(120);
    assert_eq!((life.replicas, life.status().as_str()), (0, "False NoTraffic 0 0"), "{:?}", life.writes);
    assert_eq!(life.service.as_ref().map(|service| service["spec"]["mode"].clone()), Some(json!("Proxy")));
    life.writes.clear();
    life.pass(120);
    assert_eq!(life.writes, Vec::<String>::new(), "at rest nothing is written but the Lease");

    life.request();
    assert_eq!(life.replicas, 1, "its first request asks for a pod at once");
    life.pass(1);
    assert_eq!(life.status(), "Unknown Queued 1 0");
    life.pass(5);
    assert_eq!(life.status(), "True 1 1");
    life.held = 0;
    life.pass(120);
    assert_eq!((life.replicas, life.status().as_str()), (0, "False NoTraffic 0 0"));
}

#[test]
fn under_load_clients_get_pods_and_afterwards_activators_before_the_last_pod_goes() {
    let mut life = Life::applied();
    life.pass(6);
    life.held = 900;
    life.pass(60);
    assert!(life.replicas >= 9, "{}", life.replicas);
    assert!(
        life.writes.iter().any(|write| write == "service Serve"),
        "there is room for a burst: {:?}",
        life.writes
    );
    life.writes.clear();
    life.held = 0;
    life.pass(240);
    assert_eq!(life.replicas, 0);
    let through = life.writes.iter().position(|write| write == "service Proxy");
    let zero = life.writes.iter().position(|write| write == "count 0");
    assert!(through.is_some() && through < zero, "{:?}", life.writes);
}

/// Contract §5.5, §7.1: ebb's own activator in front of queue-proxies of Knative's.
#[test]
fn an_activator_of_ebbs_is_told_of_the_revision_and_wakes_it() {
    let mut life = Life::behind(TestedActivator::Ebbs);
    life.pass(6);
    assert_eq!(life.status(), "True 1 1", "{:?}", life.writes);
    let assigned = life.assigned.clone().expect("it is told of the revision");
    assert_eq!(assigned.hosts, ["hello-00001.default.svc.cluster.local"]);
    assert!(!assigned.hop_keys.is_empty(), "pods of ebb's may come");
    assert!(assigned.pods.iter().all(|pod| pod.is_plain), "its pods are Knative's");
    assert_eq!(assigned.pods.first().map(|pod| pod.state), Some(PodState::Ready));
    life.pass(120);
    assert_eq!((life.replicas, life.status().as_str()), (0, "False NoTraffic 0 0"), "{:?}", life.writes);
    life.request();
    assert_eq!(life.replicas, 1, "its first request asks for a pod at once");
}

/// Contract §4.4: all members have acknowledged a version that routes through them.
#[test]
fn must_keep_the_last_pod_while_an_activator_of_ebbs_has_acknowledged_nothing() {
    let mut life = Life::behind(TestedActivator::EbbsMute);
    life.pass(240);
    assert!(life.assigned.is_some(), "it was told");
    assert_eq!(life.replicas, 1, "{:?}", life.writes);
}
