//! The largest recent count: what the scale-down delay holds on to.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, Timestamp};

/// Width of a cell. Knative's decision tick, whose cells decide to the second when a peak is forgotten; kept
/// for that.
const CELL_SECONDS: u64 = 2;

/// The maximum over the newest `delay`, in cells of 2 s.
///
/// Only entries that can still become the maximum are kept: from front to back they get younger and strictly
/// smaller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecentMaximum {
    /// After how many cells an entry is forgotten; at least 1.
    cells: u64,
    candidates: VecDeque<(u64, PodCount)>,
}

impl RecentMaximum {
    /// An empty memory; `None` for a delay of zero, which means that there is none.
    pub(crate) fn new(delay: Duration) -> Option<Self> {
        let cells = u64::try_from(delay.as_nanos().div_ceil(u128::from(CELL_SECONDS) * 1_000_000_000))
            .unwrap_or(u64::MAX);
        (cells > 0).then(|| Self { cells, candidates: VecDeque::new() })
    }

    /// Takes the length of another, keeping what is remembered.
    pub(crate) fn resize(&mut self, like: &Self) {
        // What is too old for a shorter delay is passed over by `with`, and goes with the next `record`.
        self.cells = like.cells;
    }

    /// The largest of `count` and what is not yet forgotten.
    pub(crate) fn with(&self, count: PodCount, now: Timestamp) -> PodCount {
        let cell = cell(now);
        let remembered = self.candidates.iter().find(|&&(age, _)| cell.saturating_sub(age) < self.cells);
        remembered.map_or(count, |&(_, largest)| largest.max(count))
    }

    /// Remembers `count`. Time does not go backwards.
    pub(crate) fn record(&mut self, count: PodCount, now: Timestamp) {
        let cell = cell(now);
        while self.candidates.front().is_some_and(|&(oldest, _)| cell.saturating_sub(oldest) >= self.cells) {
            self.candidates.pop_front();
        }
        // A count that is older and no larger will never be the largest again.
        while self.candidates.back().is_some_and(|&(_, smaller)| smaller <= count) {
            self.candidates.pop_back();
        }
        // A larger one of the same cell stands for both, for they are forgotten together.
        if self.candidates.back().is_none_or(|&(youngest, _)| youngest != cell) {
            self.candidates.push_back((cell, count));
        }
    }
}

fn cell(now: Timestamp) -> u64 {
    now.whole_secs() / CELL_SECONDS
}
