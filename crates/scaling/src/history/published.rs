//! How does a reader find the past of a revision without a word to the multiscaler that measures it?
//!
//! The multiscaler gives out a reference to the history. The reader and the multiscaler then share all of it,
//! until the multiscaler writes the next second: that copies the numbers of the running minute and hour and
//! the block of seconds that is being written, about 1.5 KB. Blocks that have ended, nearly all of a history,
//! are never copied. A history that rests is not written, so the copy of a reader is all that there is of it,
//! and the reader adds the rest until now to a copy of its own.

use std::sync::Arc;
use std::time::Duration;

use vocabulary::Timestamp;

use super::clock::WallClock;
use super::demand_days::DemandDays;
use super::facts::{DemandSeconds, RevisionCondition};
use super::ledger::RevisionLedger;
use super::record::HistoryRecord;
use super::revision::{HOUR, RevisionHistory};
use super::series::{Series, SeriesRange};
use super::totals::LifeTotals;
use crate::window::SecondSums;

/// The history of a revision as it was when it was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedHistory {
    history: Arc<RevisionHistory>,
    clock: WallClock,
    /// The condition of a revision that rests: nothing is asked for, and nothing has changed since the last
    /// second that the history was told of. `None` while the multiscaler measures.
    rest: Option<RevisionCondition>,
}

impl PublishedHistory {
    pub(crate) fn new(
        history: Arc<RevisionHistory>,
        clock: WallClock,
        rest: Option<RevisionCondition>,
    ) -> Self {
        Self { history, clock, rest }
    }

    /// The newest part of the history. It ends with the last second that is closed: at rest three seconds
    /// ago, else as much earlier as the history was published before `now`.
    pub fn series(&self, range: SeriesRange, now: Timestamp) -> Series {
        let second = self.clock.second_at(now);
        let series = self.up_to(second).series(range);
        let first_ago = Duration::from_secs(second.saturating_sub(series.first_second));
        Series { first_ago, ..series }
    }

    /// What the revision came to in the hours that lie within `since` before `now`, the first of them as a
    /// whole: the hours of a history are not divided.
    pub fn ledger(&self, since: Duration, now: Timestamp) -> RevisionLedger {
        let second = self.clock.second_at(now);
        let first_hour = second.saturating_sub(since.as_secs()) / HOUR;
        self.up_to(second).ledger_since(first_hour, second)
    }

    /// What the revision has come to by `now` since this process measures it.
    pub fn totals(&self, now: Timestamp) -> LifeTotals {
        let Some(condition) = self.rest else { return self.history.totals() };
        let second = self.clock.second_at(now);
        let rested = self.history.totals_after_rest(second, condition);
        rested.unwrap_or_else(|| self.up_to(second).totals())
    }

    /// The history as it is written down at `now`.
    pub fn record(&self, now: Timestamp) -> HistoryRecord {
        self.up_to(self.clock.second_at(now)).export()
    }

    /// The part of the record that has come since this second since 1970.
    pub fn record_since(&self, second: u64, now: Timestamp) -> HistoryRecord {
        self.up_to(self.clock.second_at(now)).export_since(second)
    }

    /// The demand of the past fifteen days; `None` unless it is kept.
    pub fn demand(&self) -> Option<&DemandDays> {
        self.history.demand()
    }

    /// The second since 1970 that runs at `now`.
    pub fn second_at(&self, now: Timestamp) -> u64 {
        self.clock.second_at(now)
    }

    /// A copy with the rest since the history was published.
    fn up_to(&self, second: u64) -> RevisionHistory {
        let mut history = RevisionHistory::clone(&self.history);
        if let Some(condition) = self.rest {
            let quiet = DemandSeconds { at: &|_| SecondSums::default(), reported: 0..0 };
            history.advance(second, condition, &quiet);
        }
        history
    }
}
