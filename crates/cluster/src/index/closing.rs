//! What is left of a revision of Knative's whose `PodAutoscaler` or Deployment is gone? (Contract §1.2.)
//!
//! With a revision both go, in either order, and its pods may end minutes later. Those with a link need two
//! words until then: that they leave, and that no client is told of them any more. So the control loop keeps
//! the revision until the last of them has ended. Without a Deployment pods are known by their labels.

use orchestration::RevisionFacts;
use vocabulary::{RequestTimeouts, RevisionName};

use super::pods::Pod;
use super::{Index, Topic, revision_keys};
use crate::knative::{closing_facts, pods};
use crate::resources::pod::{PodLife, PodObject};

impl Index {
    /// The facts of a revision without a `PodAutoscaler` that the control loop keeps for the sake of its
    /// pods; `None` for any other.
    pub(super) fn closing_facts(&self, revision: &RevisionName) -> Option<RevisionFacts> {
        let key = revision_keys::key_of(revision).filter(|_| !self.revisions.has(revision))?;
        if !self.is_kept_for_pods(revision) {
            return None;
        }
        let workload = self.workloads.get(revision).filter(|_| !self.has_knatives_activators());
        let hop_keys = workload.map(|workload| self.workloads.hop_keys_of(workload)).unwrap_or_default();
        let timeouts =
            RequestTimeouts { late: self.late_timeout, ..self.revisions.environment(&key).timeouts };
        Some(closing_facts(revision.clone(), timeouts, hop_keys))
    }

    /// Whether a revision is left behind, and a pod of it with a link has not ended.
    pub(super) fn is_kept_for_pods(&self, revision: &RevisionName) -> bool {
        let is_awaited =
            |pod: &Pod| self.takes_link(revision, &pod.record) && !matches!(pod.record.life, PodLife::Over);
        self.is_left_behind(revision) && self.pods_of(revision).any(is_awaited)
    }

    /// Whether the control loop knows a revision of Knative's whose `PodAutoscaler` or Deployment is gone.
    pub(super) fn is_left_behind(&self, revision: &RevisionName) -> bool {
        let is_whole = self.revisions.has(revision) && self.workloads.contains(revision);
        revision_keys::key_of(revision).is_some() && !is_whole && self.notices.is_sent(revision)
    }

    /// With a pod the last reason may have gone for which the control loop keeps a revision.
    pub(super) fn review_closing(&mut self, revision: &RevisionName) {
        if self.is_left_behind(revision) {
            self.notices.tell(Topic::Revision(revision.clone()));
        }
    }

    /// The pods, by their labels, of a revision that is left behind without its Deployment.
    pub(super) fn pods_left_of(&self, revision: &RevisionName) -> impl Iterator<Item = &Pod> {
        let is_left = !self.workloads.contains(revision) && self.is_left_behind(revision);
        let key = if is_left { revision_keys::key_of(revision) } else { None };
        key.into_iter().flat_map(move |key| {
            let labelled = self.pods.selected(&key.namespace, &pods::selector_of(&key)).into_iter();
            let labelled = labelled.filter_map(move |name| self.pods.get(name));
            labelled.filter(move |pod| pods::revision_of(&pod.record).as_ref() == Some(&key))
        })
    }

    /// The revision of a pod that no workload selects, as its labels say, if it is left behind.
    pub(super) fn revision_that_left(&self, pod: &PodObject) -> Option<RevisionName> {
        let revision = revision_keys::name_of(&pods::revision_of(pod)?)?;
        self.is_left_behind(&revision).then_some(revision)
    }
}
