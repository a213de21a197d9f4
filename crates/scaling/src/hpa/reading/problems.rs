//! Takes one field after the other out of a mapping and collects what is wrong, instead of stopping at the first mistake.

use std::time::Duration;

use vocabulary::{MilliValue, PodCount, nearest, parse_quantity};

use super::node::Node;
use crate::config::Problem;

/// Everything wrong with a document so far, and what should be said of it though it is accepted.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) refusals: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Problems {
    /// `flaw` continues the sentence that names place and value, and ends in the remedy.
    pub(super) fn refuse(&mut self, place: &str, node: &Node, flaw: &str) {
        self.refusals
            .push(Problem { key: place.to_owned(), message: format!("{place} is {node}, which {flaw}") });
    }

    /// `flaw` continues the sentence that names the place.
    pub(super) fn refuse_place(&mut self, place: &str, flaw: &str) {
        self.refusals.push(Problem { key: place.to_owned(), message: format!("{place} {flaw}") });
    }

    pub(super) fn warn(&mut self, place: &str, flaw: &str) {
        self.warnings.push(Problem { key: place.to_owned(), message: format!("{place} {flaw}") });
    }
}

/// How fields are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// By exactly their names, as in the API.
    Exact,
    /// In upper or lower case, as Go reads the names of its fields.
    AnyCase,
}

/// A mapping, whose fields are taken one by one; what is left at the end nobody knows.
pub(super) struct Fields<'a> {
    place: String,
    spelling: Spelling,
    left: Vec<(&'a str, &'a Node)>,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// `None` if it is no mapping, which is then said.
    pub(super) fn of(
        node: &'a Node,
        place: &str,
        spelling: Spelling,
        problems: &mut Problems,
    ) -> Option<Self> {
        let Node::Map(entries) = node else {
            problems.refuse(place, node, "is no mapping; write fields with their names");
            return None;
        };
        let mut left: Vec<(&str, &Node)> = Vec::new();
        for (name, value) in entries {
            if left.iter().any(|(other, _)| is_same(other, name, spelling)) {
                problems.refuse_place(&join(place, name), "stands twice; keep one of them");
            } else {
                left.push((name, value));
            }
        }
        Some(Self { place: place.to_owned(), spelling, left, known: Vec::new() })
    }

    /// Where a field stands.
    pub(super) fn place(&self, name: &str) -> String {
        join(&self.place, name)
    }

    /// Where the mapping itself stands.
    pub(super) fn own_place(&self) -> &str {
        &self.place
    }

    /// A field; what is null is absent.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        let index = self.left.iter().position(|(other, _)| is_same(other, name, self.spelling))?;
        let (_, node) = self.left.remove(index);
        (*node != Node::Null).then_some(node)
    }

    /// Fields that say nothing to us.
    pub(super) fn ignore(&mut self, names: &[&'static str]) {
        for name in names {
            self.take(name);
        }
    }

    pub(super) fn text(&mut self, name: &'static str, problems: &mut Problems) -> Option<&'a str> {
        let node = self.take(name)?;
        if let Node::Text(text) = node {
            return Some(text);
        }
        problems.refuse(&self.place(name), node, "is no text; write it in quotes");
        None
    }

    /// A text without which nothing goes.
    pub(super) fn required_text(
        &mut self,
        name: &'static str,
        example: &str,
        problems: &mut Problems,
    ) -> Option<&'a str> {
        let before = problems.refusals.len();
        let text = self.text(name, problems).filter(|text| !text.is_empty());
        if text.is_none() && problems.refusals.len() == before {
            problems.refuse_place(&self.place(name), &format!("is missing; write {example}"));
        }
        text
    }

    /// A whole number between these two, both included.
    pub(super) fn integer(
        &mut self,
        name: &'static str,
        least: i64,
        most: i64,
        problems: &mut Problems,
    ) -> Option<u32> {
        let node = self.take(name)?;
        let allowed = format!("write a whole number from {least} to {most}");
        match node {
            Node::Integer(number) if (least..=most).contains(number) => u32::try_from(*number).ok(),
            Node::Integer(_) => {
                problems.refuse(&self.place(name), node, &format!("is out of range; {allowed}"));
                None
            }
            Node::Null | Node::Boolean(_) | Node::Float(_) | Node::Text(_) | Node::List(_) | Node::Map(_) => {
                problems.refuse(&self.place(name), node, &format!("is no whole number; {allowed}"));
                None
            }
        }
    }

    pub(super) fn count(
        &mut self,
        name: &'static str,
        least: i64,
        problems: &mut Problems,
    ) -> Option<PodCount> {
        self.integer(name, least, i64::from(i32::MAX), problems).map(PodCount::new)
    }

    pub(super) fn seconds(
        &mut self,
        name: &'static str,
        least: i64,
        most: i64,
        problems: &mut Problems,
    ) -> Option<Duration> {
        self.integer(name, least, most, problems).map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// A quantity above zero.
    pub(super) fn amount(&mut self, name: &'static str, problems: &mut Problems) -> Option<MilliValue> {
        let place = self.place(name);
        let node = self.take(name)?;
        let amount = quantity(node, &place, problems)?;
        if amount <= MilliValue::ZERO {
            problems.refuse(&place, node, "is not above zero; write a quantity above zero, such as \"500m\"");
            return None;
        }
        Some(amount)
    }

    pub(super) fn list(&mut self, name: &'static str, problems: &mut Problems) -> Option<&'a [Node]> {
        let node = self.take(name)?;
        if let Node::List(items) = node {
            return Some(items);
        }
        problems.refuse(&self.place(name), node, "is no list; write its entries each after a dash");
        None
    }

    /// The fields of a field.
    pub(super) fn fields(&mut self, name: &'static str, problems: &mut Problems) -> Option<Fields<'a>> {
        let place = self.place(name);
        Fields::of(self.take(name)?, &place, self.spelling, problems)
    }

    /// Refuses what nobody asked for.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (name, _) in &self.left {
            let remedy = match nearest(name, self.known.iter().copied()) {
                Some(likely) => format!("did you mean {}?", likely.name),
                None => format!("remove it, or write one of {}", self.known.join(", ")),
            };
            problems.refuse_place(&self.place(name), &format!("is not known here; {remedy}"));
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

/// A quantity, which YAML may have taken for a number.
pub(super) fn quantity(node: &Node, place: &str, problems: &mut Problems) -> Option<MilliValue> {
    let text = match node {
        Node::Text(text) => text.clone(),
        Node::Integer(number) => number.to_string(),
        Node::Float(number) => number.to_string(),
        Node::Null | Node::Boolean(_) | Node::List(_) | Node::Map(_) => {
            problems.refuse(
                place,
                node,
                "is no quantity; write a number with or without a suffix, such as \"500m\"",
            );
            return None;
        }
    };
    parse_quantity(&text).map_err(|error| problems.refuse(place, node, &error.to_string())).ok()
}
