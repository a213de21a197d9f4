//! A document as `autoscaling/v2` writes it: what [`super::reading`] reads, the other way.

use std::fmt::Write as _;

use vocabulary::MilliValue;

use super::behavior::{Behavior, PolicyAmount, RulesOrigin, ScalingRules, SelectPolicy};
use super::reading::{DocumentNode, HpaDocument};
use super::selector::{LabelCondition, LabelSelector};
use super::spec::{MetricIdentifier, MetricSpec, ResourceTarget, TotalTarget};

/// The `spec` of a document, without a target to scale.
pub fn spec_of(document: &HpaDocument) -> DocumentNode {
    let mut fields = vec![
        ("minReplicas", integer(document.min.value())),
        ("maxReplicas", integer(document.max.value())),
        ("metrics", DocumentNode::List(document.metrics.iter().map(metric).collect())),
    ];
    fields.extend(document.behavior.as_ref().map(|written| ("behavior", behavior(written))));
    map(fields)
}

/// Block style, as people write it.
pub fn yaml_of(node: &DocumentNode) -> String {
    let mut text = String::new();
    write_block(&mut text, node, 0);
    text
}

fn map(fields: Vec<(&str, DocumentNode)>) -> DocumentNode {
    DocumentNode::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn text(value: &str) -> DocumentNode {
    DocumentNode::Text(value.to_owned())
}

fn integer(value: u32) -> DocumentNode {
    DocumentNode::Integer(value.into())
}

fn metric(metric: &MetricSpec) -> DocumentNode {
    let (kind, field, body) = match metric {
        MetricSpec::Resource { resource, container: None, target } => (
            "Resource",
            "resource",
            vec![("name", text(resource.name())), ("target", resource_target(*target))],
        ),
        MetricSpec::Resource { resource, container: Some(container), target } => (
            "ContainerResource",
            "containerResource",
            vec![
                ("name", text(resource.name())),
                ("container", text(container)),
                ("target", resource_target(*target)),
            ],
        ),
        MetricSpec::Pods { metric, target } => {
            ("Pods", "pods", vec![("metric", identifier(metric)), ("target", average(*target))])
        }
        MetricSpec::Own { target, .. } => {
            let named = map(vec![("name", text(metric.name()))]);
            ("Pods", "pods", vec![("metric", named), ("target", average(*target))])
        }
        MetricSpec::Object { described, metric, target } => {
            let mut object = Vec::new();
            if !described.api_version.is_empty() {
                object.push(("apiVersion", text(&described.api_version)));
            }
            object.extend([("kind", text(&described.kind)), ("name", text(&described.name))]);
            let body = vec![
                ("describedObject", map(object)),
                ("metric", identifier(metric)),
                ("target", total_target(*target)),
            ];
            ("Object", "object", body)
        }
        MetricSpec::External { metric, target } => {
            ("External", "external", vec![("metric", identifier(metric)), ("target", total_target(*target))])
        }
    };
    map(vec![("type", text(kind)), (field, map(body))])
}

fn average(value: MilliValue) -> DocumentNode {
    map(vec![("type", text("AverageValue")), ("averageValue", text(&value.to_string()))])
}

fn resource_target(target: ResourceTarget) -> DocumentNode {
    match target {
        ResourceTarget::Utilization(percent) => {
            map(vec![("type", text("Utilization")), ("averageUtilization", integer(percent))])
        }
        ResourceTarget::AverageValue(value) => average(value),
    }
}

fn total_target(target: TotalTarget) -> DocumentNode {
    match target {
        TotalTarget::Value(value) => map(vec![("type", text("Value")), ("value", text(&value.to_string()))]),
        TotalTarget::AverageValue(value) => average(value),
    }
}

fn identifier(metric: &MetricIdentifier) -> DocumentNode {
    let mut fields = vec![("name", text(&metric.name))];
    if metric.selector != LabelSelector::default() {
        fields.push(("selector", selector(&metric.selector)));
    }
    map(fields)
}

fn selector(selector: &LabelSelector) -> DocumentNode {
    let mut labels = Vec::new();
    let mut expressions = Vec::new();
    for requirement in selector.requirements() {
        let values = |values: &[Box<str>]| {
            ("values", DocumentNode::List(values.iter().map(|value| text(value)).collect()))
        };
        let (operator, values) = match &requirement.condition {
            LabelCondition::Equals(value) => {
                labels.push((requirement.label.to_string(), text(value)));
                continue;
            }
            LabelCondition::In(any) => ("In", Some(values(any))),
            LabelCondition::NotIn(none) => ("NotIn", Some(values(none))),
            LabelCondition::Exists => ("Exists", None),
            LabelCondition::DoesNotExist => ("DoesNotExist", None),
        };
        let mut expression = vec![("key", text(&requirement.label)), ("operator", text(operator))];
        expression.extend(values);
        expressions.push(map(expression));
    }
    let mut fields = Vec::new();
    if !labels.is_empty() {
        fields.push(("matchLabels", DocumentNode::Map(labels)));
    }
    if !expressions.is_empty() {
        fields.push(("matchExpressions", DocumentNode::List(expressions)));
    }
    map(fields)
}

/// A direction that the document did not write has its defaults without it.
fn behavior(behavior: &Behavior) -> DocumentNode {
    let directions = [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)];
    let written = directions.into_iter().filter(|(_, rules)| rules.origin == RulesOrigin::Document);
    map(written.map(|(name, rules)| (name, direction(rules))).collect())
}

fn direction(rules: &ScalingRules) -> DocumentNode {
    let mut fields = Vec::new();
    if let Some(window) = rules.stabilization_window {
        let seconds = u32::try_from(window.as_secs()).unwrap_or(u32::MAX);
        fields.push(("stabilizationWindowSeconds", integer(seconds)));
    }
    let select = match rules.select_policy {
        SelectPolicy::Max => "Max",
        SelectPolicy::Min => "Min",
        SelectPolicy::Disabled => "Disabled",
    };
    fields.push(("selectPolicy", text(select)));
    let policies = rules.policies.iter().map(|policy| {
        let (kind, value) = match policy.amount {
            PolicyAmount::Pods(value) => ("Pods", value),
            PolicyAmount::Percent(value) => ("Percent", value),
        };
        let seconds = u32::try_from(policy.period.as_secs()).unwrap_or(u32::MAX);
        map(vec![("type", text(kind)), ("value", integer(value)), ("periodSeconds", integer(seconds))])
    });
    fields.push(("policies", DocumentNode::List(policies.collect())));
    fields.extend(rules.tolerance.map(|tolerance| ("tolerance", text(&share(tolerance)))));
    map(fields)
}

/// In billionths, the finest that a quantity has: a double may be a little more than what it was read from,
/// which would be rounded up.
fn share(tolerance: f64) -> String {
    let written = format!("{tolerance:.9}");
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn write_block(to: &mut String, node: &DocumentNode, depth: usize) {
    match node {
        DocumentNode::Map(entries) => {
            for (index, (name, value)) in entries.iter().enumerate() {
                if index > 0 {
                    indent(to, depth);
                }
                to.push_str(&scalar(&DocumentNode::Text(name.clone())));
                to.push(':');
                write_value(to, value, depth);
            }
        }
        DocumentNode::List(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    indent(to, depth);
                }
                to.push_str("- ");
                if is_collection(item) {
                    write_block(to, item, depth + 1);
                } else {
                    let _ = writeln!(to, "{}", scalar(item));
                }
            }
        }
        DocumentNode::Null
        | DocumentNode::Boolean(_)
        | DocumentNode::Integer(_)
        | DocumentNode::Float(_)
        | DocumentNode::Text(_) => {
            let _ = writeln!(to, "{}", scalar(node));
        }
    }
}

/// The value after a name: on the same line, or below it.
fn write_value(to: &mut String, value: &DocumentNode, depth: usize) {
    match value {
        DocumentNode::Map(entries) if entries.is_empty() => to.push_str(" {}\n"),
        DocumentNode::List(items) if items.is_empty() => to.push_str(" []\n"),
        DocumentNode::Map(_) | DocumentNode::List(_) => {
            to.push('\n');
            indent(to, depth + 1);
            write_block(to, value, depth + 1);
        }
        DocumentNode::Null
        | DocumentNode::Boolean(_)
        | DocumentNode::Integer(_)
        | DocumentNode::Float(_)
        | DocumentNode::Text(_) => {
            let _ = writeln!(to, " {}", scalar(value));
        }
    }
}

fn is_collection(node: &DocumentNode) -> bool {
    match node {
        DocumentNode::Map(entries) => !entries.is_empty(),
        DocumentNode::List(items) => !items.is_empty(),
        DocumentNode::Null
        | DocumentNode::Boolean(_)
        | DocumentNode::Integer(_)
        | DocumentNode::Float(_)
        | DocumentNode::Text(_) => false,
    }
}

fn indent(to: &mut String, depth: usize) {
    for _ in 0..depth {
        to.push_str("  ");
    }
}

/// A text in quotes unless it can only be a text.
fn scalar(node: &DocumentNode) -> String {
    /// Plain words that YAML, in one version or another, takes for something else.
    const TAKEN: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    match node {
        DocumentNode::Null => "null".to_owned(),
        DocumentNode::Boolean(value) => value.to_string(),
        DocumentNode::Integer(value) => value.to_string(),
        DocumentNode::Float(value) => value.to_string(),
        DocumentNode::Map(_) => "{}".to_owned(),
        DocumentNode::List(_) => "[]".to_owned(),
        DocumentNode::Text(text) => {
            let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
                && text.chars().all(|one| one.is_ascii_alphanumeric() || "._-/".contains(one))
                && !TAKEN.contains(&text.to_lowercase().as_str());
            if is_plain { text.clone() } else { format!("{text:?}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::read_spec;
    use super::*;

    /// The round trip goes through YAML.
    #[test]
    fn a_written_document_reads_back_as_itself() {
        for document in [
            "{maxReplicas: 3}",
            "{minReplicas: 0, maxReplicas: 10, metrics: [\
             {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 50Mi}}}, \
             {type: ContainerResource, containerResource: {name: cpu, container: app, target: {type: Utilization, averageUtilization: 70}}}, \
             {type: Pods, pods: {metric: {name: packets, selector: {matchLabels: {a: b, c: 'true'}, \
             matchExpressions: [{key: d, operator: NotIn, values: ['1', 'y']}, {key: e, operator: Exists}]}}, \
             target: {type: AverageValue, averageValue: 1500m}}}, \
             {type: Pods, pods: {metric: {name: ebb.rps}, target: {type: AverageValue, averageValue: 7}}}, \
             {type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: web}, metric: {name: hits}, \
             target: {type: Value, value: 2k}}}, \
             {type: External, external: {metric: {name: jobs}, target: {type: AverageValue, averageValue: 30}}}], \
             behavior: {scaleDown: {stabilizationWindowSeconds: 60, selectPolicy: Min, tolerance: 9m, policies: [\
             {type: Pods, value: 4, periodSeconds: 60}, {type: Percent, value: 10, periodSeconds: 60}]}}}",
            "{maxReplicas: 3, behavior: {scaleUp: {selectPolicy: Disabled}}}",
            "{maxReplicas: 3, behavior: {scaleUp: {tolerance: 12500u}, scaleDown: {tolerance: 10}}}",
        ] {
            let read = |text: &str| {
                let node: DocumentNode =
                    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
                read_spec(&node, "spec").unwrap_or_else(|problems| panic!("{problems:?}\n{text}")).value
            };
            let first = read(document);
            let written = yaml_of(&spec_of(&first));
            assert_eq!(read(&written), first, "{written}");
        }
    }
}
