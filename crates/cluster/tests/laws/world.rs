//! Two autoscalers before one API server, and what may never be written there.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::slices::SliceChange;
use cluster::{ClusterEvent, ClusterWrite, Moment};
use jiff::Timestamp as WallTime;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};
use vocabulary::Timestamp;

use crate::replica::{Replica, WriteFault, fence_of};
use crate::server::{self, ApiServer, Collection, ServiceOwner, count_of, hello};

/// Something that happens in the world.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// So many tenths of a second pass.
    Pass(u16),
    /// So many requests are in flight from now on.
    Demand(u32),
    /// People give the Service to ebb, or back to Kubernetes.
    Give(ServiceOwner),
    /// Another client writes the count.
    ForeignCount(u32),
    KillPod,
    /// The next write of an autoscaler fails.
    Fail(usize, WriteFault),
    /// A watch shows nothing until it is caught up.
    Delay(usize, Collection),
    CatchUp(usize),
    /// A watch shows its last change once more.
    Repeat(usize, Collection),
    /// A watch is refused for being too old (410), and lists anew.
    Relist(usize, Collection),
    /// An autoscaler stands still, and goes on.
    Hang(usize),
    GoOn(usize),
    /// An autoscaler leaves its seat in order, and takes another one.
    Leave(usize),
    Return(usize),
}

/// The longest wait of a write after failures, and some more.
const ORDERS_WAIT_MAX: Duration = Duration::from_secs(15);
/// How long activators serve a Service that was given back, and the time until then.
const LINGERS_FOR: Duration = Duration::from_secs(90);

/// A write of each kind but Leases and Events, for counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteTally {
    pub(crate) counts: usize,
    pub(crate) slices: usize,
    pub(crate) takeovers: usize,
}

pub(crate) struct World {
    pub(crate) server: ApiServer,
    replicas: [Replica; 2],
    now: Timestamp,
    demand: u32,
    pub(crate) tally: WriteTally,
    /// What was written and may not be, in words.
    pub(crate) breaches: Vec<String>,
}

impl World {
    /// A workload of two pods that Kubernetes serves.
    pub(crate) fn new() -> Self {
        let mut server = ApiServer::default();
        server.put(Collection::Activators, server::activator("activator-1", "10.1.0.1"));
        server.put(Collection::Deployments, server::deployment(2));
        server.put(Collection::Services, server::service(ServiceOwner::Kubernetes));
        server.run_controllers();
        server.run_controllers();
        let now = Timestamp::from_secs(1000);
        let moment = moment_at(now);
        let replicas = [("autoscaler-a", 1), ("autoscaler-b", 2)]
            .map(|(name, salt)| Replica::new(name, salt, &server, moment));
        let mut world =
            Self { server, replicas, now, demand: 0, tally: WriteTally::default(), breaches: Vec::new() };
        world.turn_all();
        world
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let moment = moment_at(self.now);
        match step {
            Step::Pass(tenths) => self.pass(Duration::from_millis(100), *tenths),
            Step::Demand(demand) => self.demand = *demand,
            Step::Give(owner) => drop(self.server.put(Collection::Services, server::service(*owner))),
            Step::ForeignCount(count) => {
                if let Some(mut deployment) = self.server.get(Collection::Deployments, &hello()).cloned() {
                    deployment["spec"]["replicas"] = json!(count);
                    self.server.put(Collection::Deployments, deployment);
                }
            }
            Step::KillPod => {
                let killed = self.server.all(Collection::Pods).next().map(key_of);
                if let Some(killed) = killed {
                    self.server.remove(Collection::Pods, &killed);
                }
            }
            Step::Fail(which, fault) => self.replicas[*which].fault = Some(*fault),
            Step::Delay(which, collection) => {
                self.replicas[*which].late.insert(*collection);
            }
            Step::CatchUp(which) => self.replicas[*which].late.clear(),
            Step::Repeat(which, collection) => {
                self.replicas[*which].repeat(*collection, &self.server, moment);
            }
            Step::Relist(which, collection) => self.replicas[*which].list(*collection, &self.server, moment),
            Step::Hang(which) => self.replicas[*which].is_hung = true,
            Step::GoOn(which) => self.replicas[*which].is_hung = false,
            Step::Leave(which) => self.replicas[*which].leave_seat(moment),
            Step::Return(which) => self.replicas[*which].take_seat(moment),
        }
        self.turn_all();
    }

    /// Nothing fails any more, and everything that was held back comes.
    pub(crate) fn heal(&mut self) {
        let moment = moment_at(self.now);
        for replica in &mut self.replicas {
            (replica.is_hung, replica.fault) = (false, None);
            replica.late.clear();
            replica.take_seat(moment);
        }
    }

    /// So many turns, each after a pause.
    pub(crate) fn pass(&mut self, pause: Duration, turns: u16) {
        for _ in 0..turns {
            self.now += pause;
            self.server.seconds = i64::try_from(self.now.whole_secs()).expect("a short time");
            self.turn_all();
        }
    }

    /// Kubernetes and both autoscalers do what is to be done now.
    fn turn_all(&mut self) {
        self.server.run_controllers();
        for which in 0..self.replicas.len() {
            self.turn(which);
            self.judge_owners();
        }
    }

    fn turn(&mut self, which: usize) {
        let moment = moment_at(self.now);
        if self.replicas[which].is_hung {
            return;
        }
        self.replicas[which].renew(moment);
        self.replicas[which].measure(self.demand, self.now);
        for _ in 0..20 {
            let replica = &mut self.replicas[which];
            let mut is_busy = replica.watch(&self.server, moment);
            replica.state.settle(moment);
            replica.state.take_kind_watches();
            replica.state.take_incidents();
            while let Some(write) = self.replicas[which].state.next_write() {
                self.judge_write(which, &write);
                self.count(&write);
                let replica = &mut self.replicas[which];
                let answer = replica.perform(write, &mut self.server, moment);
                replica.state.handle(ClusterEvent::Answered(answer), moment);
                is_busy = true;
            }
            is_busy |= self.replicas[which].decide(moment);
            if !is_busy {
                return;
            }
        }
    }

    fn count(&mut self, write: &ClusterWrite) {
        match write {
            ClusterWrite::Count { .. } => self.tally.counts += 1,
            ClusterWrite::Slices { .. } => self.tally.slices += 1,
            ClusterWrite::Takeover { .. } => self.tally.takeovers += 1,
            ClusterWrite::Revision { .. } | ClusterWrite::Lease(..) | ClusterWrite::Event(_) => {}
        }
    }

    /// No bucket has two owners, whatever clocks and watches do.
    fn judge_owners(&mut self) {
        let [one, other] = &self.replicas;
        let (first, second) = (one.state.rights(self.now), other.state.rights(self.now));
        if let Some(bucket) = first.keys().find(|bucket| second.contains_key(bucket)) {
            self.breaches.push(format!("{} and {} own {bucket:?} at {:?}", one.name, other.name, self.now));
        }
    }

    /// A write is judged by what watches have shown to its writer.
    fn judge_write(&mut self, which: usize, write: &ClusterWrite) {
        let replica = &self.replicas[which];
        let shown = |collection| replica.shown.get(&(collection, hello()));
        let service = shown(Collection::Services);
        let has_selector = service.is_some_and(|service| !service["spec"]["selector"].is_null());
        let has_slices = replica.shown.keys().any(|(of, _)| *of == Collection::Slices)
            || self.server.all(Collection::Slices).next().is_some();
        let is_kubernetes = has_selector && !has_slices && replica.late.is_empty();
        // An order of before may wait for its turn, for the longest wait after a failure.
        let selected_for = replica.selector_since.map(|since| self.now.saturating_since(since));
        let has_long_selector = selected_for.is_some_and(|time| time > ORDERS_WAIT_MAX);
        // Activators serve on for a minute after our slices are gone, and may ask for more pods.
        let is_long_over = selected_for.is_some_and(|time| time > ORDERS_WAIT_MAX + LINGERS_FOR);
        let mut wrong = Vec::new();
        match write {
            ClusterWrite::Count { write, subject, .. } => {
                let uid = shown(Collection::Deployments).map(|deployment| &deployment["metadata"]["uid"]);
                if uid != Some(&json!(subject.uid)) {
                    wrong.push("the count of another object");
                }
                if service.is_none() || (is_kubernetes && is_long_over) {
                    wrong.push("the count of a workload that Kubernetes serves");
                }
                if write.to < write.from && has_long_selector {
                    wrong.push("a smaller count under clients that reach pods past ebb");
                }
            }
            ClusterWrite::Slices { changes, .. } => {
                let creates = changes.iter().any(|change| matches!(change, SliceChange::Create(_)));
                if creates && (service.is_none() || is_kubernetes) {
                    wrong.push("slices for a Service that is not ours");
                }
                if !changes.iter().all(|change| self.names_what_is_there(which, change)) {
                    wrong.push("a slice that names a pod which is not there");
                }
            }
            ClusterWrite::Takeover { .. } => {
                let serve = self.server.all(Collection::Slices).any(has_endpoints);
                if !serve && replica.late.is_empty() {
                    wrong.push("the end of Kubernetes' slices before ours name an address");
                }
            }
            ClusterWrite::Revision { .. } | ClusterWrite::Lease(..) | ClusterWrite::Event(_) => {}
        }
        let (name, fence) = (replica.name, fence_of(write));
        self.breaches.extend(wrong.into_iter().map(|wrong| format!("{name} ({fence:?}) writes {wrong}")));
    }

    fn names_what_is_there(&self, which: usize, change: &SliceChange) -> bool {
        let (SliceChange::Create(slice) | SliceChange::Replace(slice)) = change else { return true };
        let known = self.replicas[which]
            .shown
            .iter()
            .filter(|((of, _), _)| matches!(of, Collection::Pods | Collection::Activators));
        let known: BTreeSet<&str> =
            known.filter_map(|(_, object)| object["metadata"]["uid"].as_str()).collect();
        uids_in(slice).all(|uid| known.contains(uid))
    }

    /// The buckets that have an owner now.
    pub(crate) fn owned(&self) -> usize {
        self.replicas.iter().map(|replica| replica.state.rights(self.now).len()).sum()
    }

    /// What is wrong with a world that has come to rest, in words.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.owned() != 1 {
            wrong.push(format!("the bucket has {} owners", self.owned()));
        }
        let service = self.server.get(Collection::Services, &hello()).expect("it is never deleted");
        let ours: Vec<EndpointSlice> = self.server.all(Collection::Slices).map(slice_of).collect();
        if service["spec"]["selector"].is_null() {
            if ours.is_empty() {
                wrong.push("an adopted Service has no slice of ours".to_owned());
            }
            if self.server.all(Collection::OtherSlices).next().is_some() {
                wrong.push("Kubernetes' slices of an adopted Service are there still".to_owned());
            }
            if ours.iter().all(|slice| slice.endpoints.is_empty()) {
                wrong.push("an adopted Service leads nowhere".to_owned());
            }
            let deployment = self.server.get(Collection::Deployments, &hello());
            if self.demand > 0 && deployment.is_none_or(|deployment| count_of(deployment).value() == 0) {
                wrong.push("requests have no pod".to_owned());
            }
        } else if !ours.is_empty() {
            wrong.push("a Service that was given back has slices of ours".to_owned());
        }
        let alive: BTreeSet<&str> = self
            .server
            .all(Collection::Pods)
            .chain(self.server.all(Collection::Activators))
            .filter_map(|object| object["metadata"]["uid"].as_str())
            .collect();
        if ours.iter().flat_map(uids_in).any(|uid| !alive.contains(uid)) {
            wrong.push("a slice names a pod that is gone".to_owned());
        }
        wrong
    }
}

/// Both clocks at a time of the axis.
fn moment_at(now: Timestamp) -> Moment {
    let seconds = i64::try_from(now.whole_secs()).expect("a short time");
    let wall = WallTime::from_second(1_800_000_000 + seconds).expect("a time of our days");
    Moment { wall, axis: now }
}

fn key_of(object: &Value) -> cluster::resources::ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    server::key(text("namespace"), text("name"))
}

fn slice_of(object: &Value) -> EndpointSlice {
    serde_json::from_value(object.clone()).expect("an EndpointSlice")
}

fn has_endpoints(slice: &Value) -> bool {
    slice["endpoints"].as_array().is_some_and(|endpoints| !endpoints.is_empty())
}

fn uids_in(slice: &EndpointSlice) -> impl Iterator<Item = &str> {
    slice.endpoints.iter().filter_map(|endpoint| endpoint.target_ref.as_ref()?.uid.as_deref())
}
