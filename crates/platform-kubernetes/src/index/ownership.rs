//! To which workload does a pod belong? Its labels say which workloads may have it, as Kubernetes reads
//! selectors; where the selectors of two workloads overlap, the pod's owner decides.
//!
//! A Deployment owns its pods through ReplicaSets, which are not watched for this: one that is made for a
//! Deployment is named after it and after the hash that its pods have as a label. A ReplicaSet under any
//! other name was taken over by the workload that selects its pods.

use vocabulary::{PodName, RevisionName};

use super::pods::Pod;
use super::{Index, Workload};
use crate::resources::kind::WorkloadKind;
use crate::resources::pod::{PodController, PodObject};

const TEMPLATE_HASH: &str = "pod-template-hash";

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
        self.pod_names_of(revision).filter_map(|name| self.pods.get(name))
    }

    /// The revision's pods that have no queue-proxy, and were not to have one.
    pub(super) fn plain_pods_of(&self, revision: &RevisionName) -> impl Iterator<Item = &PodObject> {
        self.pod_names_of(revision).filter_map(|name| self.pods.plain(name))
    }

    /// Names of pods with a queue-proxy and of pods without one, in order.
    fn pod_names_of(&self, revision: &RevisionName) -> impl Iterator<Item = &PodName> {
        let owner = self.workloads.get_key_value(revision);
        let selected = owner.into_iter().flat_map(|(revision, workload)| {
            self.pods.selected(revision.namespace(), &workload.record.selector)
        });
        selected.filter(move |name| {
            let pod = self.pods.record(name);
            owner.zip(pod).is_some_and(|((revision, workload), pod)| self.is_pod_of(pod, revision, workload))
        })
    }

    /// The revisions of a pod with a queue-proxy.
    pub(super) fn owners_of_pod(&self, pod: &PodName) -> Vec<RevisionName> {
        self.pod_record(pod).map(|record| self.owners_of(record)).unwrap_or_default()
    }

    pub(super) fn owners_of(&self, pod: &PodObject) -> Vec<RevisionName> {
        let named = self.workload_labels.candidates(pod).into_iter();
        let named = named.filter_map(|revision| self.workloads.get_key_value(revision));
        let owners = named.filter(|(revision, workload)| self.is_pod_of(pod, revision, workload));
        owners.map(|(revision, _)| revision.clone()).collect()
    }

    /// Whether a pod of the same namespace is a workload's.
    pub(super) fn is_pod_of(&self, pod: &PodObject, revision: &RevisionName, workload: &Workload) -> bool {
        workload.record.selector.selects(&pod.labels)
            // A pod without a controller is taken over by the workload that selects it.
            && pod.controller.as_ref().is_none_or(|owner| self.may_own(revision, workload, (owner, pod)))
    }

    /// Whether a pod's owner is the workload, or may be its for all we know.
    fn may_own(
        &self,
        revision: &RevisionName,
        workload: &Workload,
        (owner, pod): (&PodController, &PodObject),
    ) -> bool {
        match WorkloadKind::of(revision) {
            Some(
                WorkloadKind::StatefulSet | WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController,
            ) => owner.uid == workload.record.uid,
            Some(WorkloadKind::Deployment) => {
                owner.kind == "ReplicaSet"
                    && self.deployment_of(owner, pod).is_none_or(|deployment| deployment == revision)
            }
            // It may own them through anything.
            Some(WorkloadKind::Custom(_)) => {
                let is_others =
                    self.workload_labels.of_uid(&owner.uid).is_some_and(|other| other != revision);
                !is_others && self.deployment_of(owner, pod).is_none()
            }
            None => false,
        }
    }

    /// The Deployment that a ReplicaSet was made for, if there is one of that name.
    fn deployment_of(&self, owner: &PodController, pod: &PodObject) -> Option<&RevisionName> {
        let hash = pod.labels.get(TEMPLATE_HASH).filter(|_| owner.kind == "ReplicaSet")?;
        let name = owner.name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
        let deployment = WorkloadKind::Deployment.revision(&pod.namespace, name)?;
        self.workloads.get_key_value(&deployment).map(|(revision, _)| revision)
    }
}
