//! What does the end of `ebb up` wait for, and for how long at most? Whoever asked for it wants to know.

use std::convert::Infallible;
use std::time::Duration;

use activator::HeldRequests;
use tracing::info;
use vocabulary::format_duration;

/// How long what is held may take to be answered when everything stops: longer than any timeout a revision is likely to have, so that
/// the revision's own timers decide.
pub(super) const DRAIN_PATIENCE: Duration = Duration::from_secs(3600);
/// How often it is said again.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Says what is waited for, at once and again, until it is dropped.
pub(super) async fn report(held: impl Fn() -> Vec<HeldRequests>) -> Infallible {
    let mut waited = Duration::ZERO;
    loop {
        let held = held();
        if !held.is_empty() {
            info!("stopping: waits for {}", sentence(&held, waited));
        }
        tokio::time::sleep(SAID_EVERY).await;
        waited += SAID_EVERY;
    }
}

/// No request arrives any more, so each revision's limit counts from the moment of the order to stop.
fn sentence(held: &[HeldRequests], waited: Duration) -> String {
    let of_one = |held: &HeldRequests| {
        let requests = if held.requests == 1 { "request" } else { "requests" };
        let limit = held.limit.unwrap_or(DRAIN_PATIENCE).min(DRAIN_PATIENCE).saturating_sub(waited);
        let limit = format_duration(limit);
        format!("{} {requests} of {}, at most {limit} more", held.requests, held.revision)
    };
    held.iter().map(of_one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use vocabulary::RevisionName;

    use super::*;

    #[test]
    fn what_is_held_is_told_with_the_time_that_is_left() {
        let held = |name, requests, limit| HeldRequests {
            revision: RevisionName::new("default", "service", name).expect("a name"),
            requests,
            limit,
        };
        let all = [held("one", 1, Some(Duration::from_secs(300))), held("two", 2, None)];
        assert_eq!(
            sentence(&all, SAID_EVERY),
            "1 request of default/service/one, at most 4m50s more; 2 requests of default/service/two, at most 59m50s more"
        );
        assert!(sentence(&all, DRAIN_PATIENCE * 2).contains("at most 0s more"));
    }
}
