//! With which settings of the cluster does a queue-proxy start? It keeps them for its life, so an edit holds
//! for the pods that start after it.

use std::time::Duration;

use settings::{ClusterConfig, RevisionSettings};
use vocabulary::{DRAIN_LIMIT_DEFAULT, IgnoredUserAgents};

/// The settings with which the queue-proxies of new pods start.
#[derive(Clone, Debug)]
pub(crate) struct QueueProxySettings {
    /// How long requests without a timeout may take in a pod that leaves.
    pub(crate) drain_limit: Duration,
    /// The clients, by `User-Agent`, whose requests it does not measure.
    pub(crate) ignored_user_agents: IgnoredUserAgents,
}

impl QueueProxySettings {
    /// The settings of a revision, and those of the cluster where the revision has none.
    pub(crate) fn of(settings: &RevisionSettings, cluster: &ClusterConfig) -> Self {
        Self {
            drain_limit: settings.effective_drain_limit(cluster),
            ignored_user_agents: settings.effective_ignored_user_agents(cluster),
        }
    }
}

impl Default for QueueProxySettings {
    /// The defaults of the ConfigMap `config-autoscaler`.
    fn default() -> Self {
        Self { drain_limit: DRAIN_LIMIT_DEFAULT, ignored_user_agents: IgnoredUserAgents::default() }
    }
}
