//! The settings of the cluster's operator for every autoscaler of class hpa; the defaults are those of
//! Kubernetes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of kube-controller-manager that an evaluation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HpaSettings {
    /// How far a ratio may be off in either direction (`--horizontal-pod-autoscaler-tolerance`); at least 0.
    pub tolerance: f64,
    /// The stabilization window towards fewer pods where a document has none (`…-downscale-stabilization`).
    pub downscale_stabilization: Duration,
    /// How long after its start a pod's CPU use counts only from readiness on
    /// (`…-cpu-initialization-period`).
    pub cpu_initialization_period: Duration,
    /// A pod that got unready within this time of its start was never ready (`…-initial-readiness-delay`).
    pub initial_readiness_delay: Duration,
}

impl Default for HpaSettings {
    /// The defaults of Kubernetes' own controller manager.
    fn default() -> Self {
        Self {
            tolerance: 0.1,
            downscale_stabilization: Duration::from_secs(300),
            cpu_initialization_period: Duration::from_secs(300),
            initial_readiness_delay: Duration::from_secs(30),
        }
    }
}
