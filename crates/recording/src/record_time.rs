//! A point in time of a record: on the axis of its process, and as people say it.

use std::time::Duration;

use vocabulary::Timestamp;

/// A point in time of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordTime {
    /// The time on the axis of the process that was recorded.
    pub at: Timestamp,
    /// The time since the beginning of 1970, by the clock of its machine.
    pub wall: Duration,
}

/// The wall clock as it was read last, from which other times follow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClockReading {
    read_at: Timestamp,
    since_epoch: Duration,
}

impl WallClockReading {
    pub(crate) fn new(read_at: Timestamp, since_epoch: Duration) -> Self {
        Self { read_at, since_epoch }
    }

    /// The point in time at which the axis of the process says `at`.
    pub(crate) fn time_of(self, at: Timestamp) -> RecordTime {
        RecordTime { at, wall: self.since_epoch + at.saturating_since(self.read_at) }
    }
}
