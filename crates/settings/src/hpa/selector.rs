//! Which series of a metric are meant: Kubernetes' label selectors, over the labels of metrics.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Conditions that must all hold; none selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelSelector {
    /// Sorted by label, so that equal selectors are written alike.
    requirements: Vec<LabelRequirement>,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LabelRequirement {
    /// The name of the label that is looked at.
    pub label: Box<str>,
    /// The condition on the label's value.
    pub condition: LabelCondition,
}

/// A condition on the value of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LabelCondition {
    /// The label has exactly this value.
    Equals(Box<str>),
    /// The label has one of these values; sorted, at least one.
    In(Vec<Box<str>>),
    /// The label has none of these values, or does not exist; sorted, at least one.
    NotIn(Vec<Box<str>>),
    /// The label exists, with any value.
    Exists,
    /// The label does not exist at all.
    DoesNotExist,
}

impl LabelSelector {
    /// A selector of these conditions, which may come in any order.
    pub fn new(mut requirements: Vec<LabelRequirement>) -> Self {
        for LabelRequirement { condition, .. } in &mut requirements {
            if let LabelCondition::In(values) | LabelCondition::NotIn(values) = condition {
                values.sort_unstable();
                values.dedup();
            }
        }
        requirements.sort_unstable();
        Self { requirements }
    }

    /// The conditions, sorted by their labels.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    /// Whether every condition holds for these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|LabelRequirement { label, condition }| {
            let value = labels.get(&**label).map(String::as_str);
            let is_among =
                |values: &[Box<str>]| value.is_some_and(|value| values.iter().any(|one| **one == *value));
            match condition {
                LabelCondition::Equals(wanted) => value == Some(wanted),
                LabelCondition::In(values) => is_among(values),
                LabelCondition::NotIn(values) => !is_among(values),
                LabelCondition::Exists => value.is_some(),
                LabelCondition::DoesNotExist => value.is_none(),
            }
        })
    }
}

/// The selector as it stands in a query: `a=b,c in (x,y),d notin (z),e,!f`.
impl fmt::Display for LabelSelector {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, LabelRequirement { label, condition }) in self.requirements.iter().enumerate() {
            if index > 0 {
                to.write_str(",")?;
            }
            match condition {
                LabelCondition::Equals(value) => write!(to, "{label}={value}")?,
                LabelCondition::In(values) => write!(to, "{label} in ({})", values.join(","))?,
                LabelCondition::NotIn(values) => write!(to, "{label} notin ({})", values.join(","))?,
                LabelCondition::Exists => write!(to, "{label}")?,
                LabelCondition::DoesNotExist => write!(to, "!{label}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector() -> LabelSelector {
        let require = |label: &str, condition| LabelRequirement { label: label.into(), condition };
        LabelSelector::new(vec![
            require("f", LabelCondition::DoesNotExist),
            require("c", LabelCondition::In(vec!["y".into(), "x".into(), "y".into()])),
            require("e", LabelCondition::Exists),
            require("d", LabelCondition::NotIn(vec!["z".into()])),
            require("a", LabelCondition::Equals("b".into())),
        ])
    }

    #[test]
    fn a_selector_is_written_sorted_by_label() {
        assert_eq!(selector().to_string(), "a=b,c in (x,y),d notin (z),e,!f");
        assert_eq!(LabelSelector::default().to_string(), "");
    }

    #[test]
    fn a_selector_selects_labels_that_meet_every_condition() {
        for (labels, expected) in [
            ("a=b c=x e=1", true),
            ("a=b c=y d=q e=", true),
            ("a=c c=x e=1", false),
            ("a=b c=z e=1", false),
            ("a=b e=1", false),
            ("a=b c=x d=z e=1", false),
            ("a=b c=x", false),
            ("a=b c=x e=1 f=1", false),
        ] {
            let labels = labels.split(' ').filter_map(|pair| pair.split_once('='));
            let labels = labels.map(|(label, value)| (label.to_owned(), value.to_owned())).collect();
            assert_eq!(selector().selects(&labels), expected, "{labels:?}");
            assert!(LabelSelector::default().selects(&labels));
        }
    }
}
