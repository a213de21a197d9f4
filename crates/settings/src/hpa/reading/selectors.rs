//! Label selectors: `matchLabels` and `matchExpressions`.

use vocabulary::Findings;

use super::document_fields::{DocumentFields, Spelling};
use super::names::{is_label_key, is_label_value};
use super::node::DocumentNode;
use crate::hpa::selector::{LabelCondition, LabelRequirement, LabelSelector};

/// A selector; without one, everything is selected.
pub(super) fn read(node: Option<&DocumentNode>, place: &str, findings: &mut Findings) -> LabelSelector {
    let Some(mut fields) = node.and_then(|node| DocumentFields::of(node, place, Spelling::Exact, findings))
    else {
        return LabelSelector::default();
    };
    let mut requirements = Vec::new();
    let labels_place = fields.place("matchLabels");
    match fields.take("matchLabels") {
        Some(DocumentNode::Map(labels)) => {
            for (label, value) in labels {
                requirements.extend(equality(label, value, &labels_place, findings));
            }
        }
        Some(other) => findings.refuse(&labels_place, other, "is no mapping; write labels with their values"),
        None => {}
    }
    for (index, node) in fields.list("matchExpressions", findings).unwrap_or_default().iter().enumerate() {
        let place = format!("{}[{index}]", fields.place("matchExpressions"));
        requirements.extend(expression(node, &place, findings));
    }
    fields.finish(findings);
    LabelSelector::new(requirements)
}

fn equality(
    label: &str,
    value: &DocumentNode,
    place: &str,
    findings: &mut Findings,
) -> Option<LabelRequirement> {
    let place = format!("{place}.{label}");
    let DocumentNode::Text(text) = value else {
        findings.refuse(&place, value, "is no text; write it in quotes");
        return None;
    };
    check_label(label, &place, findings)?;
    check_value(text, &place, findings)?;
    Some(LabelRequirement { label: label.into(), condition: LabelCondition::Equals(text.as_str().into()) })
}

fn expression(node: &DocumentNode, place: &str, findings: &mut Findings) -> Option<LabelRequirement> {
    let mut fields = DocumentFields::of(node, place, Spelling::Exact, findings)?;
    let label = fields.required_text("key", "the label", findings);
    let operator = fields.required_text("operator", "In, NotIn, Exists or DoesNotExist", findings);
    let values_place = fields.place("values");
    let mut values: Vec<Box<str>> = Vec::new();
    for (index, value) in fields.list("values", findings).unwrap_or_default().iter().enumerate() {
        let place = format!("{values_place}[{index}]");
        let DocumentNode::Text(text) = value else {
            findings.refuse(&place, value, "is no text; write it in quotes");
            continue;
        };
        values.extend(check_value(text, &place, findings).map(|()| Box::from(text.as_str())));
    }
    let operator_place = fields.place("operator");
    fields.finish(findings);
    let label = label?;
    check_label(label, place, findings)?;
    let condition = match operator? {
        "In" | "NotIn" if values.is_empty() => {
            findings.refuse_place(&values_place, "is empty; write at least one value");
            return None;
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            findings.refuse_place(
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
            let other = DocumentNode::Text(other.to_owned());
            findings.refuse(
                &operator_place,
                &other,
                "is no operator; write In, NotIn, Exists or DoesNotExist",
            );
            return None;
        }
    };
    Some(LabelRequirement { label: label.into(), condition })
}

fn check_label(label: &str, place: &str, findings: &mut Findings) -> Option<()> {
    if is_label_key(label) {
        return Some(());
    }
    let flaw = format!(
        "names the label {label:?}, which no label can be called; write letters, digits, \"-\", \"_\" and \".\", at most 63"
    );
    findings.refuse_place(place, &flaw);
    None
}

fn check_value(value: &str, place: &str, findings: &mut Findings) -> Option<()> {
    if is_label_value(value) {
        return Some(());
    }
    let value = DocumentNode::Text(value.to_owned());
    findings.refuse(
        place,
        &value,
        "no label can have as its value; write letters, digits, \"-\", \"_\" and \".\", at most 63",
    );
    None
}
