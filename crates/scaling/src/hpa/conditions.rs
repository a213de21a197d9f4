//! The conditions of an autoscaler of this class: Kubernetes' own, with the reasons that tools look for.

use serde::{Deserialize, Serialize};
use settings::hpa::MetricSpec;
use vocabulary::Timestamp;

/// Every reason that a condition of ours can have. A reason implies what the condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionReason {
    /// The scale of the target was read.
    SucceededGetScale,
    /// Nothing holds the count back.
    ReadyForNewScale,
    /// An earlier recommendation holds the count up.
    ScaleDownStabilized,
    /// An earlier recommendation holds the count down.
    ScaleUpStabilized,
    /// The count of the pass was written.
    SucceededRescale,
    /// The count of the pass could not be written.
    FailedUpdateScale,
    /// At least one metric has a value.
    ValidMetricFound,
    /// The target is at zero, and not by us.
    ScalingDisabled,
    /// The target selects its pods by nothing that could be read.
    InvalidSelector,
    /// Another autoscaler has the same pods.
    AmbiguousSelector,
    /// A metric of a resource of whole pods failed.
    FailedGetResourceMetric,
    /// A resource metric of one container failed.
    FailedGetContainerResourceMetric,
    /// A metric of pods failed.
    FailedGetPodsMetric,
    /// A metric of an object failed.
    FailedGetObjectMetric,
    /// A metric from outside the cluster failed.
    FailedGetExternalMetric,
    /// The kind of a metric is unknown.
    InvalidMetricSourceType,
    /// No limit changed the count.
    DesiredWithinRange,
    /// A policy, or the doubling that applies without `behavior`, limited a rise.
    ScaleUpLimit,
    /// The maximum of the document limited the count.
    TooManyReplicas,
    /// A policy limited a fall of the count.
    ScaleDownLimit,
    /// The minimum of the document limited the count.
    TooFewReplicas,
    /// This autoscaler took the last pod away, so it may bring the first one back.
    ScaledToZero,
    /// The last count that was written is no zero of this autoscaler's own.
    NotScaledToZero,
}

impl ConditionReason {
    /// The reason under which a metric is reported that could not be measured.
    pub fn of_unmeasured(metric: &MetricSpec) -> Self {
        match metric {
            MetricSpec::Resource { container: None, .. } => Self::FailedGetResourceMetric,
            MetricSpec::Resource { container: Some(_), .. } => Self::FailedGetContainerResourceMetric,
            MetricSpec::Pods { .. } | MetricSpec::Own { .. } => Self::FailedGetPodsMetric,
            MetricSpec::Object { .. } => Self::FailedGetObjectMetric,
            MetricSpec::External { .. } => Self::FailedGetExternalMetric,
        }
    }

    /// Whether the status of a condition with this reason is true.
    pub fn is_true(self) -> bool {
        match self {
            Self::SucceededGetScale
            | Self::ReadyForNewScale
            | Self::ScaleDownStabilized
            | Self::ScaleUpStabilized
            | Self::SucceededRescale
            | Self::ValidMetricFound
            | Self::ScaleUpLimit
            | Self::TooManyReplicas
            | Self::ScaleDownLimit
            | Self::TooFewReplicas
            | Self::ScaledToZero => true,
            Self::FailedUpdateScale
            | Self::ScalingDisabled
            | Self::InvalidSelector
            | Self::AmbiguousSelector
            | Self::FailedGetResourceMetric
            | Self::FailedGetContainerResourceMetric
            | Self::FailedGetPodsMetric
            | Self::FailedGetObjectMetric
            | Self::FailedGetExternalMetric
            | Self::InvalidMetricSourceType
            | Self::DesiredWithinRange
            | Self::NotScaledToZero => false,
        }
    }

    /// The reason in one word, as Kubernetes writes it in a condition.
    pub fn word(self) -> &'static str {
        match self {
            Self::SucceededGetScale => "SucceededGetScale",
            Self::ReadyForNewScale => "ReadyForNewScale",
            Self::ScaleDownStabilized => "ScaleDownStabilized",
            Self::ScaleUpStabilized => "ScaleUpStabilized",
            Self::SucceededRescale => "SucceededRescale",
            Self::FailedUpdateScale => "FailedUpdateScale",
            Self::ValidMetricFound => "ValidMetricFound",
            Self::ScalingDisabled => "ScalingDisabled",
            Self::InvalidSelector => "InvalidSelector",
            Self::AmbiguousSelector => "AmbiguousSelector",
            Self::FailedGetResourceMetric => "FailedGetResourceMetric",
            Self::FailedGetContainerResourceMetric => "FailedGetContainerResourceMetric",
            Self::FailedGetPodsMetric => "FailedGetPodsMetric",
            Self::FailedGetObjectMetric => "FailedGetObjectMetric",
            Self::FailedGetExternalMetric => "FailedGetExternalMetric",
            Self::InvalidMetricSourceType => "InvalidMetricSourceType",
            Self::DesiredWithinRange => "DesiredWithinRange",
            Self::ScaleUpLimit => "ScaleUpLimit",
            Self::TooManyReplicas => "TooManyReplicas",
            Self::ScaleDownLimit => "ScaleDownLimit",
            Self::TooFewReplicas => "TooFewReplicas",
            Self::ScaledToZero => "ScaledToZero",
            Self::NotScaledToZero => "NotScaledToZero",
        }
    }
}

/// The reason of one condition, and since when its status holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HpaCondition {
    /// The reason; the status follows from it ([`ConditionReason::is_true`]).
    pub reason: ConditionReason,
    /// The time from which the status holds; the reason may have changed later.
    pub since: Timestamp,
}

/// The four conditions; `None` until there is something to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HpaConditions {
    /// `AbleToScale`: whether the count can be read and written, and what holds it.
    pub able_to_scale: Option<HpaCondition>,
    /// `ScalingActive`: whether the count follows from metrics.
    pub scaling_active: Option<HpaCondition>,
    /// `ScalingLimited`: whether a limit changed what they decided.
    pub scaling_limited: Option<HpaCondition>,
    /// `ScaledToZero`: whether zero pods are this autoscaler's own doing.
    pub scaled_to_zero: Option<HpaCondition>,
}

impl HpaConditions {
    /// The conditions that are set, each with its type.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, HpaCondition)> {
        let all = [
            ("AbleToScale", self.able_to_scale),
            ("ScalingActive", self.scaling_active),
            ("ScalingLimited", self.scaling_limited),
            ("ScaledToZero", self.scaled_to_zero),
        ];
        all.into_iter().filter_map(|(kind, condition)| Some((kind, condition?)))
    }
}

/// Sets the reason of a condition. Its time moves only when its status changes.
pub(super) fn set(condition: &mut Option<HpaCondition>, reason: ConditionReason, now: Timestamp) {
    let since = match condition {
        Some(former) if former.reason.is_true() == reason.is_true() => former.since,
        Some(_) | None => now,
    };
    *condition = Some(HpaCondition { reason, since });
}
