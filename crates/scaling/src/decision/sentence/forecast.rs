//! Sentences about demand that is expected, and about bounds that a person set for times of the week.

use std::fmt;
use std::time::Duration;

use forecasting::RulePeriod;
use serde::{Deserialize, Serialize};
use settings::DemandMetric;
use vocabulary::PodCount;

use super::numbers::{demand_unit, rough, rounded, two_decimals};

/// Sentences of the stages that raise a count before demand does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ForecastText {
    /// Demand rose in past periods from the same minute on.
    Rise {
        near: NearDemand,
        /// The demand of the last minutes.
        now: f64,
        rise: f64,
        period: RulePeriod,
        periods: u8,
        /// The number of periods that rose by no more.
        periods_within: u8,
    },
    /// As much was asked for in past periods, or a multiple of it.
    Profile {
        near: NearDemand,
        level: f64,
        period: RulePeriod,
    },
    /// A forecast for which nothing may be spent any more.
    BudgetSpent {
        floor: PodCount,
    },
    /// Pods that were asked for early, and are expected to be needed no longer.
    NoLongerExpected {
        count: PodCount,
    },
    /// Pods of a former autoscaler, until what is expected is known again.
    FormerOwner {
        count: PodCount,
    },
    WarmPod,
    ScheduledLeast {
        least: PodCount,
    },
    ScheduledMost {
        most: PodCount,
    },
}

/// The greatest demand that is expected within the time that a pod takes to start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NearDemand {
    pub(crate) demand: f64,
    pub(crate) per_pod: f64,
    /// The time within which the demand is expected, in whole seconds.
    pub(crate) within: u32,
    pub(crate) metric: DemandMetric,
}

/// "21 requests in flight expected within 2m8s".
impl fmt::Display for NearDemand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (demand, within) = (two_decimals(self.demand), rough(Duration::from_secs(self.within.into())));
        write!(to, "{} {} expected within {within}", rounded(demand), demand_unit(self.metric, demand))
    }
}

impl fmt::Display for ForecastText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rise { near, now, rise, period, periods, periods_within } => {
                let (now, rise) = (two_decimals(now), two_decimals(rise));
                let preposition = if period == RulePeriod::Day { "on" } else { "in" };
                write!(
                    to,
                    "{near} ({now} now; {preposition} {periods_within} of the last {periods} {period}s "
                )?;
                if rise < 0.0 {
                    write!(to, "it fell by {} or more", -rise)?;
                } else {
                    write!(to, "it rose by {rise} or less")?;
                }
                write!(to, "), {} per pod", two_decimals(near.per_pod))
            }
            Self::Profile { near, level, period } => {
                let level = two_decimals(level);
                let times = if (level - 1.0).abs() < f64::EPSILON {
                    String::new()
                } else {
                    format!("{level} times the demand, ")
                };
                write!(
                    to,
                    "{near} ({times}as at this time of past {period}s), {} per pod",
                    two_decimals(near.per_pod)
                )
            }
            Self::BudgetSpent { floor } => {
                write!(
                    to,
                    "{floor} would be asked for, but prediction has spent what it may (prediction-budget)"
                )
            }
            Self::NoLongerExpected { count } => {
                write!(to, "no more than {count} are expected to be needed")
            }
            Self::FormerOwner { count } => {
                write!(
                    to,
                    "{count} were asked for early before this autoscaler began, and stay until demand is foreseen again"
                )
            }
            Self::WarmPod => to.write_str("a pod waits for the next request (cold-start-worth)"),
            Self::ScheduledLeast { least } => write!(to, "at least {least} at this time (schedule)"),
            Self::ScheduledMost { most } => write!(to, "at most {most} at this time (schedule)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: NearDemand =
        NearDemand { demand: 21.0, per_pod: 7.0, within: 128, metric: DemandMetric::Concurrency };

    #[track_caller]
    fn check(said: ForecastText, words: &str) {
        assert_eq!(said.to_string(), words);
    }

    #[test]
    fn a_rise_names_the_days_that_it_was_seen_on() {
        let period = RulePeriod::Day;
        let rise =
            ForecastText::Rise { near: NEAR, now: 9.0, rise: 12.0, period, periods: 7, periods_within: 6 };
        check(
            rise,
            "21 requests in flight expected within 2m8s (9 now; on 6 of the last 7 days it rose by 12 or less), 7 per pod",
        );
        let near = NearDemand { demand: 1.0, metric: DemandMetric::Rps, ..NEAR };
        let period = RulePeriod::Hour;
        let fall = ForecastText::Rise { near, now: 3.5, rise: -2.5, period, periods: 24, periods_within: 20 };
        check(
            fall,
            "1 request per second expected within 2m8s (3.5 now; in 20 of the last 24 hours it fell by 2.5 or more), 7 per pod",
        );
    }

    #[test]
    fn processors_are_named_by_their_cores() {
        let near = NearDemand { demand: 3.2, per_pod: 0.5, metric: DemandMetric::Cpu, ..NEAR };
        let period = RulePeriod::Week;
        check(
            ForecastText::Profile { near, level: 1.0, period },
            "3.2 cores in use expected within 2m8s (as at this time of past weeks), 0.5 per pod",
        );
    }

    #[test]
    fn a_profile_names_the_level_of_today_where_it_counts() {
        let of = |level, period| ForecastText::Profile { near: NEAR, level, period };
        check(
            of(1.0, RulePeriod::Week),
            "21 requests in flight expected within 2m8s (as at this time of past weeks), 7 per pod",
        );
        check(
            of(1.25, RulePeriod::Day),
            "21 requests in flight expected within 2m8s (1.25 times the demand, as at this time of past days), 7 per pod",
        );
    }

    #[test]
    fn limits_and_bounds_name_their_settings() {
        let count = PodCount::new(5);
        check(
            ForecastText::BudgetSpent { floor: count },
            "5 would be asked for, but prediction has spent what it may (prediction-budget)",
        );
        check(ForecastText::NoLongerExpected { count }, "no more than 5 are expected to be needed");
        check(
            ForecastText::FormerOwner { count },
            "5 were asked for early before this autoscaler began, and stay until demand is foreseen again",
        );
        check(ForecastText::WarmPod, "a pod waits for the next request (cold-start-worth)");
        check(ForecastText::ScheduledLeast { least: count }, "at least 5 at this time (schedule)");
        check(ForecastText::ScheduledMost { most: count }, "at most 5 at this time (schedule)");
    }
}
