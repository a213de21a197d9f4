//! `metrics`, as `v2` and `v2beta2` write them: each entry has a type, one body of that type, and in it a
//! target.

use vocabulary::{Findings, MilliValue};

use super::document_fields::{DocumentFields, Spelling};
use super::metric_target::target;
use super::names::{is_api_version, is_dns_label, is_dns_subdomain, is_kind, is_path_segment};
use super::node::DocumentNode;
use super::selectors;
use crate::Metric;
use crate::hpa::spec::{MetricIdentifier, MetricSpec, ObjectReference, ResourceName, own_metric_name};

/// The bodies that an entry may have, each under the name of its type in lower case.
const BODIES: [(&str, &str); 5] = [
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("Pods", "pods"),
    ("Object", "object"),
    ("External", "external"),
];

/// Each of them is asked for whenever the document is evaluated, with the rights of the autoscaler.
const METRICS_MAX: usize = 64;

/// How the body of one type is read.
pub(super) type ReadBody = fn(&str, &mut DocumentFields<'_>, &mut Findings) -> Option<MetricSpec>;

/// Reads the whole list of metrics; a list that is too long gives none.
pub(super) fn read(
    list: &[DocumentNode],
    place: &str,
    body: ReadBody,
    findings: &mut Findings,
) -> Vec<MetricSpec> {
    if list.len() > METRICS_MAX {
        let flaw = format!("has {} metrics; write at most {METRICS_MAX}", list.len());
        findings.refuse_place(place, &flaw);
        return Vec::new();
    }
    let entries = list.iter().enumerate();
    entries.filter_map(|(index, node)| entry(node, &format!("{place}[{index}]"), body, findings)).collect()
}

fn entry(
    node: &DocumentNode,
    place: &str,
    read_body: ReadBody,
    findings: &mut Findings,
) -> Option<MetricSpec> {
    let mut fields = DocumentFields::of(node, place, Spelling::Exact, findings)?;
    let kind =
        fields.required_text("type", "Resource, ContainerResource, Pods, Object or External", findings);
    let type_place = fields.place("type");
    let mut read = None;
    for (name, body) in BODIES {
        let place = fields.place(body);
        let written = fields.take(body);
        match (written, kind == Some(name)) {
            (Some(node), true) => {
                if let Some(mut inner) = DocumentFields::of(node, &place, Spelling::Exact, findings) {
                    read = read_body(name, &mut inner, findings);
                    inner.finish(findings);
                }
            }
            (Some(_), false) if kind.is_some() => {
                let flaw = format!(
                    "does not belong to a metric of type {}; remove it, or make it an entry of its own",
                    kind.unwrap_or_default()
                );
                findings.refuse_place(&place, &flaw);
            }
            (None, true) => {
                findings.refuse_place(&place, "is missing; a metric has one body, named for its type");
            }
            (Some(_) | None, false) => {}
        }
    }
    fields.finish(findings);
    let kind = kind?;
    if BODIES.iter().all(|(name, _)| *name != kind) {
        let flaw = "is no type of metric; write Resource, ContainerResource, Pods, Object or External";
        findings.refuse(&type_place, &DocumentNode::Text(kind.to_owned()), flaw);
    }
    read
}

/// A body whose target is nested.
pub(super) fn nested_body(
    kind: &str,
    fields: &mut DocumentFields<'_>,
    findings: &mut Findings,
) -> Option<MetricSpec> {
    match kind {
        "Resource" | "ContainerResource" => {
            let resource = resource(fields, findings);
            let container =
                if kind == "Resource" { Some(None) } else { container(fields, findings).map(Some) };
            let target = target(fields, findings).and_then(|target| target.of_resource(findings));
            Some(MetricSpec::Resource { resource: resource?, container: container?, target: target? })
        }
        "Pods" => {
            let metric = identifier(fields, findings);
            let target = target(fields, findings).and_then(|target| target.of_pods(findings));
            pods(metric?, target?, fields, findings)
        }
        "Object" => {
            let described = reference(fields, "describedObject", findings);
            let metric = identifier(fields, findings);
            let target = target(fields, findings).and_then(|target| target.of_object(findings));
            Some(MetricSpec::Object { described: described?, metric: metric?, target: target? })
        }
        _ => {
            let metric = identifier(fields, findings);
            let target = target(fields, findings).and_then(|target| target.of_external(findings));
            Some(MetricSpec::External { metric: metric?, target: target? })
        }
    }
}

pub(super) fn resource(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<ResourceName> {
    let name = fields.required_text("name", "the resource, such as \"cpu\" or \"memory\"", findings)?;
    Some(ResourceName::new(name))
}

pub(super) fn container(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<Box<str>> {
    let name = fields.required_text("container", "the name of a container", findings)?;
    if !is_dns_label(name) {
        let flaw = "no container can be called; write lower-case letters, digits and \"-\", at most 63";
        findings.refuse(&fields.place("container"), &DocumentNode::Text(name.to_owned()), flaw);
        return None;
    }
    Some(name.into())
}

fn identifier(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<MetricIdentifier> {
    let place = fields.place("metric");
    let Some(node) = fields.take("metric") else {
        findings.refuse_place(&place, "is missing; write the metric with its name");
        return None;
    };
    let mut metric = DocumentFields::of(node, &place, Spelling::Exact, findings)?;
    let identifier = named(&mut metric, "name", "selector", findings);
    metric.finish(findings);
    identifier
}

/// A metric's name and selector, under the names that the version gives them.
pub(super) fn named(
    fields: &mut DocumentFields<'_>,
    name: &'static str,
    selector: &'static str,
    findings: &mut Findings,
) -> Option<MetricIdentifier> {
    let text = fields.required_text(name, "the name of the metric", findings);
    let place = fields.place(selector);
    let selector = selectors::read(fields.take(selector), &place, findings);
    let text = text?;
    if !is_path_segment(text) {
        let flaw = "no metric can be called; write a name without \"/\" and \"%\"";
        findings.refuse(&fields.place(name), &DocumentNode::Text(text.to_owned()), flaw);
        return None;
    }
    Some(MetricIdentifier { name: text.into(), selector })
}

pub(super) fn reference(
    fields: &mut DocumentFields<'_>,
    name: &'static str,
    findings: &mut Findings,
) -> Option<ObjectReference> {
    let place = fields.place(name);
    let Some(node) = fields.take(name) else {
        findings.refuse_place(&place, "is missing; write an object with kind and name");
        return None;
    };
    let mut inner = DocumentFields::of(node, &place, Spelling::Exact, findings)?;
    let reference = object(&mut inner, findings);
    inner.finish(findings);
    reference
}

/// Reads the fields `apiVersion`, `kind` and `name` of a reference.
fn object(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<ObjectReference> {
    let api_version = fields.text("apiVersion", findings).unwrap_or_default();
    let kind = fields.required_text("kind", "the kind of the object, such as \"Deployment\"", findings);
    let name = fields.required_text("name", "the name of the object", findings);
    if !api_version.is_empty() && !is_api_version(api_version) {
        let flaw = "is no group with a version; write something like \"apps/v1\"";
        findings.refuse(&fields.place("apiVersion"), &DocumentNode::Text(api_version.to_owned()), flaw);
        return None;
    }
    let (kind, name) = (kind?, name?);
    let letters = "no kind can be called; write letters and digits";
    let dns = "no object can be called; write lower-case letters, digits, \"-\" and \".\", at most 253";
    for (field, text, is_good, flaw) in
        [("kind", kind, is_kind(kind), letters), ("name", name, is_dns_subdomain(name), dns)]
    {
        if !is_good {
            let leads_out = "no object can be called; write it without \"/\" and \"%\"";
            let flaw = if text.contains(['/', '%']) { leads_out } else { flaw };
            findings.refuse(&fields.place(field), &DocumentNode::Text(text.to_owned()), flaw);
            return None;
        }
    }
    Some(ObjectReference { api_version: api_version.into(), kind: kind.into(), name: name.into() })
}

/// A metric of pods, which is one of our own if it has such a name.
pub(super) fn pods(
    metric: MetricIdentifier,
    target: MilliValue,
    fields: &DocumentFields<'_>,
    findings: &mut Findings,
) -> Option<MetricSpec> {
    let own =
        [Metric::Concurrency, Metric::Rps].into_iter().find(|own| own_metric_name(*own) == &*metric.name);
    match own {
        Some(_) if !metric.selector.requirements().is_empty() => {
            let flaw = format!(
                "selects series of {}, which has none: every pod is measured; remove the selector",
                metric.name
            );
            findings.refuse_place(fields.own_place(), &flaw);
            None
        }
        Some(metric) => Some(MetricSpec::Own { metric, target }),
        None if metric.name.starts_with("ebb.") => {
            let flaw = "is not measured by ebb; write \"ebb.concurrency\" or \"ebb.rps\"";
            findings.refuse(fields.own_place(), &DocumentNode::Text(metric.name.into()), flaw);
            None
        }
        None => Some(MetricSpec::Pods { metric, target }),
    }
}
