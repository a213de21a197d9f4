//! The last decisions of a revision, for `ebb explain`.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::decision::Decision;

/// Keeps the decisions that changed something, and after them the latest one that did not: it shows the present numbers, while a
/// quiet hour of ticks does not push out what once happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    decisions: VecDeque<Arc<Decision>>,
    ends_unchanged: bool,
}

impl Journal {
    /// Remembers a decision that changed something.
    pub(super) fn note_change(&mut self, decision: Arc<Decision>, limit: usize) {
        self.push(decision, limit);
        self.ends_unchanged = false;
    }

    /// Remembers a decision that changed nothing until the next one comes.
    pub(super) fn note_unchanged(&mut self, decision: Arc<Decision>, limit: usize) {
        self.push(decision, limit);
        self.ends_unchanged = true;
    }

    fn push(&mut self, decision: Arc<Decision>, limit: usize) {
        if self.ends_unchanged || self.decisions.len() >= limit.max(1) {
            if self.ends_unchanged {
                self.decisions.pop_back()
            } else {
                self.decisions.pop_front()
            };
        }
        self.decisions.push_back(decision);
    }

    /// Oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Decision>> {
        self.decisions.iter()
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::{ExcessBurstCapacity, PodCount, Routing, Timestamp};

    use super::*;
    use crate::decision::{Mode, Trigger};

    fn decision(second: u64) -> Arc<Decision> {
        Arc::new(Decision {
            at: Timestamp::from_secs(second),
            trigger: Trigger::Tick,
            inputs: None,
            reasons: Vec::new(),
            mode: Mode::Stable,
            desired: None,
            wanted: None,
            excess_burst_capacity: ExcessBurstCapacity::ZERO,
            routing: Routing::Direct,
            activators: PodCount::ZERO,
            why_not_zero: None,
        })
    }

    fn seconds(journal: &Journal) -> Vec<u64> {
        journal.iter().map(|decision| decision.at.whole_secs()).collect()
    }

    #[test]
    fn quiet_ticks_replace_each_other_and_changes_stay() {
        let mut journal = Journal::default();
        journal.note_change(decision(1), 3);
        journal.note_unchanged(decision(2), 3);
        journal.note_unchanged(decision(3), 3);
        assert_eq!(seconds(&journal), [1, 3]);
        journal.note_change(decision(4), 3);
        assert_eq!(seconds(&journal), [1, 4]);
        journal.note_change(decision(5), 3);
        journal.note_unchanged(decision(6), 3);
        assert_eq!(seconds(&journal), [4, 5, 6]);
        journal.note_unchanged(decision(7), 3);
        assert_eq!(seconds(&journal), [4, 5, 7]);
    }
}
