//! How long did requests wait?
//!
//! A count for each bucket of time, in which the longest wait is less than one part in 128 longer than the
//! shortest. So the waits of any number of requests take a few kilobytes, and a percentile is right to a
//! hundredth of itself.

use std::time::Duration;

use crate::random::span_of;
use crate::rounding::real;

/// Each power of two has 2^7 buckets.
const STEP_BITS: u32 = 7;
const STEPS: u64 = 1 << STEP_BITS;

/// The waits of many requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitHistogram {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
    /// All waits together, in seconds.
    sum: f64,
}

impl WaitHistogram {
    pub(crate) fn add(&mut self, wait: Duration) {
        self.add_many(wait, 1);
    }

    /// So many requests waited as long.
    pub(crate) fn add_many(&mut self, wait: Duration, requests: u64) {
        if requests == 0 {
            return;
        }
        let place = bucket_of(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += requests;
        self.total += requests;
        self.sum += wait.as_secs_f64() * real(requests);
        self.longest = self.longest.max(wait);
    }

    /// The longest wait of so many in a thousand requests, those with the shortest waits; zero for no
    /// request.
    pub(crate) fn of_thousand(&self, requests: u64) -> Duration {
        let rank = self.total.saturating_mul(requests).div_ceil(1000).max(1);
        let mut seen = 0;
        for (place, count) in (0_u64..).zip(&self.counts) {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(longest_in(place)).min(self.longest);
            }
        }
        self.longest
    }

    /// The mean wait; zero for no request.
    pub(crate) fn mean(&self) -> Duration {
        span_of(self.sum / real(self.total.max(1)))
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// The number of requests that were added.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

/// The place of the bucket of so many nanoseconds: the seven binary digits behind the first one, counted on
/// from power to power.
fn bucket_of(nanoseconds: u64) -> usize {
    let digits = u64::BITS - nanoseconds.leading_zeros();
    let shift = digits.saturating_sub(STEP_BITS + 1);
    let place = u64::from(shift) * STEPS + (nanoseconds >> shift);
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// The most nanoseconds that fall into a bucket.
fn longest_in(place: u64) -> u64 {
    let shift = (place / STEPS).saturating_sub(1);
    let first_digits = place - shift * STEPS;
    // The last bucket of all ends where 64 bits end.
    ((first_digits + 1) << shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_found_again_and_is_narrow() {
        for nanoseconds in (0..2_000).chain([12_345_678, 999_999_999_999, u64::MAX / 2, u64::MAX]) {
            let place = u64::try_from(bucket_of(nanoseconds)).expect("64 bits");
            let longest = longest_in(place);
            assert!(longest >= nanoseconds, "{nanoseconds} in a bucket up to {longest}");
            assert!(
                longest - nanoseconds <= nanoseconds / STEPS,
                "{nanoseconds} in a bucket up to {longest}"
            );
        }
    }

    #[test]
    fn percentiles_are_those_of_the_waits() {
        let mut waits = WaitHistogram::default();
        assert_eq!(waits.of_thousand(500), Duration::ZERO);
        for milliseconds in 1..=1_000 {
            waits.add(Duration::from_millis(milliseconds));
        }
        for (requests, milliseconds) in [(500, 500.0), (950, 950.0), (990, 990.0), (1_000, 1_000.0)] {
            let found = waits.of_thousand(requests).as_secs_f64() * 1_000.0;
            assert!((found - milliseconds).abs() <= milliseconds / 100.0, "{requests}: {found} ms");
        }
        assert_eq!(waits.mean(), Duration::from_micros(500_500));
        assert_eq!((waits.longest(), waits.total()), (Duration::from_secs(1), 1_000));
    }
}
