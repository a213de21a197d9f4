//! What has to be settled at the end of this turn?

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use vocabulary::{ReplicaId, RevisionId};

/// The revisions and activators that something was taken in about since the last settlement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UnsettledWork {
    touched: BTreeSet<RevisionId>,
    proven: BTreeSet<RevisionId>,
    unsynced: BTreeSet<ReplicaId>,
}

/// One step of a settlement, about one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionStep {
    /// Its assignment, its route and its pods are brought up to date.
    Rebuild(RevisionId),
    /// What waited for an acknowledgement goes on: its releases and its route.
    FollowUp(RevisionId),
}

impl UnsettledWork {
    /// The assignment, the route or the pods of a revision may have to change.
    pub(crate) fn touch(&mut self, id: RevisionId) {
        self.touched.insert(id);
    }

    /// The same of several revisions.
    pub(crate) fn touch_all<'a>(&mut self, ids: impl Iterator<Item = &'a RevisionId>) {
        self.touched.extend(ids);
    }

    /// An acknowledgement came for a revision, or its route was written: what waited for that may go on.
    pub(crate) fn note_proven(&mut self, id: RevisionId) {
        self.proven.insert(id);
    }

    /// An activator has to be told everything.
    pub(crate) fn request_sync(&mut self, activator: ReplicaId) {
        self.unsynced.insert(activator);
    }

    /// There is no link on which an activator could be told everything.
    pub(crate) fn cancel_sync(&mut self, activator: ReplicaId) {
        self.unsynced.remove(&activator);
    }

    /// A revision is gone or not ours any more.
    pub(crate) fn forget(&mut self, id: RevisionId) {
        self.touched.remove(&id);
        self.proven.remove(&id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.proven.is_empty() && self.unsynced.is_empty()
    }

    /// The next step about a revision; a rebuild does all that a follow-up does, and comes first.
    pub(crate) fn next_step(&mut self) -> Option<RevisionStep> {
        let rebuild = self.touched.pop_first().map(RevisionStep::Rebuild);
        rebuild.or_else(|| self.proven.pop_first().map(RevisionStep::FollowUp))
    }

    /// The next activator that has to be told everything.
    pub(crate) fn next_unsynced(&mut self) -> Option<ReplicaId> {
        self.unsynced.pop_first()
    }
}
