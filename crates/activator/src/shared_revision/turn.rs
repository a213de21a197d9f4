//! When may a request go: at once, or after a wait of which one end is the request's?

use throttling::{Dispatch, Ticket};
use tokio::sync::oneshot;
use vocabulary::Timestamp;

use super::queue::{WaitAnswer, Waiter};
use crate::context::WaitingPlace;

/// When a request may go.
pub(super) enum RequestTurn {
    /// A slot is free: the request goes at once.
    Granted(Dispatch),
    /// Every slot is taken: the request waits for its turn.
    Waits(QueuedRequest),
}

/// A request's end of its wait, and its place among all that wait in the activator.
pub(super) struct QueuedRequest {
    pub(super) ticket: Ticket,
    pub(super) since: Timestamp,
    pub(super) receiver: oneshot::Receiver<WaitAnswer>,
    pub(super) _place: WaitingPlace,
}

impl Waiter for oneshot::Sender<WaitAnswer> {
    fn answer(self, answer: WaitAnswer) -> Result<(), WaitAnswer> {
        self.send(answer)
    }
}
