//! The demand that past days and weeks had at the same time, and how today compares with them.
//!
//! A profile of a minute is told from days that have ended. So each minute, one profile comes new at the far
//! end of the look-ahead and the others are those of the minute before.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::local_time::ZoneOffsets;
use crate::minute_view::MinuteView;
use crate::past_demand::MinuteDemand;
use crate::quantile::Quantile;
use crate::rule::{ALL, HALF, MOST, NEARLY_ALL, RulePeriod};

/// The level is that of so many minutes.
const LEVEL_MINUTES: usize = 30;
/// So many of them must be known.
const LEVEL_KNOWN_MIN: usize = 15;
/// No day is taken to be more than twice as busy as usual, or less than half.
const LEVELS: [f64; 2] = [0.5, 2.0];

/// The quantiles of days that rules ask for.
const OF_DAYS: [Quantile; 3] = [HALF, MOST, NEARLY_ALL];
/// The quantiles of weeks that rules ask for.
const OF_WEEKS: [Quantile; 2] = [MOST, ALL];

/// The quantiles of the demand at one minute of past days and weeks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct MinuteProfile {
    days: Option<[f64; OF_DAYS.len()]>,
    weeks: Option<[f64; OF_WEEKS.len()]>,
}

/// The greatest quantiles of the minutes of a look-ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GreatestProfile {
    greatest: MinuteProfile,
}

/// The profiles of the minutes that are near.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NearProfiles {
    /// The minute of the first profile.
    first: u64,
    near: VecDeque<MinuteProfile>,
    /// The zone by which the profiles were told.
    zone: ZoneOffsets,
}

/// The last minutes beside what is usual for them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LevelWindow {
    minutes: VecDeque<Option<LevelMinute>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct LevelMinute {
    mean: f64,
    usual: f64,
}

impl NearProfiles {
    /// The greatest quantiles of the minutes that matter when a minute begins.
    pub(crate) fn advance(&mut self, view: &MinuteView<'_>) -> GreatestProfile {
        if self.zone != *view.zone || self.first > view.minute {
            self.forget();
            self.zone.clone_from(view.zone);
        }
        while self.first < view.minute && self.near.pop_front().is_some() {
            self.first += 1;
        }
        self.first = view.minute;
        let horizon = usize::try_from(view.horizon).unwrap_or(usize::MAX);
        self.near.truncate(horizon);
        let known = u64::try_from(self.near.len()).unwrap_or(u64::MAX);
        self.near.extend(
            (known..view.horizon).map(|ahead| MinuteProfile::of(view, view.minute.saturating_add(ahead))),
        );
        let mut profiles = self.near.iter().copied();
        let first = profiles.next().unwrap_or_default();
        GreatestProfile { greatest: profiles.fold(first, MinuteProfile::greater) }
    }

    /// Forgets the profiles, since the past that they were told from is another one now.
    pub(crate) fn forget(&mut self) {
        self.near.clear();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.near.capacity() * size_of::<MinuteProfile>()
    }
}

impl GreatestProfile {
    /// The demand that this part of the minutes did not exceed, in the greatest of the minutes that matter.
    /// `None` where a minute is known of too few periods, or where no rule asks for this quantile.
    pub(crate) fn quantile(&self, period: RulePeriod, quantile: Quantile) -> Option<f64> {
        match period {
            RulePeriod::Day => value_of(quantile, &OF_DAYS, &self.greatest.days?),
            RulePeriod::Week => value_of(quantile, &OF_WEEKS, &self.greatest.weeks?),
            RulePeriod::Hour => None,
        }
    }
}

fn value_of(quantile: Quantile, known: &[Quantile], values: &[f64]) -> Option<f64> {
    known.iter().zip(values).find(|(known, _)| **known == quantile).map(|(_, value)| *value)
}

impl MinuteProfile {
    fn of(view: &MinuteView<'_>, minute: u64) -> Self {
        let maxima = |period| sorted(&view.around(minute, period), |demand| demand.maximum);
        Self {
            days: quantiles(&maxima(RulePeriod::Day), OF_DAYS),
            weeks: quantiles(&maxima(RulePeriod::Week), OF_WEEKS),
        }
    }

    /// The greater of each quantile; none where one of both is not known.
    fn greater(self, other: Self) -> Self {
        Self {
            days: self.days.zip(other.days).map(|(one, other)| greater_of_each(one, other)),
            weeks: self.weeks.zip(other.weeks).map(|(one, other)| greater_of_each(one, other)),
        }
    }
}

/// The wanted quantiles of values in order; none of no values.
fn quantiles<const COUNT: usize>(sorted: &[f64], wanted: [Quantile; COUNT]) -> Option<[f64; COUNT]> {
    let mut found = [0.0; COUNT];
    for (value, quantile) in found.iter_mut().zip(wanted) {
        *value = quantile.of(sorted)?;
    }
    Some(found)
}

fn greater_of_each<const COUNT: usize>(one: [f64; COUNT], other: [f64; COUNT]) -> [f64; COUNT] {
    std::array::from_fn(|at| one[at].max(other[at]))
}

impl LevelWindow {
    /// Notes the last minute before the one that begins.
    pub(crate) fn advance(&mut self, view: &MinuteView<'_>) {
        if self.minutes.len() == LEVEL_MINUTES {
            self.minutes.pop_front();
        }
        self.minutes.push_back(view.minute.checked_sub(1).and_then(|ended| LevelMinute::of(view, ended)));
    }

    /// Forgets what was noted: minutes were left out since.
    pub(crate) fn forget(&mut self) {
        self.minutes.clear();
    }

    /// How many times as busy as usual the last minutes were.
    pub(crate) fn level(&self) -> f64 {
        let known = || self.minutes.iter().flatten();
        let usual: f64 = known().map(|minute| minute.usual).sum();
        if known().count() < LEVEL_KNOWN_MIN || usual <= 0.0 {
            return 1.0;
        }
        let [least, greatest] = LEVELS;
        (known().map(|minute| minute.mean).sum::<f64>() / usual).clamp(least, greatest)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.minutes.capacity() * size_of::<Option<LevelMinute>>()
    }
}

impl LevelMinute {
    /// A minute beside the median of what past days had in it. Both are means: the level of a day like all
    /// others is 1, however far the maxima of its minutes lie above their means.
    fn of(view: &MinuteView<'_>, minute: u64) -> Option<Self> {
        let mean = view.known(minute)?.mean;
        let usual =
            Quantile::MEDIAN.of(&sorted(&view.around(minute, RulePeriod::Day), |demand| demand.mean))?;
        Some(Self { mean, usual })
    }
}

/// One value of each minute, in order, as quantiles need them.
pub(crate) fn sorted(pool: &[MinuteDemand], value: fn(&MinuteDemand) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = pool.iter().map(value).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}
