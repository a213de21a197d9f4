//! What a person may know of the forecast of a revision.

use std::time::Duration;

use forecasting::{OutlookHour, RuleNumber, Scorecard};

/// What a person may know of a forecast.
#[derive(Clone, Debug)]
pub struct ForecastReport {
    /// The rule that is in force.
    pub rule: RuleNumber,
    /// The minute since 1970 since which it is in force; `None` before the first choice.
    pub rule_since: Option<u64>,
    /// What prediction brought and cost in the last seven days.
    pub scorecard: Scorecard,
    /// The cold starts that warm pods avoided in the last 24 hours.
    pub cold_starts_avoided: u32,
    /// Whether what is expected changes nothing.
    pub observes_only: bool,
    /// How long before demand a pod is asked for.
    pub look_ahead: Duration,
    /// The next 24 hours, as past days had them.
    pub hours: Vec<OutlookHour>,
}
