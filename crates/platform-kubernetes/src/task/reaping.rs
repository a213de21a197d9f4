//! Which pods are there longer than they may be? Those whose queue-proxy has drained, and whose app goes on
//! for longer than it has to end in. People are told, and the pod is deleted again with less time, which
//! kubelet heeds only where it begins to stop the container anew (docs/kubernetes-operating.md).
//!
//! Their deletion gave them the time of the whole drain, of which the app has the rest. Kubelet says of no
//! container that it ended before all of a pod's have, so it is the link that tells: nobody listens any more
//! where a queue-proxy said that it drains. What is known here goes with its owner: under another one such a
//! pod has the whole time.

use std::time::Duration;

use orchestration::{Fence, Subject};
use vocabulary::{PodName, RevisionName, Timestamp};

use super::{Answer, ClusterTask};
use crate::notice::{IGNORES_TERM, Notice, Tone};
use crate::requests::{Failure, OutlivingPod};
use crate::resources::pod::PodLife;

/// From an app's end until kubelet has said so.
const SAID_WITHIN: Duration = Duration::from_secs(3);
/// Between two attempts to end a pod.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// A pod of whose containers the app alone is left.
#[derive(Clone, Debug)]
pub(crate) struct DrainedPod {
    revision: RevisionName,
    uid: String,
    fence: Fence,
    app_grace: Duration,
    /// When it should be gone.
    due: Timestamp,
}

impl ClusterTask {
    pub(super) fn note_drained(
        &mut self,
        (pod, revision): (PodName, RevisionName),
        fence: Fence,
        now: Timestamp,
    ) {
        let Some(record) = self.index.pod_record(&pod) else { return };
        let Some(queue_proxy) = &record.queue_proxy else { return };
        let app_grace = queue_proxy.app_grace;
        let due = now + app_grace + SAID_WITHIN;
        let drained = DrainedPod { revision, uid: record.uid.clone(), fence, app_grace, due };
        self.drained.insert(pod, drained);
    }

    pub(super) fn drained_deadline(&self) -> Option<Timestamp> {
        self.drained.values().map(|pod| pod.due).min()
    }

    /// Tells people of those that are overdue, and ends them if that is allowed.
    pub(super) fn end_outliving(&mut self, now: Timestamp) {
        let overdue: Vec<_> = self.drained.extract_if(.., |_, pod| pod.due <= now).collect();
        for (name, drained) in overdue {
            if let Some(pod) = self.outliving(&name, &drained) {
                self.tell_of_outliving(&name, &drained, now);
                let requests = self.requests.clone();
                // A panic in it is ours; see where answers are taken.
                self.answers.spawn(async move {
                    let how = requests.reap(drained.fence, &pod).await;
                    Answer::Reaped(name, drained, how)
                });
            }
        }
    }

    /// If it is still there, and the same.
    fn outliving(&self, name: &PodName, drained: &DrainedPod) -> Option<OutlivingPod> {
        let record = self.index.pod_record(name).filter(|record| record.uid == drained.uid)?;
        let PodLife::Terminating(total) = record.life else { return None };
        record.has_running.then_some(())?;
        let own = drained.app_grace.max(Duration::from_secs(1));
        // One that was deleted with less time, or again, needs nobody's help.
        (own < total).then(|| OutlivingPod {
            namespace: record.namespace.clone(),
            name: record.name.clone(),
            uid: record.uid.clone(),
            grace: u32::try_from(own.as_secs()).unwrap_or(u32::MAX),
        })
    }

    fn tell_of_outliving(&mut self, name: &PodName, drained: &DrainedPod, now: Timestamp) {
        let grace = drained.app_grace.as_secs();
        let text = format!(
            "pod {name} had answered all its requests and was told to stop, and goes on after {grace} s, its own grace period. Let the app end on SIGTERM; such a pod stays for as long as the longest drain may take (docs/kubernetes-operating.md, \"Apps that ignore SIGTERM\")"
        );
        for about in [Subject::Pod(name.clone()), Subject::Revision(drained.revision.clone())] {
            self.note(&about, Notice::new(IGNORES_TERM, text.clone()), Tone::Warning, now);
        }
    }

    pub(super) fn reaped(
        &mut self,
        name: PodName,
        drained: DrainedPod,
        how: Result<(), Failure>,
        now: Timestamp,
    ) {
        match how {
            Ok(()) | Err(Failure::NotOwner) => {}
            Err(failure) => {
                tracing::warn!(pod = %name, ?failure, "a pod whose app ignores TERM could not be ended");
                let due = now + AGAIN_AFTER.max(failure.wait());
                self.drained.insert(name, DrainedPod { due, ..drained });
            }
        }
    }
}
