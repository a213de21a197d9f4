//! How does an answer come from the event that brings it to the request that waits for it, perhaps on another
//! thread?
//!
//! ```text
//!   the event, under the revision's lock            the request's task
//!     Grant, Refuse ──► waiter ── answer ──────────► looks, without the lock
//!                                  └─ unseen ──────► leaves, under the lock, and brings the answer back
//! ```
//!
//! A request looks for its answer without the lock, and may leave in that instant: a slot that lies there
//! unseen goes to the next request. Every order of this is tried by `tests/loom`.

use std::collections::BTreeMap;

use throttling::{ActivatorRevision, Dispatch, RequestEvent, RequestRefusal, RevisionCommand, Ticket};
use vocabulary::Timestamp;

/// The answer that ends the wait of a request: its pod, or why it gets none.
pub(crate) type WaitAnswer = Result<Dispatch, RequestRefusal>;

/// The end of a waiting request that the queue keeps, to answer the request.
pub(crate) trait Waiter {
    /// Hands over the answer. Fails if the request is not there any more.
    fn answer(self, answer: WaitAnswer) -> Result<(), WaitAnswer>;
}

/// A revision, and a way to each request that waits for it. Everything here happens under the revision's
/// lock, and each call leaves no command of the revision behind.
pub(crate) struct RevisionQueue<W> {
    pub(crate) revision: ActivatorRevision,
    waiters: BTreeMap<Ticket, W>,
    /// Whether the revision asked to be looked at since that was asked last.
    has_news: bool,
}

impl<W: Waiter> RevisionQueue<W> {
    pub(crate) fn new(revision: ActivatorRevision) -> Self {
        Self { revision, waiters: BTreeMap::new(), has_news: false }
    }

    /// A request enters the queue with that event. Returns the answer to it; `None` if the request waits. For
    /// that `wait` makes the end that is kept here, or has no place for another one.
    pub(crate) fn join(
        &mut self,
        ticket: Ticket,
        event: RequestEvent,
        now: Timestamp,
        mut wait: impl FnMut() -> Option<W>,
    ) -> Option<WaitAnswer> {
        self.revision.handle(event, now);
        let mut answer = None;
        while let Some(command) = self.revision.next_command() {
            match command {
                RevisionCommand::Grant { dispatch } if dispatch.ticket == ticket => {
                    answer = Some(Ok(dispatch));
                }
                RevisionCommand::Refuse { ticket: refused, refusal } if refused == ticket => {
                    answer = Some(Err(refusal));
                }
                RevisionCommand::Wait { ticket } => match wait() {
                    Some(waiter) => drop(self.waiters.insert(ticket, waiter)),
                    None => self.revision.handle(RequestEvent::PlaceRefused { ticket }, now),
                },
                RevisionCommand::Grant { .. }
                | RevisionCommand::Refuse { .. }
                | RevisionCommand::TakeNews => self.obey(command, now),
            }
        }
        if answer.is_some() {
            // The request was to wait, and then another one that it stood behind had gone.
            self.waiters.remove(&ticket);
        }
        answer
    }

    /// Something happened to a request that does not wait for an answer here.
    pub(crate) fn handle(&mut self, event: RequestEvent, now: Timestamp) {
        self.revision.handle(event, now);
        self.carry_out(now);
    }

    /// Does what the revision asks for.
    pub(crate) fn carry_out(&mut self, now: Timestamp) {
        while let Some(command) = self.revision.next_command() {
            self.obey(command, now);
        }
    }

    /// A request leaves the queue; `unseen` is the answer that it was given and did not look at.
    pub(crate) fn leave(&mut self, ticket: Ticket, unseen: Option<WaitAnswer>, now: Timestamp) {
        self.waiters.remove(&ticket);
        match unseen {
            // The slot goes to the next request, which may be waiting for it.
            Some(Ok(dispatch)) => self.handle(RequestEvent::Ended { dispatch }, now),
            // With its refusal the request has ceased to be load.
            Some(Err(_)) => {}
            None => self.handle(RequestEvent::GaveUp { ticket }, now),
        }
    }

    /// Whether the revision asked to be looked at since this was asked last.
    pub(crate) fn take_has_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    fn obey(&mut self, command: RevisionCommand, now: Timestamp) {
        match command {
            RevisionCommand::Grant { dispatch } => {
                let told = self.waiters.remove(&dispatch.ticket).map(|waiter| waiter.answer(Ok(dispatch)));
                if !matches!(told, Some(Ok(()))) {
                    // Its request has gone in this instant.
                    self.revision.handle(RequestEvent::Ended { dispatch }, now);
                }
            }
            RevisionCommand::Refuse { ticket, refusal } => {
                // One that has gone in this instant needs no answer.
                let _ = self.waiters.remove(&ticket).map(|waiter| waiter.answer(Err(refusal)));
            }
            // Only a request that joins is made to wait, and it brings its end along.
            RevisionCommand::Wait { ticket } => {
                self.revision.handle(RequestEvent::PlaceRefused { ticket }, now);
            }
            RevisionCommand::TakeNews => self.has_news = true,
        }
    }
}
