//! What an autoscaler says of itself, in lines that can be compared: Kubernetes' status, and ours.

use scaling::hpa::{CurrentValue, HpaCondition, HpaState, MetricStatus};
use serde_json::Value;
use settings::hpa::HpaSpec;
use vocabulary::{MilliValue, PodCount, parse_quantity};

/// Everything that a pass came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The count that is there afterwards.
    pub(crate) count: u32,
    pub(crate) current: u32,
    pub(crate) desired: u32,
    /// The conditions as `TYPE STATUS/REASON`, in the order of the alphabet.
    pub(crate) conditions: Vec<String>,
    /// One for each metric of the spec; empty if the pass asked none.
    pub(crate) metrics: Vec<String>,
}

impl Verdict {
    /// As Kubernetes' status has it.
    pub(crate) fn of_status(status: &Value, count: u32) -> Self {
        let number = |key: &str| u32::try_from(status[key].as_u64().unwrap_or_default()).unwrap_or_default();
        let metrics = status["currentMetrics"].as_array().cloned().unwrap_or_default();
        Self {
            count,
            current: number("currentReplicas"),
            desired: number("desiredReplicas"),
            conditions: conditions(status),
            metrics: metrics.iter().map(metric_of_status).collect(),
        }
    }

    /// As our state has it.
    pub(crate) fn of_state(spec: &HpaSpec, state: &HpaState, count: PodCount) -> Self {
        debug_assert!(state.metrics().is_empty() || state.metrics().len() == spec.metrics.len());
        Self {
            count: count.value(),
            current: state.current().value(),
            desired: state.desired().unwrap_or_default().value(),
            conditions: conditions_of_state(state),
            metrics: state.metrics().iter().map(metric_of_state).collect(),
        }
    }

    /// The same with `0` for a value divided by no pods, as ours has it: the quotient is infinite, and what
    /// Go makes of that as a whole number depends on the processor (the least one on this). It is shown and
    /// decides nothing.
    pub(crate) fn with_quotients_of_no_pods_as_ours(mut self) -> Self {
        for line in self.metrics.iter_mut().filter(|line| **line == format!("averageValue {}", i64::MIN)) {
            "averageValue 0".clone_into(line);
        }
        self
    }

    /// The reasons of all conditions.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = String> {
        self.conditions.iter().filter_map(|line| Some(line.split_once('/')?.1.to_owned()))
    }
}

/// The conditions of a status.
pub(crate) fn conditions(status: &Value) -> Vec<String> {
    let text = |condition: &Value, key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = conditions
        .map(|one| format!("{} {}/{}", text(one, "type"), text(one, "status"), text(one, "reason")))
        .collect();
    lines.sort();
    lines
}

fn conditions_of_state(state: &HpaState) -> Vec<String> {
    let conditions = state.conditions();
    let line = |(name, condition): (&str, Option<HpaCondition>)| {
        let condition = condition?;
        let status = if condition.reason.is_true() { "True" } else { "False" };
        Some(format!("{name} {status}/{:?}", condition.reason))
    };
    let all = [
        ("AbleToScale", conditions.able_to_scale),
        ("ScaledToZero", conditions.scaled_to_zero),
        ("ScalingActive", conditions.scaling_active),
        ("ScalingLimited", conditions.scaling_limited),
    ];
    all.into_iter().filter_map(line).collect()
}

/// A slot of a metric that failed has no type.
fn metric_of_status(metric: &Value) -> String {
    let bodies = ["resource", "containerResource", "pods", "object", "external"];
    let Some(current) = bodies.iter().find_map(|body| metric[*body]["current"].as_object()) else {
        return "unknown".to_owned();
    };
    let quantity = |key: &str| {
        let text = current.get(key)?.as_str()?;
        parse_quantity(text).ok().map(|value| format!("{key} {}", value.value()))
    };
    let percent = current.get("averageUtilization").map(|percent| format!("averageUtilization {percent}"));
    [percent, quantity("averageValue"), quantity("value")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

fn metric_of_state(status: &MetricStatus) -> String {
    let MetricStatus::Proposed(proposal) = status else { return "unknown".to_owned() };
    let milli = |key: &str, value: MilliValue| format!("{key} {}", value.value());
    match proposal.current {
        CurrentValue::Utilization { percent, average } => {
            format!("averageUtilization {percent}, {}", milli("averageValue", average))
        }
        CurrentValue::AverageValue(average) => milli("averageValue", average),
        CurrentValue::Value(value) => milli("value", value),
    }
}
