//! Each metric beside its target in a few letters, as `kubectl get hpa` has them in a column: `cpu 45%/80%,
//! concurrency 7.1/10`.

use vocabulary::MilliValue;

use super::proposal::CurrentValue;
use super::spec::{HpaSpec, MetricGoal, MetricSpec, ResourceName};
use super::state::{HpaState, MetricStatus};
use crate::config::Metric;

/// All metrics in the order of the spec; `<unknown>` for what the last pass does not know.
pub fn metrics_beside_targets(spec: &HpaSpec, state: &HpaState) -> String {
    let metrics = spec.metrics.iter().enumerate();
    let shown = metrics.map(|(index, metric)| beside_target(metric, state.metrics().get(index)));
    shown.collect::<Vec<_>>().join(", ")
}

fn beside_target(metric: &MetricSpec, status: Option<&MetricStatus>) -> String {
    let current = match status {
        Some(MetricStatus::Proposed(proposal)) => match proposal.current {
            CurrentValue::Utilization { percent, .. } => format!("{percent}%"),
            CurrentValue::AverageValue(value) | CurrentValue::Value(value) => amount(metric, value),
        },
        Some(MetricStatus::Failed { .. } | MetricStatus::NotAsked) | None => "<unknown>".to_owned(),
    };
    let target = match metric.goal() {
        MetricGoal::Percent(percent) => format!("{percent}%"),
        MetricGoal::Amount(target) => amount(metric, target),
    };
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
