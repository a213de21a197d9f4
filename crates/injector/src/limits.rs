//! What does the template say about its pods' requests, and what may their queue-proxy use? Where it says
//! nothing, the cluster's settings count. A queue-proxy is started with these values, so a change takes a
//! rollout.

use std::time::Duration;

use serde_json::Value;
use settings::{
    ClusterConfig, DRAIN_LIMIT_ANNOTATION, IGNORE_USER_AGENTS_ANNOTATION, QueueProxyResources, RequestLimits,
    drain_limit, ignored_user_agents,
};
use vocabulary::IgnoredUserAgents;

use crate::pod::texts;

/// The prefix of annotations about the queue-proxy's resources.
const RESOURCES_PREFIX: &str = "ebb.dev/queue-proxy-";

/// Whether an annotation is read here.
pub(crate) fn is_limit(key: &str) -> bool {
    RequestLimits::is_key(key) || [DRAIN_LIMIT_ANNOTATION, IGNORE_USER_AGENTS_ANNOTATION].contains(&key)
}

/// Whether an annotation is one that a pod is made with, so that it says nothing on the workload itself. (The
/// other limits are refused there.)
pub(crate) fn is_of_template(key: &str) -> bool {
    [DRAIN_LIMIT_ANNOTATION, IGNORE_USER_AGENTS_ANNOTATION].contains(&key)
        || key.starts_with(RESOURCES_PREFIX)
}

/// What applies to the requests of one pod, and to its queue-proxy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodLimits {
    pub(crate) requests: RequestLimits,
    /// How long requests without a timeout may take in a drain.
    pub(crate) drain_without_timeout: Duration,
    /// Requests of these user agents are not measured.
    pub(crate) ignored_user_agents: IgnoredUserAgents,
    /// What the queue-proxy may use, by the pod's class.
    pub(crate) resources: QueueProxyResources,
}

impl PodLimits {
    /// Reads the limits of a template; `None` if one is invalid, with the reason among `problems`.
    pub(crate) fn read(pod: &Value, cluster: &ClusterConfig, problems: &mut Vec<String>) -> Option<Self> {
        let before = problems.len();
        let written = texts(&pod["metadata"]["annotations"]);
        let (requests, refused) = RequestLimits::read(&written);
        problems.extend(refused.into_iter().map(|problem| problem.message));
        let drain_limit = drain_limit(&written).unwrap_or_else(|problem| {
            problems.push(problem.message);
            None
        });
        let ignored_user_agents = ignored_user_agents(&written).unwrap_or_else(|problem| {
            problems.push(problem.message);
            None
        });
        let resources = cluster.queue_proxy.of_template(&written).unwrap_or_else(|refused| {
            problems.extend(refused.into_iter().map(|problem| problem.message));
            cluster.queue_proxy.clone()
        });
        let limits = Self {
            requests,
            drain_without_timeout: drain_limit.unwrap_or(cluster.drain_limit),
            ignored_user_agents: ignored_user_agents.unwrap_or_else(|| cluster.ignored_user_agents.clone()),
            resources,
        };
        (problems.len() == before).then_some(limits)
    }

    /// How long a drain may take, whether requests have a timeout or not.
    pub(crate) fn drain_limit(&self) -> Duration {
        self.requests.timeouts.drain_limit(self.drain_without_timeout)
    }
}
