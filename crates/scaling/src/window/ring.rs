//! A ring with the sums of the newest seconds.

use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use super::Second;
use serde::{Deserialize, Serialize};
use settings::Metric;

/// The sums of one second, one for each metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SecondSums {
    pub(crate) concurrency: f64,
    pub(crate) rate: f64,
}

impl SecondSums {
    /// So much of one metric, and nothing of the others.
    pub(crate) fn only(metric: Metric, value: f64) -> Self {
        match metric {
            Metric::Concurrency => Self { concurrency: value, rate: 0.0 },
            Metric::Rps => Self { concurrency: 0.0, rate: value },
        }
    }

    pub(crate) fn of(self, metric: Metric) -> f64 {
        match metric {
            Metric::Concurrency => self.concurrency,
            Metric::Rps => self.rate,
        }
    }
}

impl Add for SecondSums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { concurrency: self.concurrency + other.concurrency, rate: self.rate + other.rate }
    }
}

impl Neg for SecondSums {
    type Output = Self;

    fn neg(self) -> Self {
        Self { concurrency: -self.concurrency, rate: -self.rate }
    }
}

impl Sub for SecondSums {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl AddAssign for SecondSums {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for SecondSums {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// The newest seconds, as many as there are slots; the second `s` lives at `s` modulo their number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ring {
    slots: Box<[SecondSums]>,
}

impl Ring {
    pub(super) fn new(seconds: Second) -> Self {
        let length = usize::try_from(seconds).expect("a window is at most an hour long");
        Self { slots: vec![SecondSums::default(); length].into_boxed_slice() }
    }

    /// How many seconds it covers.
    pub(super) fn length(&self) -> Second {
        Second::try_from(self.slots.len()).unwrap_or(Second::MAX)
    }

    /// The sums of a second, which the ring must cover: a second outside of it would share the slot of
    /// another.
    pub(super) fn at(&self, second: Second) -> SecondSums {
        self.slots[self.index(second)]
    }

    /// The sums of the seconds `from..=to`, which the ring must cover: a second outside of it would share the
    /// slot of another.
    pub(super) fn between(&self, from: Second, to: Second) -> impl DoubleEndedIterator<Item = SecondSums> {
        // No range is longer than the ring, so it wraps round the end of the slots once at most.
        let (before, after) = self.slots.split_at(self.index(from));
        let seconds = usize::try_from(to - from + 1).unwrap_or(0);
        let (newer, older) = (seconds.saturating_sub(after.len()), seconds.min(after.len()));
        after[..older].iter().chain(&before[..newer.min(before.len())]).copied()
    }

    /// The sum over the seconds `from..=to`, which the ring must cover.
    pub(super) fn sum(&self, from: Second, to: Second) -> SecondSums {
        self.between(from, to).fold(SecondSums::default(), SecondSums::add)
    }

    /// Adds a value to a second, as far as the second does not fall below zero, and returns the part that was
    /// added. A correction may take back what a resize has dropped; and floats leave a residue where
    /// everything is taken back, which would keep a pod alive.
    pub(super) fn add(&mut self, second: Second, value: SecondSums) -> SecondSums {
        let index = self.index(second);
        let before = self.slots[index];
        let after = SecondSums {
            concurrency: sum(before.concurrency, value.concurrency),
            rate: sum(before.rate, value.rate),
        };
        self.slots[index] = after;
        after - before
    }

    /// Makes room for the seconds after `newest` until `to`.
    pub(super) fn advance(&mut self, newest: Second, to: Second) {
        if to - newest >= self.length() {
            self.slots.fill(SecondSums::default());
            return;
        }
        // A second without a report is zero, and not the value that its slot had one round ago.
        for second in (newest + 1)..=to {
            let index = self.index(second);
            self.slots[index] = SecondSums::default();
        }
    }

    fn index(&self, second: Second) -> usize {
        usize::try_from(second.rem_euclid(self.length()))
            .expect("a remainder of a positive length is not negative")
    }
}

/// Zero at least, and zero where next to nothing of what was taken away is left.
fn sum(before: f64, change: f64) -> f64 {
    let sum = before + change;
    if sum < -change * 1e-9 { 0.0 } else { sum.max(0.0) }
}
