//! What becomes of a revision's pods: they get ready, fail, are killed and end.

use orchestration::{PodFailure, PodKill};
use scaling::RevisionOrigin;
use vocabulary::{PodName, Timestamp};

use super::SupervisedRevision;
use crate::supervisor::failure::ProcessFailure;
use crate::supervisor::pod::{PodStage, SupervisedPod};

impl SupervisedRevision {
    /// A pod said that it is ready, or that it is not.
    pub(crate) fn note_ready(&mut self, name: &PodName, is_ready: bool, now: Timestamp) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        if !is_ready {
            pod.note_unready(now);
            return;
        }
        // It may be said again, by an owner that has just come; the pod has been ready since the first time.
        pod.ready_since.get_or_insert(now);
        self.origin = RevisionOrigin::Found;
        if pod.is_wanted() {
            pod.trouble = None;
        }
        if let Some(restarts) = self.restarts.get_mut(&pod.template) {
            restarts.note_ready();
        }
    }

    /// A pod's app answered its first request.
    pub(crate) fn note_answer(&mut self, name: &PodName, now: Timestamp) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        pod.note_answer(now);
        if let Some(restarts) = self.restarts.get_mut(&pod.template) {
            restarts.note_proof(now);
        }
    }

    /// A pod's app or queue-proxy is gone; the rest of it ends by itself.
    pub(crate) fn note_failure(&mut self, name: &PodName, failure: &ProcessFailure, now: Timestamp) {
        let Some(template) = self.pods.get(name).map(|pod| pod.template) else { return };
        let of_template = self.pods.values().filter(|pod| pod.template == template);
        let proof = of_template.filter_map(|pod| pod.proved_at(now)).max();
        let Some(pod) = self.pods.get_mut(name) else { return };
        if pod.is_wanted() {
            let restarts = self.restarts.entry(template).or_default();
            // Looked at only here: what a healthy pod proves matters at the next failure.
            if let Some(at) = proof {
                restarts.note_proof(at);
            }
            // Only a pod that was wanted counts: the failure of one that is on its way out delays no other
            // pod.
            let reason = failure.trouble().map(|text| format!("{name} failed: {text}"));
            restarts.note_failure(reason, pod.life(), now);
            self.causes.note_failure(name.clone(), failure.in_short());
            let ProcessFailure { reason, last_lines } = failure.clone();
            self.last_failure = Some(PodFailure { pod: name.clone(), at: now, reason, last_lines });
        }
        pod.trouble = Some(failure.trouble());
        pod.ready_since = None;
        // What is left of it ends by itself; if it does not, the same limit holds as for one that was told
        // to.
        if pod.stage != PodStage::Killed {
            pod.stage = PodStage::Ending { until: pod.killed_at(now) };
        }
    }

    /// A pod did not end in time, and is killed.
    pub(crate) fn note_kill(&mut self, name: &PodName, reason: String, now: Timestamp) {
        self.last_kill = Some(PodKill { pod: name.clone(), at: now, reason });
    }

    /// A pod's process is gone, with everything that came from it.
    pub(crate) fn note_end(&mut self, name: &PodName, status: &str, now: Timestamp) {
        if self.pods.get(name).is_some_and(SupervisedPod::is_wanted) {
            // A pod that ends without a reason: its process was killed, or died before it could send one.
            self.note_failure(name, &ProcessFailure::without_words(status), now);
        }
        self.pods.remove(name);
        self.forget_templates();
    }

    /// How a pod failed last.
    pub(crate) fn last_failure(&self) -> Option<&PodFailure> {
        self.last_failure.as_ref()
    }

    /// How a pod was killed last.
    pub(crate) fn last_kill(&self) -> Option<&PodKill> {
        self.last_kill.as_ref()
    }
}
