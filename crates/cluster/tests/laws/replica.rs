//! One autoscaler: what watches have shown it, what it has decided, and the links that it keeps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use cluster::resources::workload::objects;
use cluster::resources::{ObjectKey, other_slice, pod, service};
use cluster::{
    Change, ClusterEvent, ClusterKeys, ClusterState, ClusterStateConfig, ClusterWrite, Failure, Installation,
    Moment, News, RENEW_EVERY, ScaleAnswer, SeatNumber, ShownPod, WriteAnswer,
};
use orchestration::{ControlCommand, ControlEvent, Fence, LinkId, Orchestrator, OrchestratorSettings, Peer};
use serde_json::Value;
use vocabulary::{
    ActivatorHello, ActivatorWord, BootId, Concurrency, LinkVersion, Load, PodHello, PodName, PodState,
    PodWord, PresentCount, ReplicaName, RequestRate, RequestTimeouts, RevisionLoad, RevisionName, Sample,
    Timestamp, Version,
};

use crate::server::{ApiServer, Collection, ServerChange, lease_record};

/// What becomes of the next write of an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFault {
    /// Another client wrote the object first.
    Conflict,
    /// The server fails before it has done anything.
    Failed,
    /// The write is done, and the answer is lost.
    AnswerLost,
}

pub(crate) struct Replica {
    pub(crate) name: &'static str,
    pub(crate) state: ClusterState,
    /// None while the autoscaler has no seat.
    control: Option<Orchestrator>,
    seat: SeatNumber,
    renewed: Timestamp,
    /// How much of the server's history each watch has shown.
    positions: BTreeMap<Collection, usize>,
    /// Watches that show nothing for now.
    pub(crate) late: BTreeSet<Collection>,
    /// What watches have shown last of each object.
    pub(crate) shown: BTreeMap<(Collection, ObjectKey), Value>,
    /// Since when the watch has shown the Service with a selector.
    pub(crate) selector_since: Option<Timestamp>,
    links: BTreeMap<LinkId, Peer>,
    /// Words that links are to bring.
    words: VecDeque<ControlEvent>,
    pub(crate) fault: Option<WriteFault>,
    pub(crate) is_hung: bool,
    /// The second of the activators for which loads were said last.
    said_second: u64,
}

pub(crate) fn revision() -> RevisionName {
    RevisionName::new("shop", "deployment", "hello").expect("a name")
}

impl Replica {
    pub(crate) fn new(name: &'static str, salt: u64, server: &ApiServer, moment: Moment) -> Self {
        let config = ClusterStateConfig {
            name: ReplicaName::new(name),
            installation: Installation::Ebb { buckets: 1 },
            keys: ClusterKeys::new(b"hop key", b"slice key"),
            salt,
        };
        let mut replica = Self {
            name,
            state: ClusterState::new(config),
            control: None,
            seat: SeatNumber(0),
            renewed: Timestamp::ZERO,
            positions: BTreeMap::new(),
            late: BTreeSet::new(),
            shown: BTreeMap::new(),
            selector_since: None,
            links: BTreeMap::new(),
            words: VecDeque::new(),
            fault: None,
            is_hung: false,
            said_second: 0,
        };
        // Kinds of which the world has no object.
        for news in [
            News::Config(Change::Listed(BTreeSet::new())),
            News::Observability(Change::Listed(BTreeSet::new())),
            News::Autoscaler(Change::Listed(BTreeSet::new())),
            News::Zone(Change::Listed(BTreeSet::new())),
            News::Endpoints(Change::Listed(BTreeSet::new())),
        ] {
            replica.state.handle(ClusterEvent::Shown(Box::new(news)), moment);
        }
        for collection in Collection::ALL {
            replica.list(collection, server, moment);
        }
        replica.take_seat(moment);
        replica
    }

    /// The autoscaler takes a new seat, and knows nothing.
    pub(crate) fn take_seat(&mut self, moment: Moment) {
        if self.control.is_some() {
            return;
        }
        self.seat = SeatNumber(self.seat.0 + 1);
        self.control = Some(Orchestrator::new(OrchestratorSettings::default()));
        self.renewed = moment.axis;
        self.state.handle(ClusterEvent::SeatTaken(self.seat), moment);
    }

    /// The autoscaler leaves its seat in order.
    pub(crate) fn leave_seat(&mut self, moment: Moment) {
        if self.control.take().is_some() {
            self.links.clear();
            self.words.clear();
            self.state.handle(ClusterEvent::SeatLeft(self.seat), moment);
        }
    }

    /// A watch is refused for being too old, and lists anew.
    pub(crate) fn list(&mut self, collection: Collection, server: &ApiServer, moment: Moment) {
        self.positions.insert(collection, server.history.len());
        let mut keys = BTreeSet::new();
        for object in server.all(collection) {
            let key = key_of(object);
            keys.insert(key.clone());
            self.show(&ServerChange { collection, key, object: Some(object.clone()) }, moment);
        }
        self.shown.retain(|(of, key), _| *of != collection || keys.contains(key));
        self.state.handle(ClusterEvent::Shown(Box::new(listed(collection, keys))), moment);
    }

    /// A watch shows its last change once more.
    pub(crate) fn repeat(&mut self, collection: Collection, server: &ApiServer, moment: Moment) {
        let shown = self.positions.get(&collection).copied().unwrap_or_default();
        let last = server.history[..shown].iter().rev().find(|change| change.collection == collection);
        if let Some(last) = last {
            self.show(last, moment);
        }
    }

    fn show(&mut self, change: &ServerChange, moment: Moment) {
        let place = (change.collection, change.key.clone());
        if change.collection == Collection::Services {
            let service = change.object.as_ref();
            let has_selector = service.is_some_and(|service| !service["spec"]["selector"].is_null());
            self.selector_since = if has_selector { self.selector_since.or(Some(moment.axis)) } else { None };
        }
        match &change.object {
            Some(object) => self.shown.insert(place, object.clone()),
            None => self.shown.remove(&place),
        };
        self.state.handle(ClusterEvent::Shown(Box::new(news(change))), moment);
    }

    /// What watches show that are not late; returns whether that was anything.
    pub(crate) fn watch(&mut self, server: &ApiServer, moment: Moment) -> bool {
        let mut has_seen = false;
        for collection in Collection::ALL {
            if self.late.contains(&collection) {
                continue;
            }
            let from = self.positions.insert(collection, server.history.len()).unwrap_or_default();
            let changes: Vec<ServerChange> = server.history[from..]
                .iter()
                .filter(|change| change.collection == collection)
                .cloned()
                .collect();
            for change in changes {
                self.show(&change, moment);
                has_seen = true;
            }
        }
        has_seen
    }

    /// Says that it still decides, as often as it should.
    pub(crate) fn renew(&mut self, moment: Moment) {
        if self.control.is_some() && moment.axis.saturating_since(self.renewed) >= RENEW_EVERY {
            self.renewed = moment.axis;
            self.state.handle(ClusterEvent::SeatRenewed(self.seat), moment);
        }
    }

    /// Sends a write, whose right is looked at immediately before; returns its answer.
    pub(crate) fn perform(
        &mut self,
        write: ClusterWrite,
        server: &mut ApiServer,
        moment: Moment,
    ) -> WriteAnswer {
        let fault = match &write {
            // Leases and Events have no right, and a Lease that fails says nothing of the rest.
            ClusterWrite::Lease(..) | ClusterWrite::Event(_) => None,
            ClusterWrite::Count { .. }
            | ClusterWrite::Slices { .. }
            | ClusterWrite::Takeover { .. }
            | ClusterWrite::Revision { .. } => self.fault.take(),
        };
        if fence_of(&write).is_some_and(|fence| !self.is_in_force(fence, moment.axis)) {
            return refused(write, Failure::NotOwner);
        }
        match fault {
            None => server.perform(write),
            Some(WriteFault::Conflict) => refused(write, Failure::Conflict),
            Some(WriteFault::Failed) => refused(write, passing()),
            Some(WriteFault::AnswerLost) => {
                let lost = refused(write.clone(), passing());
                server.perform(write);
                lost
            }
        }
    }

    fn is_in_force(&self, fence: Fence, now: Timestamp) -> bool {
        let right = self.state.rights(now).get(&fence.bucket).copied();
        right.is_some_and(|right| right.until > now && right.epoch == fence.epoch)
    }

    /// Facts go to the control loop, and its orders come back; returns whether anything did.
    pub(crate) fn decide(&mut self, moment: Moment) -> bool {
        let Some(control) = &mut self.control else { return false };
        let mut has_heard = false;
        while let Some(fact) = self.state.next_fact(moment.axis) {
            control.handle(ControlEvent::Platform(fact), moment.axis);
            has_heard = true;
        }
        for word in std::mem::take(&mut self.words) {
            control.handle(word, moment.axis);
            has_heard = true;
        }
        for _ in 0..20 {
            if control.next_deadline().is_none_or(|deadline| deadline > moment.axis) {
                break;
            }
            control.advance(moment.axis);
        }
        let mut commands = Vec::new();
        while let Some(command) = control.next_command() {
            commands.push(command);
        }
        for command in commands {
            self.obey(command, moment);
        }
        has_heard
    }

    fn obey(&mut self, command: ControlCommand, moment: Moment) {
        match command {
            ControlCommand::OpenLink { link, peer, .. } => {
                let hello = match &peer {
                    Peer::Activator { name } => {
                        let word = ActivatorWord::Hello(activator_hello(name, moment.axis));
                        ControlEvent::ActivatorSpoke { link, word }
                    }
                    Peer::Pod { name, .. } => {
                        let word = PodWord::Hello(pod_hello(name, moment.axis));
                        ControlEvent::PodSpoke { link, word }
                    }
                };
                self.links.insert(link, peer);
                self.words.push_back(hello);
            }
            ControlCommand::CloseLink { link } => drop(self.links.remove(&link)),
            ControlCommand::Sync { activator, assignments, .. } => {
                for assignment in assignments {
                    self.acknowledge(activator, assignment.version);
                }
            }
            ControlCommand::Assign { activator, assignment, .. } => {
                self.acknowledge(activator, assignment.version);
            }
            ControlCommand::Unassign { activator, version, .. } => self.acknowledge(activator, version),
            ControlCommand::TellPod { pod, settings } => {
                let word = PodWord::SettingsAcknowledged(settings.version);
                self.words.push_back(ControlEvent::PodSpoke { link: pod, word });
            }
            ControlCommand::Order(order) => {
                self.state.handle(ClusterEvent::OrderGiven(self.seat, order), moment);
            }
            ControlCommand::ReleaseActivator { .. }
            | ControlCommand::AskMetrics { .. }
            | ControlCommand::Publish { .. } => {}
        }
    }

    fn acknowledge(&mut self, link: LinkId, version: Version) {
        let word = ActivatorWord::Acknowledged { revision: revision(), version };
        self.words.push_back(ControlEvent::ActivatorSpoke { link, word });
    }

    /// Each second activators and pods say what they measured: all requests come in by the first activator.
    pub(crate) fn measure(&mut self, demand: u32, now: Timestamp) {
        if now.whole_secs() <= self.said_second {
            return;
        }
        self.said_second = now.whole_secs();
        let second = self.said_second - 1;
        let amount = f64::from(demand);
        let load = Load {
            concurrency: Concurrency::clamped(amount),
            request_rate: RequestRate::clamped(amount),
            ..Load::default()
        };
        let mut is_first = true;
        for (link, peer) in &self.links {
            let link = *link;
            match peer {
                Peer::Activator { .. } => {
                    let has_load = std::mem::take(&mut is_first) && demand > 0;
                    let (oldest_wait, callers) = (Duration::ZERO, Vec::new());
                    let loads = RevisionLoad { revision: revision(), load, oldest_wait, callers };
                    let loads = has_load.then_some(loads).into_iter().collect();
                    let word = ActivatorWord::Loads { second, loads };
                    self.words.push_back(ControlEvent::ActivatorSpoke { link, word });
                    let in_flight = if has_load { demand } else { 0 };
                    let count = PresentCount { in_flight, waiting: 0 };
                    let word =
                        ActivatorWord::Present { revision: revision(), count, oldest_wait: Duration::ZERO };
                    self.words.push_back(ControlEvent::ActivatorSpoke { link, word });
                }
                Peer::Pod { .. } => {
                    let sample = Sample { second, load: Load::default() };
                    let word = PodWord::Load { sample, usage: None, late_bytes: None };
                    self.words.push_back(ControlEvent::PodSpoke { link, word });
                }
            }
        }
    }
}

/// The right that a write needs.
pub(crate) fn fence_of(write: &ClusterWrite) -> Option<Fence> {
    match write {
        ClusterWrite::Count { write, .. } => Some(write.fence),
        ClusterWrite::Slices { fence, .. }
        | ClusterWrite::Takeover { fence, .. }
        | ClusterWrite::Revision { fence, .. } => Some(*fence),
        ClusterWrite::Lease(..) | ClusterWrite::Event(_) => None,
    }
}

fn passing() -> Failure {
    Failure::Passing { why: "the server is busy".to_owned(), after: None }
}

/// The answer to a write of which nothing is known to be done.
fn refused(write: ClusterWrite, failure: Failure) -> WriteAnswer {
    match write {
        ClusterWrite::Count { write, .. } => {
            let answer: Result<ScaleAnswer, Failure> = Err(failure);
            WriteAnswer::Count(write.revision, answer)
        }
        ClusterWrite::Slices { revision, .. } => WriteAnswer::Slices(revision, Vec::new(), Err(failure)),
        ClusterWrite::Takeover { revision, takeover, .. } => {
            WriteAnswer::Takeover(revision, takeover, Err(failure))
        }
        ClusterWrite::Revision { revision, write, .. } => {
            WriteAnswer::Revision(revision, write.object(), Err(failure))
        }
        ClusterWrite::Lease(which, _, _) => WriteAnswer::Lease(which, Err(failure)),
        ClusterWrite::Event(_) => WriteAnswer::Event(Err(failure)),
    }
}

fn activator_hello(name: &ReplicaName, now: Timestamp) -> ActivatorHello {
    ActivatorHello {
        speaks: LinkVersion::CURRENT,
        activator: name.clone(),
        boot: BootId(1),
        current_second: now.whole_secs(),
        history: Vec::new(),
        present: Vec::new(),
        routings: Vec::new(),
    }
}

fn pod_hello(name: &PodName, now: Timestamp) -> PodHello {
    PodHello {
        speaks: LinkVersion::CURRENT,
        pod: name.clone(),
        boot: BootId(1),
        state: PodState::Ready,
        detail: String::new(),
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        current_second: now.whole_secs(),
        history: Vec::new(),
    }
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    ObjectKey { namespace: text("namespace"), name: text("name") }
}

fn read<Object: serde::de::DeserializeOwned>(object: &Value) -> Object {
    serde_json::from_value(object.clone()).expect("such an object")
}

fn change<Record>(shown: &ServerChange, read: impl Fn(&Value) -> Record) -> Change<Record> {
    match &shown.object {
        Some(object) => Change::Put(shown.key.clone(), read(object)),
        None => Change::Gone(shown.key.clone()),
    }
}

fn news(shown: &ServerChange) -> News {
    match shown.collection {
        Collection::Services => News::Service(change(shown, |object| service::read(&read(object)))),
        Collection::Deployments => {
            let kind = cluster::resources::kind::WorkloadKind::Deployment;
            News::Workload(kind, change(shown, |object| objects::deployment(&read(object))))
        }
        Collection::Pods => News::Pod(change(shown, |object| ShownPod::read(&read(object)))),
        Collection::Activators => News::Activator(change(shown, |object| pod::read(&read(object)))),
        Collection::Slices => News::Slice(change(shown, |object| Box::new(read(object)))),
        Collection::OtherSlices => News::OtherSlice(change(shown, |object| other_slice::read(&read(object)))),
        Collection::Leases => News::Lease(change(shown, lease_record)),
    }
}

fn listed(collection: Collection, keys: BTreeSet<ObjectKey>) -> News {
    match collection {
        Collection::Services => News::Service(Change::Listed(keys)),
        Collection::Deployments => {
            News::Workload(cluster::resources::kind::WorkloadKind::Deployment, Change::Listed(keys))
        }
        Collection::Pods => News::Pod(Change::Listed(keys)),
        Collection::Activators => News::Activator(Change::Listed(keys)),
        Collection::Slices => News::Slice(Change::Listed(keys)),
        Collection::OtherSlices => News::OtherSlice(Change::Listed(keys)),
        Collection::Leases => News::Lease(Change::Listed(keys)),
    }
}
