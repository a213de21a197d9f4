//! The sums that counters show: pod-seconds by state and cold starts by cause.
//!
//! An hour has both in its numbers. Here they get their names, and here they are added up for as long as a
//! process measures. The sums wrap around: what was counted elsewhere is taken off beforehand.

use serde::{Deserialize, Serialize};

use super::facts::CapacityCounts;
use super::span::HistorySpan;

/// The seconds of pods, by the state in which a pod was in each of them. A pod has one state at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSeconds {
    /// The pod was not ready, and not on its way out.
    pub starting: u64,
    /// The pod was ready and held a request at some moment of the second.
    pub busy: u64,
    /// The pod was ready and held no request.
    pub idle: u64,
    /// The pod was on its way out.
    pub ending: u64,
}

/// Starts of pods for which requests may have waited, by their cause. A deployment's first pods are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdStarts {
    /// The first pod of a revision that had none.
    pub from_zero: u64,
    /// A further pod, because the count was raised.
    pub growth: u64,
    /// A pod of a new template, in the place of one of an older template.
    pub rollout: u64,
    /// A pod in the place of one that failed or was taken away.
    pub failed_pod: u64,
}

/// What a revision came to while a process measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeTotals {
    /// The seconds of its pods.
    pub pod_seconds: PodSeconds,
    /// The starts of its pods.
    pub cold_starts: ColdStarts,
}

impl HistorySpan {
    /// The seconds of pods by their state.
    pub fn pod_seconds(&self) -> PodSeconds {
        PodSeconds {
            starting: self.starting_seconds.into(),
            busy: self.busy_seconds.into(),
            idle: self.idle_seconds().into(),
            ending: self.ending_seconds.into(),
        }
    }

    /// The starts of pods by their cause.
    pub fn cold_starts(&self) -> ColdStarts {
        let [from_zero, further @ ..] = self.raises_from;
        ColdStarts {
            from_zero: from_zero.into(),
            growth: further.into_iter().map(u64::from).sum(),
            rollout: self.rollout_starts.into(),
            failed_pod: self.failed_pod_starts.into(),
        }
    }
}

impl PodSeconds {
    /// The seconds in all states together.
    pub fn sum(self) -> u64 {
        let Self { starting, busy, idle, ending } = self;
        starting + busy + idle + ending
    }

    /// These seconds and others together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            starting: self.starting.wrapping_add(other.starting),
            busy: self.busy.wrapping_add(other.busy),
            idle: self.idle.wrapping_add(other.idle),
            ending: self.ending.wrapping_add(other.ending),
        }
    }

    fn negated(self) -> Self {
        Self {
            starting: self.starting.wrapping_neg(),
            busy: self.busy.wrapping_neg(),
            idle: self.idle.wrapping_neg(),
            ending: self.ending.wrapping_neg(),
        }
    }
}

impl ColdStarts {
    /// The starts of all causes together.
    pub fn sum(self) -> u64 {
        let Self { from_zero, growth, rollout, failed_pod } = self;
        from_zero + growth + rollout + failed_pod
    }

    /// These starts and others together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            from_zero: self.from_zero.wrapping_add(other.from_zero),
            growth: self.growth.wrapping_add(other.growth),
            rollout: self.rollout.wrapping_add(other.rollout),
            failed_pod: self.failed_pod.wrapping_add(other.failed_pod),
        }
    }

    fn negated(self) -> Self {
        Self {
            from_zero: self.from_zero.wrapping_neg(),
            growth: self.growth.wrapping_neg(),
            rollout: self.rollout.wrapping_neg(),
            failed_pod: self.failed_pod.wrapping_neg(),
        }
    }
}

impl LifeTotals {
    /// These totals and a span.
    pub(super) fn with(self, span: &HistorySpan) -> Self {
        Self {
            pod_seconds: self.pod_seconds.with(span.pod_seconds()),
            cold_starts: self.cold_starts.with(span.cold_starts()),
        }
    }

    /// These totals before a span that will be added, and does not count.
    pub(super) fn without(self, span: &HistorySpan) -> Self {
        Self {
            pod_seconds: self.pod_seconds.with(span.pod_seconds().negated()),
            cold_starts: self.cold_starts.with(span.cold_starts().negated()),
        }
    }

    /// These totals and so many seconds with these pods, of which none held a request.
    pub(super) fn after_rest(self, capacity: CapacityCounts, seconds: u64) -> Self {
        let of = |pods: u32| seconds.saturating_mul(pods.into());
        let rest = PodSeconds {
            starting: of(capacity.starting),
            busy: 0,
            idle: of(capacity.ready),
            ending: of(capacity.ending),
        };
        Self { pod_seconds: self.pod_seconds.with(rest), ..self }
    }
}
