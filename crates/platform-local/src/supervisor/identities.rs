//! By what are pods known, and by what do their queue-proxies know our own hops?

use rand::Rng;
use rand::rngs::StdRng;
use vocabulary::{HopKey, PodName};

/// Gives out names that no pod had before.
#[derive(Debug, Default)]
pub(crate) struct PodNames {
    given: u64,
}

impl PodNames {
    /// How many names were given until now.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// Goes on after so many were given.
    pub(crate) fn after(given: u64) -> Self {
        Self { given }
    }

    pub(crate) fn next(&mut self, template: &str) -> PodName {
        self.given += 1;
        PodName::new(&format!("{template}-{:04}", self.given))
    }
}

/// A number by which this `ebb up` is told from others of its machine.
pub(crate) fn new_instance_number() -> u32 {
    let mut random: StdRng = rand::make_rng();
    random.next_u32()
}

/// A new hop key: 128 random bits in hexadecimal digits.
pub(crate) fn new_hop_key() -> HopKey {
    let mut random: StdRng = rand::make_rng();
    let (high, low) = (random.next_u64(), random.next_u64());
    HopKey::new(format!("{high:016x}{low:016x}"))
}
