//! Arrays for which serde has no form of its own: longer than 32, or of a length that is a parameter.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes the items of an array as a sequence.
pub(super) fn serialize<Item: Serialize, To: Serializer, const N: usize>(
    items: &[Item; N],
    to: To,
) -> Result<To::Ok, To::Error> {
    to.collect_seq(items)
}

/// Reads a sequence of exactly so many items.
pub(super) fn deserialize<'de, Item: Deserialize<'de>, Source: Deserializer<'de>, const N: usize>(
    from: Source,
) -> Result<[Item; N], Source::Error> {
    let items = Vec::<Item>::deserialize(from)?;
    let length = items.len();
    items.try_into().map_err(|_| Source::Error::invalid_length(length, &"another number of items"))
}

/// The same for an array that copies share.
pub(super) fn deserialize_shared<'de, Item: Deserialize<'de>, Source: Deserializer<'de>, const N: usize>(
    from: Source,
) -> Result<Arc<[Item; N]>, Source::Error> {
    deserialize(from).map(Arc::new)
}
