//! Which activators act upon which version of which assignment.
//!
//! A pod may end, and the last one may, only when every activator that exists has said so. What an activator acknowledged holds for its
//! present boot: a lost link changes nothing, a restart of the activator changes all.

use std::collections::BTreeMap;

use vocabulary::{BootId, ReplicaId, RevisionId, Version};

/// What all activators have acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledgements {
    activators: BTreeMap<ReplicaId, Activator>,
}

#[derive(Clone, Debug, Default)]
struct Activator {
    boot: Option<BootId>,
    newest: BTreeMap<RevisionId, Version>,
}

impl Acknowledgements {
    /// An activator exists. One that was known keeps what it acknowledged.
    pub(crate) fn activator_appeared(&mut self, activator: ReplicaId) {
        self.activators.entry(activator).or_default();
    }

    /// An activator is gone.
    pub(crate) fn activator_left(&mut self, activator: ReplicaId) {
        self.activators.remove(&activator);
    }

    /// An activator's link came up. In a new boot it knows nothing of what it acknowledged before.
    pub(crate) fn activator_started(&mut self, activator: ReplicaId, boot: BootId) {
        if let Some(activator) = self.activators.get_mut(&activator)
            && activator.boot != Some(boot)
        {
            *activator = Activator { boot: Some(boot), newest: BTreeMap::new() };
        }
    }

    /// An activator acts upon a version.
    pub(crate) fn acknowledged(&mut self, activator: ReplicaId, revision: RevisionId, version: Version) {
        if let Some(activator) = self.activators.get_mut(&activator) {
            let newest = activator.newest.entry(revision).or_default();
            *newest = version.max(*newest);
        }
    }

    /// A revision is gone, and its id may be given to another.
    pub(crate) fn revision_left(&mut self, revision: RevisionId) {
        for activator in self.activators.values_mut() {
            activator.newest.remove(&revision);
        }
    }

    /// Whether every activator that exists acts upon `version` or a newer one; trivially so if there is none.
    pub(crate) fn all_have(&self, revision: RevisionId, version: Version) -> bool {
        self.activators
            .values()
            .all(|activator| activator.newest.get(&revision).is_some_and(|&newest| newest >= version))
    }

    /// Whether some activator has not said hello yet.
    pub(crate) fn is_any_unheard(&self) -> bool {
        self.activators.values().any(|activator| activator.boot.is_none())
    }

    /// Whether there is no activator.
    pub(crate) fn is_empty(&self) -> bool {
        self.activators.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::Epoch;

    use super::*;

    const REVISION: RevisionId = RevisionId(3);
    const ONE: ReplicaId = ReplicaId(1);
    const TWO: ReplicaId = ReplicaId(2);

    fn version(counter: u64) -> Version {
        Version { epoch: Epoch(1), counter }
    }

    fn both_at(counter: u64) -> Acknowledgements {
        let mut known = Acknowledgements::default();
        for activator in [ONE, TWO] {
            known.activator_appeared(activator);
            known.activator_started(activator, BootId(7));
            known.acknowledged(activator, REVISION, version(counter));
        }
        known
    }

    #[test]
    fn every_activator_that_exists_must_have_the_version_or_a_newer_one() {
        let mut known = both_at(5);
        assert!(known.all_have(REVISION, version(5)) && known.all_have(REVISION, version(4)));
        assert!(!known.all_have(REVISION, version(6)));
        known.acknowledged(ONE, REVISION, version(6));
        assert!(!known.all_have(REVISION, version(6)), "one of two is not all");
        known.activator_left(TWO);
        assert!(known.all_have(REVISION, version(6)), "one that is gone picks nothing any more");
        known.activator_appeared(ReplicaId(9));
        assert!(!known.all_have(REVISION, version(6)), "one that was never heard might");
    }

    #[test]
    fn a_late_acknowledgement_of_an_old_version_takes_nothing_back() {
        let mut known = both_at(5);
        known.acknowledged(ONE, REVISION, version(2));
        assert!(known.all_have(REVISION, version(5)));
    }

    #[test]
    fn a_new_link_of_the_same_boot_changes_nothing_and_a_new_boot_changes_all() {
        let mut known = both_at(5);
        known.activator_started(ONE, BootId(7));
        assert!(known.all_have(REVISION, version(5)));
        known.activator_started(ONE, BootId(8));
        assert!(!known.all_have(REVISION, version(1)));
    }

    #[test]
    fn a_revision_that_reuses_an_id_inherits_no_acknowledgement() {
        let mut known = both_at(5);
        known.revision_left(REVISION);
        assert!(!known.all_have(REVISION, version(1)));
    }

    #[test]
    fn acknowledgements_of_strangers_are_ignored() {
        let mut known = both_at(5);
        known.acknowledged(ReplicaId(9), REVISION, version(9));
        assert!(known.all_have(REVISION, version(5)));
    }
}
