//! The next 24 hours as past days had them, for people.
//!
//! No count is decided by this: rules look no further than a pod takes to start, and rises are told from the
//! demand of the minute in which they begin.

use std::ops::Range;

use crate::local_time::ZoneOffsets;
use crate::minute_view::MinuteView;
use crate::past_demand::{MinuteDemand, PastDemand};
use crate::profiles::sorted;
use crate::quantile::Quantile;
use crate::rule::{HALF, MOST, RulePeriod};

const HOURS: u64 = 24;
const MINUTES_OF_HOUR: u64 = 60;
/// A profile looks at two minutes on each side of its minute, so each fifth one sees them all.
const MINUTES_APART: usize = 5;

/// One of the hours that come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlookHour {
    /// Its first minute since 1970, by UTC. The first hour begins with the minute that runs.
    pub minute: u64,
    /// The minute of the day at which it begins, by local time.
    pub minute_of_day: u64,
    /// In the greatest of its minutes, the mean demand that half of the past seven days did not exceed;
    /// `None` where fewer than three of them are known.
    pub usual: Option<f64>,
    /// The maximum that 80 % of them did not exceed.
    pub high: Option<f64>,
}

/// The next 24 hours when a minute since 1970 begins: that of now until the full hour, and whole ones.
pub fn outlook(past: &dyn PastDemand, zone: &ZoneOffsets, minute: u64) -> Vec<OutlookHour> {
    let view = MinuteView { past, zone, minute, horizon: 1 };
    let end = minute.saturating_add(HOURS * MINUTES_OF_HOUR);
    let mut hours = Vec::new();
    let mut first = minute;
    while first < end {
        let minute_of_day = zone.local(first).minute_of_day();
        let next = (first + MINUTES_OF_HOUR - minute_of_day % MINUTES_OF_HOUR).min(end);
        let [usual, high] = [
            greatest(&view, first..next, HALF, |demand| demand.mean),
            greatest(&view, first..next, MOST, |demand| demand.maximum),
        ];
        hours.push(OutlookHour { minute: first, minute_of_day, usual, high });
        first = next;
    }
    hours
}

/// The quantile that past days had at each of these minutes; the greatest of them.
fn greatest(
    view: &MinuteView<'_>,
    minutes: Range<u64>,
    quantile: Quantile,
    value: fn(&MinuteDemand) -> f64,
) -> Option<f64> {
    let of_minute = |minute| quantile.of(&sorted(&view.around(minute, RulePeriod::Day), value));
    minutes.step_by(MINUTES_APART).filter_map(of_minute).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::past_demand::DemandMinutes;

    const DAY: u64 = 24 * 60;

    /// Days with a peak at noon, a little more each day.
    fn past(days: u64) -> DemandMinutes {
        let mut past = DemandMinutes::beginning_at(20_000 * DAY);
        for minute in 0..days * DAY {
            let is_noon = (720..730).contains(&(minute % DAY));
            let demand = if is_noon { 8.0 } else { 1.0 };
            past.push(Some(MinuteDemand { mean: demand, maximum: 2.0 * demand }));
        }
        past
    }

    #[test]
    fn the_hours_that_come_are_as_past_days_had_them() {
        let now = 20_007 * DAY + 615;
        let hours = outlook(&past(8), &ZoneOffsets::fixed(60), now);
        let starts: Vec<u64> = hours.iter().take(3).map(|hour| hour.minute_of_day).collect();
        assert_eq!(starts, [675, 720, 780], "local time is an hour ahead");
        assert_eq!((hours.len(), hours[0].minute), (25, now));
        let noon: Vec<bool> = hours.iter().map(|hour| hour.usual.is_some_and(|usual| usual > 4.0)).collect();
        assert_eq!(noon.iter().filter(|is_noon| **is_noon).count(), 1, "{hours:?}");
        assert!(hours[2].high > hours[2].usual && hours[2].minute_of_day == 780);
    }

    #[test]
    fn two_days_tell_nothing() {
        let hours = outlook(&past(2), &ZoneOffsets::fixed(0), 20_002 * DAY);
        assert!(hours.len() == 24 && hours.iter().all(|hour| hour.usual.is_none() && hour.high.is_none()));
    }
}
