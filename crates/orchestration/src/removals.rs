//! Which revisions are gone while an activator may still know them?

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vocabulary::{Ownership, ReplicaId, RevisionName, Version};

use crate::events::Unassignment;
use crate::facts::Entrance;

/// The revisions that are gone, by their names: their numbers may be given to others before all activators
/// have acknowledged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RemovedRevisions {
    by_name: BTreeMap<RevisionName, RemovedRevision>,
}

/// A revision that is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RemovedRevision {
    /// The version that says so.
    pub(crate) version: Version,
    /// What becomes of what waits for it.
    pub(crate) how: Unassignment,
    /// To be released once no activator knows the revision any more.
    pub(crate) entrances: BTreeSet<Entrance>,
    /// The activators that may still know it.
    pub(crate) known_to: BTreeSet<ReplicaId>,
}

impl RemovedRevisions {
    pub(crate) fn put(&mut self, name: RevisionName, removed: RemovedRevision) {
        self.by_name.insert(name, removed);
    }

    /// A revision was made again under the name of one that is gone: the entrances of the present one are not
    /// released with those of the former.
    pub(crate) fn made_again(&mut self, name: &RevisionName, entrances: &BTreeSet<Entrance>) {
        if let Some(removed) = self.by_name.get_mut(name) {
            removed.entrances.retain(|entrance| !entrances.contains(entrance));
        }
    }

    /// An activator that is gone acknowledges nothing, and entrances must not wait for it for ever.
    pub(crate) fn activator_gone(&mut self, activator: ReplicaId) {
        for removed in self.by_name.values_mut() {
            removed.known_to.remove(&activator);
        }
    }

    /// An activator that began a new life names the revisions that it knows. New to us is not new: it may
    /// know a revision that was removed before it said its first word.
    pub(crate) fn activator_started(&mut self, activator: ReplicaId, knows: impl Fn(&RevisionName) -> bool) {
        for (name, removed) in &mut self.by_name {
            if !knows(name) {
                removed.known_to.remove(&activator);
            }
        }
    }

    /// An acknowledgement of a version before the removal is about an assignment: the activator still listens
    /// there.
    pub(crate) fn acknowledged(&mut self, name: &RevisionName, activator: ReplicaId, version: Version) {
        if let Some(removed) = self.by_name.get_mut(name)
            && version >= removed.version
        {
            removed.known_to.remove(&activator);
        }
    }

    /// The present owner of a bucket gives the order that releases an entrance; ours would have no right any
    /// more.
    pub(crate) fn keep_owned(&mut self, ownership: &Ownership) {
        self.by_name.retain(|name, _| ownership.epoch_of(name).is_some());
    }

    /// The revisions that an activator may still know.
    pub(crate) fn known_to(
        &self,
        activator: ReplicaId,
    ) -> impl Iterator<Item = (&RevisionName, &RemovedRevision)> {
        self.by_name.iter().filter(move |(_, removed)| removed.known_to.contains(&activator))
    }

    pub(crate) fn has_forgotten(&self) -> bool {
        self.by_name.values().any(|removed| removed.known_to.is_empty())
    }

    /// The revisions that no activator knows any more, each with its entrances; they are forgotten here.
    pub(crate) fn take_forgotten(&mut self) -> Vec<(RevisionName, BTreeSet<Entrance>)> {
        let forgotten = self.by_name.extract_if(.., |_, removed| removed.known_to.is_empty());
        forgotten.map(|(name, removed)| (name, removed.entrances)).collect()
    }
}
