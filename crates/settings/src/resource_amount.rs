//! An amount of CPU or memory in a setting: the text that was written, and the number that it means.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vocabulary::{MilliValue, parse_quantity};

/// An amount of CPU or memory above zero, with the text in which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceAmount {
    text: Box<str>,
    pub(super) amount: MilliValue,
}

impl ResourceAmount {
    /// An amount that the caller has read from `text`.
    pub(super) fn new(text: &str, amount: MilliValue) -> Self {
        Self { text: text.into(), amount }
    }

    /// A default, whose text is known to be a quantity.
    pub(super) fn known(text: &str) -> Self {
        Self::new(text, parse_quantity(text).expect("the defaults are quantities"))
    }
}

impl fmt::Display for ResourceAmount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Serialize for ResourceAmount {
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        if to.is_human_readable() {
            return to.serialize_str(&self.text);
        }
        (&self.text, self.amount).serialize(to)
    }
}

impl<'de> Deserialize<'de> for ResourceAmount {
    /// Reads an amount as an exact keyframe has it.
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (text, amount) = Deserialize::deserialize(from)?;
        Ok(Self { text, amount })
    }
}
