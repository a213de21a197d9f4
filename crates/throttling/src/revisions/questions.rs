//! What is asked about the revisions of an activator and answered at once.

use vocabulary::{RevisionName, Routing, Timestamp};

use super::ActivatorRevisions;
use super::cell::RevisionCell;
use crate::revision::ActivatorRevision;
use crate::throttler::DirectPick;
use crate::ticket::Ticket;

/// Where a request goes that has come to an activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestWay {
    /// Past the queue to this pod. Ends with [`crate::RequestEvent::DirectEnded`].
    Direct(DirectPick),
    /// Into the queue, under this ticket. Begins with [`crate::RequestEvent::Arrived`].
    Queue(Ticket),
}

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

    /// The way of a request for that revision: past its queue where the assignment says that requests go to
    /// the pods, and one is ready. `None` if it is not known. A shell with locks asks the revision itself.
    pub fn way_of_request(&mut self, revision: &RevisionName, now: Timestamp) -> Option<RequestWay> {
        let known = self.known.get_mut(revision)?;
        let pick = match known.assignment.routing {
            Routing::Direct => known.cell.with(|held| held.pick_direct(now)),
            Routing::ThroughActivator => None,
        };
        Some(match pick {
            Some(pick) => RequestWay::Direct(pick),
            None => RequestWay::Queue(known.cell.with(ActivatorRevision::draw_ticket)),
        })
    }
}
