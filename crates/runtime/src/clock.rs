//! The only place that reads a clock.

use std::time::{Duration, SystemTime};

use vocabulary::Timestamp;

/// This process's monotonic axis. All clones share one origin, and it follows tokio's paused time in tests.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: tokio::time::Instant,
}

impl Clock {
    /// A clock whose origin lies one hour back: windows reach into the past of a process that has just
    /// started, and an axis that begins at zero would cut them off.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Self {
        let now = tokio::time::Instant::now();
        Self { origin: now.checked_sub(Duration::from_secs(3600)).unwrap_or(now) }
    }

    /// The present time, counted from the origin of the clock.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_duration(tokio::time::Instant::now().saturating_duration_since(self.origin))
    }

    /// `at` on tokio's axis, for its timers.
    pub fn instant(&self, at: Timestamp) -> tokio::time::Instant {
        let since_origin = Duration::from_nanos(at.as_nanos());
        // Tokio's wheel ends after about two years; thirty years is its own idea of "far future".
        self.origin + since_origin.min(Duration::from_secs(86_400 * 365 * 30))
    }

    /// Waits until `at`; returns at once if that is past.
    pub async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.instant(at)).await;
    }
}

/// The wall-clock time, for people and peers. It jumps when the machine's clock is set, so no duration is
/// measured with it.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn wall_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sleeping_reaches_the_point_and_no_further() {
        let clock = Clock::start();
        let wake_at = clock.now() + Duration::from_millis(1500);
        clock.sleep_until(wake_at).await;
        assert_eq!(clock.now(), wake_at);
        clock.sleep_until(wake_at - Duration::from_secs(5)).await;
        assert_eq!(clock.now(), wake_at);
    }
}
