//! Was a count that the watch shows written by this autoscaler, or by another client?
//!
//! The watch may show a count of ours before the answer to the request comes, later than the next request
//! begins, or, of several counts, the last alone. So each count that was asked for is remembered, until that
//! count or a later one is seen.

use std::collections::VecDeque;

use vocabulary::PodCount;

/// The number of counts that are remembered for one workload. A request ends before the next one begins, and
/// the watch is not far behind, so no more can be unseen.
const REMEMBERED_MAX: usize = 4;

/// The counts of one workload that we asked for and have not seen yet; the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnCounts(VecDeque<PodCount>);

impl OwnCounts {
    /// A request for this count begins.
    pub(super) fn written(&mut self, count: PodCount) {
        if self.0.back() == Some(&count) {
            // Tried again.
            return;
        }
        if self.0.len() == REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(count);
    }

    /// The watch shows this count, which was another before; returns whether it is ours.
    pub(super) fn seen(&mut self, count: PodCount) -> bool {
        let Some(place) = self.0.iter().position(|ours| *ours == count) else { return false };
        self.0.drain(..=place);
        true
    }

    /// The workload is gone, and its remembered counts with it.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_count_is_recognised_once_however_late_it_is_seen() {
        let mut counts = OwnCounts::default();
        let seen = |counts: &mut OwnCounts, count: u32| counts.seen(PodCount::new(count));
        assert!(!seen(&mut counts, 3), "nobody asked for it here");
        for count in [3, 3, 5, 8] {
            counts.written(PodCount::new(count));
        }
        assert!(seen(&mut counts, 3) && !seen(&mut counts, 3));
        // The watch may leave out what is over.
        assert!(seen(&mut counts, 8) && !seen(&mut counts, 5));
        counts.written(PodCount::new(2));
        counts.forget();
        assert!(!seen(&mut counts, 2) && counts.0.is_empty());
    }
}
