//! What is counted as the demand of a revision, and how much of it does a pod take?
//!
//! Demand is independent of pods: what all of them together are asked for. A metric of which none follows,
//! such as memory, which a pod takes whether it has load or not, is not foreseen.

use serde::{Deserialize, Serialize};
use vocabulary::MilliValue;

use crate::hpa::{HpaScaling, MetricSpec, ResourceName, ResourceTarget};
use crate::metric::Metric;
use crate::spec::ScalingSpec;

const PERCENT: f64 = 100.0;
const THOUSANDTHS: f64 = 1000.0;

/// The quantity that a forecast counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DemandMetric {
    /// Requests in flight and waiting.
    Concurrency,
    /// Requests that arrive in a second.
    Rps,
    /// Cores that all pods use together.
    Cpu,
}

impl From<Metric> for DemandMetric {
    fn from(metric: Metric) -> Self {
        match metric {
            Metric::Concurrency => Self::Concurrency,
            Metric::Rps => Self::Rps,
        }
    }
}

/// The demand of a revision that a forecast counts, and what a pod takes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodDemand {
    /// The quantity that is counted.
    pub metric: DemandMetric,
    /// What a pod is meant to take, in the unit of the metric; 0 where that does not follow from settings, as
    /// for a percentage of a request that pods do not have.
    pub target: f64,
    /// The most that a pod takes: of class hpa, what it requests of the processors.
    pub total: f64,
}

impl ScalingSpec {
    /// The demand by which pods are asked for early: requests where these decide, else the use of processors.
    pub fn demand(&self) -> PodDemand {
        let of_requests = || PodDemand {
            metric: self.metric.into(),
            target: self.target_per_pod,
            total: self.total_per_pod,
        };
        self.hpa.as_deref().and_then(cpu_demand).unwrap_or_else(of_requests)
    }
}

/// The demand of a document that scales on cpu; `None` where one of our own metrics tells it better, or none.
fn cpu_demand(hpa: &HpaScaling) -> Option<PodDemand> {
    if hpa.spec.has_own() {
        return None;
    }
    hpa.spec.metrics.iter().find_map(|metric| {
        let MetricSpec::Resource { resource: ResourceName::Cpu, container, target } = metric else {
            return None;
        };
        let request = hpa.requests.of(&ResourceName::Cpu, container.as_deref()).map_or(0.0, cores);
        let target = match target {
            ResourceTarget::Utilization(percent) => request * f64::from(*percent) / PERCENT,
            ResourceTarget::AverageValue(average) => cores(*average),
        };
        Some(PodDemand { metric: DemandMetric::Cpu, target, total: request.max(target) })
    })
}

fn cores(amount: MilliValue) -> f64 {
    amount.as_f64() / THOUSANDTHS
}
