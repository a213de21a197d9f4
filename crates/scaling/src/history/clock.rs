//! The place of the wall clock beside the monotonic axis.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::Timestamp;

/// A difference up to this is how clocks run, and moves nothing.
const TOLERATED_DRIFT_SECONDS: u64 = 2;

/// Says which second since 1970 a point of the monotonic axis lies in. Whole seconds of both agree, so that a
/// second of the windows is a second of the history; the wall clock's fraction is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallClock {
    /// The second since 1970 in which the monotonic axis begins.
    origin: u64,
}

impl WallClock {
    /// The clock that shows `since_epoch` at `now`.
    pub fn showing(since_epoch: Duration, now: Timestamp) -> Self {
        Self { origin: since_epoch.as_secs().saturating_sub(now.whole_secs()) }
    }

    /// The second since 1970 that runs at `now`.
    pub fn second_at(self, now: Timestamp) -> u64 {
        self.origin.saturating_add(now.whole_secs())
    }

    /// Whether a clock was read at all.
    pub(crate) fn is_read(self) -> bool {
        self != Self::default()
    }

    /// The point of the monotonic axis at which a second since 1970 begins.
    pub(crate) fn moment_of(self, second: u64) -> Timestamp {
        Timestamp::from_secs(self.monotonic(second))
    }

    /// The second of the monotonic axis that is a second since 1970.
    pub(crate) fn monotonic(self, second: u64) -> u64 {
        second.saturating_sub(self.origin)
    }

    /// The second since 1970 that is a second of the monotonic axis.
    pub(crate) fn wall(self, second: u64) -> u64 {
        self.origin.saturating_add(second)
    }

    /// Whether another clock shows another time, beyond how clocks run.
    pub(crate) fn differs_from(self, other: Self) -> bool {
        self.origin.abs_diff(other.origin) > TOLERATED_DRIFT_SECONDS
    }
}
