//! When is waiting for a pod of no use? While no pod of a revision is ready, and one of them has failed time
//! and again, or has had a container for a while that kubelet cannot start. Then requests are refused, with
//! the reason. The refusals end once a pod is ready, or a pod of another template is there.

use vocabulary::{RevisionName, Timestamp};

use super::pod_failures::WaitRefusal;
use super::pods::Pod;
use super::{Index, Topic};
use crate::notice::Notice;

impl Index {
    /// Notes containers that have been impossible to start for long enough.
    pub(super) fn review_start_troubles(&mut self, now: Timestamp) {
        for name in self.pods.end_start_waits(now) {
            for revision in self.owners_of_pod(&name) {
                self.pods_changed(&revision);
            }
        }
    }

    /// The last failure among a revision's pods, as far as they are there, is the revision's.
    pub(super) fn find_pod_failure(&mut self, revision: &RevisionName) {
        let failures = self.pods_of(revision).filter_map(|pod| pod.failures.last());
        let Some(last) = failures.max_by_key(|failure| failure.at).cloned() else { return };
        if self.workloads.put_failure(revision, last) {
            self.notices.tell(Topic::Failure(revision.clone()));
        }
    }

    /// Looks whether a wait for a pod of a revision is of use.
    pub(super) fn review_failures(&mut self, revision: &RevisionName) {
        let present = self.wait_refusal(revision);
        if self.workloads.put_wait_refusal(revision, present) {
            self.notices.tell(Topic::Pods(revision.clone()));
            self.notice_workload(revision);
            self.notice_services_of(revision);
        }
    }

    fn wait_refusal(&self, revision: &RevisionName) -> Option<WaitRefusal> {
        let pods: Vec<&Pod> = self.pods_of(revision).filter(|pod| pod.record.stays()).collect();
        if pods.iter().any(|pod| pod.is_ready()) || self.plain_pods_of(revision).any(|pod| pod.is_ready) {
            return None;
        }
        // A pod of another template may get ready although those of an earlier one did not.
        let is_superseded = |pod: &Pod| {
            let is_later = |other: &Pod| {
                !other.record.has_template_of(&pod.record) && other.record.created >= pod.record.created
            };
            pods.iter().any(|other| is_later(other))
        };
        let mut refusing = pods.iter().filter_map(|pod| Some((pod, pod.wait_refusal()?)));
        refusing.find(|(pod, _)| !is_superseded(pod)).map(|(_, wait_refusal)| wait_refusal)
    }

    /// The notice about a revision whose requests are refused.
    pub(super) fn wait_refusal_notice(&self, revision: &RevisionName) -> Option<Notice> {
        let is_ours = self.services.ours_of(revision).next().is_some();
        let wait_refusal = self.workloads.get(revision)?.wait_refusal.as_ref();
        wait_refusal.filter(|_| is_ours).map(|wait_refusal| wait_refusal.notice.clone())
    }

    /// Why no request should wait for a pod, while it is not ready.
    pub(super) fn hold_of(&self, revision: &RevisionName, pod: &Pod) -> Option<String> {
        let wait_refusal = self.workloads.get(revision)?.wait_refusal.as_ref();
        wait_refusal.filter(|_| pod.record.stays() && !pod.is_ready()).map(|cause| cause.why.clone())
    }
}
