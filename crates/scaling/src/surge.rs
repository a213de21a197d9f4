//! Demand that is queued right now.
//!
//! The windows see a queue only when its second is over. What reporters hold at this instant ("present
//! counts") is known in milliseconds, and is turned here into a need and into the count from which a pod
//! should speak up unasked.

use settings::{Metric, ScalingSpec};
use vocabulary::PodCount;

/// How many pods the present counts ask for. Requests that the `ready` pods can take at once are no surge,
/// and are left to the windows: else a single request to a revision whose limit is 1 would start a second pod
/// each time. Requests per second cannot be told from what is queued, so with that metric anything that waits
/// asks for one pod.
pub(crate) fn need(spec: &ScalingSpec, present: f64, ready: PodCount) -> PodCount {
    match spec.metric {
        Metric::Concurrency if present <= ready.as_f64() * spec.total_per_pod => PodCount::ZERO,
        Metric::Concurrency => PodCount::ceil_from(present / spec.target_per_pod),
        Metric::Rps if present > 0.0 => PodCount::ONE,
        Metric::Rps => PodCount::ZERO,
    }
}

/// From which in-flight-plus-queued count on a pod should report at once: the least that, in each of the
/// `ready` pods, is more than they can take and would start panic mode. `None` when that is of no use.
pub(crate) fn pod_threshold(spec: &ScalingSpec, ready: PodCount) -> Option<u32> {
    if !spec.surge_evaluation || spec.metric == Metric::Rps {
        return None;
    }
    let ready = ready.as_f64().max(1.0);
    // Panic compares whole pods: the need must exceed one less than the least whole need that is over the
    // threshold.
    let calm_need = ((spec.panic_threshold * ready).ceil() - 1.0).max(0.0);
    let per_pod = PodCount::floor_from((calm_need * spec.target_per_pod / ready).max(spec.total_per_pod));
    Some(per_pod.value().saturating_add(1))
}
