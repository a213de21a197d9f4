//! How long does a broken watch wait until it is begun again?

use std::time::Duration;

use kube::runtime::utils::Backoff as WatchBackoff;
use runtime::Backoff;

/// The first wait, and the longest one. kube's own waits grow to a minute: after an outage of the API
/// server, requests that wait for a pod would wait that much longer.
const WAITS: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(5));

/// The waits between attempts at a watch; they begin anew when the server answers.
pub(super) struct WatchWaits(Backoff);

impl WatchWaits {
    pub(super) fn new() -> Self {
        Self(Backoff::new(WAITS.0, WAITS.1))
    }
}

impl Iterator for WatchWaits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0.next_wait())
    }
}

impl WatchBackoff for WatchWaits {
    fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_an_outage_of_any_length_a_watch_is_begun_again_within_5_s() {
        let mut waits = WatchWaits::new();
        let outage: Vec<Duration> = waits.by_ref().take(100).collect();
        assert!(outage.iter().all(|wait| *wait <= Duration::from_secs(5)), "{outage:?}");
        assert!(outage.is_sorted(), "{outage:?}");
        waits.reset();
        assert_eq!(waits.next(), Some(WAITS.0));
    }
}
