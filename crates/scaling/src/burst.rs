//! How much room there is for a burst, which decides whether the activator is in the path, and how many
//! activators a revision needs.

use settings::ScalingSpec;
use vocabulary::{BurstCapacity, ExcessBurstCapacity, PodCount};

/// Knative's least number of activators per revision: one may fail.
const LEAST_ACTIVATORS: PodCount = PodCount::new(2);

/// The room beyond the target burst capacity that the pods which are ready and which clients reach leave at
/// the panic window's load. Rounded down, so half a request too little is too little.
pub(crate) fn excess_burst_capacity(
    spec: &ScalingSpec,
    reachable: PodCount,
    panic_value: f64,
) -> ExcessBurstCapacity {
    match spec.target_burst_capacity {
        BurstCapacity::Unlimited => ExcessBurstCapacity::new(-1),
        BurstCapacity::Requests(wanted) if wanted.value() <= 0.0 => ExcessBurstCapacity::ZERO,
        BurstCapacity::Requests(wanted) => ExcessBurstCapacity::truncated_from(
            (reachable.as_f64() * spec.total_per_pod - wanted.value() - panic_value).floor(),
        ),
    }
}

/// The room to assume before anything was decided: that of the initial pods without load. Knative rounds this
/// one toward zero.
pub(crate) fn first_excess_burst_capacity(spec: &ScalingSpec) -> ExcessBurstCapacity {
    match spec.target_burst_capacity {
        BurstCapacity::Unlimited => ExcessBurstCapacity::new(-1),
        BurstCapacity::Requests(wanted) if wanted.value() <= 0.0 => ExcessBurstCapacity::ZERO,
        BurstCapacity::Requests(wanted) => ExcessBurstCapacity::truncated_from(
            spec.initial_scale.as_f64() * spec.total_per_pod - wanted.value(),
        ),
    }
}

/// How many activators should serve the revision: enough to carry what its ready pods can take, and the burst
/// on top.
pub(crate) fn activator_count(spec: &ScalingSpec, ready: PodCount) -> PodCount {
    let burst = spec.target_burst_capacity.value();
    if burst == 0.0 {
        return LEAST_ACTIVATORS;
    }
    // -1 stands for a burst without a limit, of which there is no amount to add.
    let carried = ready.as_f64() * spec.total_per_pod + burst.max(0.0);
    PodCount::ceil_from(carried / spec.activator_capacity).max(LEAST_ACTIVATORS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(total_per_pod: f64, target_burst_capacity: f64, activator_capacity: f64) -> ScalingSpec {
        let target_burst_capacity = BurstCapacity::new(target_burst_capacity).unwrap();
        ScalingSpec { total_per_pod, target_burst_capacity, activator_capacity, ..ScalingSpec::default() }
    }

    #[test]
    fn the_first_room_is_that_of_the_initial_pods() {
        for (id, initial_scale, total, burst, expected) in [
            ("I2", 2, 25.0, 42.0, 8),
            ("I3", 1, 100.0, -1.0, -1),
            ("I3", 1, 100.0, 0.0, 0),
            ("I4", 1, 100.0, 211.0, -111),
            ("I5", 1, 10.0, 10.5, 0),
        ] {
            let spec =
                ScalingSpec { initial_scale: PodCount::new(initial_scale), ..spec(total, burst, 100.0) };
            assert_eq!(first_excess_burst_capacity(&spec), ExcessBurstCapacity::new(expected), "{id}");
        }
    }

    #[test]
    fn activators_carry_what_the_pods_take_and_the_burst() {
        for (id, ready, total, burst, capacity, expected) in [
            ("M3", 0, 100.0, 200.0, 100.0, 2),
            ("M3", 1, 100.0, 200.0, 100.0, 3),
            ("M3", 15, 100.0, 200.0, 100.0, 17),
            ("M4", 100, 100.0, 0.0, 100.0, 2),
            ("M5", 5, 100.0, -1.0, 100.0, 5),
            ("M5", 0, 100.0, -1.0, 100.0, 2),
            ("M6", 0, 100.0, 211.0, 100.0, 3),
            ("M6", 1, 100.0, 211.0, 100.0, 4),
            ("M6", 3, 100.0, 211.0, 100.0, 6),
            ("M6", 10, 100.0, 211.0, 100.0, 13),
            ("M7", 20, 7.5, 0.5, 33.0, 5),
        ] {
            let count = activator_count(&spec(total, burst, capacity), PodCount::new(ready));
            assert_eq!(count, PodCount::new(expected), "{id} with {ready} pods");
        }
    }
}
