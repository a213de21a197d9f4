//! `metrics`, as `v2beta1` and the annotation of `v1` write them: the fields of a target beside those of the metric.

use super::metrics::{container, named, pods, reference, resource};
use super::problems::{Fields, Problems};
use crate::hpa::spec::{MetricSpec, ResourceTarget, TotalTarget};

/// A body whose target is flat.
pub(super) fn flat_body(kind: &str, fields: &mut Fields<'_>, problems: &mut Problems) -> Option<MetricSpec> {
    match kind {
        "Resource" | "ContainerResource" => {
            let resource = resource(fields, problems);
            let container =
                if kind == "Resource" { Some(None) } else { container(fields, problems).map(Some) };
            let target = resource_target(fields, problems);
            Some(MetricSpec::Resource { resource: resource?, container: container?, target: target? })
        }
        "Pods" => {
            let metric = named(fields, "metricName", "selector", problems);
            let before = problems.refusals.len();
            let target = fields.amount("targetAverageValue", problems);
            if target.is_none() && problems.refusals.len() == before {
                let flaw = "is missing; write the average to aim at";
                problems.refuse_place(&fields.place("targetAverageValue"), flaw);
            }
            pods(metric?, target?, fields, problems)
        }
        "Object" => {
            let described = reference(fields, "target", problems);
            let metric = named(fields, "metricName", "selector", problems);
            let target = object_target(fields, problems);
            Some(MetricSpec::Object { described: described?, metric: metric?, target: target? })
        }
        _ => {
            let metric = named(fields, "metricName", "metricSelector", problems);
            let target = external_target(fields, problems);
            Some(MetricSpec::External { metric: metric?, target: target? })
        }
    }
}

fn resource_target(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<ResourceTarget> {
    let before = problems.refusals.len();
    let percent = fields.integer("targetAverageUtilization", 1, i64::from(i32::MAX), problems);
    let value = fields.amount("targetAverageValue", problems);
    if problems.refusals.len() > before {
        return None;
    }
    match (percent, value) {
        (Some(percent), None) => Some(ResourceTarget::Utilization(percent)),
        (None, Some(value)) => Some(ResourceTarget::AverageValue(value)),
        (Some(_), Some(_)) => {
            let flaw = "has both targetAverageUtilization and targetAverageValue; remove one of them";
            problems.refuse_place(fields.own_place(), flaw);
            None
        }
        (None, None) => {
            let flaw = "has neither targetAverageUtilization nor targetAverageValue; write one of them";
            problems.refuse_place(fields.own_place(), flaw);
            None
        }
    }
}

/// An average goes before a value, which then may be anything: what newer versions turn into this one writes zero there.
fn object_target(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<TotalTarget> {
    let before = problems.refusals.len();
    if let Some(average) = fields.amount("averageValue", problems) {
        fields.ignore(&["targetValue"]);
        return Some(TotalTarget::AverageValue(average));
    }
    let value = fields.amount("targetValue", problems);
    if value.is_none() && problems.refusals.len() == before {
        let flaw = "has neither targetValue nor averageValue; write one of them";
        problems.refuse_place(fields.own_place(), flaw);
    }
    value.map(TotalTarget::Value)
}

fn external_target(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<TotalTarget> {
    let before = problems.refusals.len();
    let value = fields.amount("targetValue", problems);
    let average = fields.amount("targetAverageValue", problems);
    if problems.refusals.len() > before {
        return None;
    }
    match (value, average) {
        (Some(value), None) => Some(TotalTarget::Value(value)),
        (None, Some(value)) => Some(TotalTarget::AverageValue(value)),
        (Some(_), Some(_)) => {
            let flaw = "has both targetValue and targetAverageValue; remove one of them";
            problems.refuse_place(fields.own_place(), flaw);
            None
        }
        (None, None) => {
            let flaw = "has neither targetValue nor targetAverageValue; write one of them";
            problems.refuse_place(fields.own_place(), flaw);
            None
        }
    }
}
