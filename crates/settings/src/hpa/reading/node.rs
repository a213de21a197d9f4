//! A value as YAML and JSON know it, in the order in which it was written.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use vocabulary::shown;

/// A piece of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentNode {
    /// No value; the field counts as absent.
    Null,
    /// The value true or false.
    Boolean(bool),
    /// A whole number that fits 64 bits with a sign.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A text, in quotes or without.
    Text(String),
    /// The items of a list, in their order.
    List(Vec<DocumentNode>),
    /// Fields with their names, in the order in which they were written.
    Map(Vec<(String, DocumentNode)>),
}

/// The node as a message shows it: short, on one line.
impl fmt::Display for DocumentNode {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => to.write_str("null"),
            Self::Boolean(value) => write!(to, "{value}"),
            Self::Integer(value) => write!(to, "{value}"),
            Self::Float(value) => write!(to, "{value}"),
            Self::Text(text) => to.write_str(&shown(text)),
            Self::List(_) => to.write_str("a list"),
            Self::Map(_) => to.write_str("a mapping"),
        }
    }
}

impl<'de> Deserialize<'de> for DocumentNode {
    fn deserialize<From: Deserializer<'de>>(from: From) -> Result<Self, From::Error> {
        from.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = DocumentNode;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value of YAML or JSON")
    }

    fn visit_bool<Error>(self, value: bool) -> Result<DocumentNode, Error> {
        Ok(DocumentNode::Boolean(value))
    }

    fn visit_i64<Error>(self, value: i64) -> Result<DocumentNode, Error> {
        Ok(DocumentNode::Integer(value))
    }

    fn visit_u64<Error>(self, value: u64) -> Result<DocumentNode, Error> {
        // No field takes so large a number; as text it is shown as it was written.
        Ok(i64::try_from(value).map_or_else(|_| DocumentNode::Text(value.to_string()), DocumentNode::Integer))
    }

    fn visit_f64<Error>(self, value: f64) -> Result<DocumentNode, Error> {
        Ok(DocumentNode::Float(value))
    }

    fn visit_str<Error>(self, text: &str) -> Result<DocumentNode, Error> {
        Ok(DocumentNode::Text(text.to_owned()))
    }

    fn visit_string<Error>(self, text: String) -> Result<DocumentNode, Error> {
        Ok(DocumentNode::Text(text))
    }

    fn visit_none<Error>(self) -> Result<DocumentNode, Error> {
        Ok(DocumentNode::Null)
    }

    fn visit_unit<Error>(self) -> Result<DocumentNode, Error> {
        Ok(DocumentNode::Null)
    }

    fn visit_some<From: Deserializer<'de>>(self, from: From) -> Result<DocumentNode, From::Error> {
        DocumentNode::deserialize(from)
    }

    fn visit_seq<List: SeqAccess<'de>>(self, mut list: List) -> Result<DocumentNode, List::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(DocumentNode::List(items))
    }

    fn visit_map<Map: MapAccess<'de>>(self, mut map: Map) -> Result<DocumentNode, Map::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(DocumentNode::Map(entries))
    }
}
