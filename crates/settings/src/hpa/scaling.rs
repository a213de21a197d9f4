//! What a revision of class hpa goes by: its document, the cluster's settings, and where values come from.

use std::time::Duration;

use super::requests::PodRequests;
use super::spec::{HpaSpec, MetricSpec};

/// What a revision of this class goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaScaling {
    /// The document and the cluster's settings.
    pub spec: HpaSpec,
    /// How often all metrics are asked; 1 s … 1 h.
    pub sync_period: Duration,
    /// What each of its pods requests; where the platform is asked for pods, it says that of each.
    pub requests: PodRequests,
    /// Who says what pods use.
    pub usage: UsageSource,
}

impl HpaScaling {
    /// Whether the values of a metric have to be asked for, because nobody reports them.
    pub fn is_asked_for(&self, metric: &MetricSpec) -> bool {
        match metric {
            MetricSpec::Pods { .. } | MetricSpec::Object { .. } | MetricSpec::External { .. } => true,
            MetricSpec::Resource { .. } => self.usage == UsageSource::Questions,
            MetricSpec::Own { .. } => false,
        }
    }
}

/// Who says what pods use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageSource {
    /// Each pod does, once a second.
    #[default]
    Reports,
    /// The platform, when it is asked; it then also says which pods there are.
    Questions,
}
