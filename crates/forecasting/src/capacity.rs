//! What one pod serves, and how many pods a demand needs.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

use crate::rule::PodShare;

/// What a pod is meant to serve, and the most that it serves, in the unit of the demand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodCapacity {
    target: f64,
    total: f64,
}

impl PodCapacity {
    /// `None` unless both are finite and more than zero.
    pub fn new(target: f64, total: f64) -> Option<Self> {
        let is_capacity = |amount: f64| amount.is_finite() && amount > 0.0;
        (is_capacity(target) && is_capacity(total)).then_some(Self { target, total })
    }

    /// The most that one pod serves.
    pub const fn total(self) -> f64 {
        self.total
    }

    pub(crate) fn of(self, share: PodShare) -> f64 {
        match share {
            PodShare::Target => self.target,
            PodShare::Total => self.total,
        }
    }

    /// The number of pods for a demand; none for one below zero.
    pub(crate) fn pods_for(self, demand: f64, share: PodShare) -> PodCount {
        PodCount::ceil_from(demand / self.of(share))
    }
}

/// How far a floor may lie above the count of class kpa: a forecast is no reason for any number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorCap {
    /// So many times the count of class kpa.
    pub times: u32,
    /// Or so many pods more, whichever is greater.
    pub more: u32,
}

impl FloorCap {
    /// Three times the count, or ten pods more.
    pub const USUAL: Self = Self { times: 3, more: 10 };

    /// A floor of at most so many pods above what class kpa asks for.
    pub fn limit(self, floor: PodCount, reactive: PodCount) -> PodCount {
        let multiple = reactive.value().saturating_mul(self.times);
        let sum = reactive.value().saturating_add(self.more);
        floor.min(PodCount::new(multiple.max(sum)))
    }
}
