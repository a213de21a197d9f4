//! What the API says of a decision: its inputs, its steps, and its result.

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, Routing};

/// One decision: its inputs, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionView {
    /// The age of the decision in milliseconds.
    pub age_ms: u64,
    /// `tick`, `sync`, `surge` or `change`.
    pub trigger: String,
    /// What it looked at; absent when there was no data, and so no decision.
    pub inputs: Option<InputsView>,
    /// The steps that changed the number, in order.
    pub reasons: Vec<ReasonView>,
    /// The mode after the decision: `stable` or `panic`.
    pub mode: String,
    /// What the load calls for; absent if nothing was ever decided.
    pub desired: Option<PodCount>,
    /// What the platform is asked for; absent means it was left alone.
    pub wanted: Option<PodCount>,
    /// Room beyond the target burst capacity, in requests.
    pub excess_burst_capacity: i32,
    /// Whether requests go to pods directly or through activators afterwards.
    pub routing: Routing,
    /// How many activators should serve.
    pub activators: PodCount,
    /// Why the count is not zero, if zero was asked for.
    pub why_not_zero: Option<String>,
}

/// What a decision looked at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputsView {
    /// Pods that pass their probes.
    pub ready_pods: PodCount,
    /// Of them, those not heard for 3 s or more.
    pub unheard_pods: PodCount,
    /// The average over the stable window.
    pub stable_value: f64,
    /// The average over the panic window.
    pub panic_value: f64,
    /// The load per pod aimed at.
    pub target_per_pod: f64,
    /// The most load a pod can take.
    pub total_per_pod: f64,
    /// Requests present at that moment, where that was looked at.
    pub present_count: Option<f64>,
}

/// One step of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReasonView {
    /// Which step: `stable_window`, `scale_up_rate`, `scale_down_rate`, `activation_scale`, `panic`,
    /// `scale_down_delay`, `surge`, `missing_data`, `no_data`, `initial_scale`, `min_scale`, `max_scale`,
    /// `scale_to_zero`, `activation_timeout`, `adopted_connections`; of class hpa also `metric`,
    /// `metric_failure`, `stabilization_window`, `scaling_policy`, `paused`.
    pub stage: String,
    /// The number before this step; absent if there was none.
    pub before: Option<PodCount>,
    /// The number after; absent means "leave it alone".
    pub after: Option<PodCount>,
    /// The reason as one sentence for people.
    pub text: String,
}
