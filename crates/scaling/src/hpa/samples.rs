//! The measured values of one metric, or why there is none.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{MilliValue, PodCount, PodId, Timestamp};

use super::conditions::ConditionReason;
use super::proposal::NoProposal;

/// The values of one metric. There is one of these for each entry of the spec, in the same order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricSamples {
    /// A value of each pod, for metrics that are measured in pods.
    PerPod(PodSamples),
    /// The values of the series that were selected: any number for an external metric, exactly one for an
    /// object's.
    Series(Vec<MilliValue>),
    /// The count that a decider of ours wants, for our own metrics.
    Decided {
        /// The number of pods that the decider wants.
        count: PodCount,
        /// The average load per pod over the stable window; the whole load while no pod is ready.
        average: MilliValue,
    },
    /// The metric has no value, for this reason.
    Failed(MetricFailure),
    /// Nothing was asked, because there is no pod that could have answered.
    NotAsked,
}

/// Why a metric has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricFailure {
    /// Under which condition it is reported.
    pub reason: ConditionReason,
    /// What went wrong. The words of the metric's source are kept with the question.
    pub why: NoProposal,
}

/// One value of each pod that has one, in the order of the pods' ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodSamples(Vec<PodSample>);

impl PodSamples {
    /// Samples in any order; of several samples of one pod the last counts.
    pub fn new(mut samples: Vec<PodSample>) -> Self {
        samples.sort_by_key(|sample| sample.pod);
        samples.dedup_by(|later, earlier| {
            let is_same = later.pod == earlier.pod;
            if is_same {
                *earlier = *later;
            }
            is_same
        });
        Self(samples)
    }

    /// In the order of the pods' ids.
    pub fn iter(&self) -> impl Iterator<Item = &PodSample> {
        self.0.iter()
    }

    pub(super) fn as_slice(&self) -> &[PodSample] {
        &self.0
    }
}

/// The value of a metric for one pod or one of its containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSample {
    /// The pod that was measured; the target may not have it any more.
    pub pod: PodId,
    /// The value, in thousandths of the metric's unit.
    pub value: MilliValue,
    /// The end of the time that it was measured over.
    pub at: Timestamp,
    /// The length of the time that the value was measured over.
    pub window: Duration,
}
