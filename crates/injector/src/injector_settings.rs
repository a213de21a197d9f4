//! What does every pod of a cluster get the same, whatever its template says?

use settings::ClusterConfig;

/// The settings that are the same for all pods of a cluster.
#[derive(Clone, Debug)]
pub struct InjectorSettings {
    /// The image of the queue-proxy's container, as pods are to pull it.
    pub image: String,
    /// The certificates of the authorities by which a queue-proxy verifies the autoscaler on links, in PEM.
    pub link_ca: String,
    /// The ConfigMap `config-autoscaler`: what applies where a template says nothing.
    pub cluster: ClusterConfig,
    /// The value of the variable `OBSERVABILITY_CONFIG`: what a queue-proxy logs and traces of each request,
    /// from the ConfigMap `config-observability`. `None` where that asks for nothing.
    pub observability: Option<String>,
}
