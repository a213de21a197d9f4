//! Which pods has a revision, and of which revisions is a pod?

use vocabulary::{PodName, RevisionName};

use super::Index;
use super::pods::Pod;
use crate::resources::pod::PodObject;

impl Index {
    /// The revision of a pod; the first in order, if selectors of several select the pod.
    pub(crate) fn revision_of_pod(&self, pod: &PodName) -> Option<RevisionName> {
        self.owners_of_pod(pod).into_iter().next()
    }

    /// A pod with a queue-proxy, as the watch showed it last.
    pub(crate) fn pod_record(&self, pod: &PodName) -> Option<&PodObject> {
        self.pods.get(pod).map(|pod| &pod.record)
    }

    pub(super) fn pods_of(&self, revision: &RevisionName) -> impl Iterator<Item = &Pod> {
        let selected = self.pod_names_of(revision).filter_map(|name| self.pods.get(name));
        selected.chain(self.pods_left_of(revision))
    }

    /// The revision's pods that have no queue-proxy, and were not to have one.
    pub(super) fn plain_pods_of(&self, revision: &RevisionName) -> impl Iterator<Item = &PodObject> {
        self.pod_names_of(revision).filter_map(|name| self.pods.plain(name))
    }

    /// Names of pods with a queue-proxy and of pods without one, in order.
    fn pod_names_of(&self, revision: &RevisionName) -> impl Iterator<Item = &PodName> {
        let owner = self.workloads.get_named(revision);
        let selected = owner.into_iter().flat_map(|(revision, workload)| {
            self.pods.selected(revision.namespace(), &workload.record.selector)
        });
        selected.filter(move |name| {
            let pod = self.pods.record(name);
            owner
                .zip(pod)
                .is_some_and(|((revision, workload), pod)| self.workloads.is_pod_of(pod, revision, workload))
        })
    }

    /// The revisions of a pod with a queue-proxy.
    pub(super) fn owners_of_pod(&self, pod: &PodName) -> Vec<RevisionName> {
        self.pod_record(pod).map(|record| self.owners_of(record)).unwrap_or_default()
    }

    /// The revisions whose workloads select a pod, or else the one that has left it behind.
    pub(super) fn owners_of(&self, pod: &PodObject) -> Vec<RevisionName> {
        let owners = self.workloads.owners_of(pod);
        if owners.is_empty() { self.revision_that_left(pod).into_iter().collect() } else { owners }
    }
}
