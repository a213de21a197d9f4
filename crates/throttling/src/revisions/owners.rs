//! Which owner speaks on which link, and which revisions has it named?

use std::collections::BTreeSet;

use vocabulary::{Ownership, ReplicaName, RevisionName, Timestamp, Version};

use super::cell::RevisionCell;
use super::events::ActivatorCommand;
use super::outbox::LinkOutbox;
use super::{ActivatorLink, ActivatorRevisions, RunningSync};
use crate::claims::LinkNumber;
use crate::revision::ActivatorRevision;

/// Links that may stand at once: more autoscalers than a cluster runs, and for each a link that is about to
/// replace another. One more ends the oldest, those first that have not said whose they are.
const LINKS_MAX: usize = 32;

impl<R: RevisionCell> ActivatorRevisions<R> {
    pub(super) fn link_opened(&mut self, link: LinkNumber) {
        let nameless = self.claims.links().find(|(_, is_named)| !is_named);
        let oldest = nameless.or_else(|| self.claims.links().next()).map(|(oldest, _)| oldest);
        if let Some(oldest) = oldest.filter(|_| self.links.len() >= LINKS_MAX) {
            self.close(oldest);
        }
        self.claims.opened(link);
        self.links.insert(link, ActivatorLink { outbox: LinkOutbox::new(), sync: None });
        self.call(link);
    }

    pub(super) fn link_closed(&mut self, link: LinkNumber) {
        self.claims.closed(link);
        self.links.remove(&link);
    }

    fn close(&mut self, link: LinkNumber) {
        self.link_closed(link);
        self.commands.push_back(ActivatorCommand::CloseLink { link });
    }

    pub(super) fn sync_began(&mut self, link: LinkNumber, owner: &ReplicaName, ownership: Ownership) {
        if !self.links.contains_key(&link) {
            return;
        }
        let (claimed, former) = self.claims.claim(link, owner, ownership);
        if let Some(former) = former {
            self.close(former);
        }
        let unnamed = self.names_in(&claimed);
        if let Some(link) = self.links.get_mut(&link) {
            link.sync = Some(RunningSync { claimed, unnamed });
        }
    }

    /// Revisions that the owner did not name are retired: others serve them. Buckets that a later owner has
    /// claimed meanwhile are left out.
    pub(super) fn sync_ended(&mut self, link: LinkNumber, now: Timestamp) {
        let Some(sync) = self.links.get_mut(&link).and_then(|link| link.sync.take()) else { return };
        let told = self.claims.complete_sync(link, sync.claimed);
        for name in sync.unnamed.into_iter().filter(|name| told.epoch_of(name).is_some()) {
            self.act(&name, now, ActivatorRevision::retire);
        }
        if self.claims.is_everything_synced() && !std::mem::replace(&mut self.is_synced, true) {
            self.commands.push_back(ActivatorCommand::NoteSynced);
            self.limit_heads();
        }
        for name in self.names_in(&told) {
            self.report_or_forget(&name, now);
        }
    }

    fn names_in(&self, ownership: &Ownership) -> BTreeSet<RevisionName> {
        self.known.keys().filter(|name| ownership.epoch_of(name).is_some()).cloned().collect()
    }

    /// Whether an order of this version, on a link that is open, comes from the present owner.
    pub(super) fn may_order(&mut self, link: LinkNumber, revision: &RevisionName, version: Version) -> bool {
        let is_late = self.claims.is_late(revision, version);
        if is_late {
            self.commands.push_back(ActivatorCommand::CountStaleOrder);
        }
        !is_late && self.links.contains_key(&link)
    }
}
