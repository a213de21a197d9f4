//! Requests that go past the queue, where revisions are held plainly: a shell with locks asks the revision.

use vocabulary::{RevisionName, Timestamp};

use super::ActivatorRevisions;
use super::cell::RevisionCell;
use crate::throttler::DirectPick;

impl<R: RevisionCell> ActivatorRevisions<R> {
    /// A ready pod for a request of that revision that goes past its queue; `None` if no pod is ready. Ends
    /// with [`crate::RequestEvent::DirectEnded`].
    pub fn pick_direct(&mut self, revision: &RevisionName, now: Timestamp) -> Option<DirectPick> {
        self.known.get_mut(revision)?.cell.with(|revision| revision.pick_direct(now))
    }
}
