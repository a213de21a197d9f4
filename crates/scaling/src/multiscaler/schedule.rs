//! When must which revision be looked at? One ordered set, so that the next deadline among 10,000 revisions costs no search.

use std::collections::BTreeSet;

use vocabulary::{RevisionId, Timestamp};

/// The deadlines of all revisions.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    entries: BTreeSet<(Timestamp, RevisionId)>,
}

impl Schedule {
    /// Moves a revision's deadline.
    pub(super) fn replace(
        &mut self,
        revision: RevisionId,
        before: Option<Timestamp>,
        after: Option<Timestamp>,
    ) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.entries.remove(&(before, revision));
        }
        if let Some(after) = after {
            self.entries.insert((after, revision));
        }
    }

    /// The earliest deadline.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.entries.first().map(|&(at, _)| at)
    }

    /// Takes out the earliest entry that is due.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<RevisionId> {
        let first = *self.entries.first().filter(|&&(at, _)| at <= now)?;
        self.entries.remove(&first);
        Some(first.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_a_moved_deadline_leaves_no_trace() {
        let mut schedule = Schedule::default();
        let at = |second| Some(Timestamp::from_secs(second));
        schedule.replace(RevisionId(1), None, at(5));
        schedule.replace(RevisionId(2), None, at(3));
        schedule.replace(RevisionId(2), at(3), at(7));
        assert_eq!(schedule.first(), at(5));
        assert_eq!(schedule.pop_due(Timestamp::from_secs(4)), None);
        assert_eq!(schedule.pop_due(Timestamp::from_secs(9)), Some(RevisionId(1)));
        assert_eq!(schedule.pop_due(Timestamp::from_secs(9)), Some(RevisionId(2)));
        assert_eq!(schedule.first(), None);
    }
}
