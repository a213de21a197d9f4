//! Which pods are there, those of ebb's activators among them, and in which zones are their nodes?
//!
//! A pod has a queue-proxy or has none, so a name stands in one of two maps. To which workload a pod belongs
//! the workloads say.

use std::collections::BTreeMap;

use orchestration::PodReach;
use vocabulary::{PodName, PodState, ReplicaName, Timestamp};

use super::labels::PodLabels;
use super::pod_failures::{PodFailures, WaitRefusal};
use crate::resources::activator::ActivatorObject;
use crate::resources::pod::{PodLife, PodObject};
use crate::resources::selector::Selector;

/// A pod with a queue-proxy.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) record: PodObject,
    /// The state that the queue-proxy said last on its link.
    pub(super) reported_state: Option<PodState>,
    /// Whether clients reach it, as its owner said last.
    pub(super) reach: PodReach,
    pub(super) seen_ending: Option<Timestamp>,
    pub(super) failures: PodFailures,
}

impl Pod {
    /// Whether the pod takes requests: as it said itself, or else as kubelet says.
    pub(super) fn is_ready(&self) -> bool {
        match self.reported_state {
            Some(PodState::Ready) => true,
            Some(PodState::Starting | PodState::Unready | PodState::Draining) => false,
            Some(PodState::Unheard) | None => self.record.is_ready,
        }
    }

    /// How it has failed since it was last ready, for people.
    pub(super) fn failure_in_words(&self) -> Option<String> {
        if self.is_ready() { None } else { self.failures.in_words(&self.record) }
    }

    /// Why no request should wait for its revision, if this pod is the reason.
    pub(super) fn wait_refusal(&self) -> Option<WaitRefusal> {
        self.failures.wait_refusal(&self.record)
    }
}

/// What a look at a pod with a queue-proxy has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodSighting {
    Unchanged,
    Changed,
    /// It has changed, and a container has failed once more.
    HasFailed,
}

/// All pods, by their names.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// The pods that have a queue-proxy.
    injected: BTreeMap<PodName, Pod>,
    /// Pods without a queue-proxy: class hpa counts them.
    plain: BTreeMap<PodName, PodObject>,
    /// When a container of these will have been impossible to start for long enough.
    start_troubles: BTreeMap<PodName, Timestamp>,
    /// Labels of pods with a queue-proxy and of pods without one.
    labels: PodLabels,
    activators: BTreeMap<ReplicaName, ActivatorObject>,
    /// In which zone each node is, of those that are in one.
    zones: BTreeMap<String, String>,
}

impl Pods {
    /// Puts a pod with a queue-proxy in.
    pub(super) fn put(&mut self, record: PodObject, now: Timestamp) -> PodSighting {
        let name = record.pod_name();
        if let Some(plain) = self.plain.remove(&name) {
            self.labels.remove(&plain);
        }
        let former = self.injected.remove(&name);
        if let Some(former) = &former {
            self.labels.remove(&former.record);
        }
        self.labels.insert(&record);
        // A pod that a StatefulSet makes anew has the name of the former pod, and has said nothing yet.
        let former = match former.filter(|former| former.record.uid == record.uid) {
            Some(former) if former.record == record => {
                self.injected.insert(name, former);
                return PodSighting::Unchanged;
            }
            former => former,
        };
        let is_ending = matches!(record.life, PodLife::Terminating(_) | PodLife::Over);
        let seen_ending = former.as_ref().and_then(|former| former.seen_ending).or(is_ending.then_some(now));
        let (reported_state, reach) =
            former.as_ref().map(|former| (former.reported_state, former.reach)).unwrap_or_default();
        let known = former.as_ref().map(|former| former.failures.clone());
        let mut failures = known.unwrap_or_else(|| PodFailures::first_seen(&record));
        failures.observe(&record, reported_state, now);
        let has_failed = failures.note(&record, former.as_ref().map(|former| &former.record), now);
        match failures.due() {
            Some(due) => self.start_troubles.insert(name.clone(), due),
            None => self.start_troubles.remove(&name),
        };
        self.injected.insert(name, Pod { record, reported_state, reach, seen_ending, failures });
        if has_failed { PodSighting::HasFailed } else { PodSighting::Changed }
    }

    /// Puts a pod without a queue-proxy in, of whose name no pod is there.
    pub(super) fn put_plain(&mut self, record: PodObject) {
        self.labels.insert(&record);
        self.plain.insert(record.pod_name(), record);
    }

    /// Takes a pod out, and returns it.
    pub(super) fn remove(&mut self, name: &PodName) -> Option<PodObject> {
        let plain = self.plain.remove(name);
        self.start_troubles.remove(name);
        let record = plain.or_else(|| Some(self.injected.remove(name)?.record))?;
        self.labels.remove(&record);
        Some(record)
    }

    /// A pod with a queue-proxy.
    pub(super) fn get(&self, name: &PodName) -> Option<&Pod> {
        self.injected.get(name)
    }

    /// A pod without a queue-proxy.
    pub(super) fn plain(&self, name: &PodName) -> Option<&PodObject> {
        self.plain.get(name)
    }

    /// A pod, with a queue-proxy or without one.
    pub(super) fn record(&self, name: &PodName) -> Option<&PodObject> {
        self.get(name).map(|pod| &pod.record).or_else(|| self.plain(name))
    }

    /// Pods of a namespace that a selector may mean.
    pub(super) fn selected(&self, namespace: &str, selector: &Selector) -> Vec<&PodName> {
        let named = self.labels.candidates(namespace, selector).map(Iterator::collect);
        named.unwrap_or_else(|| {
            let all = self.injected.keys().chain(self.plain.keys());
            let prefix = first_in(namespace);
            let mut all: Vec<&PodName> =
                all.filter(|name| name.as_str().starts_with(prefix.as_str())).collect();
            all.sort();
            all
        })
    }

    /// All pods of a namespace: those with a queue-proxy, and those without one.
    pub(super) fn all_in(&self, namespace: &str) -> impl Iterator<Item = &PodObject> {
        self.pods_in(namespace).map(|pod| &pod.record).chain(self.plain_pods_in(namespace))
    }

    /// Pods are named by their namespace first.
    fn pods_in(&self, namespace: &str) -> impl Iterator<Item = &Pod> {
        let namespace = namespace.to_owned();
        let pods = self.injected.range(first_in(&namespace)..).map(|(_, pod)| pod);
        pods.take_while(move |pod| pod.record.namespace == namespace)
    }

    fn plain_pods_in(&self, namespace: &str) -> impl Iterator<Item = &PodObject> {
        let namespace = namespace.to_owned();
        let pods = self.plain.range(first_in(&namespace)..).map(|(_, pod)| pod);
        pods.take_while(move |pod| pod.namespace == namespace)
    }

    /// What a pod's queue-proxy says of itself; returns whether there is such a pod.
    pub(super) fn note_state(&mut self, name: &PodName, state: PodState) -> bool {
        let Some(pod) = self.injected.get_mut(name) else { return false };
        pod.reported_state = Some(state);
        pod.failures.note_readiness(&pod.record, pod.reported_state);
        true
    }

    /// Whether clients reach a pod; returns whether there is such a pod.
    pub(super) fn note_reach(&mut self, name: &PodName, reach: PodReach) -> bool {
        let Some(pod) = self.injected.get_mut(name) else { return false };
        pod.reach = reach;
        true
    }

    /// The names of pods that clients do not reach, as their owners said last.
    pub(super) fn unreachable(&self) -> impl Iterator<Item = &PodName> {
        self.injected.iter().filter(|(_, pod)| pod.reach == PodReach::Unreachable).map(|(name, _)| name)
    }

    /// When a container will have been impossible to start for long enough.
    pub(super) fn start_trouble_due(&self) -> Option<Timestamp> {
        self.start_troubles.values().min().copied()
    }

    /// Notes containers that have been impossible to start for long enough; returns their pods.
    pub(super) fn end_start_waits(&mut self, now: Timestamp) -> Vec<PodName> {
        let due: Vec<PodName> =
            self.start_troubles.extract_if(.., |_, due| *due <= now).map(|(name, _)| name).collect();
        for name in &due {
            if let Some(pod) = self.injected.get_mut(name) {
                pod.failures.start_wait_over(&pod.record);
            }
        }
        due
    }

    /// A pod of ebb's own namespace is this activator, or none (any more); returns whether that is news.
    pub(super) fn put_activator(&mut self, name: &ReplicaName, present: Option<ActivatorObject>) -> bool {
        let is_news = self.activators.get(name) != present.as_ref();
        match present {
            Some(present) => self.activators.insert(name.clone(), present),
            None => self.activators.remove(name),
        };
        is_news
    }

    pub(super) fn activator(&self, name: &ReplicaName) -> Option<&ActivatorObject> {
        self.activators.get(name)
    }

    pub(super) fn activators(&self) -> impl Iterator<Item = &ActivatorObject> {
        self.activators.values()
    }

    /// In which zone a node is from now on, if in any; returns whether that is news.
    pub(super) fn put_node_zone(&mut self, node: &str, zone: Option<&str>) -> bool {
        let former = match zone {
            Some(zone) => self.zones.insert(node.to_owned(), zone.to_owned()),
            None => self.zones.remove(node),
        };
        former.as_deref() != zone
    }

    /// A node's zone; `None` where nodes have none.
    pub(super) fn zone(&self, node: Option<&str>) -> Option<String> {
        self.zones.get(node?).cloned()
    }
}

fn first_in(namespace: &str) -> PodName {
    PodName::new(&format!("{namespace}/"))
}
