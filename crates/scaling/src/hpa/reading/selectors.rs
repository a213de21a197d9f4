//! Label selectors: `matchLabels` and `matchExpressions`.

use super::names::{is_label_key, is_label_value};
use super::node::Node;
use super::problems::{Fields, Problems, Spelling};
use crate::hpa::selector::{LabelCondition, LabelRequirement, LabelSelector};

/// A selector; without one, everything is selected.
pub(super) fn read(node: Option<&Node>, place: &str, problems: &mut Problems) -> LabelSelector {
    let Some(mut fields) = node.and_then(|node| Fields::of(node, place, Spelling::Exact, problems)) else {
        return LabelSelector::default();
    };
    let mut requirements = Vec::new();
    let labels_place = fields.place("matchLabels");
    match fields.take("matchLabels") {
        Some(Node::Map(labels)) => {
            for (label, value) in labels {
                requirements.extend(equality(label, value, &labels_place, problems));
            }
        }
        Some(other) => problems.refuse(&labels_place, other, "is no mapping; write labels with their values"),
        None => {}
    }
    for (index, node) in fields.list("matchExpressions", problems).unwrap_or_default().iter().enumerate() {
        let place = format!("{}[{index}]", fields.place("matchExpressions"));
        requirements.extend(expression(node, &place, problems));
    }
    fields.finish(problems);
    LabelSelector::new(requirements)
}

fn equality(label: &str, value: &Node, place: &str, problems: &mut Problems) -> Option<LabelRequirement> {
    let place = format!("{place}.{label}");
    let Node::Text(text) = value else {
        problems.refuse(&place, value, "is no text; write it in quotes");
        return None;
    };
    check_label(label, &place, problems)?;
    check_value(text, &place, problems)?;
    Some(LabelRequirement { label: label.into(), condition: LabelCondition::Equals(text.as_str().into()) })
}

fn expression(node: &Node, place: &str, problems: &mut Problems) -> Option<LabelRequirement> {
    let mut fields = Fields::of(node, place, Spelling::Exact, problems)?;
    let label = fields.required_text("key", "the label", problems);
    let operator = fields.required_text("operator", "In, NotIn, Exists or DoesNotExist", problems);
    let values_place = fields.place("values");
    let mut values: Vec<Box<str>> = Vec::new();
    for (index, value) in fields.list("values", problems).unwrap_or_default().iter().enumerate() {
        let place = format!("{values_place}[{index}]");
        let Node::Text(text) = value else {
            problems.refuse(&place, value, "is no text; write it in quotes");
            continue;
        };
        values.extend(check_value(text, &place, problems).map(|()| Box::from(text.as_str())));
    }
    let operator_place = fields.place("operator");
    fields.finish(problems);
    let label = label?;
    check_label(label, place, problems)?;
    let condition = match operator? {
        "In" | "NotIn" if values.is_empty() => {
            problems.refuse_place(&values_place, "is empty; write at least one value");
            return None;
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            problems.refuse_place(
                &values_place,
                "is not asked by this operator; remove it, or write In or NotIn",
            );
            return None;
        }
        "In" => LabelCondition::In(values),
        "NotIn" => LabelCondition::NotIn(values),
        "Exists" => LabelCondition::Exists,
        "DoesNotExist" => LabelCondition::DoesNotExist,
        other => {
            let other = Node::Text(other.to_owned());
            problems.refuse(
                &operator_place,
                &other,
                "is no operator; write In, NotIn, Exists or DoesNotExist",
            );
            return None;
        }
    };
    Some(LabelRequirement { label: label.into(), condition })
}

fn check_label(label: &str, place: &str, problems: &mut Problems) -> Option<()> {
    if is_label_key(label) {
        return Some(());
    }
    let flaw = format!(
        "names the label {label:?}, which no label can be called; write letters, digits, \"-\", \"_\" and \".\", at most 63"
    );
    problems.refuse_place(place, &flaw);
    None
}

fn check_value(value: &str, place: &str, problems: &mut Problems) -> Option<()> {
    if is_label_value(value) {
        return Some(());
    }
    let value = Node::Text(value.to_owned());
    problems.refuse(
        place,
        &value,
        "no label can have as its value; write letters, digits, \"-\", \"_\" and \".\", at most 63",
    );
    None
}
