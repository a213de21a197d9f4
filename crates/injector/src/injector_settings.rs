//! What does every pod of a cluster get the same, whatever its template says?

use scaling::ClusterConfig;

/// What is the same for all pods.
#[derive(Clone, Debug)]
pub struct InjectorSettings {
    /// The queue-proxy's image.
    pub image: String,
    /// By whose certificates its queue-proxy knows the autoscaler: the authority's, in PEM.
    pub link_ca: String,
    /// The ConfigMap `config-autoscaler`: what applies where a template says nothing.
    pub cluster: ClusterConfig,
    /// What it tells about each request, as a queue-proxy reads it (`OBSERVABILITY_CONFIG`): the ConfigMap
    /// `config-observability`, whose keys others know. `None` where it tells nothing.
    pub observability: Option<String>,
}
