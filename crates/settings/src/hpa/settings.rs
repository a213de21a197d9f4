//! What the cluster's operator sets for every autoscaler of this class, under Kubernetes' defaults, and where
//! older or other behaviour is wanted instead of that of Kubernetes 1.37.

use std::time::Duration;

use serde::Serialize;

/// The settings of kube-controller-manager that an evaluation depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Differences from Kubernetes 1.37 that were asked for.
    pub compat: Compat,
}

impl Default for HpaSettings {
    /// Kubernetes' defaults.
    fn default() -> Self {
        Self {
            tolerance: 0.1,
            downscale_stabilization: Duration::from_secs(300),
            cpu_initialization_period: Duration::from_secs(300),
            initial_readiness_delay: Duration::from_secs(30),
            compat: Compat::default(),
        }
    }
}

/// Switches between what Kubernetes 1.37 does (the defaults) and what earlier releases did or users have
/// asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compat {
    /// X1.
    pub tolerance_test: ToleranceTest,
    /// X3.
    pub average_within_tolerance: AverageWithinTolerance,
    /// X4.
    pub none_ready: NoneReady,
    /// X6.
    pub terminating_pods: TerminatingPods,
    /// X9.
    pub lacking_requests: LackingRequests,
}

/// How a ratio is compared with the tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ToleranceTest {
    /// Between 1 − tolerance and 1 + tolerance, both included.
    #[default]
    Inclusive,
    /// The distance from 1 in doubles, as up to 1.32: exactly 1.1 is outside of 0.1.
    Distance,
}

/// What a metric with an average of a total as its target proposes within tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum AverageWithinTolerance {
    /// As many pods as there are, those of a rolling update beyond the wanted count included.
    #[default]
    PodsPresent,
    /// The count that was last asked for.
    CurrentCount,
}

/// What a metric with a plain value as its target proposes when no pod is ready to multiply by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum NoneReady {
    /// Zero, which then becomes the minimum.
    #[default]
    Zero,
    /// As if all wanted pods were ready.
    CurrentCount,
}

/// Whether a pod that is on its way out but still ready is multiplied by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum TerminatingPods {
    /// It is.
    #[default]
    Count,
    /// It is not.
    Ignore,
}

/// What a pod means that says nothing of what it requests, for a target in percent of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum LackingRequests {
    /// The metric fails.
    #[default]
    FailMetric,
    /// The pod is missing.
    CountAsMissing,
}
