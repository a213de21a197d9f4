//! The past as it lies before one minute: nothing of this minute, and nothing of later ones, is seen.

use crate::local_time::ZoneOffsets;
use crate::past_demand::{MinuteDemand, PastDemand};
use crate::rule::RulePeriod;

const MINUTES_OF_HOUR: u64 = 60;
const DAYS_OF_WEEK: u64 = 7;
/// A present demand is the mean of so many minutes.
const BASE_MINUTES: u64 = 3;
/// So many of them must be known.
const BASE_KNOWN_MIN: u32 = 2;
/// A profile looks at so many minutes before and after the same minute of another day.
const PROFILE_WIDTH: u64 = 2;

/// The past before a minute that begins now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinuteView<'a> {
    pub(crate) past: &'a dyn PastDemand,
    pub(crate) zone: &'a ZoneOffsets,
    /// The minute since 1970 that begins now, by UTC.
    pub(crate) minute: u64,
    /// The number of minutes from this one on whose demand matters.
    pub(crate) horizon: u64,
}

impl MinuteView<'_> {
    /// The demand of a minute that has ended.
    pub(crate) fn known(&self, minute: u64) -> Option<MinuteDemand> {
        if minute < self.minute { self.past.minute(minute) } else { None }
    }

    /// The mean demand of the three minutes before this one, two of which must be known.
    pub(crate) fn base_before(&self, minute: u64) -> Option<f64> {
        let minutes = minute.checked_sub(BASE_MINUTES)?..minute;
        let mut sum = 0.0;
        let mut count = 0_u32;
        for demand in minutes.filter_map(|minute| self.known(minute)) {
            sum += demand.mean;
            count += 1;
        }
        (count >= BASE_KNOWN_MIN).then(|| sum / f64::from(count))
    }

    /// The greatest demand in as many minutes as matter, from this one on. All of them must be known.
    pub(crate) fn greatest_from(&self, minute: u64) -> Option<f64> {
        let mut greatest = 0.0_f64;
        for minute in minute..minute.checked_add(self.horizon)? {
            greatest = greatest.max(self.known(minute)?.maximum);
        }
        Some(greatest)
    }

    /// The minute that a minute is compared with, this number of periods before.
    pub(crate) fn periods_before(&self, minute: u64, period: RulePeriod, periods: u64) -> Option<u64> {
        match period {
            RulePeriod::Day => self.zone.days_before(minute, periods),
            RulePeriod::Week => self.zone.days_before(minute, periods * DAYS_OF_WEEK),
            RulePeriod::Hour => minute.checked_sub(periods * MINUTES_OF_HOUR),
        }
    }

    /// What is known of a minute, and of two on each side of it, in past periods; nothing where too few
    /// periods are known.
    pub(crate) fn around(&self, minute: u64, period: RulePeriod) -> Vec<MinuteDemand> {
        let mut pool = Vec::with_capacity(35);
        let mut periods_known = 0;
        for periods in 1..=period.count() {
            let Some(same) = self.periods_before(minute, period, periods) else { continue };
            let before = pool.len();
            let minutes = same.saturating_sub(PROFILE_WIDTH)..=same.saturating_add(PROFILE_WIDTH);
            pool.extend(minutes.filter_map(|minute| self.known(minute)));
            periods_known += usize::from(pool.len() > before);
        }
        if periods_known < period.known_min() {
            pool.clear();
        }
        pool
    }
}
