//! What does the template say about its pods' requests? The queue-proxy is started with it, so it changes by rollout.

use std::time::Duration;

use serde_json::Value;
use vocabulary::{DRAIN_LIMIT_DEFAULT, RequestTimeouts, parse_duration};

const CONCURRENCY: &str = "ebb.dev/container-concurrency";
const TIMEOUT: &str = "ebb.dev/timeout";
const RESPONSE_START_TIMEOUT: &str = "ebb.dev/response-start-timeout";
const IDLE_TIMEOUT: &str = "ebb.dev/idle-timeout";
const DRAIN_LIMIT: &str = "ebb.dev/drain-limit";
/// The most that Knative takes, too.
const CONCURRENCY_MAX: u32 = 1000;

/// Limits of one pod. Zero means none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodLimits {
    pub(crate) container_concurrency: u32,
    pub(crate) timeouts: RequestTimeouts,
    /// How long requests without a timeout may take in a drain.
    pub(crate) drain_without_timeout: Duration,
}

impl PodLimits {
    /// `None` if something is wrong, which is among the problems then.
    pub(crate) fn read(pod: &Value, problems: &mut Vec<String>) -> Option<Self> {
        let before = problems.len();
        let annotations = &pod["metadata"]["annotations"];
        let container_concurrency = annotations[CONCURRENCY].as_str().map_or(0, |text| {
            let number = text.parse().ok().filter(|number| *number <= CONCURRENCY_MAX);
            number.unwrap_or_else(|| {
                problems.push(format!(
                    "annotation {CONCURRENCY} is {text:?}; write a number from 0 (no limit) to {CONCURRENCY_MAX}"
                ));
                0
            })
        });
        let mut duration = |key: &str| {
            let text = annotations[key].as_str()?;
            match parse_duration(text) {
                Ok(duration) if duration.subsec_nanos() == 0 => Some(duration),
                Ok(_) => {
                    problems.push(format!("annotation {key} is {text:?}; write whole seconds"));
                    None
                }
                Err(error) => {
                    problems.push(format!("annotation {key}: {error}"));
                    None
                }
            }
        };
        let limit = |duration: Option<Duration>| duration.filter(|duration| !duration.is_zero());
        let timeouts = RequestTimeouts {
            request: limit(duration(TIMEOUT)),
            response_start: limit(duration(RESPONSE_START_TIMEOUT)),
            idle: limit(duration(IDLE_TIMEOUT)),
        };
        let drain_without_timeout = duration(DRAIN_LIMIT).unwrap_or(DRAIN_LIMIT_DEFAULT);
        (problems.len() == before).then_some(Self { container_concurrency, timeouts, drain_without_timeout })
    }

    /// How long a drain may take.
    pub(crate) fn drain_limit(&self) -> Duration {
        self.timeouts.drain_limit(self.drain_without_timeout)
    }
}
