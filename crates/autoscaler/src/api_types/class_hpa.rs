//! What the API says of a revision of class hpa: its conditions, its metrics, and the questions about them.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

/// What the last sync of class hpa says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HpaView {
    /// The count that it found.
    pub current: PodCount,
    /// The answer of the last one that had one; absent before it.
    pub desired: Option<PodCount>,
    /// How long ago the count was last changed; absent if it never was.
    pub last_scale_ms: Option<u64>,
    /// The conditions of which there is something to say.
    pub conditions: Vec<HpaConditionView>,
    /// In the order of the document.
    pub metrics: Vec<HpaMetricView>,
}

/// One condition of a `HorizontalPodAutoscaler`, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HpaConditionView {
    /// `AbleToScale`, `ScalingActive`, `ScalingLimited` or `ScaledToZero`.
    pub kind: String,
    /// Whether the condition holds: `True` in Kubernetes.
    pub status: bool,
    /// The reason as Kubernetes' own autoscaler spells it, in one word.
    pub reason: String,
    /// For how long it has said so.
    pub age_ms: u64,
}

/// One metric; what the last sync did not ask has a name and a target only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HpaMetricView {
    /// As `ebb get` calls it: the resource, or the name in the document.
    pub metric: String,
    /// What was measured, in the form of the target.
    pub value: Option<String>,
    /// The target value, in the form in which the document has it.
    pub target: String,
    /// What was measured, divided by the target.
    pub ratio: Option<f64>,
    /// How many pods it asks for.
    pub count: Option<PodCount>,
    /// Why the metric has no value; absent while it has one.
    pub failure: Option<String>,
}

/// A metric for which another source than the pods was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedMetricView {
    /// As `ebb get` calls it: the resource, or the name in the document.
    pub metric: String,
    /// How it was asked for, in `PromQL` or as a path of the API server; absent if there was no way to ask.
    pub query: Option<String>,
    /// The number, as Kubernetes writes quantities, or why there is none.
    pub answer: String,
}
