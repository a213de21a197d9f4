//! What an autoscaler shows of itself: each metric beside its target in a few letters, as `kubectl get hpa`
//! has them in a column (`cpu 45%/80%, concurrency 7.1/10`), and what else stands in the status of a
//! `HorizontalPodAutoscaler`.

use settings::Metric;
use settings::hpa::{HpaSpec, MetricGoal, MetricSpec, ResourceName};
use vocabulary::{MilliValue, PodCount, Timestamp};

use super::conditions::HpaConditions;
use super::proposal::{CurrentValue, NoProposal};
use super::state::{HpaState, MetricStatus};

/// The status of one autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaReport {
    /// The conditions, as they stand in the status of a `HorizontalPodAutoscaler`.
    pub conditions: HpaConditions,
    /// The metrics, in the order of the spec.
    pub metrics: Vec<ReportedMetric>,
    /// The count that the last pass found; zero before the first.
    pub current: PodCount,
    /// The answer of the last pass that had one.
    pub desired: Option<PodCount>,
    /// When the count was last changed.
    pub last_scale: Option<Timestamp>,
}

/// One metric in such a status. Nothing but name and target if the last pass did not ask it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedMetric {
    /// The name of the metric in the spec.
    pub name: String,
    /// The measured value, in the form of the target.
    pub current: Option<String>,
    /// The target, in the unit in which people write it.
    pub target: String,
    /// The measured value divided by the target.
    pub ratio: Option<f64>,
    /// The number of pods that the metric asks for.
    pub count: Option<PodCount>,
    /// Why the metric asks for nothing; `None` if it did not fail.
    pub failure: Option<NoProposal>,
}

impl HpaReport {
    /// The report of the last pass.
    pub fn of(spec: &HpaSpec, state: &HpaState) -> Self {
        let metrics = spec.metrics.iter().enumerate();
        Self {
            conditions: *state.conditions(),
            metrics: metrics.map(|(place, metric)| reported(metric, state.metrics().get(place))).collect(),
            current: state.current(),
            desired: state.desired(),
            last_scale: state.last_scale(),
        }
    }
}

fn reported(metric: &MetricSpec, status: Option<&MetricStatus>) -> ReportedMetric {
    let (proposal, failure) = match status {
        Some(MetricStatus::Proposed(proposal)) => (Some(proposal), None),
        Some(MetricStatus::Failed { why, .. }) => (None, Some(*why)),
        Some(MetricStatus::NotAsked) | None => (None, None),
    };
    ReportedMetric {
        name: metric.name().to_owned(),
        current: proposal.map(|proposal| current_of(metric, proposal.current)),
        target: target_of(metric),
        ratio: proposal.map(|proposal| proposal.ratio),
        count: proposal.map(|proposal| proposal.count),
        failure,
    }
}

/// All metrics in the order of the spec; `<unknown>` for what the last pass does not know.
pub fn metrics_beside_targets(spec: &HpaSpec, state: &HpaState) -> String {
    let metrics = spec.metrics.iter().enumerate();
    let shown = metrics.map(|(index, metric)| beside_target(metric, state.metrics().get(index)));
    shown.collect::<Vec<_>>().join(", ")
}

fn beside_target(metric: &MetricSpec, status: Option<&MetricStatus>) -> String {
    let current = match status {
        Some(MetricStatus::Proposed(proposal)) => current_of(metric, proposal.current),
        Some(MetricStatus::Failed { .. } | MetricStatus::NotAsked) | None => "<unknown>".to_owned(),
    };
    let target = target_of(metric);
    let name = match metric {
        MetricSpec::Own { metric: Metric::Concurrency, .. } => "concurrency",
        MetricSpec::Own { metric: Metric::Rps, .. } => "rps",
        MetricSpec::Resource { .. }
        | MetricSpec::Pods { .. }
        | MetricSpec::Object { .. }
        | MetricSpec::External { .. } => metric.name(),
    };
    format!("{name} {current}/{target}")
}

fn current_of(metric: &MetricSpec, current: CurrentValue) -> String {
    match current {
        CurrentValue::Utilization { percent, .. } => format!("{percent}%"),
        CurrentValue::AverageValue(value) | CurrentValue::Value(value) => amount(metric, value),
    }
}

fn target_of(metric: &MetricSpec) -> String {
    match metric.goal() {
        MetricGoal::Percent(percent) => format!("{percent}%"),
        MetricGoal::Amount(target) => amount(metric, target),
    }
}

/// Memory in the unit in which people write it; everything else as a number with up to three decimals.
fn amount(metric: &MetricSpec, value: MilliValue) -> String {
    const MEBIBYTE: f64 = 1_048_576_000.0;
    match metric {
        MetricSpec::Resource { resource: ResourceName::Memory, .. } => {
            format!("{}Mi", (value.as_f64() / MEBIBYTE).round())
        }
        MetricSpec::Resource { resource: ResourceName::Cpu | ResourceName::Other(_), .. }
        | MetricSpec::Pods { .. }
        | MetricSpec::Own { .. }
        | MetricSpec::Object { .. }
        | MetricSpec::External { .. } => (value.as_f64() / 1000.0).to_string(),
    }
}
