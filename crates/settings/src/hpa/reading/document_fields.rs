//! Takes one field after the other out of a mapping and collects what is wrong, instead of stopping at the
//! first mistake.

use std::time::Duration;

use vocabulary::{
    Findings, MilliValue, PodCount, QuantityTextError, nearest, parse_quantity, parse_quantity_as_f64,
};

use super::node::DocumentNode;

/// How the names of fields are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Names must be equal, as in the API.
    Exact,
    /// Upper and lower case are the same, as for Go's names of fields.
    AnyCase,
}

/// A mapping whose fields are taken one by one; fields that are left at the end are unknown.
pub(super) struct DocumentFields<'a> {
    place: String,
    spelling: Spelling,
    left: Vec<(&'a str, &'a DocumentNode)>,
    known: Vec<&'static str>,
}

impl<'a> DocumentFields<'a> {
    /// `None` if it is no mapping, which is then said.
    pub(super) fn of(
        node: &'a DocumentNode,
        place: &str,
        spelling: Spelling,
        findings: &mut Findings,
    ) -> Option<Self> {
        let DocumentNode::Map(entries) = node else {
            findings.refuse(place, node, "is no mapping; write fields with their names");
            return None;
        };
        let mut left: Vec<(&str, &DocumentNode)> = Vec::new();
        for (name, value) in entries {
            if left.iter().any(|(other, _)| is_same(other, name, spelling)) {
                findings.refuse_place(&join(place, name), "stands twice; keep one of them");
            } else {
                left.push((name, value));
            }
        }
        Some(Self { place: place.to_owned(), spelling, left, known: Vec::new() })
    }

    /// The place of a field, as messages name it.
    pub(super) fn place(&self, name: &str) -> String {
        join(&self.place, name)
    }

    /// The place of the mapping itself, as messages name it.
    pub(super) fn own_place(&self) -> &str {
        &self.place
    }

    /// Takes a field out of the mapping; a field that is null counts as absent.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'a DocumentNode> {
        self.known.push(name);
        let index = self.left.iter().position(|(other, _)| is_same(other, name, self.spelling))?;
        let (_, node) = self.left.remove(index);
        (*node != DocumentNode::Null).then_some(node)
    }

    /// Takes fields that are known and mean nothing here.
    pub(super) fn ignore(&mut self, names: &[&'static str]) {
        for name in names {
            self.take(name);
        }
    }

    pub(super) fn text(&mut self, name: &'static str, findings: &mut Findings) -> Option<&'a str> {
        let node = self.take(name)?;
        if let DocumentNode::Text(text) = node {
            return Some(text);
        }
        findings.refuse(&self.place(name), node, "is no text; write it in quotes");
        None
    }

    /// Reads a text that must be there and not be empty.
    pub(super) fn required_text(
        &mut self,
        name: &'static str,
        example: &str,
        findings: &mut Findings,
    ) -> Option<&'a str> {
        let before = findings.problems.len();
        let text = self.text(name, findings).filter(|text| !text.is_empty());
        if text.is_none() && findings.problems.len() == before {
            findings.refuse_place(&self.place(name), &format!("is missing; write {example}"));
        }
        text
    }

    /// Reads a whole number from `least` to `most`, both included.
    pub(super) fn integer(
        &mut self,
        name: &'static str,
        least: i64,
        most: i64,
        findings: &mut Findings,
    ) -> Option<u32> {
        let node = self.take(name)?;
        let allowed = format!("write a whole number from {least} to {most}");
        match node {
            DocumentNode::Integer(number) if (least..=most).contains(number) => u32::try_from(*number).ok(),
            DocumentNode::Integer(_) => {
                findings.refuse(&self.place(name), node, &format!("is out of range; {allowed}"));
                None
            }
            DocumentNode::Null
            | DocumentNode::Boolean(_)
            | DocumentNode::Float(_)
            | DocumentNode::Text(_)
            | DocumentNode::List(_)
            | DocumentNode::Map(_) => {
                findings.refuse(&self.place(name), node, &format!("is no whole number; {allowed}"));
                None
            }
        }
    }

    pub(super) fn count(
        &mut self,
        name: &'static str,
        least: i64,
        findings: &mut Findings,
    ) -> Option<PodCount> {
        self.integer(name, least, i64::from(i32::MAX), findings).map(PodCount::new)
    }

    pub(super) fn seconds(
        &mut self,
        name: &'static str,
        least: i64,
        most: i64,
        findings: &mut Findings,
    ) -> Option<Duration> {
        self.integer(name, least, most, findings).map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Reads a quantity above zero, in thousandths.
    pub(super) fn amount(&mut self, name: &'static str, findings: &mut Findings) -> Option<MilliValue> {
        let place = self.place(name);
        let node = self.take(name)?;
        let amount = quantity(node, &place, findings)?;
        if amount <= MilliValue::ZERO {
            findings.refuse(&place, node, "is not above zero; write a quantity above zero, such as \"500m\"");
            return None;
        }
        Some(amount)
    }

    pub(super) fn list(&mut self, name: &'static str, findings: &mut Findings) -> Option<&'a [DocumentNode]> {
        let node = self.take(name)?;
        if let DocumentNode::List(items) = node {
            return Some(items);
        }
        findings.refuse(&self.place(name), node, "is no list; write its entries each after a dash");
        None
    }

    /// Reads a field that is itself a mapping.
    pub(super) fn fields(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<DocumentFields<'a>> {
        let place = self.place(name);
        DocumentFields::of(self.take(name)?, &place, self.spelling, findings)
    }

    /// Refuses every field that was not taken, with the nearest known name.
    pub(super) fn finish(self, findings: &mut Findings) {
        for (name, _) in &self.left {
            let remedy = match nearest(name, self.known.iter().copied()) {
                Some(likely) => format!("did you mean {}?", likely.name),
                None => format!("remove it, or write one of {}", self.known.join(", ")),
            };
            findings.refuse_place(&self.place(name), &format!("is not known here; {remedy}"));
        }
    }
}

fn is_same(left: &str, right: &str, spelling: Spelling) -> bool {
    match spelling {
        Spelling::Exact => left == right,
        Spelling::AnyCase => left.eq_ignore_ascii_case(right),
    }
}

fn join(place: &str, name: &str) -> String {
    let name = name.escape_debug();
    if place.is_empty() { name.to_string() } else { format!("{place}.{name}") }
}

/// Reads a quantity, which YAML may have read as a number.
pub(super) fn quantity(node: &DocumentNode, place: &str, findings: &mut Findings) -> Option<MilliValue> {
    quantity_read_by(parse_quantity, node, place, findings)
}

/// Reads a quantity as a double.
pub(super) fn double(node: &DocumentNode, place: &str, findings: &mut Findings) -> Option<f64> {
    quantity_read_by(parse_quantity_as_f64, node, place, findings)
}

fn quantity_read_by<Value>(
    read: impl Fn(&str) -> Result<Value, QuantityTextError>,
    node: &DocumentNode,
    place: &str,
    findings: &mut Findings,
) -> Option<Value> {
    let text = match node {
        DocumentNode::Text(text) => text.clone(),
        DocumentNode::Integer(number) => number.to_string(),
        DocumentNode::Float(number) => number.to_string(),
        DocumentNode::Null | DocumentNode::Boolean(_) | DocumentNode::List(_) | DocumentNode::Map(_) => {
            findings.refuse(
                place,
                node,
                "is no quantity; write a number with or without a suffix, such as \"500m\"",
            );
            return None;
        }
    };
    read(&text).map_err(|error| findings.refuse(place, node, &error.to_string())).ok()
}
