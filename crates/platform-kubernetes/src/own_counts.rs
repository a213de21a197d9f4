//! Was a count that the watch shows written by us, or by somebody else?
//!
//! The watch may show ours before the answer to the request comes, later than the next request begins, or,
//! of several, the last alone. So it is remembered what was asked for, until it or a later one is seen.

use std::collections::{BTreeMap, VecDeque};

use vocabulary::{PodCount, RevisionName};

/// More are not under way: a request ends before the next one begins, and the watch is not far behind.
const REMEMBERED_MAX: usize = 4;

/// What we asked for, of each workload; the oldest first.
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

    /// The workload is gone.
    pub(crate) fn forget(&mut self, revision: &RevisionName) {
        self.0.remove(revision);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_wrote_is_known_once_however_late_it_is_seen() {
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
