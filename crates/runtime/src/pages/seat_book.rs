//! Which connections have a place, what each of them has under way, and which of them makes room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, Semaphore};
use vocabulary::Timestamp;

use super::limits::{PageKind, PageLimits};
use crate::clock::Clock;

/// How long a connection rests at least before it is closed for another one: its request may be on its way.
/// Longer would let a flood of connections keep others waiting in the kernel.
const SETTLING_TIME: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Places {
    pub(super) limits: PageLimits,
    pub(super) clock: Clock,
    /// Probes are never refused while they are answered at all: they wait here for their turn.
    pub(super) probe_turns: Arc<Semaphore>,
    book: Mutex<SeatBook>,
    /// A connection has left, or a place may be taken by another connection.
    pub(super) changed: Notify,
}

/// Every connection that has a place.
#[derive(Debug, Default)]
pub(super) struct SeatBook {
    last: u64,
    pub(super) seats: BTreeMap<u64, SeatRecord>,
}

/// The record of one connection.
#[derive(Debug)]
pub(super) struct SeatRecord {
    pub(super) requests: RequestCounts,
    /// Since when it has had no request, or has taken nothing of the last answer.
    pub(super) resting_since: Timestamp,
    /// When the first byte of a head came whose end has not come.
    pub(super) head_since: Option<Timestamp>,
    /// Since when it has taken nothing of what is written to it.
    pub(super) stalled_since: Option<Timestamp>,
    /// Another one needs its place. A request that has come meanwhile takes that back.
    pub(super) is_dismissed: bool,
    /// Wakes the task that serves the connection.
    pub(super) task: Arc<AtomicWaker>,
}

/// The requests of one connection that are under way. HTTP/2 has several at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestCounts {
    probes: usize,
    ordinary: usize,
    long_reads: usize,
    own_long_reads: usize,
}

impl RequestCounts {
    pub(super) fn of(&mut self, kind: PageKind) -> &mut usize {
        match kind {
            PageKind::Probe => &mut self.probes,
            PageKind::Ordinary => &mut self.ordinary,
            PageKind::LongRead => &mut self.long_reads,
            PageKind::OwnLongRead => &mut self.own_long_reads,
        }
    }

    pub(super) fn is_resting(self) -> bool {
        self == Self::default()
    }

    /// Its connection is counted among long reads, and among nothing else.
    fn is_long_read(self) -> bool {
        self.long_reads + self.own_long_reads > 0 && self.ordinary == 0 && self.probes == 0
    }
}

impl SeatBook {
    /// How many requests of this kind are under way.
    pub(super) fn under_way(&self, kind: PageKind) -> usize {
        self.seats
            .values()
            .map(|seat| {
                let mut requests = seat.requests;
                *requests.of(kind)
            })
            .sum()
    }

    fn connections(&self) -> usize {
        self.seats.values().filter(|seat| !seat.requests.is_long_read()).count()
    }

    fn has_dismissed(&self) -> bool {
        self.seats.values().any(|seat| seat.is_dismissed)
    }

    fn oldest_resting(&mut self) -> Option<&mut SeatRecord> {
        let resting = self.seats.values_mut().filter(|seat| seat.requests.is_resting());
        resting.min_by_key(|seat| seat.resting_since)
    }
}

/// Why a newcomer has no place yet.
pub(super) enum NoPlace {
    /// Something has to change first.
    Yet,
    /// By then another one has rested for long enough.
    Until(Timestamp),
}

impl Places {
    pub(super) fn new(limits: PageLimits, clock: Clock) -> Self {
        let probe_turns = Arc::new(Semaphore::new(limits.probes));
        let (book, changed) = (Mutex::default(), Notify::new());
        Self { limits, clock, probe_turns, book, changed }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, SeatBook> {
        // Nothing panics while it is held.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn try_take(&self) -> Result<u64, NoPlace> {
        let now = self.clock.now();
        let mut book = self.book();
        let connections = book.connections();
        if connections >= self.limits.connections {
            // One goes for each that comes. It is gone in a moment.
            if book.has_dismissed() {
                return Err(NoPlace::Yet);
            }
            let oldest = book.oldest_resting();
            if let Some(oldest) = oldest.filter(|seat| now >= seat.resting_since + SETTLING_TIME) {
                oldest.is_dismissed = true;
                oldest.task.wake();
                return Err(NoPlace::Yet);
            }
            // All have something to do, or have just come. The next one may be a probe, which shows only once
            // it has been heard.
            if connections >= self.limits.connections + self.limits.probes {
                let oldest = book.oldest_resting().map(|seat| seat.resting_since + SETTLING_TIME);
                return Err(oldest.map_or(NoPlace::Yet, NoPlace::Until));
            }
        }
        book.last += 1;
        let number = book.last;
        let seat = SeatRecord {
            requests: RequestCounts::default(),
            resting_since: now,
            head_since: None,
            stalled_since: None,
            is_dismissed: false,
            task: Arc::new(AtomicWaker::new()),
        };
        book.seats.insert(number, seat);
        Ok(number)
    }
}
