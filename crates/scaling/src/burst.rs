//! How much room there is for a burst, which decides whether the activator is in the path, and how many activators a revision needs.

use vocabulary::{BurstCapacity, ExcessBurstCapacity, PodCount};

use crate::config::ScalingSpec;

/// Knative's least number of activators per revision: one may fail.
const LEAST_ACTIVATORS: PodCount = PodCount::new(2);

/// The room beyond the target burst capacity that the ready pods leave at the panic window's load. Rounded down, so half a request too
/// little is too little.
pub fn excess_burst_capacity(spec: &ScalingSpec, ready: PodCount, panic_value: f64) -> ExcessBurstCapacity {
    match spec.target_burst_capacity {
        BurstCapacity::Unlimited => ExcessBurstCapacity::new(-1),
        BurstCapacity::Requests(wanted) if wanted.value() <= 0.0 => ExcessBurstCapacity::ZERO,
        BurstCapacity::Requests(wanted) => ExcessBurstCapacity::truncated_from(
            (ready.as_f64() * spec.total_per_pod - wanted.value() - panic_value).floor(),
        ),
    }
}

/// The room to assume before anything was decided: that of the initial pods without load. Knative rounds this one toward zero.
pub fn first_excess_burst_capacity(spec: &ScalingSpec) -> ExcessBurstCapacity {
    match spec.target_burst_capacity {
        BurstCapacity::Unlimited => ExcessBurstCapacity::new(-1),
        BurstCapacity::Requests(wanted) if wanted.value() <= 0.0 => ExcessBurstCapacity::ZERO,
        BurstCapacity::Requests(wanted) => ExcessBurstCapacity::truncated_from(
            spec.initial_scale.as_f64() * spec.total_per_pod - wanted.value(),
        ),
    }
}

/// How many activators should serve the revision: enough to carry what its ready pods can take, and the burst on top.
pub fn activator_count(spec: &ScalingSpec, ready: PodCount) -> PodCount {
    let burst = spec.target_burst_capacity.value();
    if burst == 0.0 {
        return LEAST_ACTIVATORS;
    }
    let carried = ready.as_f64() * spec.total_per_pod + burst.max(0.0);
    PodCount::ceil_from(carried / spec.activator_capacity).max(LEAST_ACTIVATORS)
}
