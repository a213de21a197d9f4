//! The count that one metric asks for, and the rule that led to it.

use serde::{Deserialize, Serialize};
use vocabulary::{MilliValue, PodCount};

/// A count that one metric asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The number of pods that the metric asks for.
    pub count: PodCount,
    /// The measured value divided by the target, before values were assumed for pods without a sample.
    pub ratio: f64,
    /// The measured value, in the form of the target.
    pub current: CurrentValue,
    /// The pods that counted, and those that did not.
    pub looked_at: PodsLookedAt,
    /// Which rule led to the count.
    pub rule: ProposalRule,
}

/// A measured value, in the form of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CurrentValue {
    /// A share of what is requested, and what that is on average.
    Utilization {
        /// The share of the requests, in whole percent.
        percent: i32,
        /// The average use per pod, in thousandths of the resource's unit.
        average: MilliValue,
    },
    /// The average per pod, in thousandths of the metric's unit.
    AverageValue(MilliValue),
    /// The number itself, in thousandths of the metric's unit.
    Value(MilliValue),
}

/// Pods by group. For a total, only those that are multiplied by are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodsLookedAt {
    /// Pods whose samples counted, or by which a total was multiplied.
    pub ready: PodCount,
    /// Too young to say anything.
    pub unready: PodCount,
    /// Pods past the phase Pending that have no sample.
    pub missing: PodCount,
    /// On their way out or failed.
    pub ignored: PodCount,
}

/// How a metric came to its count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProposalRule {
    /// The ratio is close enough to 1: nothing changes.
    WithinTolerance,
    /// The ratio times the pods that counted, or for a total what the target makes of it.
    Ratio,
    /// The ratio with something assumed of pods without a sample or not ready yet.
    CautiousRatio {
        /// The ratio to the target, with the assumed values.
        ratio: f64,
    },
    /// With that assumed, the ratio is close enough to 1.
    CautiouslyWithinTolerance {
        /// The ratio to the target, with the assumed values.
        ratio: f64,
    },
    /// With that assumed, the count would move against what was measured: nothing changes.
    Turned {
        /// The ratio to the target, with the assumed values.
        ratio: f64,
    },
    /// A decider of ours wants it.
    Decider,
}

impl ProposalRule {
    /// The ratio with something assumed of the pods that did not count.
    pub(super) fn cautious_ratio(self) -> Option<f64> {
        match self {
            Self::CautiousRatio { ratio }
            | Self::CautiouslyWithinTolerance { ratio }
            | Self::Turned { ratio } => Some(ratio),
            Self::WithinTolerance | Self::Ratio | Self::Decider => None,
        }
    }
}

/// Why a metric asks for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoProposal {
    /// The target has no pods.
    NoPods,
    /// No pod that counts has a sample.
    NoSamples,
    /// A pod says nothing of what it requests.
    NoRequest,
    /// All samples are of pods that the target does not have.
    NoOverlap,
    /// No series, or for an object more than one.
    NoSeries,
    /// No value of the metric was given to the pass.
    NotMeasured,
    /// The source of the metric has no value, or cannot be asked; its own words are kept with the question.
    Refused,
    /// The source of the metric did not answer in time.
    NoAnswer,
    /// The metric is one of our own, and no pod or activator is linked that could report it.
    NoReporter,
    /// Pods have no container of that name.
    NoContainer,
    /// Pods do not report this resource.
    NotReported,
}
