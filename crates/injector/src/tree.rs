//! Which parts of a JSON text are read into values, and how much memory may they take?
//!
//! A text of a few megabytes can take a hundred times as much memory as values: `{"":0}` is 7 bytes, and 640
//! as a map. Every caller that reaches the webhook may send such a text. So only the parts of an object that
//! are checked become values ([`TreePart`]), and each is paid for from a budget before it is made.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as _, Deserializer};
use serde_json::{Map, Number, Value};

/// A pod of 1.5 MB, which is what a cluster keeps at most, takes less, even if all of it is the shortest
/// variables that there can be.
const TREE_BYTES_MAX: usize = 56 << 20;
/// A shorter text may take as many times its own length, so that many of them at once take little. The
/// shortest variables take 32.
const BYTES_PER_CHARACTER_MAX: usize = 64;
/// A short text may take this in any case.
const TREE_BYTES_MIN: usize = 1 << 20;
/// Fields of a pod lie a dozen levels deep.
const DEPTH_MAX: usize = 64;

/// What a map takes in memory for its first few entries, and for as many more: a node of the tree that it is.
const NODE_BYTES: usize = 640;
const NODE_ENTRIES: usize = 5;
/// What an item of a list takes, which has room for twice as many.
const ITEM_BYTES: usize = 64;
/// What a text takes beside its letters.
const TEXT_BYTES: usize = 16;

/// Which parts of a text become values. What is not what a part expects becomes null.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TreePart {
    /// The part with everything in it.
    Whole,
    /// Only whether the part is there: its value is null.
    Presence,
    /// A list, of each item of which this part is read.
    Each(&'static TreePart),
    /// A map, of which these fields are read, each as its part says.
    Fields(&'static [(&'static str, TreePart)]),
}

/// The text has more parts, or lies deeper, than is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyParts;

impl TreePart {
    /// Reads these parts of a text; a text that is no JSON is null.
    pub(crate) fn read(&'static self, text: &str) -> Result<Value, TooManyParts> {
        let most = text.len().saturating_mul(BYTES_PER_CHARACTER_MAX).clamp(TREE_BYTES_MIN, TREE_BYTES_MAX);
        let mut budget = TreeBudget { left: most, is_spent: false };
        let mut reader = serde_json::Deserializer::from_str(text);
        let seed = PartSeed { part: self, budget: &mut budget, depth: 0 };
        let read = seed.deserialize(&mut reader);
        match read {
            Ok(value) if reader.end().is_ok() => Ok(value),
            _ if budget.is_spent => Err(TooManyParts),
            _ => Ok(Value::Null),
        }
    }
}

/// How many bytes of values may still be made from one text.
struct TreeBudget {
    left: usize,
    is_spent: bool,
}

impl TreeBudget {
    fn pay<Problem: Error>(&mut self, bytes: usize) -> Result<(), Problem> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.refuse()),
        }
    }

    fn refuse<Problem: Error>(&mut self) -> Problem {
        self.is_spent = true;
        Problem::custom("it has too many parts")
    }
}

/// Reads one value of a text, and pays for it from the budget.
struct PartSeed<'b> {
    part: &'static TreePart,
    budget: &'b mut TreeBudget,
    depth: usize,
}

impl PartSeed<'_> {
    fn inner(&mut self, part: &'static TreePart) -> PartSeed<'_> {
        PartSeed { part, budget: &mut *self.budget, depth: self.depth + 1 }
    }

    fn scalar(&self, value: impl Into<Value>) -> Value {
        match self.part {
            TreePart::Whole => value.into(),
            TreePart::Presence | TreePart::Each(_) | TreePart::Fields(_) => Value::Null,
        }
    }
}

impl<'de> DeserializeSeed<'de> for PartSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        match self.part {
            TreePart::Presence => IgnoredAny::deserialize(reader).map(|_| Value::Null),
            TreePart::Whole | TreePart::Each(_) | TreePart::Fields(_) if self.depth > DEPTH_MAX => {
                Err(self.budget.refuse())
            }
            TreePart::Whole | TreePart::Each(_) | TreePart::Fields(_) => reader.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for PartSeed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(self.scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        match self.part {
            TreePart::Whole => {
                self.budget.pay(TEXT_BYTES + value.len())?;
                Ok(Value::String(value.to_owned()))
            }
            TreePart::Presence | TreePart::Each(_) | TreePart::Fields(_) => Ok(Value::Null),
        }
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<Items: SeqAccess<'de>>(mut self, mut items: Items) -> Result<Value, Items::Error> {
        let part = match self.part {
            TreePart::Whole => &TreePart::Whole,
            TreePart::Each(part) => part,
            TreePart::Presence | TreePart::Fields(_) => {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Value::Null);
            }
        };
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner(part))? {
            self.budget.pay(ITEM_BYTES)?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<Entries: MapAccess<'de>>(mut self, mut entries: Entries) -> Result<Value, Entries::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            let part = match self.part {
                TreePart::Whole => Some(&TreePart::Whole),
                TreePart::Fields(fields) => {
                    fields.iter().find(|(name, _)| *name == key).map(|(_, part)| part)
                }
                TreePart::Presence | TreePart::Each(_) => None,
            };
            let Some(part) = part else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            if map.len().is_multiple_of(NODE_ENTRIES) {
                self.budget.pay(NODE_BYTES)?;
            }
            self.budget.pay(TEXT_BYTES + key.len())?;
            let value = entries.next_value_seed(self.inner(part))?;
            map.insert(key.into_owned(), value);
        }
        match self.part {
            TreePart::Whole | TreePart::Fields(_) => Ok(Value::Object(map)),
            TreePart::Presence | TreePart::Each(_) => Ok(Value::Null),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    static WHOLE: TreePart = TreePart::Whole;
    static SOME: TreePart = TreePart::Fields(&[
        ("kind", TreePart::Whole),
        ("list", TreePart::Each(&TreePart::Fields(&[("a", TreePart::Whole)]))),
        ("there", TreePart::Presence),
    ]);

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_whole_of_a_text_is_what_it_says(value in values()) {
            let text = value.to_string();
            let read: Value = serde_json::from_str(&text).expect("it is JSON");
            prop_assert_eq!(WHOLE.read(&text), Ok(read));
        }
    }

    #[test]
    fn only_what_is_asked_for_becomes_a_value() {
        let text = r#"{"kind": "Pod", "other": {"a": [1]}, "list": [{"a": 1, "b": 2}, 3, {}], "there": {"x": {"y": 1}}}"#;
        let expected = json!({"kind": "Pod", "list": [{"a": 1}, null, {}], "there": null});
        assert_eq!(SOME.read(text), Ok(expected));
        assert_eq!(SOME.read(r#"{"list": {"a": 1}, "kind": [1]}"#), Ok(json!({"list": null, "kind": [1]})));
        for odd in ["[1, {}]", "3", "\"text\"", "null", "no JSON", "{} {}", ""] {
            assert_eq!(SOME.read(odd), Ok(Value::Null), "{odd}");
        }
    }

    #[test]
    fn a_text_of_many_small_maps_or_many_levels_is_not_read() {
        let maps = format!("[{}{{}}]", r#"{"":0},"#.repeat(600_000));
        let levels = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        for text in [&maps, &levels(100), &levels(10_000)] {
            assert_eq!(WHOLE.read(text), Err(TooManyParts), "{} bytes", text.len());
            let skipped = format!(r#"{{"other": {text}}}"#);
            assert_eq!(SOME.read(&skipped), Ok(json!({})), "a part that no check looks at is not read");
        }
        assert!(WHOLE.read(&levels(60)).is_ok());
        let variables = format!("[{}{{}}]", r#"{"name":"A","value":"1"},"#.repeat(62_000));
        assert!(variables.len() > 1_500_000 && WHOLE.read(&variables).is_ok(), "{}", variables.len());
    }
}
