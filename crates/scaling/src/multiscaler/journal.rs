//! The last decisions of a revision, for `ebb explain`.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::decision::{Decision, Reason};

/// Keeps the decisions that changed something, and after them the latest one that did not: it shows the
/// present numbers, while a quiet hour of ticks does not push out what once happened.
///
/// A copy shares the changes with the journal that it was made of, until the next change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecisionJournal {
    changes: Arc<VecDeque<Arc<Decision>>>,
    /// The latest, if it changed nothing.
    unchanged: Option<Decision>,
    /// The last reason of that one, whose list the next decision takes.
    last_reason: Option<Reason>,
}

/// How a decision that changed nothing compares with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuietNews {
    /// Both started from the same numbers and give the same reason for the count.
    LaterAlone,
    /// The numbers are other ones, or the decision before changed something.
    OtherNumbers,
}

impl DecisionJournal {
    /// The decisions that are kept, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.changes.iter().map(AsRef::as_ref).chain(&self.unchanged)
    }

    /// The latest decision that changed something.
    pub fn last_change(&self) -> Option<&Decision> {
        self.changes.back().map(AsRef::as_ref)
    }

    /// Whether the latest decision is one that changed nothing.
    pub fn ends_unchanged(&self) -> bool {
        self.unchanged.is_some()
    }

    /// Remembers a decision that changed something.
    pub(super) fn note_change(&mut self, decision: Arc<Decision>, limit: usize) {
        (self.unchanged, self.last_reason) = (None, None);
        self.make_room(limit);
        Arc::make_mut(&mut self.changes).push_back(decision);
    }

    /// Remembers a decision that changed nothing until the next one comes.
    pub(super) fn note_unchanged(&mut self, decision: Decision, limit: usize) -> QuietNews {
        self.make_room(limit);
        let last_reason = decision.reasons.last().copied();
        let former_reason = std::mem::replace(&mut self.last_reason, last_reason);
        let is_same = self.unchanged.as_ref().is_some_and(|former| {
            (former.inputs, former.why_not_zero) == (decision.inputs, decision.why_not_zero)
                && former.excess_burst_capacity == decision.excess_burst_capacity
                && former_reason == last_reason
        });
        self.unchanged = Some(decision);
        if is_same { QuietNews::LaterAlone } else { QuietNews::OtherNumbers }
    }

    /// An empty list for the reasons of the next decision: that of the one which it replaces, so that a quiet
    /// tick allocates none.
    pub(super) fn empty_list(&mut self) -> Vec<Reason> {
        let replaced = self.unchanged.as_mut();
        let mut list = replaced.map(|replaced| std::mem::take(&mut replaced.reasons)).unwrap_or_default();
        list.clear();
        list
    }

    /// Drops the oldest change if one more decision would exceed the limit.
    fn make_room(&mut self, limit: usize) {
        if self.changes.len() >= limit.max(1) {
            Arc::make_mut(&mut self.changes).pop_front();
        }
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

    fn seconds(journal: &DecisionJournal) -> Vec<u64> {
        journal.iter().map(|decision| decision.at.whole_secs()).collect()
    }

    #[test]
    fn quiet_ticks_replace_each_other_and_changes_stay() {
        let mut journal = DecisionJournal::default();
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
    fn a_copy_shares_the_changes_and_stays_as_it_was() {
        let mut journal = DecisionJournal::default();
        journal.note_change(Arc::new(decision(1)), 3);
        let copy = journal.clone();
        assert!(Arc::ptr_eq(&journal.changes, &copy.changes));
        journal.note_change(Arc::new(decision(2)), 3);
        assert_eq!((seconds(&journal), seconds(&copy)), (vec![1, 2], vec![1]));
    }

    #[test]
    fn a_quiet_decision_is_news_if_anything_but_its_time_differs() {
        let mut journal = DecisionJournal::default();
        assert_eq!(journal.note_unchanged(decision(1), 3), QuietNews::OtherNumbers);
        assert_eq!(journal.note_unchanged(decision(2), 3), QuietNews::LaterAlone);
        let why_not_zero = Some(StandingText::NothingKnown.into());
        let explained = |second| Decision { why_not_zero, ..decision(second) };
        assert_eq!(journal.note_unchanged(explained(3), 3), QuietNews::OtherNumbers);
        journal.empty_list();
        assert_eq!(journal.note_unchanged(explained(4), 3), QuietNews::LaterAlone);
        let text = StandingText::NoData.into();
        let reasons = vec![Reason { stage: Stage::NoData, before: None, after: None, text }];
        let with_reason = |second| Decision { reasons: reasons.clone(), ..explained(second) };
        assert_eq!(journal.note_unchanged(with_reason(4), 3), QuietNews::OtherNumbers);
        journal.empty_list();
        assert_eq!(journal.note_unchanged(with_reason(4), 3), QuietNews::LaterAlone);
        journal.note_change(Arc::new(decision(5)), 3);
        assert_eq!(journal.note_unchanged(decision(6), 3), QuietNews::OtherNumbers);
    }

    #[test]
    fn the_list_of_a_quiet_tick_serves_the_next_one() {
        let mut journal = DecisionJournal::default();
        journal.note_change(Arc::new(decision(1)), 3);
        let reason =
            Reason { stage: Stage::NoData, before: None, after: None, text: StandingText::NoData.into() };
        journal.note_unchanged(Decision { reasons: vec![reason], ..decision(2) }, 3);
        let list = journal.empty_list();
        assert!(list.is_empty() && list.capacity() > 0);
        assert_eq!(journal.empty_list().capacity(), 0, "there is no second one");
    }
}
