//! The boot id of a program of Knative's, which sends none: ebb makes one for each of its lives.

use runtime::new_seed;
use vocabulary::BootId;

/// A random boot id, which no other life of a program has.
pub(super) fn new_boot() -> BootId {
    let seed = new_seed();
    let first: [u8; 8] = std::array::from_fn(|index| seed[index]);
    BootId(u64::from_le_bytes(first))
}
