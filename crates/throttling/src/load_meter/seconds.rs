//! Which of a reporter's seconds have ended?
//!
//! A reporter numbers its seconds from its start and closes each as it ends. The task that does so may be
//! late: the machine was suspended, or had no core for it. What was measured since is then shared out over
//! all the seconds that have passed: averages are the same in each, arrivals are divided by their number. So
//! no second is missing (an average over a window counts a missing second as zero, as Knative's windows do)
//! and none says that three seconds' requests came in one, which an activator's or a pod's rate would panic
//! about.

use std::ops::Range;
use std::time::Duration;

use vocabulary::Timestamp;

/// How a reporter's time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReporterSeconds {
    started_at: Timestamp,
}

/// Seconds that ended since the last look; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSeconds {
    first: u64,
    next: u64,
}

impl ReporterSeconds {
    /// Second 0 begins at `started_at`.
    pub fn since(started_at: Timestamp) -> Self {
        Self { started_at }
    }

    /// The number of the second that `now` lies in.
    pub fn number_at(self, now: Timestamp) -> u64 {
        now.saturating_since(self.started_at).as_secs()
    }

    /// The time at which second number `second` begins.
    pub fn beginning_of(self, second: u64) -> Timestamp {
        self.started_at + Duration::from_secs(second)
    }

    /// The seconds that have ended by `now`, from `open` on, the first second that is not closed yet. A timer
    /// that fires early closes that one all the same.
    pub fn ended(self, open: u64, now: Timestamp) -> EndedSeconds {
        EndedSeconds { first: open, next: self.number_at(now).max(open.saturating_add(1)) }
    }
}

impl EndedSeconds {
    /// The number of seconds that have ended.
    pub fn count(self) -> u32 {
        u32::try_from(self.next - self.first).unwrap_or(u32::MAX)
    }

    /// The first that has not ended.
    pub fn next(self) -> u64 {
        self.next
    }

    /// Their numbers; of more than `kept` the latest.
    pub fn latest(self, kept: usize) -> Range<u64> {
        let kept = u64::try_from(kept).unwrap_or(u64::MAX);
        self.first.max(self.next.saturating_sub(kept))..self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_look_ends_every_second_that_has_passed_and_an_early_one_the_open_one() {
        let seconds = ReporterSeconds::since(Timestamp::from_millis(500));
        // The first second that is open at a time in milliseconds, and what has ended then.
        for (open, now, ended) in [
            (0, 1_500, 0..1),
            (0, 1_499, 0..1),
            (3, 4_600, 3..4),
            (3, 7_499, 3..6),
            (3, 7_500, 3..7),
            (9, 0, 9..10),
        ] {
            let found = seconds.ended(open, Timestamp::from_millis(now));
            assert_eq!(found.latest(60), ended, "{open} at {now}");
            assert_eq!((u64::from(found.count()), found.next()), (ended.end - ended.start, ended.end));
        }
        let found = seconds.ended(1, Timestamp::from_secs(3_600));
        assert_eq!(
            (found.latest(60), found.count()),
            (3_539..3_599, 3_598),
            "of an hour the last minute is kept"
        );
        assert_eq!(seconds.beginning_of(2), Timestamp::from_millis(2_500));
    }
}
