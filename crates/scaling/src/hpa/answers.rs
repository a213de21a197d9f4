//! What comes of a round of questions: values of metrics and, where pods do not report by themselves, the
//! pods that they are of.

use vocabulary::PodCount;

use super::observation::Selection;
use super::pods::HpaPods;
use super::samples::MetricSamples;

/// What was answered at one sync.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricAnswers {
    /// The place of each metric that was asked for, and what is known of it.
    pub samples: Vec<(usize, MetricSamples)>,
    /// The pods as they were then; `None` where pods report by themselves.
    pub target: Option<TargetPods>,
}

/// The pods of a target at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetPods {
    /// Those that its selector matches, under numbers that mean something within one round only.
    pub pods: HpaPods,
    /// How many the target itself says there are (`status.replicas`).
    pub present: PodCount,
    /// Whether they are known to be its own.
    pub selection: Selection,
}
