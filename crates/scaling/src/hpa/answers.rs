//! What comes of a round of questions: values of metrics and, where pods do not report by themselves, the
//! pods that they are of.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

use super::observation::Selection;
use super::pods::HpaPods;
use super::samples::MetricSamples;

/// The answers to the questions of one sync.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricAnswers {
    /// The place of each metric that was asked for, and what is known of it.
    pub samples: Vec<(usize, MetricSamples)>,
    /// The pods as they were then; `None` where pods report by themselves.
    pub target: Option<TargetPods>,
}

/// The pods of a target at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetPods {
    /// The pods that the target's selector matches, under numbers that have a meaning within one round only.
    pub pods: HpaPods,
    /// The number of pods by the target's own status (`status.replicas`).
    pub present: PodCount,
    /// Whether they are known to be its own.
    pub selection: Selection,
}
