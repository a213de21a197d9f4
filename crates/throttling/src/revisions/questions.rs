//! What is asked about the revisions of an activator and answered at once.

use vocabulary::{RevisionName, Timestamp};

use super::ActivatorRevisions;
use super::cell::RevisionCell;
use crate::revision::ActivatorRevision;
use crate::throttler::DirectPick;
use crate::ticket::Ticket;

impl<R: RevisionCell> ActivatorRevisions<R> {
    /// The revision behind a host: lower case, without port.
    pub fn find(&self, host: &str) -> Option<&RevisionName> {
        self.hosts.get(host)
    }

    /// Where a known revision is kept.
    pub fn cell(&self, revision: &RevisionName) -> Option<&R> {
        self.known.get(revision).map(|known| &known.cell)
    }

    /// All known revisions in the order of their names.
    pub fn cells(&self) -> impl Iterator<Item = (&RevisionName, &R)> {
        self.known.iter().map(|(name, known)| (name, &known.cell))
    }

    /// The number of known revisions.
    pub fn known_count(&self) -> usize {
        self.known.len()
    }

    /// A number for a request for that revision; `None` if it is not known.
    pub fn draw_ticket(&mut self, revision: &RevisionName) -> Option<Ticket> {
        Some(self.known.get_mut(revision)?.cell.with(ActivatorRevision::draw_ticket))
    }

    /// A ready pod for a request of that revision that goes past its queue; `None` if no pod is ready. Ends
    /// with [`crate::RequestEvent::DirectEnded`]. A shell with locks asks the revision itself.
    pub fn pick_direct(&mut self, revision: &RevisionName, now: Timestamp) -> Option<DirectPick> {
        self.known.get_mut(revision)?.cell.with(|known| known.pick_direct(now))
    }
}
