//! What prediction brought and cost in the last seven days, beside what class kpa alone would have.

use serde::{Deserialize, Serialize};

use crate::rule::RuleNumber;

/// The sums of the last seven days, of hours that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scorecard {
    /// The rule that is in force.
    pub rule: RuleNumber,
    /// Request-seconds that were asked for.
    pub demand: f64,
    /// Request-seconds that no ready pod took, with the forecast as it was in force.
    pub late_with: f64,
    /// The same without a forecast.
    pub late_without: f64,
    /// The greatest part of these, 0 … 1, that a rule within the budget would have saved when the rule was
    /// chosen last.
    pub saved_max: f64,
    /// Pod-seconds that class kpa asked for.
    pub reactive_pod_seconds: u64,
    /// Pod-seconds that the forecast in force added.
    pub extra_pod_seconds: u64,
    /// Those of them that the demand needed by the time when they were ready.
    pub used_pod_seconds: u64,
    /// Pod-seconds that the budget of 24 hours still has.
    pub budget_left_pod_seconds: u64,
}

impl Scorecard {
    /// Pod-seconds that the forecast added and demand did not need.
    pub fn wasted_pod_seconds(&self) -> u64 {
        self.extra_pod_seconds.saturating_sub(self.used_pod_seconds)
    }
}
