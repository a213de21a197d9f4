//! What the autoscaler assigned to this activator: which revisions, under which hosts.
//!
//! Everything is state, nothing an edge: an assignment is a whole revision, only a greater version replaces it, and a repeat does no harm. Until every bucket
//! was told once nobody can say that a host is unknown. Who may say what about which bucket is `link`'s affair.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::watch;
use vocabulary::{Assignment, Ownership, RevisionName, Routing, Version};

use crate::context::Context;
use crate::held::HeldRequests;
use crate::revision::Revision;

/// What became of an assignment.
pub(crate) enum Outcome {
    /// It is in force. Idle connections to these addresses are to be closed before it is acknowledged.
    Applied { revision: Arc<Revision>, lost: Vec<SocketAddr> },
    /// It was in force already.
    Repeated(Arc<Revision>),
    /// A newer one is in force.
    Stale,
}

/// What becomes of a revision that may be forgotten.
pub(crate) enum Forgetting {
    /// It is forgotten once it holds nothing.
    Planned(Arc<Revision>),
    /// It is not known.
    Unknown,
    /// A newer assignment is in force.
    Stale,
}

/// All revisions of an activator.
pub(crate) struct Assignments {
    context: Arc<Context>,
    /// Read by every request.
    by_host: DashMap<String, Arc<Revision>>,
    /// Changed by the links alone.
    known: Mutex<Known>,
    /// Changes whenever a host may have become known, or unknown for certain.
    news: watch::Sender<News>,
}

type Known = BTreeMap<RevisionName, Arc<Revision>>;

/// What a request for an unknown host waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Whether everything was named at least once.
    pub(crate) is_synced: bool,
    changes: u64,
}

impl Assignments {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            by_host: DashMap::new(),
            known: Mutex::default(),
            news: watch::Sender::new(News::default()),
        }
    }

    /// The revision behind a host: lower case, without port.
    pub(crate) fn find(&self, host: &str) -> Option<Arc<Revision>> {
        self.by_host.get(host).map(|entry| Arc::clone(entry.value()))
    }

    /// Tells of every change that may let [`Assignments::find`] answer otherwise.
    pub(crate) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// What is known in some buckets.
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
    pub(crate) fn all_in(&self, ownership: &Ownership) -> Vec<Arc<Revision>> {
        let known = self.known.lock();
        known.values().filter(|revision| ownership.epoch_of(&revision.name).is_some()).cloned().collect()
    }

    /// All of every bucket was told.
    pub(crate) fn note_synced(&self) {
        self.news.send_modify(|news| {
            news.is_synced = true;
            news.changes += 1;
        });
    }

    /// Takes over an assignment if it is newer than what is known.
    pub(crate) fn assign(&self, assignment: &Assignment) -> Outcome {
        let mut known = self.known.lock();
        let revision = if let Some(revision) = known.get(&assignment.revision) {
            let in_force = revision.settings().version;
            if assignment.version < in_force {
                self.context.metrics.stale_assignments.inc();
                return Outcome::Stale;
            }
            if assignment.version == in_force {
                return Outcome::Repeated(Arc::clone(revision));
            }
            Arc::clone(revision)
        } else {
            self.context.metrics.assigned_revisions.inc();
            Arc::new(Revision::new(assignment, &self.context))
        };
        let hosts_before = revision.settings().hosts.clone();
        let lost = revision.apply(assignment);
        known.insert(assignment.revision.clone(), Arc::clone(&revision));
        for host in hosts_before.iter().filter(|host| !assignment.hosts.contains(host)) {
            self.release_host(host, &revision);
        }
        for host in &assignment.hosts {
            self.by_host.insert(host.clone(), Arc::clone(&revision));
        }
        drop(known);
        self.news.send_modify(|news| news.changes += 1);
        Outcome::Applied { revision, lost }
    }

    /// A revision may be forgotten, unless an assignment newer than `version` is in force.
    pub(crate) fn forget(&self, name: &RevisionName, version: Version) -> Forgetting {
        let known = self.known.lock();
        match known.get(name) {
            Some(revision) if revision.may_be_forgotten(version) => Forgetting::Planned(Arc::clone(revision)),
            Some(_) => Forgetting::Stale,
            None => Forgetting::Unknown,
        }
    }

    /// A retired revision is not known any more. It takes no request by now, so nobody is refused what another host's would be granted.
    pub(crate) fn forgotten(&self, revision: &Arc<Revision>) {
        let mut known = self.known.lock();
        if known.get(&revision.name).is_some_and(|present| Arc::ptr_eq(present, revision)) {
            self.drop_revision(&mut known, &revision.name);
        }
        drop(known);
        self.news.send_modify(|news| news.changes += 1);
    }

    /// Drops a revision that exists no more, and returns it, unless an assignment newer than `version` is in force.
    pub(crate) fn remove(&self, name: &RevisionName, version: Version) -> Option<Arc<Revision>> {
        let mut known = self.known.lock();
        let removed = known.get(name).filter(|known| known.settings().version < version).cloned();
        if removed.is_some() {
            self.drop_revision(&mut known, name);
        }
        drop(known);
        self.news.send_modify(|news| news.changes += 1);
        removed
    }

    /// What is held of each revision that holds anything.
    pub(crate) fn held(&self) -> Vec<HeldRequests> {
        let known = self.known.lock();
        let revisions: Vec<Arc<Revision>> = known.values().cloned().collect();
        drop(known);
        revisions.iter().map(|revision| revision.held()).filter(|held| held.requests > 0).collect()
    }

    /// The routing in force, per revision.
    pub(crate) fn routings(&self) -> Vec<(RevisionName, Routing)> {
        let known = self.known.lock();
        known.iter().map(|(name, revision)| (name.clone(), revision.settings().routing)).collect()
    }

    fn drop_revision(&self, known: &mut Known, name: &RevisionName) {
        if let Some(revision) = known.remove(name) {
            self.context.metrics.assigned_revisions.dec();
            for host in &revision.settings().hosts {
                self.release_host(host, &revision);
            }
            revision.remove();
        }
    }

    /// A host goes back to nobody, unless another revision has taken it over.
    fn release_host(&self, host: &str, revision: &Arc<Revision>) {
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
