//! What have decisions changed for readers since that was last asked?

use std::collections::BTreeSet;

use vocabulary::{RevisionId, SharedMap, Timestamp};

use super::scaled_revision::DecisionNews;

/// What decisions have changed for readers.
#[derive(Clone, Debug, Default)]
pub(super) struct NewsForReaders {
    /// Revisions about which a decision went by other numbers than the one before, or whose history goes on.
    changed: BTreeSet<RevisionId>,
    /// When a decision last found the same as the one before. Thousands of revisions at rest are looked at
    /// every two seconds, and for a reader nothing but this time is new of them.
    confirmed_at: SharedMap<RevisionId, Timestamp>,
}

impl NewsForReaders {
    pub(super) fn note(&mut self, id: RevisionId, news: DecisionNews) {
        match news {
            DecisionNews::Nothing => {}
            DecisionNews::LaterAlone { at } => {
                self.confirmed_at.insert(id, at);
            }
            DecisionNews::Changed => {
                self.changed.insert(id);
            }
        }
    }

    pub(super) fn forget(&mut self, id: RevisionId) {
        self.changed.remove(&id);
        self.confirmed_at.remove(&id);
    }

    pub(super) fn take_changed(&mut self) -> BTreeSet<RevisionId> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn confirmed_at(&self) -> &SharedMap<RevisionId, Timestamp> {
        &self.confirmed_at
    }
}
