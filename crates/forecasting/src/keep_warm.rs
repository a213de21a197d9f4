//! One pod at hand while requests rest: the last one stays, or another is started before the next request.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, Timestamp};

use crate::idle_gaps::{IdleGaps, WarmInterval, WarmTerms};
use crate::look_ahead::ForecastPace;
use crate::record::WarmRecord;
use crate::warm_ledger::WarmLedger;

/// Whether a pod is kept warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmAnswer {
    /// As class kpa decides: it has a pod, or none is worth what it costs.
    AsReactive,
    /// One pod is kept or started.
    OnePod,
    /// One would be, but the limit of what warm pods cost is reached.
    Spent,
}

/// The gaps of a revision, and the pod that bridges them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeepWarm {
    pace: ForecastPace,
    gaps: IdleGaps,
    interval: Option<WarmInterval>,
    /// When the last request ended; `None` while one is in flight or waits.
    idle_since: Option<Timestamp>,
    /// When the pod that is kept warm is ready, or was.
    warm_at: Option<Timestamp>,
    /// What class kpa asked for at the last decision.
    reactive: PodCount,
    ledger: WarmLedger,
}

impl KeepWarm {
    /// No gap was seen yet, and no request is in flight.
    pub fn new(pace: ForecastPace, now: Timestamp) -> Self {
        Self {
            pace,
            gaps: IdleGaps::default(),
            interval: None,
            idle_since: None,
            warm_at: None,
            reactive: PodCount::ZERO,
            ledger: WarmLedger::new(pace, now),
        }
    }

    /// The last request in flight has ended, and none waits.
    pub fn note_idle(&mut self, now: Timestamp) {
        self.idle_since.get_or_insert(now);
    }

    /// A request has come, so a gap has ended if there was one.
    pub fn note_request(&mut self, now: Timestamp, terms: &WarmTerms) {
        self.ledger.advance(now);
        let Some(since) = self.idle_since.take() else { return };
        let is_warm = self.warm_at.take().is_some_and(|warm_at| warm_at <= now);
        if is_warm && self.reactive == PodCount::ZERO {
            self.ledger.note_avoided();
        }
        // A pod that class kpa keeps needs no forecast, and its gaps would displace those that do.
        let minutes = self.minutes_since(since, now);
        if minutes > 0 && usize::try_from(minutes).is_ok_and(|minutes| minutes >= terms.kept_anyway) {
            self.gaps.note(minutes);
            self.interval = self.gaps.interval(terms);
        }
        self.ledger.rest();
    }

    /// Class kpa asks for so many pods. Says whether one is kept warm until something happens, or until
    /// [`Self::next_deadline`] at the latest.
    pub fn decide(&mut self, now: Timestamp, reactive: PodCount, terms: &WarmTerms) -> WarmAnswer {
        self.ledger.advance(now);
        let answer = self.answer(now, reactive, terms);
        match answer {
            WarmAnswer::OnePod => {
                self.ledger.spend();
                // A pod that was there stays as it is; another one has to start.
                let start = self.pace.minute() * u32::try_from(terms.look_ahead).unwrap_or(u32::MAX);
                let ready_in = if self.reactive > PodCount::ZERO { Duration::ZERO } else { start };
                self.warm_at.get_or_insert(now + ready_in);
            }
            WarmAnswer::AsReactive | WarmAnswer::Spent => {
                self.ledger.rest();
                self.warm_at = None;
            }
        }
        self.reactive = reactive;
        answer
    }

    /// When the next decision is due, if nothing happens before.
    pub fn next_deadline(&self) -> Timestamp {
        let edges = self.idle_since.zip(self.interval).map(|(since, interval)| {
            [interval.from, interval.to.saturating_add(1)]
                .map(|minutes| since + self.pace.minute() * u32::try_from(minutes).unwrap_or(u32::MAX))
        });
        let later = edges.into_iter().flatten().filter(|edge| *edge > self.ledger.checked());
        later.fold(self.ledger.minute_ends(), Timestamp::min)
    }

    /// The cold starts that warm pods avoided in the last 24 hours.
    pub fn avoided(&self) -> u32 {
        self.ledger.avoided()
    }

    /// The minutes of a gap in which a pod is kept warm; `None` as long as class kpa decides alone.
    pub const fn interval(&self) -> Option<WarmInterval> {
        self.interval
    }

    /// The gaps and what warm pods came to, as they are written down.
    pub fn record(&self) -> WarmRecord {
        WarmRecord { gaps: self.gaps.minutes(), ..self.ledger.record() }
    }

    /// Goes on from what was written down so many minutes ago.
    pub fn restore(&mut self, record: &WarmRecord, minutes_ago: u64, terms: &WarmTerms) {
        self.gaps = IdleGaps::default();
        for minutes in &record.gaps {
            self.gaps.note(u64::from(*minutes));
        }
        self.interval = self.gaps.interval(terms);
        self.ledger.restore(record, minutes_ago);
    }

    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.gaps.heap_bytes() + self.ledger.heap_bytes()
    }

    fn answer(&self, now: Timestamp, reactive: PodCount, terms: &WarmTerms) -> WarmAnswer {
        let Some((since, interval)) = self.idle_since.zip(self.interval) else {
            return WarmAnswer::AsReactive;
        };
        if reactive > PodCount::ZERO || !interval.holds_at(self.minutes_since(since, now)) {
            WarmAnswer::AsReactive
        } else if self.ledger.has_room(terms.worth) {
            WarmAnswer::OnePod
        } else {
            WarmAnswer::Spent
        }
    }

    fn minutes_since(&self, since: Timestamp, now: Timestamp) -> u64 {
        self.pace.minute_at(now.saturating_since(since))
    }
}
