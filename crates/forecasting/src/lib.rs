//! What will be needed? Floors of a pod count before demand rises, chosen by replay.
//!
//! A revision whose pods take two minutes to start is late for every morning. This crate looks at the
//! revision's own past minutes of demand and says how many pods there should be at least, and whether one is
//! worth keeping warm while nothing is asked for. A forecast only raises the count of class kpa.
//!
//! *Simple rules, one of which is in force* ([`Rule`]): how much demand rose from this minute on in past
//! days, or how much there was. Each hour every rule is played against the demand of the last seven days; the
//! cheapest of those that would have saved nearly the most is chosen, or none ([`RuleChoice`]). *Two limits
//! that a person sets*: extra pod-seconds stay within a share of class kpa's ([`PredictionBudget`]), and the
//! pod-minutes of a warm pod within the worth of the cold starts that it avoids ([`KeepWarm`]). *The past is
//! read in its place* ([`PastDemand`]) and never copied; what is kept here are sums. *Days are local*
//! ([`ZoneOffsets`]).
//!
//! Time is a parameter: minutes since 1970 for what compares with other days, the monotonic axis for what is
//! spent. Left out on purpose: the count of class kpa itself, where history is stored, and zones of the
//! world.

mod budget;
mod capacity;
mod choice;
mod expectations;
mod forecast;
mod forecaster;
mod idle_gaps;
mod keep_warm;
mod local_time;
mod look_ahead;
mod minute_view;
mod outlook;
mod past_demand;
mod profiles;
mod quantile;
mod record;
mod replay;
mod rises;
mod rule;
mod scorecard;
mod short_number;
#[cfg(test)]
mod tests;
mod warm_ledger;

pub use budget::{BudgetAnswer, BudgetShare, PredictionBudget};
pub use capacity::{FloorCap, PodCapacity};
pub use choice::{ChoiceTimes, RuleChoice};
pub use expectations::{ExpectationBasis, ExpectedDemand};
pub use forecast::{
    CountBounds, ExpectedFloor, Forecast, ForecastReason, ForecastStep, PredictionMode, RaisedCount,
};
pub use forecaster::{EndedMinute, ForecastSettings, Forecaster, PredictedFloor};
pub use idle_gaps::{IdleGaps, WarmInterval, WarmTerms};
pub use keep_warm::{KeepWarm, WarmAnswer};
pub use local_time::ZoneOffsets;
pub use look_ahead::{ForecastPace, LookAhead, StartTimes};
pub use outlook::{OutlookHour, outlook};
pub use past_demand::{DemandMinutes, MinuteDemand, PastDemand, concurrency_of};
pub use quantile::{Quantile, WeightedValue};
pub use record::{BudgetRecord, ForecasterRecord, HourRecord, PredictionRecord, RecordMark, WarmRecord};
pub use rises::ExpectedRise;
pub use rule::{PodShare, ProfileScale, RULES, Rule, RuleNumber, RulePeriod};
pub use scorecard::Scorecard;
