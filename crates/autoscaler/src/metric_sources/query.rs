//! How is a metric of a document asked for in `PromQL`?
//!
//! The metric's name is that of a recorded series and its selector becomes matchers, so no person who may
//! write a document can write a query. A document that asks for an external metric gets that of its own
//! namespace, unless the admin says that series have no such label. All series are summed by the server.

use std::fmt::Write as _;

use settings::hpa::{LabelCondition, LabelSelector, MetricIdentifier, MetricSpec, ObjectReference};

/// The query for a metric, or why there is none. `namespace_label` is empty where series have no namespace.
pub(super) fn query_of(
    metric: &MetricSpec,
    namespace: &str,
    namespace_label: &str,
) -> Result<String, String> {
    match metric {
        MetricSpec::External { metric, .. } => {
            let matchers = match namespace_label {
                "" => Vec::new(),
                label => vec![(label.to_owned(), namespace.to_owned())],
            };
            query(metric, &matchers)
        }
        MetricSpec::Object { described: ObjectReference { kind, name, .. }, metric, .. } => {
            let label = if namespace_label.is_empty() { "namespace" } else { namespace_label };
            let matchers =
                [(label.to_owned(), namespace.to_owned()), (kind.to_lowercase(), name.to_string())];
            query(metric, &matchers)
        }
        MetricSpec::Pods { .. } => {
            Err("metrics of pods other than cpu, memory, ebb.concurrency and ebb.rps have no \
                                        source here; write it as type External"
                .to_owned())
        }
        MetricSpec::Resource { .. } | MetricSpec::Own { .. } => Err("pods report it themselves".to_owned()),
    }
}

fn query(metric: &MetricIdentifier, ours: &[(String, String)]) -> Result<String, String> {
    let mut matchers = format!("__name__={}", quoted(&metric.name));
    for (label, value) in ours {
        add(&mut matchers, label, "=", value)?;
    }
    add_selector(&mut matchers, &metric.selector)?;
    Ok(format!("sum({{{matchers}}})"))
}

fn add_selector(matchers: &mut String, selector: &LabelSelector) -> Result<(), String> {
    for requirement in selector.requirements() {
        let label = &requirement.label;
        match &requirement.condition {
            LabelCondition::Equals(value) => add(matchers, label, "=", value)?,
            LabelCondition::In(values) => add(matchers, label, "=~", &alternatives(values))?,
            LabelCondition::NotIn(values) => add(matchers, label, "!~", &alternatives(values))?,
            LabelCondition::Exists => add(matchers, label, "!=", "")?,
            LabelCondition::DoesNotExist => add(matchers, label, "=", "")?,
        }
    }
    Ok(())
}

fn add(matchers: &mut String, label: &str, operator: &str, value: &str) -> Result<(), String> {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_label = label.bytes().next().is_some_and(is_first)
        && label.bytes().all(|byte| is_first(byte) || byte.is_ascii_digit());
    if !is_label {
        return Err(format!("{label:?} is no label of Prometheus; labels there are of a-z, A-Z, 0-9 and _"));
    }
    let _ = write!(matchers, ",{label}{operator}{}", quoted(value));
    Ok(())
}

/// Any of these, to the letter: matchers are anchored at both ends.
fn alternatives(values: &[Box<str>]) -> String {
    let escaped = values.iter().map(|value| {
        let mut text = String::new();
        for character in value.chars() {
            if character.is_ascii_punctuation() {
                text.push('\\');
            }
            text.push(character);
        }
        text
    });
    escaped.collect::<Vec<_>>().join("|")
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
