//! What does the template say about its pods' requests, and what may their queue-proxy use? Where it says
//! nothing, the cluster's settings count. A queue-proxy is started with it, so it changes by rollout.

use std::time::Duration;

use scaling::ClusterConfig;
use scaling::config::{DRAIN_LIMIT_MAX, QueueProxyResources, ignored_user_agents};
use serde_json::Value;
use vocabulary::{IgnoredUserAgents, RequestTimeouts, parse_duration};

use crate::review::texts;

const CONCURRENCY: &str = "ebb.dev/container-concurrency";
const TIMEOUT: &str = "ebb.dev/timeout";
const RESPONSE_START_TIMEOUT: &str = "ebb.dev/response-start-timeout";
const IDLE_TIMEOUT: &str = "ebb.dev/idle-timeout";
const DRAIN_LIMIT: &str = "ebb.dev/drain-limit";
const IGNORE_USER_AGENTS: &str = "ebb.dev/ignore-user-agents";
/// All of them.
pub(crate) const ALL: [&str; 6] =
    [CONCURRENCY, TIMEOUT, RESPONSE_START_TIMEOUT, IDLE_TIMEOUT, DRAIN_LIMIT, IGNORE_USER_AGENTS];
/// Before what the queue-proxy may use.
const RESOURCES_PREFIX: &str = "ebb.dev/queue-proxy-";
/// The most that Knative takes, too.
const CONCURRENCY_MAX: u32 = 1000;

/// Whether an annotation is one that a pod is made with, so that it says nothing on the workload itself. (The
/// other limits are refused there.)
pub(crate) fn is_of_template(key: &str) -> bool {
    [DRAIN_LIMIT, IGNORE_USER_AGENTS].contains(&key) || key.starts_with(RESOURCES_PREFIX)
}

/// Limits of one pod. Zero means none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodLimits {
    pub(crate) container_concurrency: u32,
    pub(crate) timeouts: RequestTimeouts,
    /// How long requests without a timeout may take in a drain.
    pub(crate) drain_without_timeout: Duration,
    /// Whose requests are not measured.
    pub(crate) ignored_user_agents: IgnoredUserAgents,
    /// What the queue-proxy may use, by the pod's class.
    pub(crate) resources: QueueProxyResources,
}

impl PodLimits {
    /// `None` if something is wrong, which is among the problems then.
    pub(crate) fn read(pod: &Value, cluster: &ClusterConfig, problems: &mut Vec<String>) -> Option<Self> {
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
        let drain_without_timeout = duration(DRAIN_LIMIT).unwrap_or(cluster.drain_limit);
        if drain_without_timeout > DRAIN_LIMIT_MAX {
            let text = annotations[DRAIN_LIMIT].as_str().unwrap_or_default();
            problems.push(format!("annotation {DRAIN_LIMIT} is {text:?}; write at most 24h"));
        }
        let written = texts(annotations);
        let ignored_user_agents = ignored_user_agents(&written).unwrap_or_else(|problem| {
            problems.push(problem.message);
            None
        });
        let resources = cluster.queue_proxy.of_template(&written).unwrap_or_else(|refused| {
            problems.extend(refused.into_iter().map(|problem| problem.message));
            cluster.queue_proxy.clone()
        });
        let limits = Self {
            container_concurrency,
            timeouts,
            drain_without_timeout,
            ignored_user_agents: ignored_user_agents.unwrap_or_else(|| cluster.ignored_user_agents.clone()),
            resources,
        };
        (problems.len() == before).then_some(limits)
    }

    /// How long a drain may take.
    pub(crate) fn drain_limit(&self) -> Duration {
        self.timeouts.drain_limit(self.drain_without_timeout)
    }
}
