//! The content of a document of kind `HorizontalPodAutoscaler`, read and checked: bounds, metrics with their
//! targets, behavior.
//!
//! The words are those of `autoscaling/v2`. What the API server would refuse cannot be said in these types,
//! or is refused where they are read ([`super::reading`]); evaluating never meets it.

use serde::{Deserialize, Serialize};
use vocabulary::{MilliValue, PodCount};

use super::behavior::Behavior;
use super::selector::LabelSelector;
use super::settings::HpaSettings;
use crate::Metric;

/// One autoscaler's document, together with the cluster's settings that it is evaluated under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HpaSpec {
    /// `minReplicas`; zero only with a metric that can wake the target again.
    pub min: PodCount,
    /// `maxReplicas`; at least 1 and at least `min`.
    pub max: PodCount,
    /// The metrics, at least one. Their order decides only which failure is reported first.
    pub metrics: Vec<MetricSpec>,
    /// Without it the older way of limiting applies: see [`super`].
    pub behavior: Option<Behavior>,
    /// The cluster's settings, which apply to all documents.
    pub settings: HpaSettings,
}

impl HpaSpec {
    /// Whether something besides pods is measured, so that a target without pods can be woken.
    pub fn has_object_or_external(&self) -> bool {
        self.metrics
            .iter()
            .any(|metric| matches!(metric, MetricSpec::Object { .. } | MetricSpec::External { .. }))
    }

    /// Whether one of our own measurements is among the metrics.
    pub fn has_own(&self) -> bool {
        self.metrics.iter().any(|metric| matches!(metric, MetricSpec::Own { .. }))
    }
}

/// One entry of `metrics` in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricSpec {
    /// `Resource`, or `ContainerResource` when a container is named: what the pods use of a resource.
    Resource {
        /// The resource whose use is measured.
        resource: ResourceName,
        /// Only this container; `None` for the whole pod.
        container: Option<Box<str>>,
        /// The use to aim at: a share of the requests, or an average per pod.
        target: ResourceTarget,
    },
    /// `Pods`: a number that each pod has.
    Pods {
        /// Its name, and a selector of series.
        metric: MetricIdentifier,
        /// The average to aim at.
        target: MilliValue,
    },
    /// `Pods` with one of our own names: requests in flight or per second, measured by us and decided by a
    /// KPA decider.
    Own {
        /// Concurrency, or requests a second.
        metric: Metric,
        /// The average to aim at.
        target: MilliValue,
    },
    /// `Object`: a number that one object of the namespace has.
    Object {
        /// The object of the namespace that has the number.
        described: ObjectReference,
        /// The name of the number, and a selector of series.
        metric: MetricIdentifier,
        /// The number to aim at, in total or per pod.
        target: TotalTarget,
    },
    /// `External`: a number from outside the cluster, the sum over all its series.
    External {
        /// Its name, and a selector of series.
        metric: MetricIdentifier,
        /// The number to aim at, in total or per pod.
        target: TotalTarget,
    },
}

impl MetricSpec {
    /// The name under which people know the metric.
    pub fn name(&self) -> &str {
        match self {
            Self::Resource { resource, .. } => resource.name(),
            Self::Own { metric, .. } => own_metric_name(*metric),
            Self::Pods { metric, .. } | Self::Object { metric, .. } | Self::External { metric, .. } => {
                &metric.name
            }
        }
    }

    /// Whether the metric is measured in the pods, so that it has no value without a pod.
    pub fn is_per_pod(&self) -> bool {
        match self {
            Self::Resource { .. } | Self::Pods { .. } => true,
            Self::Own { .. } | Self::Object { .. } | Self::External { .. } => false,
        }
    }

    /// Whether the metric is the use of processors, of which a demand follows.
    pub fn is_cpu(&self) -> bool {
        matches!(self, Self::Resource { resource: ResourceName::Cpu, .. })
    }

    /// The target with which a value of the metric is compared.
    pub fn goal(&self) -> MetricGoal {
        match self {
            Self::Resource { target: ResourceTarget::Utilization(percent), .. } => {
                MetricGoal::Percent(*percent)
            }
            Self::Resource { target: ResourceTarget::AverageValue(amount), .. }
            | Self::Pods { target: amount, .. }
            | Self::Own { target: amount, .. }
            | Self::Object {
                target: TotalTarget::Value(amount) | TotalTarget::AverageValue(amount), ..
            }
            | Self::External {
                target: TotalTarget::Value(amount) | TotalTarget::AverageValue(amount), ..
            } => MetricGoal::Amount(*amount),
        }
    }
}

/// The number in a target, whatever kind of target it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricGoal {
    /// A share of the resource that the pods request, in percent.
    Percent(u32),
    /// An amount, in thousandths of the metric's unit.
    Amount(MilliValue),
}

pub(crate) fn own_metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Concurrency => "ebb.concurrency",
        Metric::Rps => "ebb.rps",
    }
}

/// A name and, where series differ by labels, which of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricIdentifier {
    /// Not empty, and usable as one segment of a path.
    pub name: Box<str>,
    /// Over the metric's labels; one without conditions selects every series.
    pub selector: LabelSelector,
}

/// The object that an `Object` metric describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectReference {
    /// `apiVersion`; empty for the core group's objects that were written without one.
    pub api_version: Box<str>,
    /// The field `kind`, such as `Deployment`.
    pub kind: Box<str>,
    /// The name of the object in its namespace.
    pub name: Box<str>,
}

/// A resource whose use by pods is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResourceName {
    /// Cores. Only for this one readiness and start-up matter.
    Cpu,
    /// Memory, which is measured in bytes.
    Memory,
    /// Any other resource that the metrics server knows, by its name.
    Other(Box<str>),
}

impl ResourceName {
    /// The resource that Kubernetes calls by this name.
    pub fn new(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            other => Self::Other(other.into()),
        }
    }

    /// The name by which Kubernetes calls the resource.
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Other(name) => name,
        }
    }
}

/// The target of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResourceTarget {
    /// Percent of what the pods request; at least 1.
    Utilization(u32),
    /// Use per pod; above zero.
    AverageValue(MilliValue),
}

/// The target of a number that is not measured in the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TotalTarget {
    /// The number itself; above zero. More pods are taken to lower it in proportion.
    Value(MilliValue),
    /// The number divided by the pods; above zero.
    AverageValue(MilliValue),
}
