//! A forecast as it is written down, and read again by the next owner.
//!
//! Amounts that are no whole numbers stand as the bits of their doubles: decimal digits would not return them
//! exactly, and the next owner's forecast equals the former's. The record has no check number of its own: the
//! store that writes it has one. Every field has a default, so that a later version can add some.

use serde::{Deserialize, Serialize};

/// The most hours of sums that a forecast goes on from: those of seven days.
pub(crate) const HOUR_SUMS_MAX: usize = 7 * 24;
/// The most minutes of spending that a forecast goes on from: those of a day.
pub(crate) const MINUTES_SPENT_MAX: usize = 24 * 60;

/// What is kept of a forecast beside the demand that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PredictionRecord {
    /// The count that the class asked for last by itself.
    pub reactive: u32,
    /// The sums of rules, the rule in force and what was spent; `None` where prediction is off.
    pub forecaster: Option<ForecasterRecord>,
    /// The gaps between requests, and what warm pods cost and brought.
    pub warm: WarmRecord,
    /// The milliseconds that the last starts took, the oldest first.
    pub starts_ms: Vec<u64>,
}

/// The rule in force, what every rule would have done, and what was spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecasterRecord {
    /// The place of the rule in force in the list of all.
    pub rule: usize,
    /// The minute since 1970 since which it is in force.
    pub rule_since: Option<u64>,
    /// Request-seconds that were late without a forecast when the rule was chosen, as bits.
    pub late: u64,
    /// The greatest part of them that a rule would have saved, as bits.
    pub saved_max: u64,
    /// The sums of hours that have ended, the oldest first.
    pub hours: Vec<HourRecord>,
    /// The sums of the hour that runs.
    pub open: Option<HourRecord>,
    /// The pod-seconds that prediction has spent.
    pub budget: BudgetRecord,
}

/// What each player would have done in one hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HourRecord {
    /// The hour since 1970, by local time.
    pub hour: u64,
    /// Request-seconds that were asked for, as bits.
    pub demand: u64,
    /// Pod-seconds that class kpa asked for.
    pub reactive: u64,
    /// Extra pod-seconds that demand needed.
    pub used: u64,
    /// Request-seconds that were late, of each player, as bits.
    pub late: Vec<u64>,
    /// Extra pod-seconds of each player.
    pub extra: Vec<u64>,
}

/// What was spent: pairs of extra pods and those of class kpa.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetRecord {
    /// The number of minutes that ended before those below, since prediction was switched on.
    pub minutes_before: u64,
    /// Tenths of pod-seconds in each minute that has ended, the oldest first.
    pub minutes: Vec<[u32; 2]>,
    /// Tenths of pod-seconds since prediction was switched on, without the minute that runs.
    pub since_on: [u64; 2],
    /// Pod-milliseconds of the minute that runs.
    pub running: [u64; 2],
}

/// The gaps between requests, and the hours of warm pods: pairs of milliseconds spent and cold starts
/// avoided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WarmRecord {
    /// The last gaps in whole minutes, the oldest first.
    pub gaps: Vec<u16>,
    /// The hours that have ended, the oldest first.
    pub hours: Vec<[u32; 2]>,
    /// The sums of the hour that runs.
    pub running: [u32; 2],
    /// The minutes of the hour that runs which have ended.
    pub minutes_ended: u32,
}

/// The end of a record: what a later one need not have again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordMark {
    /// The last hour with sums.
    hour: Option<u64>,
    /// The number of the minute that ran.
    minute: u64,
}

impl PredictionRecord {
    /// The end of what this record has of hours and minutes.
    pub fn mark(&self) -> RecordMark {
        let Some(forecaster) = &self.forecaster else { return RecordMark::default() };
        RecordMark { hour: forecaster.hours.last().map(|last| last.hour), minute: forecaster.budget.next() }
    }

    /// The part that is new since a record of the same forecast that ended there. [`Self::extend`] puts both
    /// together. A forecast that was begun anew since is returned whole.
    #[must_use]
    pub fn since(mut self, mark: RecordMark) -> Self {
        if let Some(forecaster) = &mut self.forecaster
            && forecaster.budget.next() >= mark.minute
        {
            forecaster.hours.retain(|sums| Some(sums.hour) > mark.hour);
            let budget = &mut forecaster.budget;
            let known = usize::try_from(mark.minute.saturating_sub(budget.minutes_before));
            let known = known.map_or(budget.minutes.len(), |known| known.min(budget.minutes.len()));
            budget.minutes.drain(..known);
            budget.minutes_before += u64::try_from(known).unwrap_or(0);
        }
        self
    }

    /// Goes on with what was written later. What is older than a forecast goes on from is dropped: a store
    /// extends the same record for as long as the revision lives.
    pub fn extend(&mut self, later: Self) {
        let former = std::mem::replace(self, later).forecaster;
        if let (Some(later), Some(former)) = (&mut self.forecaster, former) {
            let first = later.hours.first().map(|first| first.hour);
            let mut hours = former.hours;
            hours.retain(|sums| first.is_none_or(|first| sums.hour < first));
            hours.append(&mut later.hours);
            hours.drain(..hours.len().saturating_sub(HOUR_SUMS_MAX));
            later.hours = hours;
            later.budget.go_on_from(former.budget);
        }
    }
}

impl BudgetRecord {
    /// The number of the minute that runs.
    fn next(&self) -> u64 {
        self.minutes_before.saturating_add(u64::try_from(self.minutes.len()).unwrap_or(u64::MAX))
    }

    /// Puts the minutes of a former record before these, where they follow one another.
    fn go_on_from(&mut self, former: Self) {
        let kept = self.minutes_before.checked_sub(former.minutes_before).map(usize::try_from);
        if let Some(Ok(kept)) = kept
            && kept <= former.minutes.len()
        {
            let mut minutes = former.minutes;
            minutes.truncate(kept);
            minutes.append(&mut self.minutes);
            let dropped = minutes.len().saturating_sub(MINUTES_SPENT_MAX);
            minutes.drain(..dropped);
            let before = former.minutes_before.saturating_add(u64::try_from(dropped).unwrap_or(0));
            (self.minutes, self.minutes_before) = (minutes, before);
        }
    }
}

/// The amount that bits stand for; zero for those of no amount.
pub(crate) fn amount_of(bits: u64) -> f64 {
    let amount = f64::from_bits(bits);
    if amount.is_finite() && amount > 0.0 { amount } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(hours: std::ops::Range<u64>, minutes: std::ops::Range<u32>) -> PredictionRecord {
        let budget = BudgetRecord {
            minutes_before: minutes.start.into(),
            minutes: minutes.map(|minute| [minute, 2 * minute]).collect(),
            ..BudgetRecord::default()
        };
        let hours = hours.map(|hour| HourRecord { hour, ..HourRecord::default() }).collect();
        let forecaster = Some(ForecasterRecord { hours, budget, ..ForecasterRecord::default() });
        PredictionRecord { forecaster, ..PredictionRecord::default() }
    }

    #[test]
    fn a_record_and_what_is_new_since_make_the_later_record() {
        let former = record(10..14, 100..200);
        let later = record(10..16, 100..207);
        let tail = later.clone().since(former.mark());
        assert_eq!(tail, record(14..16, 200..207));
        let mut whole = former.clone();
        whole.extend(tail.clone());
        assert_eq!(whole, later);
        // Written twice, as before a process ended whose next one went on from there.
        whole.extend(tail);
        assert_eq!(whole, later);
        assert_eq!(later.clone().since(PredictionRecord::default().mark()), later);
        // Prediction was switched off and on.
        let anew = record(15..16, 0..5);
        assert_eq!(anew.clone().since(later.mark()), anew);
        whole.extend(anew);
        assert_eq!(whole, record(10..16, 0..5));
    }

    #[test]
    fn a_tail_that_does_not_follow_stands_alone() {
        let mut former = record(10..14, 100..200);
        former.extend(record(14..15, 300..302));
        assert_eq!(former, record(10..15, 300..302));
        former.extend(PredictionRecord { reactive: 3, ..PredictionRecord::default() });
        assert_eq!(former, PredictionRecord { reactive: 3, ..PredictionRecord::default() });
    }

    #[test]
    fn a_record_that_is_extended_for_weeks_keeps_seven_days_of_hours_and_one_day_of_minutes() {
        let mut whole = record(0..168, 0..1440);
        whole.extend(record(168..170, 1440..1500));
        assert_eq!(whole, record(2..170, 60..1500));
    }

    #[test]
    fn bits_of_no_amount_are_zero() {
        for bits in [f64::NAN.to_bits(), f64::INFINITY.to_bits(), (-1.0_f64).to_bits(), u64::MAX] {
            assert_eq!(amount_of(bits), 0.0);
        }
        assert_eq!(amount_of(2.5_f64.to_bits()), 2.5);
    }
}
