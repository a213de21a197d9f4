//! `metrics`, as `v2` and `v2beta2` write them: each entry has a type, one body of that type, and in it a target.

use vocabulary::MilliValue;

use super::names::{is_dns_label, is_path_segment};
use super::node::Node;
use super::problems::{Fields, Problems, Spelling};
use super::selectors;
use crate::config::Metric;
use crate::hpa::spec::{
    MetricIdentifier, MetricSpec, ObjectReference, ResourceName, ResourceTarget, TotalTarget, own_metric_name,
};

/// The bodies that an entry may have, each under the name of its type in lower case.
const BODIES: [(&str, &str); 5] = [
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("Pods", "pods"),
    ("Object", "object"),
    ("External", "external"),
];

/// How the body of one type is read.
pub(super) type ReadBody = fn(&str, &mut Fields<'_>, &mut Problems) -> Option<MetricSpec>;

/// The whole list.
pub(super) fn read(list: &[Node], place: &str, body: ReadBody, problems: &mut Problems) -> Vec<MetricSpec> {
    let entries = list.iter().enumerate();
    entries.filter_map(|(index, node)| entry(node, &format!("{place}[{index}]"), body, problems)).collect()
}

fn entry(node: &Node, place: &str, read_body: ReadBody, problems: &mut Problems) -> Option<MetricSpec> {
    let mut fields = Fields::of(node, place, Spelling::Exact, problems)?;
    let kind =
        fields.required_text("type", "Resource, ContainerResource, Pods, Object or External", problems);
    let type_place = fields.place("type");
    let mut read = None;
    for (name, body) in BODIES {
        let place = fields.place(body);
        let written = fields.take(body);
        match (written, kind == Some(name)) {
            (Some(node), true) => {
                if let Some(mut inner) = Fields::of(node, &place, Spelling::Exact, problems) {
                    read = read_body(name, &mut inner, problems);
                    inner.finish(problems);
                }
            }
            (Some(_), false) if kind.is_some() => {
                let flaw = format!(
                    "does not belong to a metric of type {}; remove it, or make it an entry of its own",
                    kind.unwrap_or_default()
                );
                problems.refuse_place(&place, &flaw);
            }
            (None, true) => {
                problems.refuse_place(&place, "is missing; a metric has one body, named for its type");
            }
            (Some(_) | None, false) => {}
        }
    }
    fields.finish(problems);
    let kind = kind?;
    if BODIES.iter().all(|(name, _)| *name != kind) {
        let flaw = "is no type of metric; write Resource, ContainerResource, Pods, Object or External";
        problems.refuse(&type_place, &Node::Text(kind.to_owned()), flaw);
    }
    read
}

/// A body whose target is nested.
pub(super) fn nested_body(
    kind: &str,
    fields: &mut Fields<'_>,
    problems: &mut Problems,
) -> Option<MetricSpec> {
    match kind {
        "Resource" | "ContainerResource" => {
            let resource = resource(fields, problems);
            let container =
                if kind == "Resource" { Some(None) } else { container(fields, problems).map(Some) };
            let target = target(fields, problems).and_then(|target| target.of_resource(problems));
            Some(MetricSpec::Resource { resource: resource?, container: container?, target: target? })
        }
        "Pods" => {
            let metric = identifier(fields, problems);
            let target = target(fields, problems).and_then(|target| target.of_pods(problems));
            pods(metric?, target?, fields, problems)
        }
        "Object" => {
            let described = reference(fields, "describedObject", problems);
            let metric = identifier(fields, problems);
            let target = target(fields, problems).and_then(|target| target.of_object(problems));
            Some(MetricSpec::Object { described: described?, metric: metric?, target: target? })
        }
        _ => {
            let metric = identifier(fields, problems);
            let target = target(fields, problems).and_then(|target| target.of_external(problems));
            Some(MetricSpec::External { metric: metric?, target: target? })
        }
    }
}

pub(super) fn resource(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<ResourceName> {
    let name = fields.required_text("name", "the resource, such as \"cpu\" or \"memory\"", problems)?;
    Some(ResourceName::new(name))
}

pub(super) fn container(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Box<str>> {
    let name = fields.required_text("container", "the name of a container", problems)?;
    if !is_dns_label(name) {
        let flaw = "no container can be called; write lower-case letters, digits and \"-\", at most 63";
        problems.refuse(&fields.place("container"), &Node::Text(name.to_owned()), flaw);
        return None;
    }
    Some(name.into())
}

fn identifier(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<MetricIdentifier> {
    let place = fields.place("metric");
    let Some(node) = fields.take("metric") else {
        problems.refuse_place(&place, "is missing; write the metric with its name");
        return None;
    };
    let mut metric = Fields::of(node, &place, Spelling::Exact, problems)?;
    let identifier = named(&mut metric, "name", "selector", problems);
    metric.finish(problems);
    identifier
}

/// A metric's name and selector, under the names that the version gives them.
pub(super) fn named(
    fields: &mut Fields<'_>,
    name: &'static str,
    selector: &'static str,
    problems: &mut Problems,
) -> Option<MetricIdentifier> {
    let text = fields.required_text(name, "the name of the metric", problems);
    let place = fields.place(selector);
    let selector = selectors::read(fields.take(selector), &place, problems);
    let text = text?;
    if !is_path_segment(text) {
        let flaw = "no metric can be called; write a name without \"/\" and \"%\"";
        problems.refuse(&fields.place(name), &Node::Text(text.to_owned()), flaw);
        return None;
    }
    Some(MetricIdentifier { name: text.into(), selector })
}

pub(super) fn reference(
    fields: &mut Fields<'_>,
    name: &'static str,
    problems: &mut Problems,
) -> Option<ObjectReference> {
    let place = fields.place(name);
    let Some(node) = fields.take(name) else {
        problems.refuse_place(&place, "is missing; write an object with kind and name");
        return None;
    };
    let mut inner = Fields::of(node, &place, Spelling::Exact, problems)?;
    let reference = object(&mut inner, problems);
    inner.finish(problems);
    reference
}

/// `apiVersion`, `kind` and `name`.
fn object(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<ObjectReference> {
    let api_version = fields.text("apiVersion", problems).unwrap_or_default();
    let kind = fields.required_text("kind", "the kind of the object, such as \"Deployment\"", problems);
    let name = fields.required_text("name", "the name of the object", problems);
    if api_version.split('/').count() > 2 {
        let flaw = "is no group with a version; write something like \"apps/v1\"";
        problems.refuse(&fields.place("apiVersion"), &Node::Text(api_version.to_owned()), flaw);
        return None;
    }
    let (kind, name) = (kind?, name?);
    for (field, text) in [("kind", kind), ("name", name)] {
        if !is_path_segment(text) {
            let flaw = "no object can be called; write it without \"/\" and \"%\"";
            problems.refuse(&fields.place(field), &Node::Text(text.to_owned()), flaw);
            return None;
        }
    }
    Some(ObjectReference { api_version: api_version.into(), kind: kind.into(), name: name.into() })
}

/// A metric of pods, which is one of our own if it has such a name.
pub(super) fn pods(
    metric: MetricIdentifier,
    target: MilliValue,
    fields: &Fields<'_>,
    problems: &mut Problems,
) -> Option<MetricSpec> {
    let own =
        [Metric::Concurrency, Metric::Rps].into_iter().find(|own| own_metric_name(*own) == &*metric.name);
    match own {
        Some(_) if !metric.selector.requirements().is_empty() => {
            let flaw = format!(
                "selects series of {}, which has none: every pod is measured; remove the selector",
                metric.name
            );
            problems.refuse_place(fields.own_place(), &flaw);
            None
        }
        Some(metric) => Some(MetricSpec::Own { metric, target }),
        None if metric.name.starts_with("ebb.") => {
            let flaw = "is not measured by ebb; write \"ebb.concurrency\" or \"ebb.rps\"";
            problems.refuse(fields.own_place(), &Node::Text(metric.name.into()), flaw);
            None
        }
        None => Some(MetricSpec::Pods { metric, target }),
    }
}

/// A target as it is written.
struct Target {
    place: String,
    kind: TargetKind,
    value: Option<MilliValue>,
    average_value: Option<MilliValue>,
    average_utilization: Option<u32>,
}

/// `target.type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    Utilization,
    Value,
    AverageValue,
}

fn target(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Target> {
    let place = fields.place("target");
    let Some(node) = fields.take("target") else {
        problems.refuse_place(&place, "is missing; write what to aim at, with its type");
        return None;
    };
    let before = problems.refusals.len();
    let mut inner = Fields::of(node, &place, Spelling::Exact, problems)?;
    let kind = match inner.required_text("type", "Utilization, Value or AverageValue", problems) {
        None => None,
        Some("Utilization") => Some(TargetKind::Utilization),
        Some("Value") => Some(TargetKind::Value),
        Some("AverageValue") => Some(TargetKind::AverageValue),
        Some(other) => {
            let flaw = "is no type of target; write Utilization, Value or AverageValue";
            problems.refuse(&inner.place("type"), &Node::Text(other.to_owned()), flaw);
            None
        }
    };
    let value = inner.amount("value", problems);
    let average_value = inner.amount("averageValue", problems);
    let average_utilization = inner.integer("averageUtilization", 1, i64::from(i32::MAX), problems);
    inner.finish(problems);
    // What is wrong with a field was said; that it is therefore missing need not be.
    let kind = kind.filter(|_| problems.refusals.len() == before)?;
    Some(Target { place, kind, value, average_value, average_utilization })
}

impl Target {
    /// The type is not looked at, as in Kubernetes: which field is there says enough.
    fn of_resource(self, problems: &mut Problems) -> Option<ResourceTarget> {
        match (self.average_utilization, self.average_value) {
            (Some(percent), None) => Some(ResourceTarget::Utilization(percent)),
            (None, Some(value)) => Some(ResourceTarget::AverageValue(value)),
            (Some(_), Some(_)) => {
                let flaw = "has both averageUtilization and averageValue; remove one of them";
                problems.refuse_place(&self.place, flaw);
                None
            }
            (None, None) => {
                let flaw = "has neither averageUtilization nor averageValue; write one of them";
                problems.refuse_place(&self.place, flaw);
                None
            }
        }
    }

    fn of_pods(self, problems: &mut Problems) -> Option<MilliValue> {
        if self.average_value.is_none() {
            problems.refuse_place(
                &self.place,
                "has no averageValue, the only target of a metric of pods; write one",
            );
        } else if self.value.is_some() || self.average_utilization.is_some() {
            problems
                .warn(&self.place, "has more than averageValue, which alone is looked at; remove the others");
        }
        self.average_value
    }

    fn of_object(self, problems: &mut Problems) -> Option<TotalTarget> {
        let (chosen, name) = match self.kind {
            TargetKind::Value => (self.value.map(TotalTarget::Value), "value"),
            TargetKind::AverageValue => (self.average_value.map(TotalTarget::AverageValue), "averageValue"),
            TargetKind::Utilization => {
                let flaw =
                    "has type Utilization, which is for resources of pods; write Value or AverageValue";
                problems.refuse_place(&self.place, flaw);
                return None;
            }
        };
        if chosen.is_none() {
            problems.refuse_place(&self.place, &format!("has no {name}, which its type asks for; write one"));
        }
        chosen
    }

    fn of_external(self, problems: &mut Problems) -> Option<TotalTarget> {
        match (self.value, self.average_value) {
            (Some(value), None) => Some(TotalTarget::Value(value)),
            (None, Some(value)) => Some(TotalTarget::AverageValue(value)),
            (Some(_), Some(_)) => {
                problems.refuse_place(&self.place, "has both value and averageValue; remove one of them");
                None
            }
            (None, None) => {
                problems.refuse_place(&self.place, "has neither value nor averageValue; write one of them");
                None
            }
        }
    }
}
