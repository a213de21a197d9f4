//! What does the end of `ebb up` wait for, and for how long at most? The log says so to the person that asked
//! for the end.

use std::convert::Infallible;
use std::time::Duration;

use activator::HeldRequests;
use tracing::info;
use vocabulary::format_duration;

/// How often it is said again.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Says what is waited for, `at_most` so long, at once and again, until it is dropped.
pub(super) async fn report(held: impl Fn() -> Vec<HeldRequests>, at_most: Duration) -> Infallible {
    let mut waited = Duration::ZERO;
    loop {
        let held = held();
        if !held.is_empty() {
            info!("stopping: waits for {}", sentence(&held, at_most.saturating_sub(waited), waited));
        }
        tokio::time::sleep(SAID_EVERY).await;
        waited += SAID_EVERY;
    }
}

/// No request arrives any more, so each revision's limit counts from the moment of the order to stop.
fn sentence(held: &[HeldRequests], left: Duration, waited: Duration) -> String {
    let of_one = |held: &HeldRequests| {
        let requests = if held.requests == 1 { "request" } else { "requests" };
        let of_request = held.limit.map(|limit| limit.saturating_sub(waited));
        let limit = format_duration(of_request.unwrap_or(left).min(left));
        format!("{} {requests} of {}, at most {limit} more", held.requests, held.revision)
    };
    held.iter().map(of_one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use vocabulary::RevisionName;

    use super::*;

    #[test]
    fn held_requests_are_told_with_the_time_that_is_left() {
        let held = |name, requests, limit| HeldRequests {
            revision: RevisionName::new("default", "service", name).expect("a name"),
            requests,
            limit,
        };
        let all = [held("one", 1, Some(Duration::from_secs(300))), held("two", 2, None)];
        assert_eq!(
            sentence(&all, Duration::from_secs(335), SAID_EVERY),
            "1 request of default/service/one, at most 4m50s more; 2 requests of default/service/two, at most 5m35s more"
        );
        assert!(sentence(&all, Duration::ZERO, SAID_EVERY).contains("at most 0s more"));
    }
}
