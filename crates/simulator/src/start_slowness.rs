//! Starts of pods take longer for a while.

use vocabulary::Timestamp;

/// By how many times starts take longer, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartSlowness {
    times: u32,
    until: Timestamp,
}

impl StartSlowness {
    /// Starts take as long as they do.
    pub(crate) const NONE: Self = Self { times: 1, until: Timestamp::ZERO };

    /// Starts that begin before that time take so many times as long.
    pub(crate) fn until(until: Timestamp, times: u32) -> Self {
        Self { times, until }
    }

    /// The factor of a start that begins now.
    pub(crate) fn factor(self, now: Timestamp) -> u32 {
        if now < self.until { self.times } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_take_longer_until_it_is_over() {
        let slowness = StartSlowness::until(Timestamp::from_secs(9), 4);
        assert_eq!(slowness.factor(Timestamp::from_secs(8)), 4);
        assert_eq!(slowness.factor(Timestamp::from_secs(9)), 1);
        assert_eq!(StartSlowness::NONE.factor(Timestamp::ZERO), 1);
    }
}
