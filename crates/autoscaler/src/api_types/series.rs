//! What the API says of a revision's past: columns of equal steps.

use serde::{Deserialize, Serialize};

/// The measured past of a revision. Each column has a value for each step, the oldest first; null where it
/// was not measured, which is not zero. Pods are averages over the seconds of the step that were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesView {
    /// The version of the API's types.
    pub version: u32,
    /// The range that was asked for: `15m`, `24h` or `30d`.
    pub range: String,
    /// The length of each step in milliseconds.
    pub step_ms: u64,
    /// The age of the beginning of the first step; 0 for a revision that was never used, whose columns are
    /// empty.
    pub first_ms_ago: u64,
    /// The seconds of the step that were measured: times these, an average of pods is pod-seconds.
    pub seconds: Vec<Option<f64>>,
    /// Requests in flight, waiting ones included, on average.
    pub concurrency: Vec<Option<f64>>,
    /// The greatest concurrency of a second.
    pub concurrency_max: Vec<Option<f64>>,
    /// Requests per second, on average.
    pub rate: Vec<Option<f64>>,
    /// The most requests that arrived in a second.
    pub rate_max: Vec<Option<f64>>,
    /// Requests that arrived in the step.
    #[serde(default)]
    pub requests: Vec<Option<f64>>,
    /// Requests that waited, on average.
    pub waiting: Vec<Option<f64>>,
    /// The most requests that waited together.
    pub waiting_max: Vec<Option<f64>>,
    /// Requests that waited, as far as looks once a second saw them; null in steps of a second.
    #[serde(default)]
    pub waited: Vec<Option<f64>>,
    /// Pods that the platform was asked for.
    pub wanted: Vec<Option<f64>>,
    /// Pods that passed their probes.
    pub ready: Vec<Option<f64>>,
    /// Ready pods that held a request at some moment of the second.
    pub busy: Vec<Option<f64>>,
    /// Pods that were not ready, and not on their way out.
    pub starting: Vec<Option<f64>>,
    /// Pods on their way out.
    pub ending: Vec<Option<f64>>,
    /// Cold starts: raises of the count from zero.
    pub cold_starts: Vec<Option<f64>>,
    /// The pods by which the count was raised, those from zero among them.
    pub raised: Vec<Option<f64>>,
    /// Pods that were started for a new template; null in steps of a second.
    #[serde(default)]
    pub rollout_starts: Vec<Option<f64>>,
    /// Pods that were started in the place of one that failed or was taken away; null in steps of a second.
    #[serde(default)]
    pub failed_pod_starts: Vec<Option<f64>>,
    /// The time from the order to the first ready pod, of all cold starts that ended in the step.
    pub cold_start_wait_ms: Vec<Option<f64>>,
}
