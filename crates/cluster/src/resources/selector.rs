//! Which pods are a workload's? Those whose labels its selector asks for, as Kubernetes reads selectors.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// A selector that selects nothing where it says nothing: an empty one is a workload that was not understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector(LabelSelector);

impl Selector {
    /// Whether the selector has no requirement, and so selects nothing here.
    pub fn is_empty(&self) -> bool {
        self.0.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
            && self.0.match_expressions.as_ref().is_none_or(Vec::is_empty)
    }

    /// A selector as most kinds of workloads write it.
    pub fn new(selector: LabelSelector) -> Self {
        Self(selector)
    }

    /// As a `ReplicationController` writes it: labels alone.
    pub(crate) fn of_labels(labels: BTreeMap<String, String>) -> Self {
        Self(LabelSelector { match_labels: Some(labels), match_expressions: None })
    }

    /// As it stands in a query, and in `status.selector` of a scale; `None` for what is not understood.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let requirements = split_outside_of_brackets(text).map(|part| requirement(part.trim()));
        let requirements = requirements.collect::<Option<Vec<_>>>()?;
        Some(Self(LabelSelector { match_labels: None, match_expressions: Some(requirements) }))
    }

    /// Labels that it asks for with exactly one value: those that any pod of its has.
    pub(crate) fn exact_labels(&self) -> BTreeMap<String, String> {
        let single = self.0.match_expressions.iter().flatten().filter_map(|requirement| {
            match (requirement.operator.as_str(), requirement.values.as_deref().unwrap_or_default()) {
                ("In", [value]) => Some((requirement.key.clone(), value.clone())),
                _ => None,
            }
        });
        self.0.match_labels.clone().into_iter().flatten().chain(single).collect()
    }

    /// Whether the selector selects a pod with these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let (exact, requirements) = (&self.0.match_labels, &self.0.match_expressions);
        let exact = exact.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
        let requirements = requirements.iter().flatten().all(|requirement| is_met(requirement, labels));
        !self.is_empty() && exact && requirements
    }
}

/// As it stands in a query, sorted by label: `a=b,c in (x,y),d notin (z),e,!f`.
impl fmt::Display for Selector {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.0.match_labels.iter().flatten();
        let exact = exact.map(|(key, value)| (key.clone(), format!("{key}={value}")));
        let requirements = self.0.match_expressions.iter().flatten().map(|requirement| {
            let key = &requirement.key;
            let mut values: Vec<&str> = requirement.values.iter().flatten().map(String::as_str).collect();
            values.sort_unstable();
            let values = values.join(",");
            let text = match requirement.operator.as_str() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.clone(),
            };
            (key.clone(), text)
        });
        let mut all: Vec<(String, String)> = exact.chain(requirements).collect();
        all.sort();
        let texts: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
        to.write_str(&texts.join(","))
    }
}

/// `in (a,b)` has commas of its own.
fn split_outside_of_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty())
}

fn requirement(text: &str) -> Option<LabelSelectorRequirement> {
    let made = |key: &str, operator: &str, values: &[&str]| {
        let key = key.trim();
        let values = values.iter().map(|value| value.trim().to_owned()).collect::<Vec<_>>();
        let is_key = !key.is_empty() && !key.contains(|character: char| " ()=!,".contains(character));
        let (key, operator) = (key.to_owned(), operator.to_owned());
        is_key.then_some(LabelSelectorRequirement { key, operator, values: Some(values) })
    };
    if let Some((head, tail)) = text.split_once('(') {
        let values: Vec<&str> = tail.strip_suffix(')')?.split(',').collect();
        return match head.trim().rsplit_once(' ')? {
            (key, "in") => made(key, "In", &values),
            (key, "notin") => made(key, "NotIn", &values),
            _ => None,
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, "NotIn", &[value]);
    }
    match (text.split_once("==").or_else(|| text.split_once('=')), text.strip_prefix('!')) {
        (Some((key, value)), _) => made(key, "In", &[value]),
        (None, Some(key)) => made(key, "DoesNotExist", &[]),
        (None, None) => made(text, "Exists", &[]),
    }
}

fn is_met(requirement: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let is_among = |value| requirement.values.iter().flatten().any(|listed| listed == value);
    match requirement.operator.as_str() {
        "In" => value.is_some_and(is_among),
        "NotIn" => !value.is_some_and(is_among),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        // The API server admits no other today; what we do not understand selects nothing.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(json: &str) -> Selector {
        Selector::new(serde_json::from_str(json).expect("a selector"))
    }

    #[test]
    fn a_selector_is_written_sorted_by_label() {
        let selector = selector(
            r#"{"matchLabels": {"f": "g", "a": "b"}, "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "e", "operator": "DoesNotExist"},
                {"key": "d", "operator": "NotIn", "values": ["z"]}, {"key": "g", "operator": "Exists"}]}"#,
        );
        assert_eq!(selector.to_string(), "a=b,c in (x,y),d notin (z),!e,f=g,g");
    }

    #[test]
    fn a_selector_of_a_scale_is_read_and_what_is_not_understood_is_none() {
        for text in ["a=b,c in (x,y),d notin (z),!e,g", "app in (hello)"] {
            let read = Selector::parse(text).expect("a selector");
            let again = Selector::parse(&read.to_string()).expect("what is written can be read");
            assert_eq!(read.to_string(), again.to_string());
        }
        let read = Selector::parse("app==hello, tier!=web,has").expect("a selector");
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(read.exact_labels(), labels(&[("app", "hello")]));
        assert!(read.selects(&labels(&[("app", "hello"), ("has", "")])));
        assert!(!read.selects(&labels(&[("app", "hello"), ("has", ""), ("tier", "web")])));
        assert!(Selector::parse("").expect("it says nothing").is_empty());
        for text in ["a in x", "a in (x", "=b", "a b", "a is (b)"] {
            assert_eq!(Selector::parse(text), None, "{text}");
        }
    }

    #[test]
    fn selectors_are_read_as_kubernetes_reads_them() {
        let rows = [
            ("nothing said", "{}", false),
            ("the label", r#"{"matchLabels": {"app": "hello"}}"#, true),
            ("another value", r#"{"matchLabels": {"app": "other"}}"#, false),
            ("two labels, one missing", r#"{"matchLabels": {"app": "hello", "tier": "web"}}"#, false),
            (
                "in",
                r#"{"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "hello"]}]}"#,
                true,
            ),
            (
                "not in",
                r#"{"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["hello"]}]}"#,
                false,
            ),
            (
                "not in, of an absent label",
                r#"{"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}"#,
                true,
            ),
            ("exists", r#"{"matchExpressions": [{"key": "app", "operator": "Exists"}]}"#, true),
            (
                "does not exist",
                r#"{"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}"#,
                false,
            ),
            (
                "unknown operator",
                r#"{"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}"#,
                false,
            ),
        ];
        let labels = BTreeMap::from([("app".to_owned(), "hello".to_owned())]);
        for (what, json, expected) in rows {
            assert_eq!(selector(json).selects(&labels), expected, "{what}");
        }
    }
}
