//! Which objects are there, and what follows from them for the autoscaler?
//!
//! A synchronous value: objects go in ([`Index::put_service`] and its like), what has changed comes out as
//! [`Topic`]s, each of which is rendered when there is room for it. So a subject that changes a hundred times
//! while the autoscaler reads nothing makes one fact, of its last state.
//!
//! Each of the six structs keeps its own maps consistent and is changed by its own methods alone. What
//! follows from one for another is decided by the methods of [`Index`], which stand in the files beside them:
//!
//! ```text
//!   Services: records, custody, slices, routes ──┐
//!   Workloads: settings, counts, kinds ───────────┼──► Index: what follows ──► Notices: facts, Events, slices to write
//!   Pods: records, failures, activators, zones ───┤
//!   ActivatorPorts: books, claims ────────────────┤
//!   Revisions: those of an installed Knative ─────┘
//! ```

mod closing;
mod config_maps;
mod count;
mod count_writers;
mod entrances;
mod facts;
mod failures;
mod handover;
mod kind_watches;
mod kinds;
mod knative;
mod known_slice;
mod labels;
mod membership;
mod mixture;
mod notices;
mod pod_failures;
mod pods;
mod ports;
mod problems;
mod proofs;
mod restraint;
mod revision_keys;
mod revisions;
mod routes;
mod services;
mod targets;
mod topic;
mod workload_changes;
mod workloads;

use std::collections::BTreeSet;

use orchestration::{PodReach, RouteInForce, Subject};
use vocabulary::{Bucket, LateTimeout, PodName, PodState, ReplicaName, RevisionName, Timestamp};

use crate::hop_keys::ClusterKeys;
use crate::resources::ObjectKey;
use crate::resources::activator::{self, ActivatorObject};
use crate::resources::pod::PodObject;

pub use handover::Takeover;
pub(crate) use notices::Announcement;
use notices::Notices;
use pods::{PodSighting, Pods};
use ports::ActivatorPorts;
use revisions::Revisions;
use services::Services;
use topic::Topic;
use workloads::{Workload, Workloads};

/// Everything of a cluster that concerns us.
#[derive(Debug)]
pub(crate) struct Index {
    services: Services,
    workloads: Workloads,
    pods: Pods,
    ports: ActivatorPorts,
    revisions: Revisions,
    /// The end of late responses in an installed Knative, as `config-autoscaler` says it.
    late_timeout: LateTimeout,
    /// Pods of the Deployment `autoscaler` of an installed Knative that are Knative's.
    knatives_autoscalers: BTreeSet<ObjectKey>,
    notices: Notices,
}

impl Index {
    /// An empty index for as many buckets as the autoscalers share.
    pub(crate) fn new(keys: ClusterKeys, buckets: u16) -> Self {
        Self {
            services: Services::default(),
            workloads: Workloads::new(keys.hop_keys),
            pods: Pods::default(),
            ports: ActivatorPorts::new(keys.slice_key, buckets),
            revisions: Revisions::default(),
            late_timeout: LateTimeout::default(),
            knatives_autoscalers: BTreeSet::new(),
            notices: Notices::default(),
        }
    }

    /// This index for an installed Knative, in a cluster of this domain.
    pub(crate) fn in_place_of_knatives(self, domain: String) -> Self {
        Self { revisions: Revisions::in_place_of_knatives(domain), ..self }
    }

    /// When something is due without any event.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let own =
            [self.services.lingering_ends(), self.pods.start_trouble_due(), self.workloads.next_deadline()];
        own.into_iter().flatten().min()
    }

    pub(crate) fn put_pod(&mut self, record: PodObject, now: Timestamp) {
        let name = record.pod_name();
        self.notice_failed_part(&name, &record);
        if !record.is_ours() {
            // A watch that lists anew shows each pod once more, from which nothing follows.
            if self.pods.plain(&name) == Some(&record) {
                return;
            }
            self.forget_pod(&name);
            let owners = self.owners_of(&record);
            self.pods.put_plain(record);
            // Only once the pod is in the index: notices about a workload follow from all of its pods.
            for revision in owners {
                self.pods_changed(&revision);
            }
            return;
        }
        let sighting = self.pods.put(record, now);
        if sighting == PodSighting::Unchanged {
            return;
        }
        let owners = self.owners_of_pod(&name);
        if sighting == PodSighting::HasFailed {
            for revision in &owners {
                self.find_pod_failure(revision);
            }
        }
        for revision in owners {
            self.pods_changed(&revision);
        }
    }

    pub(crate) fn remove_pod(&mut self, name: &PodName) {
        self.forget_pod(name);
        self.forget_failed_part(name);
    }

    fn forget_pod(&mut self, name: &PodName) {
        let Some(pod) = self.pods.remove(name) else { return };
        for revision in self.owners_of(&pod) {
            self.pods_changed(&revision);
        }
    }

    /// Takes in what a pod's queue-proxy says of its state.
    pub(crate) fn note_state(&mut self, name: &PodName, state: PodState) {
        if !self.pods.note_state(name, state) {
            return;
        }
        // Slices follow from the state, and whether a request should wait for pods. No fact does: the state
        // came from the autoscaler.
        for revision in self.owners_of_pod(name) {
            self.review_failures(&revision);
            self.notices.reroute(revision);
        }
    }

    /// Whether clients reach a pod, as its owner knows by its link and by those of others.
    pub(crate) fn note_reach(&mut self, name: &PodName, reach: PodReach) {
        if self.pods.note_reach(name, reach) {
            self.notices.reroute_all(self.owners_of_pod(name));
        }
    }

    /// A pod of our own namespace, which may be an activator.
    pub(crate) fn put_activator(&mut self, pod: &PodObject, now: Timestamp) {
        let name = ReplicaName::new(&pod.name);
        let is_beside_knatives = self.revisions.domain().is_some();
        if is_beside_knatives {
            // Elsewhere the watch over all pods tells of activators, too.
            self.notice_failed_part(&pod.pod_name(), pod);
        }
        let object = activator::of_pod(pod);
        let object = object.map(|of| if is_beside_knatives { of.beside_knatives(pod) } else { of });
        self.put_activator_object(&name, object, now);
    }

    pub(crate) fn remove_activator(&mut self, name: &ReplicaName, now: Timestamp) {
        self.put_activator_object(name, None, now);
        self.notices.put(Subject::Activator(name.clone()), Vec::new());
    }

    fn put_activator_object(&mut self, name: &ReplicaName, object: Option<ActivatorObject>, now: Timestamp) {
        let had_knatives = self.has_knatives_activators();
        if !self.pods.put_activator(name, object) {
            return;
        }
        self.activator_changed(name, now);
        self.review_mixture();
        if self.has_knatives_activators() != had_knatives {
            let revisions: Vec<RevisionName> = self.revisions.names().collect();
            self.notices.tell_all(revisions.into_iter().map(Topic::Revision));
        }
    }

    /// An activator is another than before: slices that name it have to be written anew, also without a new
    /// order.
    fn activator_changed(&mut self, name: &ReplicaName, now: Timestamp) {
        self.notices.tell(Topic::Activators);
        self.review_paths(now);
        let naming = self.services.routes().filter(|(_, route)| route.activators.contains(name));
        self.notices.reroute_all(naming.map(|(revision, _)| revision.clone()));
    }

    /// In which zone a node is; `None` for one without, and for one that is gone.
    pub(crate) fn put_node_zone(&mut self, node: &str, zone: Option<&str>) {
        if self.pods.put_node_zone(node, zone) {
            // The zone of a node changes rarely, so no list of the pods on a node is kept.
            self.notices.reroute_all(self.services.served().cloned());
        }
    }

    /// The route of a revision from now on, as it was ordered.
    pub(crate) fn set_route(&mut self, revision: &RevisionName, route: RouteInForce) {
        self.services.set_route(revision, route);
        self.notices.reroute(revision.clone());
    }

    /// These buckets have another owner from now on, perhaps this autoscaler. Until that owner orders routes,
    /// slices say what they are.
    pub(crate) fn decider_changed(&mut self, changed: &BTreeSet<Bucket>) {
        let ports = &self.ports;
        let theirs = |revision: &RevisionName| changed.contains(&ports.bucket_of(revision));
        for revision in self.services.take_ordered(theirs) {
            self.find_route(&revision);
        }
        let ports = &self.ports;
        let bucket_of = |revision: &RevisionName| ports.bucket_of(revision);
        for revision in self.revisions.forget_decisions(changed, bucket_of) {
            self.count_ready(&revision);
            self.find_route(&revision);
        }
        self.forget_reach(changed);
    }

    /// Another owner finds out by links of its own which pods clients do not reach.
    fn forget_reach(&mut self, changed: &BTreeSet<Bucket>) {
        for name in self.pods.unreachable().cloned().collect::<Vec<_>>() {
            let revision = self.revision_of_pod(&name);
            if revision.is_some_and(|revision| changed.contains(&self.ports.bucket_of(&revision))) {
                self.note_reach(&name, PodReach::Reachable);
            }
        }
    }

    /// Whether a Service is served by this workload.
    pub(crate) fn is_revision(&self, revision: &RevisionName) -> bool {
        self.workloads.contains(revision) && self.services.is_served(revision)
    }

    /// Revisions whose slices may have to be written.
    pub(crate) fn take_unrouted(&mut self) -> BTreeSet<RevisionName> {
        self.notices.take_unrouted()
    }

    fn pods_changed(&mut self, revision: &RevisionName) {
        self.review_failures(revision);
        self.notice_services_of(revision);
        self.review_hooks(revision);
        self.count_ready(revision);
        self.review_closing(revision);
        self.notices.tell(Topic::Pods(revision.clone()));
        self.notices.reroute(revision.clone());
    }

    fn revision_changed(&mut self, revision: &RevisionName) {
        self.review_revision(revision);
        self.notices.tell(Topic::Revision(revision.clone()));
        self.notices.tell(Topic::Pods(revision.clone()));
        if self.workloads.get(revision).is_some_and(|workload| workload.last_failure.is_some()) {
            self.notices.tell(Topic::Failure(revision.clone()));
        }
        // A route that was found before its revision was known is told now.
        self.find_route(revision);
        if self.services.route(revision).is_some() {
            self.notices.tell(Topic::Route(revision.clone()));
        }
        self.notices.reroute(revision.clone());
        self.notice_workload(revision);
    }
}

#[cfg(test)]
mod tests;
