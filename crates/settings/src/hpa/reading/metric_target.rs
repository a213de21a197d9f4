//! The target of a metric: read as it is written, then checked against the kind of the metric.

use vocabulary::{Findings, MilliValue};

use super::document_fields::{DocumentFields, Spelling};
use super::node::DocumentNode;
use crate::hpa::spec::{ResourceTarget, TotalTarget};

/// A target with the fields that were written, before they are checked against the metric.
pub(super) struct Target {
    place: String,
    kind: TargetKind,
    value: Option<MilliValue>,
    average_value: Option<MilliValue>,
    average_utilization: Option<u32>,
}

/// The values of the field `target.type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    Utilization,
    Value,
    AverageValue,
}

pub(super) fn target(fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<Target> {
    let place = fields.place("target");
    let Some(node) = fields.take("target") else {
        findings.refuse_place(&place, "is missing; write what to aim at, with its type");
        return None;
    };
    let before = findings.problems.len();
    let mut inner = DocumentFields::of(node, &place, Spelling::Exact, findings)?;
    let kind = match inner.required_text("type", "Utilization, Value or AverageValue", findings) {
        None => None,
        Some("Utilization") => Some(TargetKind::Utilization),
        Some("Value") => Some(TargetKind::Value),
        Some("AverageValue") => Some(TargetKind::AverageValue),
        Some(other) => {
            let flaw = "is no type of target; write Utilization, Value or AverageValue";
            findings.refuse(&inner.place("type"), &DocumentNode::Text(other.to_owned()), flaw);
            None
        }
    };
    let value = inner.amount("value", findings);
    let average_value = inner.amount("averageValue", findings);
    let average_utilization = inner.integer("averageUtilization", 1, i64::from(i32::MAX), findings);
    inner.finish(findings);
    // What is wrong with a field was said; that it is therefore missing need not be.
    let kind = kind.filter(|_| findings.problems.len() == before)?;
    Some(Target { place, kind, value, average_value, average_utilization })
}

impl Target {
    /// The type is not looked at, as in Kubernetes: which field is there says enough.
    pub(super) fn of_resource(self, findings: &mut Findings) -> Option<ResourceTarget> {
        let written = [
            ("averageUtilization", self.average_utilization.map(ResourceTarget::Utilization)),
            ("averageValue", self.average_value.map(ResourceTarget::AverageValue)),
        ];
        written_target(written, &self.place, findings)
    }

    pub(super) fn of_pods(self, findings: &mut Findings) -> Option<MilliValue> {
        if self.average_value.is_none() {
            findings.refuse_place(
                &self.place,
                "has no averageValue, the only target of a metric of pods; write one",
            );
        } else if self.value.is_some() || self.average_utilization.is_some() {
            findings
                .warn(&self.place, "has more than averageValue, which alone is looked at; remove the others");
        }
        self.average_value
    }

    pub(super) fn of_object(self, findings: &mut Findings) -> Option<TotalTarget> {
        let (chosen, name) = match self.kind {
            TargetKind::Value => (self.value.map(TotalTarget::Value), "value"),
            TargetKind::AverageValue => (self.average_value.map(TotalTarget::AverageValue), "averageValue"),
            TargetKind::Utilization => {
                let flaw =
                    "has type Utilization, which is for resources of pods; write Value or AverageValue";
                findings.refuse_place(&self.place, flaw);
                return None;
            }
        };
        if chosen.is_none() {
            findings.refuse_place(&self.place, &format!("has no {name}, which its type asks for; write one"));
        }
        chosen
    }

    pub(super) fn of_external(self, findings: &mut Findings) -> Option<TotalTarget> {
        let written = [
            ("value", self.value.map(TotalTarget::Value)),
            ("averageValue", self.average_value.map(TotalTarget::AverageValue)),
        ];
        written_target(written, &self.place, findings)
    }
}

/// The target in the one field that is written, of the two that may be.
pub(super) fn written_target<Aim>(
    fields: [(&str, Option<Aim>); 2],
    place: &str,
    findings: &mut Findings,
) -> Option<Aim> {
    let [(first, one), (second, other)] = fields;
    let flaw = match (one, other) {
        (Some(target), None) | (None, Some(target)) => return Some(target),
        (Some(_), Some(_)) => format!("has both {first} and {second}; remove one of them"),
        (None, None) => format!("has neither {first} nor {second}; write one of them"),
    };
    findings.refuse_place(place, &flaw);
    None
}
