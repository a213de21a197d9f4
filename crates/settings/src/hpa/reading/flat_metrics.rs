//! `metrics`, as `v2beta1` and the annotation of `v1` write them: the fields of a target beside those of the
//! metric.

use vocabulary::Findings;

use super::document_fields::DocumentFields;
use super::metric_target::written_target;
use super::metrics::{container, named, pods, reference, resource};
use crate::hpa::spec::{MetricSpec, ResourceTarget, TotalTarget};

/// A body whose target is flat.
pub(super) fn flat_body(
    kind: &str,
    fields: &mut DocumentFields<'_>,
    findings: &mut Findings,
) -> Option<MetricSpec> {
    match kind {
        "Resource" | "ContainerResource" => {
            let resource = resource(fields, findings);
            let container =
                if kind == "Resource" { Some(None) } else { container(fields, findings).map(Some) };
            let target = resource_target(fields, findings);
            Some(MetricSpec::Resource { resource: resource?, container: container?, target: target? })
        }
        "Pods" => {
            let metric = named(fields, "metricName", "selector", findings);
            let before = findings.problems.len();
            let target = fields.amount("targetAverageValue", findings);
            if target.is_none() && findings.problems.len() == before {
                let flaw = "is missing; write the average to aim at";
                findings.refuse_place(&fields.place("targetAverageValue"), flaw);
            }
            pods(metric?, target?, fields, findings)
        }
        "Object" => {
            let described = reference(fields, "target", findings);
            let metric = named(fields, "metricName", "selector", findings);
            let target = object_target(fields, findings);
            Some(MetricSpec::Object { described: described?, metric: metric?, target: target? })
        }
        _ => {
            let metric = named(fields, "metricName", "metricSelector", findings);
            let target = external_target(fields, findings);
            Some(MetricSpec::External { metric: metric?, target: target? })
        }
    }
}

fn resource_target(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<ResourceTarget> {
    let before = findings.problems.len();
    let percent = fields.integer("targetAverageUtilization", 1, i64::from(i32::MAX), findings);
    let value = fields.amount("targetAverageValue", findings);
    if findings.problems.len() > before {
        return None;
    }
    let written = [
        ("targetAverageUtilization", percent.map(ResourceTarget::Utilization)),
        ("targetAverageValue", value.map(ResourceTarget::AverageValue)),
    ];
    written_target(written, fields.own_place(), findings)
}

/// An average goes before a value, which then may be anything: what newer versions turn into this one writes
/// zero there.
fn object_target(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<TotalTarget> {
    let before = findings.problems.len();
    if let Some(average) = fields.amount("averageValue", findings) {
        fields.ignore(&["targetValue"]);
        return Some(TotalTarget::AverageValue(average));
    }
    let value = fields.amount("targetValue", findings);
    if value.is_none() && findings.problems.len() == before {
        let flaw = "has neither targetValue nor averageValue; write one of them";
        findings.refuse_place(fields.own_place(), flaw);
    }
    value.map(TotalTarget::Value)
}

fn external_target(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<TotalTarget> {
    let before = findings.problems.len();
    let value = fields.amount("targetValue", findings);
    let average = fields.amount("targetAverageValue", findings);
    if findings.problems.len() > before {
        return None;
    }
    let written = [
        ("targetValue", value.map(TotalTarget::Value)),
        ("targetAverageValue", average.map(TotalTarget::AverageValue)),
    ];
    written_target(written, fields.own_place(), findings)
}
