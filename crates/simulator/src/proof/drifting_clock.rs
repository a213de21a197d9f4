//! What time is it for a process whose clock runs too fast or too slow?

use vocabulary::Timestamp;

use super::fault::{ACTIVATORS, OWNERS};

const MILLION: u64 = 1_000_000;

/// A clock that was right once, and gains or loses since then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriftingClock {
    was_right_at: Timestamp,
    drift: ClockDrift,
}

/// By how much a clock is wrong: in parts per million of the time that passes, and less than all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockDrift {
    Gains(u32),
    Loses(u32),
}

impl ClockDrift {
    pub(crate) const NONE: Self = Self::Gains(0);
}

/// How wrong the clocks are. Pods take the last ones in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntityDrifts {
    pub(crate) owners: [ClockDrift; OWNERS],
    pub(crate) activators: [ClockDrift; ACTIVATORS],
    pub(crate) pods: [ClockDrift; 3],
}

impl EntityDrifts {
    pub(crate) const NONE: Self = Self {
        owners: [ClockDrift::NONE; OWNERS],
        activators: [ClockDrift::NONE; ACTIVATORS],
        pods: [ClockDrift::NONE; 3],
    };
}

impl DriftingClock {
    pub(crate) fn new(was_right_at: Timestamp, drift: ClockDrift) -> Self {
        Self { was_right_at, drift }
    }

    /// The time that the clock shows.
    pub(crate) fn read(self, now: Timestamp) -> Timestamp {
        let passed = now.as_nanos().saturating_sub(self.was_right_at.as_nanos());
        match self.drift {
            ClockDrift::Gains(parts) => Timestamp::from_nanos(now.as_nanos() + share(passed, parts)),
            ClockDrift::Loses(parts) => Timestamp::from_nanos(now.as_nanos() - share(passed, parts)),
        }
    }

    /// The first moment at which the clock shows that time or a later one.
    pub(crate) fn moment_of(self, shown: Timestamp) -> Timestamp {
        let Some(passed) = shown.as_nanos().checked_sub(self.was_right_at.as_nanos()) else { return shown };
        if shown == Timestamp::MAX || self.drift == ClockDrift::NONE {
            return shown;
        }
        let rate = match self.drift {
            ClockDrift::Gains(parts) => MILLION + u64::from(parts),
            ClockDrift::Loses(parts) => MILLION - u64::from(parts),
        };
        // Rounded down by less than two nanoseconds, which the loop adds again.
        let guess = quotient(passed, rate).saturating_sub(2);
        let mut moment = Timestamp::from_nanos(self.was_right_at.as_nanos().saturating_add(guess));
        while self.read(moment) < shown {
            moment = Timestamp::from_nanos(moment.as_nanos() + 1);
        }
        moment
    }
}

/// So many millionths of a number of nanoseconds, rounded down.
fn share(nanoseconds: u64, parts: u32) -> u64 {
    let parts = u64::from(parts);
    nanoseconds / MILLION * parts + nanoseconds % MILLION * parts / MILLION
}

/// A million times so many nanoseconds over the rate, rounded down, and at most the greatest number. Each
/// word and each second of a world asks for it, and a division of 128 bits takes several times as long.
fn quotient(nanoseconds: u64, rate: u64) -> u64 {
    let (whole, rest) = (nanoseconds / rate, nanoseconds % rate);
    whole.saturating_mul(MILLION).saturating_add(rest * MILLION / rate)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_gains_and_loses_in_proportion_to_the_time_that_passes() {
        let right = Timestamp::from_secs(100);
        let later = right + Duration::from_secs(1_000);
        let fast = DriftingClock::new(right, ClockDrift::Gains(500));
        let slow = DriftingClock::new(right, ClockDrift::Loses(500));
        assert_eq!(fast.read(right), right);
        assert_eq!(fast.read(later), later + Duration::from_millis(500));
        assert_eq!(slow.read(later), later - Duration::from_millis(500));
    }

    #[test]
    fn the_moment_of_a_time_is_the_first_at_which_the_clock_shows_it() {
        let right = Timestamp::from_secs(100);
        for drift in [ClockDrift::NONE, ClockDrift::Gains(777), ClockDrift::Loses(777)] {
            let clock = DriftingClock::new(right, drift);
            for nanoseconds in [0, 1, 999, 1_287_001, 1_000_000_007, 3_600_000_000_001] {
                let shown = right + Duration::from_nanos(nanoseconds);
                let moment = clock.moment_of(shown);
                assert!(clock.read(moment) >= shown, "{drift:?} {nanoseconds}");
                let before = moment - Duration::from_nanos(1);
                assert!(moment == right || clock.read(before) < shown, "{drift:?} {nanoseconds}");
            }
            assert_eq!(clock.moment_of(Timestamp::ZERO), Timestamp::ZERO);
            assert_eq!(clock.moment_of(Timestamp::MAX), Timestamp::MAX);
        }
    }

    #[test]
    fn a_quotient_is_that_of_as_many_bits_as_it_takes() {
        for rate in [1, 995_000, 1_000_000, 1_004_999, 1_999_999] {
            for nanoseconds in [0, 1, rate - 1, rate, rate + 1, 86_400_000_000_007, u64::MAX / 2, u64::MAX] {
                let wide = u128::from(nanoseconds) * u128::from(MILLION) / u128::from(rate);
                let expected = u64::try_from(wide).unwrap_or(u64::MAX);
                assert_eq!(quotient(nanoseconds, rate), expected, "{nanoseconds} at {rate}");
            }
        }
    }
}
