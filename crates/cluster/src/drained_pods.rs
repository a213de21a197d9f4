//! Which pods are there longer than they may be? Those whose queue-proxy has drained, and whose app runs on
//! for longer than the pod's own grace period, because the app ignores SIGTERM.
//!
//! The deletion of a pod gives it the time of the whole drain, of which the app has the rest: kubelet ends
//! such a pod only when all of that is over. Kubelet says of no container that it ended before all of the
//! pod's containers have, so the end of the drain is known by the link, as an order says. What is known here
//! goes with the owner: the next owner of the bucket knows of no drain that ended before.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{PodName, RevisionName, Timestamp};

use crate::resources::pod::{PodLife, PodObject};

/// From an app's end until kubelet has said so.
const SAID_WITHIN: Duration = Duration::from_secs(3);

/// A pod of whose containers the app alone is left.
#[derive(Clone, Debug)]
pub(crate) struct DrainedPod {
    pub(crate) revision: RevisionName,
    uid: String,
    /// The grace period that the template gave the app.
    pub(crate) app_grace: Duration,
    /// When the pod should be gone.
    due: Timestamp,
}

impl DrainedPod {
    /// Whether this is the same pod, still ends with the time of the drain, and its app still runs. A pod
    /// that was deleted again with less time ends by itself.
    pub(crate) fn ignores_sigterm(&self, pod: &PodObject) -> bool {
        let PodLife::Terminating(total) = pod.life else { return false };
        pod.uid == self.uid && pod.has_running && self.app_grace.max(Duration::from_secs(1)) < total
    }
}

/// The drained pods whose apps may still end in time.
#[derive(Debug, Default)]
pub(crate) struct DrainedPods(BTreeMap<PodName, DrainedPod>);

impl DrainedPods {
    /// A pod has answered its last request. A pod without a queue-proxy says nothing of a grace period, and
    /// is left alone.
    pub(crate) fn note(&mut self, pod: &PodObject, revision: RevisionName, now: Timestamp) {
        let Some(queue_proxy) = &pod.queue_proxy else { return };
        let app_grace = queue_proxy.app_grace;
        let due = now + app_grace + SAID_WITHIN;
        self.0.insert(pod.pod_name(), DrainedPod { revision, uid: pod.uid.clone(), app_grace, due });
    }

    /// Takes out the pods that should be gone by now.
    pub(crate) fn take_overdue(&mut self, now: Timestamp) -> BTreeMap<PodName, DrainedPod> {
        self.0.extract_if(.., |_, pod| pod.due <= now).collect()
    }

    /// When [`DrainedPods::take_overdue`] has a pod to say.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.0.values().map(|pod| pod.due).min()
    }
}
