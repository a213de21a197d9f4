//! The input of class hpa for one revision: its document, the cluster's settings, and the source of its
//! values.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::requests::PodRequests;
use super::spec::{HpaSpec, MetricSpec};

/// The input of class hpa for one revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HpaScaling {
    /// The document and the cluster's settings.
    pub spec: HpaSpec,
    /// How often all metrics are asked; 1 s … 1 h.
    pub sync_period: Duration,
    /// The resources that each pod of the revision requests; where the platform is asked for pods, its answer
    /// names them for each pod instead.
    pub requests: PodRequests,
    /// The source of what pods use: their own reports, or questions to the platform.
    pub usage: UsageSource,
}

impl HpaScaling {
    /// Whether the values of a metric have to be asked for, because no pod or activator reports them.
    pub fn is_asked_for(&self, metric: &MetricSpec) -> bool {
        match metric {
            MetricSpec::Pods { .. } | MetricSpec::Object { .. } | MetricSpec::External { .. } => true,
            MetricSpec::Resource { .. } => self.usage == UsageSource::Questions,
            MetricSpec::Own { .. } => false,
        }
    }
}

/// The source of the numbers of CPU and memory that pods use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsageSource {
    /// Each pod reports its use once a second.
    #[default]
    Reports,
    /// The platform is asked at each sync; its answer also names the pods that there are.
    Questions,
}
