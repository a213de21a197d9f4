//! How long may a pod take to end? One rule for the program that drains, the one that waits for that, and the
//! one that ends what does not.

use std::time::Duration;

use crate::assignment::RequestTimeouts;

/// How long requests without a timeout may take in a pod that leaves, where `drain-limit` does not say: as
/// long as Knative's default lets requests take that have one.
pub const DRAIN_LIMIT_DEFAULT: Duration = Duration::from_secs(300);
/// How long a pod that leaves may still be sent new connections: 30 s at most for the owner's word that no
/// route names it any more (longer than a lease, so that a new owner can say it), and 5 s more for the nodes
/// to hear of that.
pub const DRAIN_ACCEPTS_MAX: Duration = Duration::from_secs(35);
/// What a drain has beyond its longest request: that may come as late as connections are accepted, and 10 s
/// for all that is not the request itself.
pub const DRAIN_RESERVE: Duration = Duration::from_secs(DRAIN_ACCEPTS_MAX.as_secs() + 10);

impl RequestTimeouts {
    /// How long the drain of a pod with these timeouts may take. Where a request has no timeout,
    /// `without_timeout` counts, or a longer timeout of the other two.
    pub fn drain_limit(&self, without_timeout: Duration) -> Duration {
        let least = if self.request.is_some() { Duration::ZERO } else { without_timeout };
        let timeouts = [self.request, self.response_start, self.idle].into_iter().flatten();
        timeouts.fold(least, Duration::max).saturating_add(DRAIN_RESERVE)
    }
}

/// How long a drain may take in a pod that the platform ends in `period`: the app needs `app_grace` of that
/// for its own end. An app that claims all of it still leaves its requests half.
pub fn drain_limit_within(period: Duration, app_grace: Duration) -> Duration {
    period.saturating_sub(app_grace).max(period / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_drain_may_take_as_long_as_the_longest_request_and_a_reserve() {
        // Request, response-start and idle timeout, the limit without a timeout, and what follows.
        for (request, response_start, idle, without, limit) in [
            (Some(300), None, None, 300, 345),
            (Some(300), Some(60), Some(20), 900, 345),
            (None, None, None, 300, 345),
            (None, None, None, 0, 45),
            (None, Some(60), Some(400), 300, 445),
            (None, Some(60), None, 3600, 3645),
        ] {
            let [request, response_start, idle] =
                [request, response_start, idle].map(|timeout: Option<u64>| timeout.map(seconds));
            let timeouts = RequestTimeouts { request, response_start, idle, ..Default::default() };
            assert_eq!(timeouts.drain_limit(seconds(without)), seconds(limit), "{timeouts:?}, {without} s");
        }
    }

    #[test]
    fn a_shorter_period_leaves_the_app_its_own_and_the_requests_half() {
        for (period, app_grace, limit) in [(60, 30, 30), (60, 10, 50), (60, 45, 30), (10, 30, 5), (0, 30, 0)]
        {
            let found = drain_limit_within(seconds(period), seconds(app_grace));
            assert_eq!(found, seconds(limit), "{app_grace} s of {period} s are the app's");
        }
    }
}
