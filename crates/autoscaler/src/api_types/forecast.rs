//! What the API says of a forecast.

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, RevisionName};

use super::{OwnerView, PredictionView};

/// What is expected of a revision, and what prediction brought and cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastView {
    /// The version of the API's types.
    pub version: u32,
    /// The revision's whole name, `namespace/kind/name`.
    pub name: RevisionName,
    /// Which autoscaler decides about it.
    pub owner: Option<OwnerView>,
    /// Whether prediction acts: `auto`, `observe` or `off`.
    pub mode: String,
    /// What is counted: `concurrency`, `rps`, or `cpu` (cores in use).
    pub metric: String,
    /// The load per pod aimed at.
    pub target_per_pod: f64,
    /// How long demand has been remembered; absent where none is.
    pub known_ms: Option<u64>,
    /// How long before demand a pod is asked for: as long as pods take to start, and a margin.
    pub look_ahead_ms: Option<u64>,
    /// For how long the rule has been in force; absent before the first choice.
    pub rule_ms: Option<u64>,
    /// The rule in force, and the last seven days with prediction and without; absent where it is off.
    pub prediction: Option<PredictionView>,
    /// The greatest part of what was late, 0 … 1, that a rule within the budget would have saved.
    pub saved_max: Option<f64>,
    /// The cold starts that warm pods avoided in the last 24 hours.
    pub cold_starts_avoided: u32,
    /// Why no rule asks for pods; absent where one does.
    pub why_not: Option<String>,
    /// The next 24 hours, as past days had them; empty where nothing is known.
    pub hours: Vec<ForecastHourView>,
}

/// One of the hours that come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastHourView {
    /// In how many milliseconds it begins; 0 for the one that runs.
    pub begins_in_ms: u64,
    /// The local time at which it begins, such as `07:00`.
    pub local_time: String,
    /// The mean demand of its greatest minute, which half of the past days did not exceed; absent while fewer
    /// than three days are known.
    pub usual: Option<f64>,
    /// The maximum of its greatest minute, which 80 % of the past days did not exceed.
    pub high: Option<f64>,
    /// The pods that serve `high` at the target.
    pub pods: Option<PodCount>,
}
