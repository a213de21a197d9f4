//! A point on ebb's own monotonic axis, writable as a literal in a test.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since an origin that the process chose at start (`runtime`'s clock) or a test
/// made up.
///
/// Arithmetic saturates at both ends, so a clock that misbehaves can delay a decision but never panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin of the axis.
    pub const ZERO: Self = Self(0);
    /// The last representable point, "never" as a deadline.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `seconds` after the origin.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// The point `milliseconds` after the origin.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// The point `nanoseconds` after the origin.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// The point `elapsed` after the origin.
    pub fn from_duration(elapsed: Duration) -> Self {
        Self(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Whole seconds since the origin, rounded down: the bucket that this point falls into.
    pub const fn whole_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Nanoseconds since the origin of the process's time.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The same point, or the next one that is a whole number of `steps` after the origin; without end for
    /// steps of nothing.
    #[must_use]
    pub fn rounded_up(self, steps: Duration) -> Self {
        let steps = u64::try_from(steps.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.checked_next_multiple_of(steps).unwrap_or(u64::MAX))
    }

    /// How much later `self` is than `earlier`; zero if it is not.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// How much later `self` is than `earlier`, or `None` if it is before it.
    pub fn checked_since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, later: Duration) {
        *self = *self + later;
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(earlier.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:03}s", self.whole_secs(), (self.0 / 1_000_000) % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_between_two_steps_is_rounded_up_and_one_on_a_step_stays() {
        let rounded = |at: u64, steps: u64| {
            Timestamp::from_millis(at).rounded_up(Duration::from_millis(steps)).as_nanos() / 1_000_000
        };
        assert_eq!(
            [rounded(0, 500), rounded(1, 500), rounded(500, 500), rounded(501, 500)],
            [0, 500, 500, 1000]
        );
        assert_eq!(Timestamp::MAX.rounded_up(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::from_secs(1).rounded_up(Duration::ZERO), Timestamp::MAX);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::from_secs(1) - Duration::from_secs(2), Timestamp::ZERO);
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
        assert_eq!(Timestamp::from_secs(1).saturating_since(Timestamp::from_secs(2)), Duration::ZERO);
        assert_eq!(Timestamp::from_secs(1).checked_since(Timestamp::from_secs(2)), None);
    }

    #[test]
    fn whole_seconds_round_down() {
        assert_eq!(Timestamp::from_millis(3999).whole_secs(), 3);
        assert_eq!(Timestamp::from_millis(3999).to_string(), "3.999s");
    }
}
