//! The limit of what prediction costs: a floor binds while the extra pod-seconds stay within a share of those
//! that class kpa asks for.
//!
//! *The promise*: the extra pod-seconds of any 24 hours are at most this share of class kpa's pod-seconds of
//! the 24 hours that ended when the last of them was spent. It follows from a check each time that the counts
//! change and each time that a minute begins: extra pod-seconds are looked at with the rest of the minute,
//! and with the whole of the oldest one, class kpa's without both. Time is the monotonic axis, so a wall
//! clock that is put back gives no pod-seconds back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{Percentage, PodCount, Timestamp};

use crate::look_ahead::ForecastPace;
use crate::record::{BudgetRecord, MINUTES_SPENT_MAX};

/// Room is made for so many minutes at a time.
const MINUTES_GROWN: usize = 60;
/// Pod-seconds of a minute are kept in tenths.
const TENTH_MILLIS: u64 = 100;
const MILLION: u64 = 1_000_000;

/// A share of the pod-seconds of class kpa, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetShare(u64);

impl BudgetShare {
    /// The share that a percentage is; more than 100 % counts as that.
    pub fn of(share: Percentage) -> Self {
        let millionths = PodCount::floor_from(share.value() * 10_000.0).value();
        Self(u64::from(millionths).min(MILLION))
    }

    /// Whether an amount is within this share of another one.
    pub(crate) fn allows(self, amount: u64, of: u64) -> bool {
        u128::from(amount) * u128::from(MILLION) <= u128::from(of) * u128::from(self.0)
    }

    /// The part of an amount that this share is, rounded down.
    fn of_amount(self, of: u64) -> u64 {
        u64::try_from(u128::from(of) * u128::from(self.0) / u128::from(MILLION)).unwrap_or(u64::MAX)
    }
}

/// Whether a floor may bind now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetAnswer {
    /// The floor binds, or asks for no more than class kpa does.
    Within,
    /// The floor rests: with it, the budget would be exceeded.
    Spent,
}

/// Pod-milliseconds: those that a forecast adds, and those of class kpa.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PodSpending {
    extra: u64,
    reactive: u64,
}

/// Pod-seconds of a whole minute, in tenths: the extra ones rounded up, those of class kpa rounded down. More
/// than seven million pods count as so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MinutePods {
    extra: u32,
    reactive: u32,
}

/// The pods that are asked for from one check on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PodRates {
    extra: u32,
    reactive: u32,
}

/// The pod-seconds of the last 24 hours, and since prediction was switched on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PredictionBudget {
    share: BudgetShare,
    minute: Duration,
    /// The minutes that have ended, the oldest first. Copies share them until the next one ends.
    ended: Arc<VecDeque<MinutePods>>,
    /// The number of minutes that have ended since prediction was switched on.
    ended_count: u64,
    /// The sums of these minutes, in tenths of pod-seconds.
    day: PodSpending,
    /// The sums since prediction was switched on, in tenths of pod-seconds, without the minute that runs.
    since_on: PodSpending,
    running: PodSpending,
    running_ends: Timestamp,
    checked: Timestamp,
    rates: PodRates,
}

impl PredictionBudget {
    /// A budget of which nothing is spent; prediction is switched on now.
    pub fn new(share: BudgetShare, pace: ForecastPace, now: Timestamp) -> Self {
        Self {
            share,
            minute: pace.minute(),
            ended: Arc::default(),
            ended_count: 0,
            day: PodSpending::default(),
            since_on: PodSpending::default(),
            running: PodSpending::default(),
            running_ends: now + pace.minute(),
            checked: now,
            rates: PodRates::default(),
        }
    }

    /// Sets another share. What was spent stays spent.
    pub fn set_share(&mut self, share: BudgetShare) {
        self.share = share;
    }

    /// Class kpa asks for these pods from now on, and a rule for so many. Says whether the rule's floor may
    /// bind until the counts change, or until [`Self::next_deadline`] at the latest.
    pub fn decide(&mut self, now: Timestamp, reactive: PodCount, floor: PodCount) -> BudgetAnswer {
        self.advance(now);
        let extra = floor.value().saturating_sub(reactive.value());
        let is_within = extra == 0 || self.has_room_for(extra);
        self.rates = PodRates { extra: if is_within { extra } else { 0 }, reactive: reactive.value() };
        if is_within { BudgetAnswer::Within } else { BudgetAnswer::Spent }
    }

    /// Pods above the count of class kpa are there though no floor was decided upon: those that a former
    /// owner asked for. They count as extra from now on, until the next decision.
    pub fn note_inherited(&mut self, now: Timestamp, reactive: PodCount, count: PodCount) {
        self.advance(now);
        let extra = count.value().saturating_sub(reactive.value());
        self.rates = PodRates { extra, reactive: reactive.value() };
    }

    /// When a decision has to be asked for again, if nothing happens before.
    pub const fn next_deadline(&self) -> Timestamp {
        self.running_ends
    }

    /// The pod-seconds that may still be spent within the last 24 hours.
    pub fn seconds_left(&self) -> u64 {
        let PodSpending { extra, reactive } = self.window(0);
        self.share.of_amount(reactive).saturating_sub(extra) / 10
    }

    /// What was spent, as it is written down.
    pub(crate) fn record(&self) -> BudgetRecord {
        let listed = u64::try_from(self.ended.len()).unwrap_or(u64::MAX);
        BudgetRecord {
            minutes_before: self.ended_count.saturating_sub(listed),
            minutes: self.ended.iter().map(|minute| [minute.extra, minute.reactive]).collect(),
            since_on: [self.since_on.extra, self.since_on.reactive],
            running: [self.running.extra, self.running.reactive],
        }
    }

    /// Goes on from what was spent so many minutes ago. In the time between nothing was asked for: what a
    /// former owner asked for counts from [`Self::note_inherited`] on.
    pub(crate) fn restore(&mut self, record: &BudgetRecord, minutes_ago: u64) {
        let kept = usize::try_from(minutes_ago).map_or(0, |ago| MINUTES_SPENT_MAX.saturating_sub(ago));
        let skipped = record.minutes.len().saturating_sub(kept);
        let listed = record
            .minutes
            .iter()
            .skip(skipped)
            .map(|[extra, reactive]| MinutePods { extra: *extra, reactive: *reactive });
        let rest = minutes_ago.min(u64::try_from(MINUTES_SPENT_MAX).unwrap_or(u64::MAX));
        let between = (0..rest).map(|_| MinutePods::default());
        let ended: VecDeque<MinutePods> = listed.chain(between).collect();
        let mut day = PodSpending::default();
        for minute in &ended {
            day.extra += u64::from(minute.extra);
            day.reactive += u64::from(minute.reactive);
        }
        let listed = u64::try_from(record.minutes.len()).unwrap_or(u64::MAX);
        self.ended_count = record.minutes_before.saturating_add(listed).saturating_add(rest);
        self.ended = Arc::new(ended);
        self.day = day;
        let [extra, reactive] = record.since_on.map(|tenths| tenths.min(u64::MAX / 4));
        self.since_on = PodSpending { extra, reactive };
        // A minute that was cut off by the end of the former owner is part of the one that runs.
        let [extra, reactive] = record.running.map(|millis| millis.min(u64::from(u32::MAX)));
        self.running.extra = self.running.extra.saturating_add(extra);
        self.running.reactive = self.running.reactive.saturating_add(reactive);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.ended.capacity() * size_of::<MinutePods>()
    }

    /// Whether the rest of the minute that runs may have so many extra pods.
    fn has_room_for(&self, extra: u32) -> bool {
        let rest = millis(self.running_ends.saturating_since(self.checked));
        let planned = u64::from(extra).saturating_mul(rest);
        let day = self.window(planned);
        let since_on = PodSpending {
            extra: self.since_on.extra.saturating_add(tenths_up(self.running.extra.saturating_add(planned))),
            reactive: self.since_on.reactive.saturating_add(self.running.reactive / TENTH_MILLIS),
        };
        self.share.allows(day.extra, day.reactive) && self.share.allows(since_on.extra, since_on.reactive)
    }

    /// The tenths of pod-seconds of the last 24 hours, with so many extra pod-milliseconds to come.
    fn window(&self, planned: u64) -> PodSpending {
        // Of the oldest minute a part lies within the 24 hours. All of it counts as spent, and none of it as
        // class kpa's.
        let oldest = if self.ended.len() < MINUTES_SPENT_MAX { None } else { self.ended.front() };
        let outside = oldest.map_or(0, |minute| u64::from(minute.reactive));
        PodSpending {
            extra: self.day.extra + tenths_up(self.running.extra.saturating_add(planned)),
            reactive: self.day.reactive - outside + self.running.reactive / TENTH_MILLIS,
        }
    }

    /// Adds the time since the last check, in which the counts were what they are.
    fn advance(&mut self, now: Timestamp) {
        let mut rounds = 0;
        while now >= self.running_ends && rounds <= MINUTES_SPENT_MAX {
            self.run_until(self.running_ends);
            self.end_minute();
            rounds += 1;
        }
        if now >= self.running_ends {
            // Nothing was asked for more than a day. All minutes that are kept are alike by now.
            let skipped = millis(now.saturating_since(self.checked));
            let amount = |pods: u32| u64::from(pods).saturating_mul(skipped);
            let (extra, reactive) = (amount(self.rates.extra), amount(self.rates.reactive));
            self.since_on.extra = self.since_on.extra.saturating_add(tenths_up(extra));
            self.since_on.reactive = self.since_on.reactive.saturating_add(reactive / TENTH_MILLIS);
            self.running_ends = now + self.minute;
            self.checked = now;
        }
        self.run_until(now);
    }

    fn run_until(&mut self, now: Timestamp) {
        let elapsed = millis(now.saturating_since(self.checked));
        let add = |sum: u64, pods: u32| sum.saturating_add(u64::from(pods).saturating_mul(elapsed));
        self.running.extra = add(self.running.extra, self.rates.extra);
        self.running.reactive = add(self.running.reactive, self.rates.reactive);
        // A fraction of a millisecond stays for the next time.
        self.checked += Duration::from_millis(elapsed);
    }

    fn end_minute(&mut self) {
        let running = std::mem::take(&mut self.running);
        let ended = MinutePods {
            extra: u32::try_from(tenths_up(running.extra)).unwrap_or(u32::MAX),
            reactive: u32::try_from(running.reactive / TENTH_MILLIS).unwrap_or(u32::MAX),
        };
        self.ended_count = self.ended_count.saturating_add(1);
        let minutes = Arc::make_mut(&mut self.ended);
        if minutes.len() == MINUTES_SPENT_MAX
            && let Some(oldest) = minutes.pop_front()
        {
            self.day.extra -= u64::from(oldest.extra);
            self.day.reactive -= u64::from(oldest.reactive);
        }
        if minutes.len() == minutes.capacity() {
            minutes.reserve_exact(MINUTES_GROWN);
        }
        minutes.push_back(ended);
        for sums in [&mut self.day, &mut self.since_on] {
            sums.extra = sums.extra.saturating_add(u64::from(ended.extra));
            sums.reactive = sums.reactive.saturating_add(u64::from(ended.reactive));
        }
        self.running_ends += self.minute;
    }
}

fn tenths_up(pod_millis: u64) -> u64 {
    pod_millis.div_ceil(TENTH_MILLIS)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
