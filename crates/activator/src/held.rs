//! Which requests does an activator still hold, and for how long may they take? For programs that wait for
//! the end of an activator.

use std::sync::{Arc, Weak};
use std::time::Duration;

use vocabulary::RevisionName;

use crate::assignments::Assignments;

/// Requests of one revision that wait in an activator or that it has sent to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRequests {
    /// The revision to which the requests were sent.
    pub revision: RevisionName,
    /// Requests in flight or waiting.
    pub requests: u32,
    /// How long one may take from its arrival; `None` means without limit.
    pub limit: Option<Duration>,
}

/// A look at what an activator holds. It does not keep the activator alive, and is empty once that has ended.
#[derive(Clone)]
pub struct Holdings(Weak<Assignments>);

impl Holdings {
    pub(crate) fn of(assignments: &Arc<Assignments>) -> Self {
        Self(Arc::downgrade(assignments))
    }

    /// What is held now, by the names of the revisions.
    pub fn list(&self) -> Vec<HeldRequests> {
        let Some(assignments) = self.0.upgrade() else { return Vec::new() };
        // Each revision has a lock of its own, which is taken when that of the list is not held any more:
        // assignments would wait for every revision.
        let held = assignments.revisions().into_iter().map(|revision| HeldRequests {
            requests: revision.held(),
            limit: revision.settings().timeouts.request,
            revision: revision.name.clone(),
        });
        held.filter(|held| held.requests > 0).collect()
    }
}
