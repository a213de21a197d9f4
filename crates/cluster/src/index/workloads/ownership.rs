//! To which workload does a pod belong? Its labels say which workloads may have it, as Kubernetes reads
//! selectors; where the selectors of two workloads overlap, the pod's owner decides.
//!
//! A Deployment owns its pods through ReplicaSets, which are not watched for this: one that is made for a
//! Deployment is named after it and after the hash that its pods have as a label. A ReplicaSet under any
//! other name was taken over by the workload that selects its pods.

use std::collections::BTreeSet;

use vocabulary::RevisionName;

use super::{Workload, Workloads};
use crate::index::revision_keys;
use crate::knative::pods;
use crate::resources::kind::WorkloadKind;
use crate::resources::pod::{PodController, PodObject};

const TEMPLATE_HASH: &str = "pod-template-hash";

impl Workloads {
    /// The revisions of a pod, in the order of their names.
    pub(in crate::index) fn owners_of(&self, pod: &PodObject) -> Vec<RevisionName> {
        let named = self.candidates(pod).into_iter();
        let named = named.filter_map(|revision| self.by_name.get_key_value(revision));
        let owners = named.filter(|(revision, workload)| self.is_pod_of(pod, revision, workload));
        owners.map(|(revision, _)| revision.clone()).collect()
    }

    /// The revisions of which a pod may be, by its labels.
    pub(in crate::index) fn candidates(&self, pod: &PodObject) -> BTreeSet<&RevisionName> {
        self.labels.candidates(pod)
    }

    /// Whether a pod of the same namespace is a workload's.
    pub(in crate::index) fn is_pod_of(
        &self,
        pod: &PodObject,
        revision: &RevisionName,
        workload: &Workload,
    ) -> bool {
        if let Some(key) = revision_keys::key_of(revision) {
            // Knative tells whose a pod is by labels alone.
            return workload.record.selector.selects(&pod.labels) && pods::revision_of(pod) == Some(key);
        }
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
                let is_others = self.labels.of_uid(&owner.uid).is_some_and(|other| other != revision);
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
        self.by_name.get_key_value(&deployment).map(|(revision, _)| revision)
    }
}
