//! The loads of an activator's last seconds, for an autoscaler that connects later.

use std::collections::VecDeque;

use vocabulary::RevisionLoad;

/// How many seconds are remembered, and how many a hello may name.
pub(super) const SECONDS_MAX: usize = 60;

/// One second of the activator, with all revisions that had something to say.
pub(super) type LoadsOfSecond = (u64, Vec<RevisionLoad>);

/// The last seconds, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct PastLoads(VecDeque<LoadsOfSecond>);

impl PastLoads {
    pub(super) fn push(&mut self, second: LoadsOfSecond) {
        if self.0.len() >= SECONDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(second);
    }

    /// The oldest remembered second from `first` on.
    pub(super) fn from(&self, first: u64) -> Option<&LoadsOfSecond> {
        // Asked at every word of a link, which has mostly said all of them.
        self.0.get(self.0.partition_point(|(second, _)| *second < first))
    }

    pub(super) fn to_vec(&self) -> Vec<LoadsOfSecond> {
        self.0.iter().cloned().collect()
    }
}
