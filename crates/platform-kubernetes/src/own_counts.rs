//! Was a count that the watch shows written by this autoscaler, or by another client?
//!
//! The watch may show a count of ours before the answer to the request comes, later than the next request
//! begins, or, of several counts, the last alone. So each count that was asked for is remembered, until that
//! count or a later one is seen.

use std::collections::{BTreeMap, VecDeque};

use vocabulary::{PodCount, RevisionName};

/// The number of counts that are remembered for one workload. A request ends before the next one begins, and
/// the watch is not far behind, so no more can be unseen.
const REMEMBERED_MAX: usize = 4;

/// The counts that we asked for and have not seen yet, by workload; the oldest first.
#[derive(Debug, Default)]
pub(crate) struct OwnCounts(BTreeMap<RevisionName, VecDeque<PodCount>>);

impl OwnCounts {
    /// A request for this count begins.
    pub(crate) fn written(&mut self, revision: &RevisionName, count: PodCount) {
        let counts = self.0.entry(revision.clone()).or_default();
        if counts.back() == Some(&count) {
            // Tried again.
            return;
        }
        if counts.len() == REMEMBERED_MAX {
            counts.pop_front();
        }
        counts.push_back(count);
    }

    /// The watch shows this count, which was another before; returns whether it is ours.
    pub(crate) fn seen(&mut self, revision: &RevisionName, count: PodCount) -> bool {
        let Some(counts) = self.0.get_mut(revision) else { return false };
        let Some(place) = counts.iter().position(|ours| *ours == count) else { return false };
        counts.drain(..=place);
        if counts.is_empty() {
            self.0.remove(revision);
        }
        true
    }

    /// A workload is gone, and its remembered counts with it.
    pub(crate) fn forget(&mut self, revision: &RevisionName) {
        self.0.remove(revision);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_count_is_recognised_once_however_late_it_is_seen() {
        let revision = RevisionName::new("default", "deployment", "hello").expect("a name");
        let mut counts = OwnCounts::default();
        let seen = |counts: &mut OwnCounts, count: u32| counts.seen(&revision, PodCount::new(count));
        assert!(!seen(&mut counts, 3), "nobody asked for it here");
        for count in [3, 3, 5, 8] {
            counts.written(&revision, PodCount::new(count));
        }
        assert!(seen(&mut counts, 3) && !seen(&mut counts, 3));
        // The watch may leave out what is over.
        assert!(seen(&mut counts, 8) && !seen(&mut counts, 5));
        counts.written(&revision, PodCount::new(2));
        counts.forget(&revision);
        assert!(!seen(&mut counts, 2) && counts.0.is_empty());
    }
}
