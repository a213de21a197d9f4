//! Which pods go first, and how far has a pod's departure come?

use std::cmp::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodName, PodState, Timestamp, Version};

use crate::facts::PodFacts;
use crate::readiness::{HeardOfPod, pod_state};

/// How long a retired revision is kept by an activator after no route names it: longer than any node goes by
/// an old route.
pub(crate) const FORGET_AFTER: Duration = Duration::from_secs(30);

/// How far a pod's leave-taking has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LeaveTaking {
    /// The platform does not want the pod gone.
    #[default]
    None,
    /// The assignment of this version says so; the pod is released when every activator has acknowledged it,
    /// at the latest at that time.
    Announced { version: Version, at_the_latest: Timestamp },
    /// The platform was told that it may end it.
    Released,
    /// The platform has seen to it that no route names it either.
    Gone,
}

/// The `count` pods whose end disturbs least: those that are not ready first, then the least loaded; names
/// break ties.
pub(crate) fn end_first<'a>(
    pods: impl Iterator<Item = (&'a PodFacts, &'a HeardOfPod)>,
    count: usize,
) -> Vec<PodName> {
    let mut candidates: Vec<_> = pods.filter(|(pod, _)| !pod.leaving).collect();
    candidates.sort_by(|(pod, heard), (other_pod, other_heard)| {
        let is_ready = |pod, heard| pod_state(pod, heard) == PodState::Ready;
        is_ready(pod, heard)
            .cmp(&is_ready(other_pod, other_heard))
            .then_with(|| busyness(heard).partial_cmp(&busyness(other_heard)).unwrap_or(Ordering::Equal))
            .then_with(|| pod.name.cmp(&other_pod.name))
    });
    candidates.into_iter().take(count).map(|(pod, _)| pod.name.clone()).collect()
}

fn busyness(heard: &HeardOfPod) -> (f64, f64) {
    (heard.load.concurrency.value(), heard.load.request_rate.value())
}

#[cfg(test)]
mod tests;
