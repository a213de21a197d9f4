//! Hop keys within the state of the control loop, as an exact keyframe of a record has them.
//!
//! A key has no `Serialize` of its own, so that no message and no answer can hold one by accident. A field
//! that belongs to a keyframe names this form (`#[serde(with = "…")]`), and whoever writes the keyframe
//! replaces each key by a hash before.

use serde::{Deserialize as _, Deserializer, Serializer};

use crate::hop_key::HopKey;

/// Writes the texts of the keys.
pub fn serialize<To: Serializer>(keys: &[HopKey], to: To) -> Result<To::Ok, To::Error> {
    to.collect_seq(keys.iter().map(HopKey::expose))
}

/// Reads keys that [`serialize`] has written.
pub fn deserialize<'de, Source: Deserializer<'de>>(from: Source) -> Result<Vec<HopKey>, Source::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    Ok(texts.into_iter().map(HopKey::new).collect())
}
