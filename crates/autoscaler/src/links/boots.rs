//! By which number is a life of a program of Knative's known, which tells none itself?

use runtime::new_seed;
use vocabulary::BootId;

/// A number that no other life has.
pub(super) fn new_boot() -> BootId {
    let seed = new_seed();
    let first: [u8; 8] = std::array::from_fn(|index| seed[index]);
    BootId(u64::from_le_bytes(first))
}
