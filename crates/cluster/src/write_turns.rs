//! When may the next write of one object begin?
//!
//! After a rest two writes may begin at once, then one in each interval. After a failure the next write
//! waits, longer each time, whichever write it is: other objects are not disturbed, and this one's server has
//! rest.

use std::time::Duration;

use vocabulary::{Backoff, Timestamp};

/// The first and the largest wait after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// The times at which writes of one object may begin.
#[derive(Clone, Debug)]
pub(crate) struct WriteTurns {
    backoff: Backoff,
    /// Minimum interval between the beginnings of two writes; bursts of two.
    pause: Duration,
    /// The time up to which begun writes have used up the intervals (the theoretical arrival time of the
    /// generic cell rate algorithm).
    used_until: Timestamp,
    not_before: Timestamp,
}

impl WriteTurns {
    /// The times of an object that was not written yet.
    pub(crate) fn paced(pause: Duration) -> Self {
        Self {
            backoff: Backoff::new(BACKOFF.0, BACKOFF.1),
            pause,
            used_until: Timestamp::ZERO,
            not_before: Timestamp::ZERO,
        }
    }

    /// The earliest time at which a write may begin.
    pub(crate) fn next_turn(&self) -> Timestamp {
        self.not_before
    }

    /// A write begins, and uses up one interval.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        // The generic cell rate algorithm, for bursts of two.
        self.not_before = self.used_until.max(now);
        self.used_until = self.not_before + self.pause;
    }

    /// The write has ended, and is not tried again.
    pub(crate) fn ended(&mut self) {
        self.backoff.reset();
    }

    /// The write failed. The next write waits, for `at_least` if the server asked for more.
    pub(crate) fn failed(&mut self, at_least: Option<Duration>, now: Timestamp) {
        self.not_before = now + self.backoff.next_wait().max(at_least.unwrap_or_default());
    }

    /// Whether not even a pause is left, so that these times may be forgotten.
    pub(crate) fn are_over(&self, now: Timestamp) -> bool {
        now >= self.not_before.max(self.used_until)
    }
}
