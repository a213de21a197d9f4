//! What one pass of the algorithm looks at: the scale of the target, its pods, and the values of the metrics.

use vocabulary::PodCount;

use super::pods::HpaPods;
use super::samples::MetricSamples;

/// What one pass looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HpaObservation<'a> {
    /// The target's scale.
    pub scale: Scale,
    /// The pods that its selector matches.
    pub pods: &'a HpaPods,
    /// For each metric of the spec, in its order, what is known of it.
    pub samples: &'a [MetricSamples],
}

/// The scale of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// What was last asked for (`spec.replicas`).
    pub replicas: PodCount,
    /// What there is (`status.replicas`).
    pub status_replicas: PodCount,
    /// Whether its pods are known to be its own.
    pub selection: Selection,
}

/// Whether the target's pods are known to be its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// They are.
    #[default]
    Unique,
    /// There is no selector.
    Absent,
    /// There is one that cannot be read.
    Unreadable,
    /// Another autoscaler has some of them too.
    Ambiguous,
}
