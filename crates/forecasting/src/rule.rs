//! The rules, each a way to say from the past how much demand is near. One of them is chosen by replay.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::quantile::Quantile;

/// The number of rules, with the one that asks for nothing.
pub const RULES: usize = 21;

/// How far back a rule looks, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RulePeriod {
    /// The same minute of the last seven days, by local time.
    Day,
    /// The same minute of the last two weeks, by local time.
    Week,
    /// The same minute of the last 24 hours.
    Hour,
}

/// What one pod is taken to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodShare {
    /// The target, which leaves the spare room that class kpa leaves.
    Target,
    /// The most that a pod serves. The count of class kpa has spare room already, so this is often enough.
    Total,
}

/// Whether a profile is taken as it was, or as much higher or lower as today is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileScale {
    /// As the days before were.
    Past,
    /// Times the level of the last half hour.
    Level,
}

/// A way to say how much demand is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The demand of now, and as much more as it rose in past periods from this minute on.
    Rise {
        /// The periods that are looked at.
        period: RulePeriod,
        /// The rise that this part of the periods did not exceed.
        quantile: Quantile,
        /// What one pod is taken to serve.
        share: PodShare,
    },
    /// The demand that past periods had from this minute on.
    Profile {
        /// The periods that are looked at.
        period: RulePeriod,
        /// The demand that this part of the minutes did not exceed.
        quantile: Quantile,
        /// Whether the level of today counts.
        scale: ProfileScale,
        /// What one pod is taken to serve.
        share: PodShare,
    },
    /// No forecast: the count of class kpa.
    None,
}

/// The place of a rule in the list of all. Of rules that do equally well the first is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleNumber(usize);

pub(crate) const HALF: Quantile = Quantile::MEDIAN;
pub(crate) const MOST: Quantile = Quantile::percent(80);
const NINE_TENTHS: Quantile = Quantile::percent(90);
pub(crate) const NEARLY_ALL: Quantile = Quantile::percent(95);
pub(crate) const ALL: Quantile = Quantile::percent(100);

const fn rise(period: RulePeriod, quantile: Quantile, share: PodShare) -> Rule {
    Rule::Rise { period, quantile, share }
}

const fn profile(quantile: Quantile, scale: ProfileScale) -> Rule {
    Rule::Profile { period: RulePeriod::Day, quantile, scale, share: PodShare::Total }
}

const fn weekly_profile(quantile: Quantile) -> Rule {
    Rule::Profile { period: RulePeriod::Week, quantile, scale: ProfileScale::Past, share: PodShare::Total }
}

/// All rules, in the order in which ties are broken.
const ALL_RULES: [Rule; RULES] = [
    rise(RulePeriod::Day, HALF, PodShare::Target),
    rise(RulePeriod::Day, HALF, PodShare::Total),
    rise(RulePeriod::Day, MOST, PodShare::Target),
    rise(RulePeriod::Day, MOST, PodShare::Total),
    rise(RulePeriod::Day, NINE_TENTHS, PodShare::Target),
    rise(RulePeriod::Day, NINE_TENTHS, PodShare::Total),
    rise(RulePeriod::Day, ALL, PodShare::Target),
    rise(RulePeriod::Day, ALL, PodShare::Total),
    rise(RulePeriod::Week, ALL, PodShare::Target),
    rise(RulePeriod::Week, ALL, PodShare::Total),
    rise(RulePeriod::Hour, MOST, PodShare::Total),
    profile(HALF, ProfileScale::Past),
    profile(HALF, ProfileScale::Level),
    profile(MOST, ProfileScale::Past),
    profile(MOST, ProfileScale::Level),
    profile(NEARLY_ALL, ProfileScale::Past),
    profile(NEARLY_ALL, ProfileScale::Level),
    Rule::Profile {
        period: RulePeriod::Day,
        quantile: HALF,
        scale: ProfileScale::Level,
        share: PodShare::Target,
    },
    weekly_profile(MOST),
    weekly_profile(ALL),
    Rule::None,
];

impl RuleNumber {
    /// The rule that asks for nothing, the last of all.
    pub const NONE: Self = Self(RULES - 1);

    /// The numbers of all rules, in their order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..RULES).map(Self)
    }

    /// The rule that has this number.
    pub fn rule(self) -> Rule {
        ALL_RULES[self.0]
    }

    /// The place in a list of all rules, from 0.
    pub const fn place(self) -> usize {
        self.0
    }
}

impl RulePeriod {
    /// How many periods are looked at.
    pub(crate) const fn count(self) -> u64 {
        match self {
            Self::Day => 7,
            Self::Week => 2,
            Self::Hour => 24,
        }
    }

    /// How many of them must be known.
    pub(crate) const fn known_min(self) -> usize {
        match self {
            Self::Day | Self::Hour => 3,
            Self::Week => 2,
        }
    }

    /// The minutes of demand without which no rule that looks back so far asks for pods.
    pub fn minutes_needed(self) -> u64 {
        let minutes = match self {
            Self::Hour => 60,
            Self::Day => 24 * 60,
            Self::Week => 7 * 24 * 60,
        };
        u64::try_from(self.known_min()).unwrap_or(u64::MAX).saturating_mul(minutes)
    }
}

impl fmt::Display for RulePeriod {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Hour => "hour",
        })
    }
}

impl fmt::Display for PodShare {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Target => "target",
            Self::Total => "total",
        })
    }
}

/// As metrics, the scorecard and a person name the rule: `day-rise-0.8-total`.
impl fmt::Display for Rule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rise { period, quantile, share } => {
                write!(to, "{period}-rise-{}-{share}", quantile.fraction())
            }
            Self::Profile { period, quantile, scale: ProfileScale::Past, share } => {
                write!(to, "{period}-profile-{}-{share}", quantile.fraction())
            }
            Self::Profile { period, quantile, scale: ProfileScale::Level, share } => {
                write!(to, "{period}-level-{}-{share}", quantile.fraction())
            }
            Self::None => to.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_of_the_rules_has_a_name_of_its_own() {
        let names: BTreeSet<String> = RuleNumber::all().map(|number| number.rule().to_string()).collect();
        assert_eq!(names.len(), 21);
        assert!(names.contains("day-rise-0.8-total") && names.contains("day-level-0.5-target"), "{names:?}");
        assert_eq!(RuleNumber::NONE.rule(), Rule::None);
    }

    #[test]
    fn a_weekly_rule_needs_two_periods_and_others_three() {
        assert_eq!([RulePeriod::Day, RulePeriod::Week, RulePeriod::Hour].map(RulePeriod::count), [7, 2, 24]);
        assert_eq!(
            [RulePeriod::Day, RulePeriod::Week, RulePeriod::Hour].map(RulePeriod::known_min),
            [3, 2, 3]
        );
        assert_eq!(
            [RulePeriod::Day, RulePeriod::Week, RulePeriod::Hour].map(RulePeriod::minutes_needed),
            [3 * 24 * 60, 14 * 24 * 60, 180]
        );
    }
}
