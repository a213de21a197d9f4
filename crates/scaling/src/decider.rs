//! One revision: observe, then decide.
//!
//! [`Decider::decide`] takes every step of an evaluation in Knative's order: need, rate limits, activation
//! scale, panic, delay, excess burst capacity. Around it stand two rules of our own. *Missing data*: with
//! silent reporters the steps are taken twice, once as if there were nothing where it is silent and once with
//! the most that may well be there ([`Averages`]), and the count moves only as far as both agree. The same
//! holds while the path changes and pods and activators may have counted the same requests. *Surge*: an
//! evaluation between ticks, because of what is queued right now, may only raise the count.
//!
//! Bounds (`min-scale` and its like) and the way to zero come afterwards, in the multiscaler.

mod steps;

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use vocabulary::{ExcessBurstCapacity, PodCount, Timestamp};

use self::steps::{Demand, Evaluation};
use crate::burst::excess_burst_capacity;
use crate::collector::Averages;
use crate::decision::{Inputs, Mode, NeedText, Reason, SilentPods, Stage};
use crate::panic::PanicState;
use crate::reasons::ReasonList;
use crate::surge;
use crate::window::RecentMaximum;

#[cfg(test)]
mod tests;

/// The state of one revision between evaluations, apart from its windows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decider {
    panic: PanicState,
    /// `None` while there is no scale-down delay.
    peaks: Option<RecentMaximum>,
    /// The last answer; at first the count that was found.
    desired: PodCount,
}

/// The input of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Pods that pass their probes.
    pub ready: PodCount,
    /// Ready pods that clients' connections can reach: the room for a burst.
    pub reachable: PodCount,
    /// The count that the platform was last asked for: where it stays when silence leaves both directions
    /// open.
    pub wanted: PodCount,
    /// The averages over the stable and the panic window.
    pub averages: Averages,
    /// The sum of the present counts in an evaluation between ticks, which may only raise the count; `None`
    /// at a tick.
    pub present_count: Option<f64>,
}

/// The answer of one evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// How many pods are needed, before bounds.
    pub desired: PodCount,
    /// The room beyond the target burst capacity.
    pub excess_burst_capacity: ExcessBurstCapacity,
    /// The mode after this evaluation.
    pub mode: Mode,
    /// The reasons in order, as [`Verdict::reasons`] returns them.
    pub(crate) reasons: ReasonList,
    /// The numbers that the evaluation started from.
    pub inputs: Inputs,
}

impl Verdict {
    /// One entry per stage that changed the number; the last one's `after` is `desired`.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }
}

impl Decider {
    /// Begins with the count that the platform was asked for. More than one pod is held for a stable window,
    /// as in panic, and for the scale-down delay: a restart may delay a scale-down, it never causes one.
    pub fn new(spec: &ScalingSpec, count: PodCount, now: Timestamp) -> Self {
        let mut decider = Self { panic: PanicState::starting(count, now), peaks: None, desired: count };
        decider.update(spec, now);
        decider
    }

    /// Follows changed settings: a changed delay keeps the peaks it still covers, a new one begins with the
    /// present answer. Everything else is read at each evaluation.
    pub fn update(&mut self, spec: &ScalingSpec, now: Timestamp) {
        let fresh = RecentMaximum::new(spec.scale_down_delay);
        match (&mut self.peaks, fresh) {
            (Some(peaks), Some(fresh)) => peaks.resize(&fresh),
            (peaks, None) => *peaks = None,
            (peaks @ None, Some(mut fresh)) => {
                fresh.record(self.desired, now);
                *peaks = Some(fresh);
            }
        }
    }

    /// The mode after the last evaluation: stable, or panic since a time.
    pub fn mode(&self) -> Mode {
        self.panic.mode()
    }

    /// Evaluates once, at a tick or (with a present count) between ticks.
    pub fn decide(&mut self, spec: &ScalingSpec, observation: &Observation, now: Timestamp) -> Verdict {
        let Evaluation { panic, mut reasons } = self.weigh(spec, observation, now);
        let undelayed = reasons.number().unwrap_or_default();
        // As in Knative, what no traffic can reach is neither held nor remembered.
        let peaks = self.peaks.as_mut().filter(|_| spec.reachable);
        if let Some(peaks) = &peaks {
            let peak = peaks.with(undelayed, now);
            let text = NeedText::RecentPeak { count: peak, delay: spec.scale_down_delay };
            reasons.step(Stage::ScaleDownDelay, Some(peak), text);
        }
        // A look between ticks that would lower leaves no trace, neither in panic mode nor among the peaks:
        // the next tick decides as if it had not been.
        if observation.present_count.is_some() && reasons.number() < Some(self.desired) {
            reasons.step(Stage::Surge, Some(self.desired), NeedText::BetweenTicks { count: self.desired });
        } else {
            self.panic = panic;
            // As it was before the delay: a peak that is held, and recorded again for that, would never be
            // forgotten.
            if let Some(peaks) = peaks {
                peaks.record(undelayed, now);
            }
        }
        self.desired = reasons.number().unwrap_or_default();
        Verdict {
            desired: self.desired,
            excess_burst_capacity: excess_burst_capacity(
                spec,
                observation.reachable,
                // The most that may be there: silence must not take activators out of the path.
                observation.averages.panic_at_most,
            ),
            mode: self.panic.mode(),
            reasons: reasons.into_list(),
            inputs: inputs(spec, observation),
        }
    }

    /// The steps up to the delay, once, or with open values twice: the count moves only as far as both
    /// answers agree.
    fn weigh(&self, spec: &ScalingSpec, observation: &Observation, now: Timestamp) -> Evaluation {
        let Observation { ready, wanted, averages, .. } = *observation;
        let surge = observation.present_count.map(|present| surge::need(spec, present, ready));
        let demand = Demand { ready, stable: averages.stable, panic: averages.panic, surge };
        let low = steps::evaluate(spec, demand, self.panic, now);
        // If what was measured alone asks for more than there is, more load could only confirm it.
        if !averages.is_open() || low.wants() > wanted {
            return low;
        }
        let at_most = Demand { stable: averages.stable_at_most, panic: averages.panic_at_most, ..demand };
        let high = steps::evaluate(spec, at_most, self.panic, now);
        // Even if all that is silent is busy, fewer are enough; or it makes no difference.
        if high.wants() < wanted || high.wants() == low.wants() {
            return high;
        }
        let (least, most) = (low.wants(), high.wants());
        // What was measured is a lower bound of the load, so its alarm is real; that it is calm has to hold
        // for both.
        let panic = if low.panic.is_panicking() {
            low.panic
        } else if high.panic.is_panicking() {
            self.panic
        } else {
            high.panic
        };
        let mut reasons = low.reasons;
        let unheard = SilentPods { pods: averages.unheard, activators: averages.unheard_activators };
        let text = if unheard.is_none() {
            NeedText::PathChanges { count: wanted, least, most }
        } else {
            NeedText::Unheard { count: wanted, unheard, least, most }
        };
        reasons.step(Stage::MissingData, Some(wanted), text);
        Evaluation { panic, reasons }
    }
}

fn inputs(spec: &ScalingSpec, observation: &Observation) -> Inputs {
    Inputs {
        ready_pods: observation.ready,
        unheard_pods: observation.averages.unheard,
        stable_value: observation.averages.stable,
        panic_value: observation.averages.panic,
        target_per_pod: spec.target_per_pod,
        total_per_pod: spec.total_per_pod,
        present_count: observation.present_count,
    }
}
