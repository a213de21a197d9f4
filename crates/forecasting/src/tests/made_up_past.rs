//! Pasts that are made up: minute by minute, or by a formula.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::{MinuteDemand, PastDemand};

/// Minutes with exactly these demands.
#[derive(Clone, Debug, Default)]
pub(super) struct ExactPast {
    minutes: BTreeMap<u64, MinuteDemand>,
}

impl ExactPast {
    /// From this minute on, each of these minutes has a demand that does not change within it.
    pub(super) fn put(&mut self, first: u64, demands: &[f64]) {
        let steady = |demand: &f64| MinuteDemand { mean: *demand, maximum: *demand };
        self.minutes.extend((first..).zip(demands.iter().map(steady)));
    }
}

impl PastDemand for ExactPast {
    fn minute(&self, minute: u64) -> Option<MinuteDemand> {
        self.minutes.get(&minute).copied()
    }
}

/// Every minute, by a hash of its number: one of eight is missing. Counts how often it is asked.
#[derive(Clone, Debug)]
pub(super) struct ScatteredPast {
    pub(super) seed: u64,
    /// Minutes from this one on are another past.
    pub(super) known_until: u64,
    pub(super) asked: Cell<u64>,
}

impl ScatteredPast {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, known_until: u64::MAX, asked: Cell::new(0) }
    }
}

impl PastDemand for ScatteredPast {
    fn minute(&self, minute: u64) -> Option<MinuteDemand> {
        self.asked.set(self.asked.get() + 1);
        let seed = if minute < self.known_until { self.seed } else { !self.seed };
        let mixed = mixed(seed ^ mixed(minute));
        if mixed.is_multiple_of(8) {
            return None;
        }
        let [mean, more] =
            [mixed >> 8, mixed >> 24].map(|bits| f64::from(u16::from_be_bytes(two_bytes(bits))) / 400.0);
        Some(MinuteDemand { mean, maximum: mean + more })
    }
}

/// A number in 0 … 1 that follows from another number without a pattern.
pub(super) fn scattered(number: u64) -> f64 {
    f64::from(u16::from_be_bytes(two_bytes(mixed(number)))) / 65_536.0
}

fn two_bytes(bits: u64) -> [u8; 2] {
    let [.., high, low] = bits.to_be_bytes();
    [high, low]
}

/// The last steps of the generator `SplitMix64`.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
