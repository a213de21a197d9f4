//! The last decisions of a revision, for `ebb explain`.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::decision::{Decision, Reason};

/// Keeps the decisions that changed something, and after them the latest one that did not: it shows the
/// present numbers, while a quiet hour of ticks does not push out what once happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    changes: VecDeque<Arc<Decision>>,
    /// The latest, if it changed nothing.
    unchanged: Option<Decision>,
}

impl Journal {
    /// Remembers a decision that changed something.
    pub(super) fn note_change(&mut self, decision: Arc<Decision>, limit: usize) {
        self.unchanged = None;
        self.make_room(limit);
        self.changes.push_back(decision);
    }

    /// Remembers a decision that changed nothing until the next one comes.
    pub(super) fn note_unchanged(&mut self, decision: Decision, limit: usize) {
        self.make_room(limit);
        self.unchanged = Some(decision);
    }

    /// An empty list for the reasons of the next decision: that of the one which it replaces, so that a quiet
    /// tick allocates none.
    pub(super) fn empty_list(&mut self) -> Vec<Reason> {
        let mut list = self.unchanged.take().map(|replaced| replaced.reasons).unwrap_or_default();
        list.clear();
        list
    }

    /// Drops the oldest change if one more decision would exceed the limit.
    fn make_room(&mut self, limit: usize) {
        if self.changes.len() >= limit.max(1) {
            self.changes.pop_front();
        }
    }

    /// The decisions that are kept, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.changes.iter().map(AsRef::as_ref).chain(&self.unchanged)
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::Timestamp;

    use super::*;
    use crate::decision::{Stage, StandingText, Trigger};

    fn decision(second: u64) -> Decision {
        Decision::empty(Trigger::Tick, Timestamp::from_secs(second))
    }

    fn seconds(journal: &Journal) -> Vec<u64> {
        journal.iter().map(|decision| decision.at.whole_secs()).collect()
    }

    #[test]
    fn quiet_ticks_replace_each_other_and_changes_stay() {
        let mut journal = Journal::default();
        journal.note_change(Arc::new(decision(1)), 3);
        journal.note_unchanged(decision(2), 3);
        journal.note_unchanged(decision(3), 3);
        assert_eq!(seconds(&journal), [1, 3]);
        journal.note_change(Arc::new(decision(4)), 3);
        assert_eq!(seconds(&journal), [1, 4]);
        journal.note_change(Arc::new(decision(5)), 3);
        journal.note_unchanged(decision(6), 3);
        assert_eq!(seconds(&journal), [4, 5, 6]);
        journal.note_unchanged(decision(7), 3);
        assert_eq!(seconds(&journal), [4, 5, 7]);
    }

    #[test]
    fn the_list_of_a_quiet_tick_serves_the_next_one() {
        let mut journal = Journal::default();
        journal.note_change(Arc::new(decision(1)), 3);
        let reason =
            Reason { stage: Stage::NoData, before: None, after: None, text: StandingText::NoData.into() };
        journal.note_unchanged(Decision { reasons: vec![reason], ..decision(2) }, 3);
        let list = journal.empty_list();
        assert!(list.is_empty() && list.capacity() > 0);
        assert_eq!(journal.empty_list().capacity(), 0, "there is no second one");
    }
}
