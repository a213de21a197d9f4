//! What does each activator know, and may it still send?
//!
//! A pod may end, and the last one may, only when every activator that may send to it has said otherwise.
//! What an activator acknowledged holds for its present boot: a lost link changes nothing, a restart of the
//! activator changes all. One that was never heard might know anything. An activator of Knative's is told
//! nothing and acknowledges nothing: it goes by Knative's own objects, serves every revision at any time, and
//! here only counts the requests that it holds.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use vocabulary::{BootId, Bucket, Epoch, Interner, ReplicaId, ReplicaName, RevisionId, Timestamp, Version};

use crate::facts::{ActivatorFacts, ActivatorLife};
use crate::host::HostSigns;
use crate::links::LinkId;

/// Every activator that the platform named and has not removed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Activators {
    ids: Interner<ReplicaName, ReplicaId>,
    records: BTreeMap<ReplicaId, ActivatorRecord>,
}

/// An activator: its facts, its link and what it acknowledged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ActivatorRecord {
    pub(crate) facts: ActivatorFacts,
    pub(crate) link: LinkId,
    /// Its present life; `None` until it was heard in ours.
    pub(crate) boot: Option<BootId>,
    pub(crate) reach: ActivatorReach,
    /// What its link tells of whether its host lives.
    pub(crate) host: HostSigns,
    /// It said that it is on its way out.
    pub(crate) is_draining: bool,
    /// The buckets of which no route names it any more, as far as it was told.
    pub(crate) released: BTreeSet<Bucket>,
    /// The revisions that it may know.
    pub(crate) holdings: BTreeMap<RevisionId, ActivatorHolding>,
}

/// How an activator can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ActivatorReach {
    /// Its link is down, which says nothing about it.
    #[default]
    Down,
    /// It said hello and waits to be told everything.
    Unsynced,
    /// It is told of changes as they come.
    Synced,
    /// The port where its link stood is closed.
    Refused,
}

/// What an activator may know of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActivatorHolding {
    pub(crate) standing: HoldingState,
    /// The newest version that it acts upon, in its present boot.
    pub(crate) acknowledged: Option<Version>,
}

/// What a revision is to an activator, as it was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HoldingState {
    /// The activator is one of the revision's members.
    Assigned,
    /// It serves what it holds and what still comes.
    #[default]
    Retired,
    /// The same, and it holds nothing: it may forget it, at that time, unless a route names it.
    Emptied { forget_at: Option<Timestamp> },
    /// It was told to forget it. It may still serve what came meanwhile, until it acknowledges; any newer
    /// assignment takes the word back.
    Forgetting { version: Version },
}

impl ActivatorRecord {
    /// Whether it may be chosen to serve.
    fn can_serve(&self) -> bool {
        self.facts.life == ActivatorLife::Ready
            && !self.is_draining
            && self.reach != ActivatorReach::Refused
            && !self.host.is_lost()
    }

    /// Whether it said hello on the link that stands.
    pub(crate) fn is_told(&self) -> bool {
        matches!(self.reach, ActivatorReach::Unsynced | ActivatorReach::Synced)
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_draining || self.facts.life == ActivatorLife::Terminating
    }

    /// Whether it is an activator of ebb's, which is told of revisions and acknowledges what it is told.
    pub(crate) fn acknowledges(&self) -> bool {
        self.facts.link.channel.is_link()
    }

    /// Whether it acts upon `version` of a revision, or a newer one. One that is told nothing knows of every
    /// revision by itself.
    pub(crate) fn has(&self, revision: RevisionId, version: Version) -> bool {
        if !self.acknowledges() {
            return true;
        }
        let holding = self.holdings.get(&revision);
        holding.and_then(|holding| holding.acknowledged).is_some_and(|newest| newest >= version)
    }

    /// Whether it goes by what an owner before `ours` has told it, as far as this owner knows: it has said
    /// nothing to us yet, or that it knows the revision. What it acknowledges may still be that owner's.
    pub(crate) fn serves_as_before(&self, revision: RevisionId, ours: Epoch) -> bool {
        match self.holdings.get(&revision) {
            Some(holding) => holding.acknowledged.is_none_or(|version| version.epoch < ours),
            None => self.boot.is_none(),
        }
    }

    /// Whether it may pick a pod that only versions before `version` name as usable.
    fn may_act_on_older(&self, revision: RevisionId, version: Version) -> bool {
        self.acknowledges()
            && (self.boot.is_none()
                || (self.holdings.contains_key(&revision) && !self.has(revision, version)))
    }
}

impl Activators {
    pub(crate) fn id(&self, name: &ReplicaName) -> Option<ReplicaId> {
        self.ids.id(name)
    }

    pub(crate) fn get(&self, id: ReplicaId) -> Option<&ActivatorRecord> {
        self.records.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ReplicaId) -> Option<&mut ActivatorRecord> {
        self.records.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ReplicaId, &ActivatorRecord)> {
        self.records.iter().map(|(&id, record)| (id, record))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ReplicaId, &mut ActivatorRecord)> {
        self.records.iter_mut().map(|(&id, record)| (id, record))
    }

    pub(crate) fn ids(&self) -> Vec<ReplicaId> {
        self.records.keys().copied().collect()
    }

    /// A number for an activator that appears, or has one already.
    pub(crate) fn intern(&mut self, name: &ReplicaName) -> ReplicaId {
        self.ids.intern(name)
    }

    /// An activator is linked, at first or at another address. One that was known keeps what it acknowledged.
    pub(crate) fn put(&mut self, id: ReplicaId, facts: ActivatorFacts, link: LinkId) {
        match self.records.get_mut(&id) {
            Some(record) => {
                record.facts = facts;
                record.link = link;
                // Nothing was said on this link yet. What it acknowledged holds on: that belongs to its boot.
                record.reach = ActivatorReach::Down;
                record.host = HostSigns::default();
            }
            None => {
                self.records.insert(id, ActivatorRecord::new(facts, link));
            }
        }
    }

    /// All activators but these are gone; returns them.
    pub(crate) fn retain(&mut self, names: &[ReplicaName]) -> Vec<(ReplicaId, ActivatorRecord)> {
        let gone = self.ids.iter().filter(|(name, _)| !names.contains(name));
        let gone: Vec<(ReplicaName, ReplicaId)> = gone.map(|(name, id)| (name.clone(), id)).collect();
        // Others may be given their numbers from now on, so a caller that keeps notes by number gets the
        // records, to strike them out.
        for (name, _) in &gone {
            self.ids.release(name);
        }
        gone.into_iter().filter_map(|(_, id)| Some((id, self.records.remove(&id)?))).collect()
    }

    /// An activator said hello, and which revisions it knows. In a new boot it acts upon nothing that it
    /// acknowledged before.
    pub(crate) fn started(&mut self, id: ReplicaId, boot: BootId, known: &BTreeSet<RevisionId>) {
        let Some(record) = self.records.get_mut(&id) else { return };
        if record.boot != Some(boot) {
            record.boot = Some(boot);
            record.is_draining = false;
            record.holdings.clear();
        }
        // Said again: the word may have been lost with the link.
        record.released.clear();
        record.reach = ActivatorReach::Unsynced;
        for &revision in known {
            record.holdings.entry(revision).or_default();
        }
    }

    /// An activator acts upon a version, or has forgotten the revision by it.
    pub(crate) fn acknowledged(&mut self, id: ReplicaId, revision: RevisionId, version: Version) {
        let Some(holdings) = self.records.get_mut(&id).map(|record| &mut record.holdings) else { return };
        // It may speak of what it was told by another owner, or of what it has forgotten by now: neither
        // counts.
        let Some(holding) = holdings.get_mut(&revision) else { return };
        if matches!(holding.standing, HoldingState::Forgetting { version: told } if version >= told) {
            holdings.remove(&revision);
            return;
        }
        holding.acknowledged = holding.acknowledged.max(Some(version));
    }

    /// A revision is another owner's: what was under way for it is that one's affair, but what activators
    /// know of it they still do.
    pub(crate) fn revision_given_up(&mut self, revision: RevisionId) {
        for holding in self.records.values_mut().filter_map(|record| record.holdings.get_mut(&revision)) {
            // Whether it holds nothing, and when it may forget, is what the next owner asks anew; that it may
            // serve is true for every owner.
            if holding.standing != HoldingState::Assigned {
                holding.standing = HoldingState::Retired;
            }
        }
    }

    /// A revision comes from another owner, which may have told any activator of it.
    pub(crate) fn all_may_know(&mut self, revision: RevisionId) {
        for record in self.records.values_mut().filter(|record| record.acknowledges()) {
            record.holdings.entry(revision).or_default();
        }
    }

    /// A revision is gone, and its id may be given to another.
    pub(crate) fn forget_revision(&mut self, revision: RevisionId) {
        for record in self.records.values_mut() {
            record.holdings.remove(&revision);
        }
    }

    /// Whether every activator that may know the revision acts upon version `at_least` or a newer one.
    pub(crate) fn all_acknowledged(&self, revision: RevisionId, at_least: Version) -> bool {
        !self.records.values().any(|record| record.may_act_on_older(revision, at_least))
    }

    /// Whether some activator has not said hello yet. One of Knative's never says which routing is in force,
    /// so it is not waited for.
    pub(crate) fn is_any_unheard(&self) -> bool {
        self.records.values().any(|record| record.boot.is_none() && record.acknowledges())
    }

    /// The activators to choose from for a revision: those that can serve, else those that stay, else all.
    pub(crate) fn candidates(&self) -> BTreeSet<&str> {
        let named = |is_meant: fn(&ActivatorRecord) -> bool| -> BTreeSet<&str> {
            let meant = self.records.values().filter(|record| is_meant(record));
            meant.map(|record| record.facts.name.as_str()).collect()
        };
        let serving = named(ActivatorRecord::can_serve);
        if !serving.is_empty() {
            return serving;
        }
        let staying = named(|record| !record.is_leaving());
        if staying.is_empty() { named(|_| true) } else { staying }
    }

    /// Whether an activator lives, as far as this owner can tell.
    pub(crate) fn lives(&self, id: ReplicaId) -> bool {
        self.records.get(&id).is_some_and(ActivatorRecord::can_serve)
    }

    /// The names of some, in their order.
    pub(crate) fn names(&self, ids: impl IntoIterator<Item = ReplicaId>) -> Vec<ReplicaName> {
        let names = ids.into_iter().filter_map(|id| Some(self.records.get(&id)?.facts.name.clone()));
        let mut names: Vec<ReplicaName> = names.collect();
        names.sort();
        names
    }
}

/// What an activator is told that it is to a revision, given whether it serves it and what it was to it
/// before. `None` if it is told nothing, because it never knew the revision. One that holds nothing is told
/// on as long as it may be sent something; and one that is about to forget hears of news, for it may have got
/// something before it heard that it should.
pub(crate) fn standing_to_tell(is_member: bool, known: Option<HoldingState>) -> Option<HoldingState> {
    match (is_member, known) {
        (true, _) => Some(HoldingState::Assigned),
        (false, None) => None,
        (false, Some(HoldingState::Emptied { forget_at })) => Some(HoldingState::Emptied { forget_at }),
        (false, Some(HoldingState::Assigned | HoldingState::Retired | HoldingState::Forgetting { .. })) => {
            Some(HoldingState::Retired)
        }
    }
}

impl ActivatorRecord {
    fn new(facts: ActivatorFacts, link: LinkId) -> Self {
        Self {
            facts,
            link,
            boot: None,
            reach: ActivatorReach::Down,
            host: HostSigns::default(),
            is_draining: false,
            released: BTreeSet::new(),
            holdings: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests;
