//! How long to wait before the next attempt.

use std::time::Duration;

/// Doubles from a least to a largest wait.
#[derive(Clone, Debug)]
pub struct Backoff {
    least: Duration,
    largest: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts at `least`; never exceeds `largest`.
    pub const fn new(least: Duration, largest: Duration) -> Self {
        Self { least, largest, next: least }
    }

    /// The same where attempts were made before: the next wait is this one, as far as it is allowed.
    #[must_use]
    pub fn continued(self, next: Duration) -> Self {
        Self { next: next.clamp(self.least, self.largest), ..self }
    }

    /// How long the next wait will be.
    pub fn upcoming(&self) -> Duration {
        self.next
    }

    /// The wait before the next attempt; each call doubles the following one.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next.min(self.largest);
        self.next = wait.saturating_mul(2).min(self.largest);
        wait
    }

    /// An attempt succeeded: begin at the least wait again.
    pub fn reset(&mut self) {
        self.next = self.least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_largest_and_starts_over_after_success() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(70));
        let waits: Vec<u128> = (0..5).map(|_| backoff.next_wait().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 70, 70]);
        backoff.reset();
        assert_eq!(backoff.next_wait().as_millis(), 10);
    }

    #[test]
    fn goes_on_where_another_one_was() {
        let new = || Backoff::new(Duration::from_millis(10), Duration::from_millis(70));
        let mut first = new();
        first.next_wait();
        let mut second = new().continued(first.upcoming());
        assert_eq!([first.next_wait(), second.next_wait()].map(|wait| wait.as_millis()), [20, 20]);
        assert_eq!(new().continued(Duration::MAX).upcoming().as_millis(), 70);
        assert_eq!(new().continued(Duration::ZERO).upcoming().as_millis(), 10);
    }
}
