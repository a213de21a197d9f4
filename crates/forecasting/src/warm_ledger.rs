//! The limit of what warm pods cost: pod-minutes stay within the worth of the cold starts that they avoided.
//!
//! *The promise*: the pod-minutes of any 24 hours are at most the worth of the cold starts that were avoided
//! in the 24 hours that ended when the last of them was spent, and of three more. As with the budget of
//! prediction, the oldest hour counts as spent, and not as avoided.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::Timestamp;

use crate::look_ahead::ForecastPace;
use crate::record::WarmRecord;

const HOURS_OF_DAY: usize = 24;
const MINUTES_OF_HOUR: u32 = 60;
/// A day and an hour: whatever happened before is forgotten.
const MINUTES_ADVANCED_MAX: u32 = 25 * 60;
/// Cold starts that may be paid for before one was avoided.
const AVOIDED_IN_ADVANCE: u32 = 3;

/// What happened within an hour.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct WarmHour {
    spent_millis: u32,
    avoided: u32,
}

/// The pod-minutes and the avoided cold starts of the last 24 hours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WarmLedger {
    minute: Duration,
    /// The hours that have ended, the oldest first.
    ended: VecDeque<WarmHour>,
    running: WarmHour,
    /// The minutes of the hour that runs which have ended.
    minutes_ended: u32,
    minute_ends: Timestamp,
    checked: Timestamp,
    is_spending: bool,
}

impl WarmLedger {
    pub(crate) fn new(pace: ForecastPace, now: Timestamp) -> Self {
        Self {
            minute: pace.minute(),
            ended: VecDeque::new(),
            running: WarmHour::default(),
            minutes_ended: 0,
            minute_ends: now + pace.minute(),
            checked: now,
            is_spending: false,
        }
    }

    /// A pod is kept warm from now on.
    pub(crate) fn spend(&mut self) {
        self.is_spending = true;
    }

    /// No pod is kept warm from now on.
    pub(crate) fn rest(&mut self) {
        self.is_spending = false;
    }

    pub(crate) fn note_avoided(&mut self) {
        self.running.avoided = self.running.avoided.saturating_add(1);
    }

    /// The cold starts that were avoided in the last 24 hours.
    pub(crate) fn avoided(&self) -> u32 {
        // Of the oldest hour a part lies within the 24 hours, and none of it counts.
        let outside = usize::from(self.ended.len() == HOURS_OF_DAY);
        let ended = self.ended.iter().skip(outside).map(|hour| hour.avoided);
        ended.fold(self.running.avoided, u32::saturating_add)
    }

    /// Whether a pod may be kept warm until [`Self::minute_ends`], at this worth of a cold start in minutes.
    pub(crate) fn has_room(&self, worth: f64) -> bool {
        let planned = millis(self.minute_ends.saturating_since(self.checked));
        let spent = self.ended.iter().map(|hour| hour.spent_millis);
        let spent = spent.fold(self.running.spent_millis.saturating_add(planned), u32::saturating_add);
        let paid_for = f64::from(self.avoided().saturating_add(AVOIDED_IN_ADVANCE));
        f64::from(spent) <= worth * paid_for * f64::from(millis(self.minute))
    }

    /// When the next decision is due at the latest.
    pub(crate) const fn minute_ends(&self) -> Timestamp {
        self.minute_ends
    }

    pub(crate) const fn checked(&self) -> Timestamp {
        self.checked
    }

    /// The hours as they are written down; the record has no gaps.
    pub(crate) fn record(&self) -> WarmRecord {
        let pair = |hour: &WarmHour| [hour.spent_millis, hour.avoided];
        WarmRecord {
            gaps: Vec::new(),
            hours: self.ended.iter().map(pair).collect(),
            running: pair(&self.running),
            minutes_ended: self.minutes_ended,
        }
    }

    /// Goes on from hours that were written down so many minutes ago.
    pub(crate) fn restore(&mut self, record: &WarmRecord, minutes_ago: u64) {
        let hour = |[spent_millis, avoided]: [u32; 2]| WarmHour { spent_millis, avoided };
        self.ended = record.hours.iter().rev().take(HOURS_OF_DAY).rev().copied().map(hour).collect();
        self.running = hour(record.running);
        self.minutes_ended = record.minutes_ended.min(MINUTES_OF_HOUR - 1);
        for _ in 0..minutes_ago.min(MINUTES_ADVANCED_MAX.into()) {
            self.end_minute();
        }
        // The minutes that were ended lie before this owner began.
        self.minute_ends = self.checked + self.minute;
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.ended.capacity() * size_of::<WarmHour>()
    }

    /// Adds the time since the last check.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let mut rounds = 0;
        while now >= self.minute_ends && rounds < MINUTES_ADVANCED_MAX {
            self.run_until(self.minute_ends);
            self.end_minute();
            rounds += 1;
        }
        if now >= self.minute_ends {
            self.minute_ends = now + self.minute;
            self.checked = now;
        }
        self.run_until(now);
    }

    fn run_until(&mut self, now: Timestamp) {
        let elapsed = millis(now.saturating_since(self.checked));
        if self.is_spending {
            self.running.spent_millis = self.running.spent_millis.saturating_add(elapsed);
        }
        self.checked += Duration::from_millis(u64::from(elapsed));
    }

    fn end_minute(&mut self) {
        self.minute_ends += self.minute;
        self.minutes_ended += 1;
        if self.minutes_ended == MINUTES_OF_HOUR {
            self.minutes_ended = 0;
            if self.ended.len() == HOURS_OF_DAY {
                self.ended.pop_front();
            }
            self.ended.push_back(std::mem::take(&mut self.running));
        }
    }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
