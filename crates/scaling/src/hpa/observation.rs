//! What one pass of the algorithm looks at: the scale of the target, its pods, and the values of the metrics.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

use super::pods::HpaPods;
use super::samples::MetricSamples;

/// The input of one pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HpaObservation<'a> {
    /// The replica counts of the target, and whether its pods are its own.
    pub scale: Scale,
    /// The pods that its selector matches.
    pub pods: &'a HpaPods,
    /// For each metric of the spec, in its order, what is known of it.
    pub samples: &'a [MetricSamples],
}

/// The scale of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The count that the target was last asked for (`spec.replicas`).
    pub replicas: PodCount,
    /// The number of pods that the target has (`status.replicas`).
    pub status_replicas: PodCount,
    /// Whether the selected pods are known to be the target's own.
    pub selection: Selection,
}

/// Whether the pods that a target selects are known to be its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selection {
    /// The selector matches pods of this target alone.
    #[default]
    Unique,
    /// The target has no selector of pods.
    Absent,
    /// The target has a selector that cannot be read.
    Unreadable,
    /// Another autoscaler selects some of the same pods.
    Ambiguous,
}
