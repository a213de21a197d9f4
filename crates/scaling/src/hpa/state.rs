//! The state of one autoscaler between passes, and the status that it shows.

use serde::{Deserialize, Serialize};
use settings::hpa::HpaSpec;
use vocabulary::{PodCount, Timestamp};

use super::conditions::{self, ConditionReason, HpaCondition, HpaConditions};
use super::history::{CountChange, HpaHistory};
use super::proposal::{NoProposal, Proposal};
use super::steps::Steps;
use crate::decision::Reason;

/// One autoscaler of this class: its history and its status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HpaState {
    pub(super) history: HpaHistory,
    pub(super) conditions: HpaConditions,
    pub(super) metrics: Vec<MetricStatus>,
    pub(super) warnings: Vec<HpaWarning>,
    pub(super) steps: Steps,
    pub(super) desired: Option<PodCount>,
    pub(super) current: PodCount,
    pub(super) last_scale: Option<Timestamp>,
}

/// The result of the last pass for one metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricStatus {
    /// The metric asks for this count.
    Proposed(Proposal),
    /// The metric failed: its slot in the status is empty.
    Failed {
        /// The reason that conditions and Events give for the failure.
        reason: ConditionReason,
        /// What was wrong with the metric or its samples.
        why: NoProposal,
    },
    /// The metric was not asked, because there was no pod that could have answered.
    NotAsked,
}

/// A warning of a pass, as Kubernetes' events of type Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HpaWarning {
    /// `InvalidSelector`, `AmbiguousSelector`, or the failure of a metric.
    Condition(ConditionReason),
    /// `SelectorRequired`: the target selects its pods by nothing.
    SelectorRequired,
    /// `FailedComputeMetricsReplicas`: the pass ended without an answer.
    FailedComputeMetricsReplicas,
    /// `FailedRescale`: the count could not be written.
    FailedRescale,
}

impl HpaWarning {
    /// The reason of the Event in one word; the same as in Kubernetes.
    pub fn word(self) -> &'static str {
        match self {
            Self::SelectorRequired => "SelectorRequired",
            Self::FailedComputeMetricsReplicas => "FailedComputeMetricsReplicas",
            Self::FailedRescale => "FailedRescale",
            Self::Condition(reason) => reason.word(),
        }
    }
}

impl HpaState {
    /// The recommendations and changes that windows and policies look back on.
    pub fn history(&self) -> &HpaHistory {
        &self.history
    }

    /// The conditions after the last pass.
    pub fn conditions(&self) -> &HpaConditions {
        &self.conditions
    }

    /// For each metric of the spec, in its order, what the last pass knows of it. Empty when that pass asked
    /// no metric.
    pub fn metrics(&self) -> &[MetricStatus] {
        &self.metrics
    }

    /// The warnings of the last pass.
    pub fn warnings(&self) -> &[HpaWarning] {
        &self.warnings
    }

    /// Why the last pass came to its answer, step by step.
    pub fn reasons(&self) -> &[Reason] {
        self.steps.as_slice()
    }

    /// The answer of the last pass that had one (`status.desiredReplicas`).
    pub fn desired(&self) -> Option<PodCount> {
        self.desired
    }

    /// The count that the last pass found (`status.currentReplicas`).
    pub fn current(&self) -> PodCount {
        self.current
    }

    /// When the count was last written.
    pub fn last_scale(&self) -> Option<Timestamp> {
        self.last_scale
    }

    /// Whether the zero pods of the target are this autoscaler's own doing.
    pub(super) fn owns_zero(&self) -> bool {
        self.conditions.scaled_to_zero.is_some_and(|condition| condition.reason.is_true())
    }

    /// The answer of the last pass was written. From now on the change is an event that policies look back
    /// on.
    pub fn note_rescale(&mut self, spec: &HpaSpec, change: CountChange, now: Timestamp) {
        let CountChange { from, to } = change;
        conditions::set(&mut self.conditions.able_to_scale, ConditionReason::SucceededRescale, now);
        // Without `behavior` there are no policies to look back on changes.
        if let Some(behavior) = &spec.behavior {
            self.history.events.store(from, to, behavior, now);
        }
        self.last_scale = Some(now);
        self.desired = Some(to);
        // Without an own metric any other zero is a pause by another client, which no metric ends.
        let is_own_zero = from > PodCount::ZERO
            && to == PodCount::ZERO
            && spec.min == PodCount::ZERO
            && (spec.has_object_or_external() || spec.has_own());
        let reason =
            if is_own_zero { ConditionReason::ScaledToZero } else { ConditionReason::NotScaledToZero };
        conditions::set(&mut self.conditions.scaled_to_zero, reason, now);
    }

    /// The fields that a change noted now would overwrite, for [`HpaState::revert_rescale`].
    pub fn rescale_memory(&self, now: Timestamp) -> RescaleMemory {
        RescaleMemory {
            at: now,
            desired: self.desired,
            last_scale: self.last_scale,
            scaled_to_zero: self.conditions.scaled_to_zero,
        }
    }

    /// A change that was noted was not carried out after all: no policy looks back on it.
    pub fn revert_rescale(&mut self, change: CountChange, before: &RescaleMemory, now: Timestamp) {
        self.history.remove_event(change, before.at);
        self.last_scale = before.last_scale;
        self.conditions.scaled_to_zero = before.scaled_to_zero;
        self.note_failed_rescale(before.desired, now);
    }

    /// The answer of the last pass could not be written; the next pass tries again. `before` is what was
    /// desired before that pass.
    pub fn note_failed_rescale(&mut self, before: Option<PodCount>, now: Timestamp) {
        conditions::set(&mut self.conditions.able_to_scale, ConditionReason::FailedUpdateScale, now);
        self.warnings.push(HpaWarning::FailedRescale);
        self.desired = before;
    }
}

/// What a noted change overwrites; see [`HpaState::revert_rescale`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescaleMemory {
    pub(super) at: Timestamp,
    desired: Option<PodCount>,
    last_scale: Option<Timestamp>,
    scaled_to_zero: Option<HpaCondition>,
}
