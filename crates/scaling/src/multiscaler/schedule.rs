//! When must which revision be looked at? A heap, so that the next deadline among 10,000 revisions costs no
//! search.
//!
//! Deadlines move, and a heap finds only its first entry. So a moved one leaves its entry behind, which is
//! dropped when it comes first: it is not the revision's deadline any more. An ordered set would need no such
//! thing, but its nodes are split and joined, and thus allocated, as time passes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};
use vocabulary::{RevisionId, Timestamp};

/// Entries without a meaning that are tolerated beside as many as have one. They also go by themselves when
/// their time comes, which for a revision is two seconds away at most; but within two seconds a link can say
/// much.
const STALE_MAX: usize = 64;

/// The deadlines of all revisions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Schedule {
    deadlines: BTreeMap<RevisionId, Timestamp>,
    /// Every deadline, and some that no longer are. The first is always one.
    entries: BinaryHeap<ScheduleEntry>,
}

/// The earliest comes first; of several, in the order of the revisions.
type ScheduleEntry = Reverse<(Timestamp, RevisionId)>;

impl Schedule {
    /// Moves a revision's deadline, or sets its first.
    pub(super) fn plan(&mut self, revision: RevisionId, at: Timestamp) {
        if self.deadlines.insert(revision, at) != Some(at) {
            self.entries.push(Reverse((at, revision)));
            self.forget_stale();
        }
    }

    /// Removes the deadline of a revision.
    pub(super) fn remove(&mut self, revision: RevisionId) {
        self.deadlines.remove(&revision);
        self.forget_stale();
    }

    /// The earliest deadline of all revisions; `None` without one.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.entries.peek().map(|&Reverse((at, _))| at)
    }

    /// The revision with the earliest deadline, if that is due.
    pub(super) fn due(&self, now: Timestamp) -> Option<RevisionId> {
        self.entries.peek().filter(|Reverse((at, _))| *at <= now).map(|&Reverse((_, revision))| revision)
    }

    /// Leaves a deadline in the first place, and not many entries that are none.
    fn forget_stale(&mut self) {
        while self.entries.peek().is_some_and(|entry| !is_deadline(&self.deadlines, entry)) {
            self.entries.pop();
        }
        if self.entries.len() > 2 * self.deadlines.len() + STALE_MAX {
            let mut entries = std::mem::take(&mut self.entries).into_vec();
            entries.retain(|entry| is_deadline(&self.deadlines, entry));
            // A deadline that moved away and back is there twice.
            entries.sort_unstable();
            entries.dedup();
            self.entries = entries.into();
        }
    }
}

fn is_deadline(
    deadlines: &BTreeMap<RevisionId, Timestamp>,
    &Reverse((at, revision)): &ScheduleEntry,
) -> bool {
    deadlines.get(&revision) == Some(&at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(second)
    }

    #[test]
    fn the_earliest_comes_first_and_a_moved_deadline_leaves_no_trace() {
        let mut schedule = Schedule::default();
        schedule.plan(RevisionId(1), at(5));
        schedule.plan(RevisionId(2), at(3));
        schedule.plan(RevisionId(2), at(7));
        assert_eq!(schedule.first(), Some(at(5)));
        assert_eq!(schedule.due(at(4)), None);
        assert_eq!(schedule.due(at(9)), Some(RevisionId(1)));
        schedule.plan(RevisionId(1), at(11));
        assert_eq!(schedule.due(at(9)), Some(RevisionId(2)));
        schedule.remove(RevisionId(2));
        assert_eq!((schedule.due(at(9)), schedule.first()), (None, Some(at(11))));
        schedule.remove(RevisionId(1));
        assert_eq!(schedule.first(), None);
    }

    #[test]
    fn of_several_at_once_the_first_revision_comes_first() {
        let mut schedule = Schedule::default();
        for revision in [2, 0, 1] {
            schedule.plan(RevisionId(revision), at(5));
        }
        for revision in 0..3 {
            assert_eq!(schedule.due(at(5)), Some(RevisionId(revision)));
            schedule.plan(RevisionId(revision), at(7));
        }
        assert_eq!(schedule.due(at(5)), None);
    }

    #[test]
    fn deadlines_that_move_again_and_again_pile_up_nowhere() {
        let mut schedule = Schedule::default();
        schedule.plan(RevisionId(1), at(2));
        for turn in 0..10_000 {
            // Never the first, so none of its entries is met there; now and then the same as before.
            schedule.plan(RevisionId(2), at(if turn % 2 == 0 { 3 } else { 4 + turn }));
            assert!(schedule.entries.len() <= 4 + STALE_MAX, "{} after {turn}", schedule.entries.len());
        }
        schedule.plan(RevisionId(1), at(20_000));
        assert_eq!(schedule.first(), Some(at(10_003)));
    }
}
