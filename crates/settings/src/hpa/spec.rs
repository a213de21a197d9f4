//! The content of a document of kind `HorizontalPodAutoscaler`, read and checked: bounds, metrics with their
//! targets, behavior.
//!
//! The words are those of `autoscaling/v2`. What the API server would refuse cannot be said in these types,
//! or is refused where they are read ([`super::reading`]); evaluating never meets it.

use std::fmt;
use std::time::Duration;

use vocabulary::{MilliValue, PodCount};

use super::selector::LabelSelector;
use super::settings::HpaSettings;
use crate::Metric;

/// One autoscaler's document, together with the cluster's settings that it is evaluated under.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricIdentifier {
    /// Not empty, and usable as one segment of a path.
    pub name: Box<str>,
    /// Over the metric's labels; one without conditions selects every series.
    pub selector: LabelSelector,
}

/// The object that an `Object` metric describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// `apiVersion`; empty for the core group's objects that were written without one.
    pub api_version: Box<str>,
    /// The field `kind`, such as `Deployment`.
    pub kind: Box<str>,
    /// The name of the object in its namespace.
    pub name: Box<str>,
}

/// A resource whose use by pods is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceTarget {
    /// Percent of what the pods request; at least 1.
    Utilization(u32),
    /// Use per pod; above zero.
    AverageValue(MilliValue),
}

/// The target of a number that is not measured in the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalTarget {
    /// The number itself; above zero. More pods are taken to lower it in proportion.
    Value(MilliValue),
    /// The number divided by the pods; above zero.
    AverageValue(MilliValue),
}

/// How fast and how hesitantly the count may move.
#[derive(Clone, Debug, PartialEq)]
pub struct Behavior {
    /// The rules of changes towards more pods.
    pub scale_up: ScalingRules,
    /// The rules of changes towards fewer pods.
    pub scale_down: ScalingRules,
}

/// The rules of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingRules {
    /// For how long past recommendations count; 0 … 1 h. `None` for the cluster's, which only exists for
    /// scaling down.
    pub stabilization_window: Option<Duration>,
    /// Which of the policies rules.
    pub select_policy: SelectPolicy,
    /// By how much the count may change within a period; at least one policy.
    pub policies: Vec<ScalingPolicy>,
    /// How far the ratio may be off before anything happens; at least 0. `None` for the cluster's.
    pub tolerance: Option<f64>,
    /// Whether the document wrote these rules, or they are the defaults.
    pub origin: RulesOrigin,
}

/// Whether the document itself wrote the rules of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesOrigin {
    /// The document wrote the rules; fields that it left out have the defaults.
    Document,
    /// The document wrote the rules of the other direction only.
    Default,
}

/// The field `selectPolicy`: which of several policies limits a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectPolicy {
    /// The policy that allows the largest change.
    #[default]
    Max,
    /// The policy that allows the smallest change.
    Min,
    /// No change in this direction.
    Disabled,
}

/// How much may change within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalingPolicy {
    /// Pods, or a share of the present count.
    pub amount: PolicyAmount,
    /// Within which time; 1 s … 30 min.
    pub period: Duration,
}

/// The unit and amount of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyAmount {
    /// A number of pods; at least 1.
    Pods(u32),
    /// Percent of the count at the start of the period; at least 1.
    Percent(u32),
}

/// As people read it: `1 pod`, `4 pods`, `100%`.
impl fmt::Display for PolicyAmount {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(1) => to.write_str("1 pod"),
            Self::Pods(count) => write!(to, "{count} pods"),
            Self::Percent(percent) => write!(to, "{percent}%"),
        }
    }
}

impl ScalingRules {
    /// The rules towards more pods where the document has none: 4 pods or a doubling, whichever is more, in
    /// 15 s, without waiting.
    pub fn default_up() -> Self {
        Self {
            stabilization_window: Some(Duration::ZERO),
            policies: vec![per_15_seconds(PolicyAmount::Pods(4)), per_15_seconds(PolicyAmount::Percent(100))],
            ..Self::default_down()
        }
    }

    /// The rules towards fewer pods where the document has none: all at once, after the cluster's
    /// stabilization window.
    pub fn default_down() -> Self {
        Self {
            stabilization_window: None,
            select_policy: SelectPolicy::Max,
            policies: vec![per_15_seconds(PolicyAmount::Percent(100))],
            tolerance: None,
            origin: RulesOrigin::Default,
        }
    }

    /// The longest time that one of the policies looks back.
    pub fn longest_period(&self) -> Duration {
        self.policies.iter().map(|policy| policy.period).max().unwrap_or_default()
    }
}

/// The period of Kubernetes' default policies, which is its sync period.
const fn per_15_seconds(amount: PolicyAmount) -> ScalingPolicy {
    ScalingPolicy { amount, period: Duration::from_secs(15) }
}
