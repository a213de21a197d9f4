//! The Kubernetes HPA algorithm: how many pods do metrics ask for, and how fast may the count follow?
//!
//! [`evaluate`] is one pass of Kubernetes' horizontal pod autoscaler, as of 1.37, to the last replica: which
//! branch applies, what each metric proposes (`measure`), what earlier recommendations make of it
//! (`stabilize`), how far one change may go (`limits`). *Current* is the count that was last asked for,
//! *present* the pods that there are; *raw* is what the metrics ask for, before windows and limits. With
//! `behavior` in the spec, windows have an envelope and policies look back on changes that were carried out;
//! without it, an older rule applies that remembers less. The two are not the same even with default values,
//! in Kubernetes neither.
//!
//! Left out on purpose: measuring, and reading and writing the count. The caller reports a count that it has
//! written ([`HpaState::note_rescale`]).

mod answers;
mod conditions;
mod history;
mod label;
mod limits;
mod measure;
mod mixed;
mod observation;
mod own_pods;
mod per_pod;
mod pods;
mod proposal;
mod report;
mod samples;
mod sentence;
mod stabilize;
mod state;
mod steps;
mod tolerance;
mod totals;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

use settings::hpa::HpaSpec;
use vocabulary::{PodCount, Timestamp};

pub use self::answers::{MetricAnswers, TargetPods};
pub use self::conditions::{ConditionReason, HpaCondition, HpaConditions};
pub use self::history::{CountChange, HpaHistory, Recommendation, ScaleEvent, ScaleEvents};
pub use self::mixed::{MixedDecider, MixedObservation, routing_without_own};
pub use self::observation::{HpaObservation, Scale, Selection};
pub(crate) use self::own_pods::{cpu_in_use, leave_out_early_pods};
pub use self::pods::{HpaPod, HpaPodPhase, HpaPods, ReadyCondition, ReadyStatus};
pub use self::proposal::{CurrentValue, NoProposal, PodsLookedAt, Proposal, ProposalRule};
pub use self::report::{HpaReport, ReportedMetric, metrics_beside_targets};
pub use self::samples::{MetricFailure, MetricSamples, PodSample, PodSamples};
pub(crate) use self::sentence::HpaSentence;
pub use self::state::{HpaState, HpaWarning, MetricStatus, RescaleMemory};

use self::limits::{LimitedCount, Limiter};
use self::measure::MetricDemand;
use self::sentence::UnmeasuredText;
use self::stabilize::Windows;
use crate::decision::Stage;

/// The answer of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpaOutcome {
    /// The count that the target should have. If it is the current one, nothing is to be written.
    pub desired: PodCount,
    /// The count that the metrics ask for; `None` when none was asked or the pass was abandoned.
    pub raw: Option<PodCount>,
    /// The count after the stabilization windows; `None` where `raw` is.
    pub stabilized: Option<PodCount>,
    /// The cause of the answer.
    pub cause: RescaleCause,
}

/// The cause of a pass's answer. A rise that follows an older recommendation still says
/// [`RescaleCause::BelowTarget`], as in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RescaleCause {
    /// The target is at zero, and this autoscaler did not scale it there.
    Paused,
    /// More pods than the maximum.
    AboveMaximum,
    /// Fewer pods than the minimum.
    BelowMinimum,
    /// A metric asks for more pods: the one at this place in the spec.
    AboveTarget(usize),
    /// All metrics ask for fewer.
    BelowTarget,
    /// The metrics ask for what there is.
    OnTarget,
    /// Nothing is known of the pods or the metrics, or not enough to take pods away.
    Abandoned,
}

/// One pass: what should the count be?
pub fn evaluate(
    spec: &HpaSpec,
    observation: &HpaObservation<'_>,
    state: &mut HpaState,
    now: Timestamp,
) -> HpaOutcome {
    begin(observation.scale, state, now);
    let current = observation.scale.replicas;
    if current == PodCount::ZERO && !may_wake(spec, state) {
        conditions::set(&mut state.conditions.scaling_active, ConditionReason::ScalingDisabled, now);
        return state.settle_unmeasured(PodCount::ZERO, RescaleCause::Paused, UnmeasuredText::Paused);
    }
    // Before the selector is checked: bounds need no metric (as in Kubernetes).
    if let Some(outcome) = correct_bounds(spec, current, state) {
        return outcome;
    }
    if let Some(outcome) = check_selection(observation.scale, state, now) {
        return outcome;
    }
    let measured = measure::measure(spec, observation, now, &mut state.metrics, &mut state.steps);
    let Some(raw) = report(&measured, spec, current, state, now) else {
        return abandon(current, state);
    };
    let (stabilized, limited) = normalize(spec, current, raw, state, now);
    let mut desired = limited.count;
    // Upwards the limits do not ask for the minimum (as in Kubernetes), and a count between zero and it is
    // within no bound.
    if current == PodCount::ZERO && state.owns_zero() && desired < spec.min {
        desired = spec.min;
        let text = HpaSentence::Unmeasured(UnmeasuredText::RaisedFromZero { min: spec.min });
        state.steps.lead_to(desired, Stage::MinScale, text);
    }
    state.desired = Some(desired);
    let cause = cause(&measured, raw, current);
    HpaOutcome { desired, raw: Some(raw), stabilized: Some(stabilized), cause }
}

/// Begins a pass: the scale was read, and no metric was asked yet.
fn begin(scale: Scale, state: &mut HpaState, now: Timestamp) {
    state.steps.restart();
    state.metrics.clear();
    state.warnings.clear();
    state.current = scale.replicas;
    conditions::set(&mut state.conditions.able_to_scale, ConditionReason::SucceededGetScale, now);
    state.history.seed(scale.replicas, now);
}

/// Zero pods that another client asked for mean that the target is paused. Zero pods of this autoscaler end
/// when a metric can be measured without pods, or when the minimum was raised.
fn may_wake(spec: &HpaSpec, state: &HpaState) -> bool {
    state.owns_zero() && (spec.has_object_or_external() || spec.min > PodCount::ZERO)
}

/// A count outside of the bounds is corrected before anything is measured: no window and no policy, not even
/// `Disabled`, holds it.
fn correct_bounds(spec: &HpaSpec, current: PodCount, state: &mut HpaState) -> Option<HpaOutcome> {
    if current > spec.max {
        let text = UnmeasuredText::AboveMaximum { max: spec.max };
        return Some(state.settle_unmeasured(spec.max, RescaleCause::AboveMaximum, text));
    }
    if current > PodCount::ZERO && current < spec.min {
        let text = UnmeasuredText::BelowMinimum { min: spec.min };
        return Some(state.settle_unmeasured(spec.min, RescaleCause::BelowMinimum, text));
    }
    None
}

impl HpaState {
    fn settle_unmeasured(
        &mut self,
        desired: PodCount,
        cause: RescaleCause,
        text: UnmeasuredText,
    ) -> HpaOutcome {
        let stage = match cause {
            RescaleCause::AboveMaximum => Stage::MaxScale,
            RescaleCause::BelowMinimum => Stage::MinScale,
            RescaleCause::Paused
            | RescaleCause::AboveTarget(_)
            | RescaleCause::BelowTarget
            | RescaleCause::OnTarget
            | RescaleCause::Abandoned => Stage::Paused,
        };
        self.steps.lead_to(desired, stage, HpaSentence::Unmeasured(text));
        self.desired = Some(desired);
        HpaOutcome { desired, raw: None, stabilized: None, cause }
    }
}

/// Ends the pass where the selected pods may belong to another target: their metrics say nothing about this
/// one.
fn check_selection(scale: Scale, state: &mut HpaState, now: Timestamp) -> Option<HpaOutcome> {
    let (warning, reason, text) = match scale.selection {
        Selection::Unique => return None,
        Selection::Absent => {
            (HpaWarning::SelectorRequired, ConditionReason::InvalidSelector, UnmeasuredText::NoSelector)
        }
        Selection::Unreadable => {
            let reason = ConditionReason::InvalidSelector;
            (HpaWarning::Condition(reason), reason, UnmeasuredText::NoSelector)
        }
        Selection::Ambiguous => {
            let reason = ConditionReason::AmbiguousSelector;
            (HpaWarning::Condition(reason), reason, UnmeasuredText::SharedPods)
        }
    };
    state.warnings.push(warning);
    conditions::set(&mut state.conditions.scaling_active, reason, now);
    state.steps.drop_number(Stage::NoData, HpaSentence::Unmeasured(text));
    Some(abandon(scale.replicas, state))
}

/// The pass ends without an answer: the count stays, and so does what was desired before.
fn abandon(current: PodCount, state: &mut HpaState) -> HpaOutcome {
    state.warnings.push(HpaWarning::FailedComputeMetricsReplicas);
    HpaOutcome { desired: current, raw: None, stabilized: None, cause: RescaleCause::Abandoned }
}

/// Notes the metrics that failed, and returns the recommendation; `None` if the pass ends here.
fn report(
    measured: &MetricDemand,
    spec: &HpaSpec,
    current: PodCount,
    state: &mut HpaState,
    now: Timestamp,
) -> Option<PodCount> {
    for status in &state.metrics {
        if let MetricStatus::Failed { reason, .. } = status {
            state.warnings.push(HpaWarning::Condition(*reason));
        }
    }
    let recommendation = measured.recommendation(current);
    let reason = match (recommendation, measured.first_failure) {
        (None, Some(failure)) => {
            let text = HpaSentence::Partial {
                failed: measured.failed,
                of: PodCount::of(spec.metrics.len()).value(),
            };
            state.steps.drop_number(Stage::MetricFailure, text);
            failure
        }
        (Some(_), _) | (None, None) => ConditionReason::ValidMetricFound,
    };
    conditions::set(&mut state.conditions.scaling_active, reason, now);
    recommendation
}

/// From what the metrics ask for to what may be done: windows, then limits. Remembers the recommendation.
fn normalize(
    spec: &HpaSpec,
    current: PodCount,
    raw: PodCount,
    state: &mut HpaState,
    now: Timestamp,
) -> (PodCount, LimitedCount) {
    let HpaState { history, steps, .. } = state;
    let (stabilized, held) = match &spec.behavior {
        None => {
            let count = stabilize::without_behavior(history, raw, &spec.settings, now, steps);
            (count, ConditionReason::ScaleDownStabilized)
        }
        Some(behavior) => {
            let windows = Windows::of(behavior, &spec.settings);
            let count = windows.envelope(history, raw, now).force(current, steps);
            windows.record(history, raw, now);
            let held = if raw < current {
                ConditionReason::ScaleDownStabilized
            } else {
                ConditionReason::ScaleUpStabilized
            };
            (count, held)
        }
    };
    let limiter = Limiter::of(spec, current, &history.events, now);
    let bounded = match &spec.behavior {
        None => limiter.without_behavior(stabilized, steps),
        Some(behavior) => limiter.with_behavior(behavior, stabilized, steps),
    };
    let able = if stabilized == raw { ConditionReason::ReadyForNewScale } else { held };
    conditions::set(&mut state.conditions.able_to_scale, able, now);
    conditions::set(&mut state.conditions.scaling_limited, bounded.reason, now);
    (stabilized, bounded)
}

fn cause(measured: &MetricDemand, raw: PodCount, current: PodCount) -> RescaleCause {
    match (raw.cmp(&current), measured.leader) {
        (std::cmp::Ordering::Greater, Some(leader)) => RescaleCause::AboveTarget(leader),
        (std::cmp::Ordering::Less, _) => RescaleCause::BelowTarget,
        (std::cmp::Ordering::Equal, _) | (std::cmp::Ordering::Greater, None) => RescaleCause::OnTarget,
    }
}
