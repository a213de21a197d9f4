//! Do all parts work without which this process is of no use? A service manager with a watchdog is told so
//! for as long as they do; if it is told nothing for too long, it ends the process and starts another.
//!
//! A panic ends the process by itself, but a part that hangs (a deadlock, a loop without an end) would leave
//! it half alive. So before each word the supervisor and the autoscaler are asked something, every thread of
//! the activators must have moved since the last time, and the task that asks runs on the thread that all
//! others of this process share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use platform_local::LocalPlatform;
use tokio::task::AbortHandle;
use tracing::{info, warn};
use vocabulary::{ReplicaName, format_duration};

use super::api::CurrentRouter;
use super::{scraping, service_manager};

/// So many words fit into the service manager's patience: one may be late because something is being rebuilt.
const REPORTS_PER_PATIENCE: u32 = 3;
/// A thread of an activator shows every other second that it moves.
const PACE_MIN: Duration = Duration::from_secs(5);

/// By thread: how often it has shown that it moves.
type Heartbeats = BTreeMap<(ReplicaName, usize), u64>;

/// The parts without which this process is of no use.
pub(super) struct WatchedParts {
    pub(super) api: CurrentRouter,
    pub(super) platform: Arc<LocalPlatform>,
    pub(super) heartbeats: Box<dyn Fn() -> Heartbeats + Send + Sync>,
}

/// Tells the service manager, if it wants to be told. Ends when dropped.
#[derive(Debug)]
pub(super) struct ServiceWatchdog(Option<AbortHandle>);

impl ServiceWatchdog {
    pub(super) fn start(watched_parts: WatchedParts) -> Self {
        let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()) else {
            return Self(None);
        };
        info!(patience = format_duration(patience), "the service manager hears while every part moves");
        // Not vital: after a panic the service manager hears nothing, and does what it is there for.
        Self(Some(tokio::spawn(watched_parts.report(patience / REPORTS_PER_PATIENCE)).abort_handle()))
    }
}

impl Drop for ServiceWatchdog {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// A thread that has not moved between the two looks. One that has just come may not have had the time.
fn stalled_thread<'now>(before: &Heartbeats, now: &'now Heartbeats) -> Option<&'now (ReplicaName, usize)> {
    now.iter().find(|(thread, heartbeats)| before.get(*thread) == Some(*heartbeats)).map(|(thread, _)| thread)
}

impl WatchedParts {
    async fn report(self, pace: Duration) {
        let (mut before, mut since_look) = (Heartbeats::new(), Duration::ZERO);
        loop {
            match self.unresponsive_part(pace).await {
                None if since_look < PACE_MIN && !before.is_empty() => service_manager::tell_alive(),
                None => {
                    let now = (self.heartbeats)();
                    match stalled_thread(&before, &now) {
                        None => service_manager::tell_alive(),
                        Some((activator, thread)) => {
                            warn!(%activator, thread, "a thread does not move, so the service manager hears nothing");
                        }
                    }
                    (before, since_look) = (now, Duration::ZERO);
                }
                Some(part) => warn!("{part} does not answer, so the service manager hears nothing"),
            }
            tokio::time::sleep(pace).await;
            since_look += pace;
        }
    }

    /// What does not answer in time.
    async fn unresponsive_part(&self, patience: Duration) -> Option<&'static str> {
        if tokio::time::timeout(patience, self.platform.responds()).await.is_err() {
            return Some("the supervisor of the pods");
        }
        let router: Router = self.api.router();
        let answer = tokio::time::timeout(patience, scraping::text(&router, "/healthz")).await;
        if matches!(answer, Ok(Some(_))) { None } else { Some("the autoscaler") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_does_not_move_is_stuck_unless_it_has_just_come_or_gone() {
        let heartbeats = |heartbeats: &[(usize, u64)]| -> Heartbeats {
            let name = ReplicaName::new("activator-1");
            heartbeats.iter().map(|(thread, heartbeats)| ((name.clone(), *thread), *heartbeats)).collect()
        };
        for (before, now, expected) in [
            (&[(0, 1), (1, 5)][..], &[(0, 2), (1, 6)][..], None),
            (&[(0, 1), (1, 5)], &[(0, 2), (1, 5)], Some(1)),
            (&[(0, 1)], &[(0, 2), (1, 0)], None),
            (&[(0, 1), (1, 5)], &[(0, 2)], None),
            (&[], &[(0, 0)], None),
        ] {
            let (before, now) = (heartbeats(before), heartbeats(now));
            assert_eq!(
                stalled_thread(&before, &now).map(|(_, thread)| *thread),
                expected,
                "{before:?} {now:?}"
            );
        }
    }
}
