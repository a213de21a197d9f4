//! What the autoscaler assigned to this activator: which revisions, under which hosts.
//!
//! Everything is state, nothing an edge: an assignment is a whole revision, only a greater version replaces
//! it, and a repeat does no harm. Until the revisions of every bucket were named once, no host is known to be
//! unknown. Which link may speak for which bucket is decided in `link`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::watch;
use vocabulary::{Assignment, HeadSizeLimit, Ownership, RevisionName, Routing, Version};

use crate::assigned_revision::AssignedRevision;
use crate::context::Context;
use crate::head_sizes::HeadSizes;
use crate::held::HeldRequests;

/// The effect of an assignment on this activator.
pub(crate) enum AssignmentOutcome {
    /// The assignment is in force. Idle connections to the addresses in `lost` are to be closed before it is
    /// acknowledged.
    Applied { revision: Arc<AssignedRevision>, lost: Vec<SocketAddr> },
    /// The assignment was in force already.
    Repeated(Arc<AssignedRevision>),
    /// A newer one is in force.
    Stale,
}

/// The effect of an order to forget a revision.
pub(crate) enum ForgetOutcome {
    /// The revision is forgotten once it holds no request.
    Planned(Arc<AssignedRevision>),
    /// The activator does not know the revision.
    Unknown,
    /// A newer assignment is in force.
    Stale,
}

/// All revisions of an activator.
pub(crate) struct Assignments {
    context: Arc<Context>,
    /// The revision of each host. Every request reads it.
    by_host: DashMap<String, Arc<AssignedRevision>>,
    /// Changed by the links alone.
    known: Mutex<KnownRevisions>,
    head_sizes: HeadSizes,
    /// Changes whenever a host may have become known, or unknown for certain.
    news: watch::Sender<AssignmentNews>,
}

type KnownRevisions = BTreeMap<RevisionName, Arc<AssignedRevision>>;

/// The state of the assignments that a request for an unknown host waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AssignmentNews {
    /// Whether the revisions of every bucket were named at least once.
    pub(crate) is_synced: bool,
    changes: u64,
}

impl Assignments {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            by_host: DashMap::new(),
            known: Mutex::default(),
            head_sizes: HeadSizes::default(),
            news: watch::Sender::new(AssignmentNews::default()),
        }
    }

    /// The revision behind a host: lower case, without port.
    pub(crate) fn find(&self, host: &str) -> Option<Arc<AssignedRevision>> {
        self.by_host.get(host).map(|entry| Arc::clone(entry.value()))
    }

    /// How large the head of a request may be while its revision is not known.
    pub(crate) fn head_size_max(&self) -> HeadSizeLimit {
        self.head_sizes.most()
    }

    /// Tells of every change that may let [`Assignments::find`] answer otherwise.
    pub(crate) fn news(&self) -> watch::Receiver<AssignmentNews> {
        self.news.subscribe()
    }

    /// The names of the known revisions in these buckets.
    pub(crate) fn names_in(&self, ownership: &Ownership) -> BTreeSet<RevisionName> {
        let known = self.known.lock();
        known.keys().filter(|name| ownership.epoch_of(name).is_some()).cloned().collect()
    }

    /// An owner has told all of its buckets, and did not name these.
    pub(crate) fn retire(&self, names: impl Iterator<Item = RevisionName>) {
        let known = self.known.lock();
        for revision in names.filter_map(|name| known.get(&name)) {
            revision.retire();
        }
    }

    /// The revisions in some buckets that are known here.
    pub(crate) fn revisions_in(&self, ownership: &Ownership) -> Vec<Arc<AssignedRevision>> {
        let known = self.known.lock();
        known.values().filter(|revision| ownership.epoch_of(&revision.name).is_some()).cloned().collect()
    }

    /// Notes that the revisions of every bucket were named.
    pub(crate) fn note_synced(&self) {
        self.head_sizes.note_synced();
        self.news.send_modify(|news| {
            news.is_synced = true;
            news.changes += 1;
        });
    }

    /// Takes over an assignment if it is newer than what is known.
    pub(crate) fn assign(&self, assignment: &Assignment) -> AssignmentOutcome {
        let mut known = self.known.lock();
        let revision = if let Some(revision) = known.get(&assignment.revision) {
            let in_force = revision.settings().version;
            // Two owners may speak of one revision for a moment, over links of their own. What counts is the
            // version, which grows with each owner, and never the order in which the words arrive.
            if assignment.version < in_force {
                self.context.metrics.stale_assignments.inc();
                return AssignmentOutcome::Stale;
            }
            if assignment.version == in_force {
                return AssignmentOutcome::Repeated(Arc::clone(revision));
            }
            Arc::clone(revision)
        } else {
            self.context.metrics.assigned_revisions.inc();
            Arc::new(AssignedRevision::new(assignment, &self.context))
        };
        let hosts_before = revision.settings().hosts.clone();
        // Applied before any host leads to it, and former hosts are given back last:
        //
        //     apply ── known ── release the old hosts ── insert the new ones
        //
        // So a request never finds a revision under a host that has not its pods yet.
        let head_size_before = known.get(&assignment.revision).map(|revision| revision.head_size());
        let lost = revision.apply(assignment);
        self.head_sizes.replace(head_size_before, Some(assignment.head_size_limit));
        known.insert(assignment.revision.clone(), Arc::clone(&revision));
        for host in hosts_before.iter().filter(|host| !assignment.hosts.contains(host)) {
            self.release_host(host, &revision);
        }
        for host in &assignment.hosts {
            self.by_host.insert(host.clone(), Arc::clone(&revision));
        }
        drop(known);
        self.news.send_modify(|news| news.changes += 1);
        AssignmentOutcome::Applied { revision, lost }
    }

    /// A revision may be forgotten, unless an assignment newer than `version` is in force.
    pub(crate) fn forget(&self, name: &RevisionName, version: Version) -> ForgetOutcome {
        let known = self.known.lock();
        match known.get(name) {
            Some(revision) if revision.forget_when_empty(version) => {
                ForgetOutcome::Planned(Arc::clone(revision))
            }
            Some(_) => ForgetOutcome::Stale,
            None => ForgetOutcome::Unknown,
        }
    }

    /// A retired revision is not known any more. It takes no request by now, so no request is refused that
    /// another revision of its host would serve.
    pub(crate) fn forgotten(&self, revision: &Arc<AssignedRevision>) {
        let mut known = self.known.lock();
        if known.get(&revision.name).is_some_and(|present| Arc::ptr_eq(present, revision)) {
            self.drop_revision(&mut known, &revision.name);
        }
        drop(known);
        self.news.send_modify(|news| news.changes += 1);
    }

    /// Drops a revision that exists no more, and returns it, unless an assignment newer than `version` is in
    /// force.
    pub(crate) fn remove(&self, name: &RevisionName, version: Version) -> Option<Arc<AssignedRevision>> {
        let mut known = self.known.lock();
        let removed = known.get(name).filter(|known| known.settings().version < version).cloned();
        if removed.is_some() {
            self.drop_revision(&mut known, name);
        }
        drop(known);
        self.news.send_modify(|news| news.changes += 1);
        removed
    }

    /// The held requests of each revision that holds any.
    pub(crate) fn held(&self) -> Vec<HeldRequests> {
        let known = self.known.lock();
        // Each revision has a lock of its own, which is not taken while the lock of the list is held:
        // assignments would wait for every revision.
        let revisions: Vec<Arc<AssignedRevision>> = known.values().cloned().collect();
        drop(known);
        revisions.iter().map(|revision| revision.held()).filter(|held| held.requests > 0).collect()
    }

    /// The routing in force, per revision.
    pub(crate) fn routings(&self) -> Vec<(RevisionName, Routing)> {
        let known = self.known.lock();
        known.iter().map(|(name, revision)| (name.clone(), revision.settings().routing)).collect()
    }

    fn drop_revision(&self, known: &mut KnownRevisions, name: &RevisionName) {
        if let Some(revision) = known.remove(name) {
            self.context.metrics.assigned_revisions.dec();
            self.head_sizes.replace(Some(revision.head_size()), None);
            for host in &revision.settings().hosts {
                self.release_host(host, &revision);
            }
            revision.remove();
        }
    }

    /// Frees a host, unless another revision has taken it over.
    fn release_host(&self, host: &str, revision: &Arc<AssignedRevision>) {
        // Two Services may exchange their hosts in two assignments. The second must not take away what the
        // first has just given to the other.
        self.by_host.remove_if(host, |_, holder| Arc::ptr_eq(holder, revision));
    }
}

/// An activator that ends serves nothing, but its process may go on.
impl Drop for Assignments {
    fn drop(&mut self) {
        let left = i64::try_from(self.known.get_mut().len()).unwrap_or(i64::MAX);
        self.context.metrics.assigned_revisions.dec_by(left);
    }
}
