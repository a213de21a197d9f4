//! What a request holds of its revision, from its arrival to the last byte of its answer: a place in the
//! queue, a pod, its part of the load. One guard gives all of it back when it is dropped, with one event, so
//! a client that leaves, a timer and a panic all end the same way.
//!
//! ```text
//!   arrived, rejoined ──► Waiting ── granted ──► Running ──► Over
//!                           ▲ ▲                  │     │
//!                           │ └── queue_again ───┘     │ rest
//!                           └──── rest_ended ─ Resting ┘
//!
//!   direct ──► Direct ──► Over
//! ```
//!
//! A request for which a slot is free runs at once, and waits in between nowhere.

use std::net::SocketAddr;
use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use throttling::{DirectPick, Dispatch, RequestEvent, RequestRefusal, Ticket};
use vocabulary::{Slice, Timestamp};

use super::SharedRevision;
use super::turn::{QueuedRequest, RequestTurn};

/// What a request holds of its revision.
pub(crate) struct RequestSeat {
    revision: Arc<SharedRevision>,
    stage: SeatStage,
}

/// How far a request has come.
enum SeatStage {
    /// Every slot is taken: the request waits for its turn.
    Waiting(QueuedRequest),
    /// The request has a slot in a pod.
    Running(Dispatch),
    /// The app refused the request, which has no slot until it is tried again.
    Resting,
    /// The request has a pod past queue and slots, and is no part of the load.
    Direct(DirectPick),
    /// Nothing is held any more.
    Over,
}

impl RequestSeat {
    /// A request that goes through the queue arrived.
    pub(crate) fn arrived(revision: &Arc<SharedRevision>) -> Result<Self, RequestRefusal> {
        Self::joined(revision, &revision.metrics.requests, |ticket| RequestEvent::Arrived { ticket })
    }

    /// A request that went past the queue was not started by its pod: it joins those that are tried again.
    pub(crate) fn rejoined(
        revision: &Arc<SharedRevision>,
        arrived: Timestamp,
    ) -> Result<Self, RequestRefusal> {
        let event = |ticket| RequestEvent::Rejoined { ticket, arrived };
        Self::joined(revision, &revision.metrics.retries, event)
    }

    /// A request takes a pod that was picked past queue and slots.
    pub(crate) fn direct(revision: &Arc<SharedRevision>, pick: DirectPick) -> Self {
        Self { revision: Arc::clone(revision), stage: SeatStage::Direct(pick) }
    }

    fn joined(
        revision: &Arc<SharedRevision>,
        count: &Counter,
        event: impl FnOnce(Ticket) -> RequestEvent,
    ) -> Result<Self, RequestRefusal> {
        let turn = revision.join(event);
        // The revision would take a request for which the activator as a whole is too full.
        if matches!(turn, Ok(_) | Err(RequestRefusal::ActivatorQueueFull)) {
            count.inc();
        }
        let mut seat = Self { revision: Arc::clone(revision), stage: SeatStage::Over };
        seat.take(turn?);
        Ok(seat)
    }

    /// Whether the request waits for its turn.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.stage, SeatStage::Waiting(_))
    }

    /// Whether the request went past the queue.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.stage, SeatStage::Direct(_))
    }

    /// The address at which the request's pod usually takes requests.
    pub(crate) fn address(&self) -> SocketAddr {
        match &self.stage {
            SeatStage::Running(dispatch) => dispatch.address,
            SeatStage::Direct(pick) => pick.address,
            SeatStage::Waiting(_) | SeatStage::Resting | SeatStage::Over => {
                unreachable!("a request is sent when it has a pod")
            }
        }
    }

    /// Whether the slot of the request is in this activator's slice of the pods, outside it, or in pods that
    /// are not divided; `None` past the queue.
    pub(crate) fn slice(&self) -> Option<Slice> {
        match &self.stage {
            SeatStage::Running(dispatch) => Some(dispatch.slice),
            SeatStage::Direct(_) | SeatStage::Waiting(_) | SeatStage::Resting | SeatStage::Over => None,
        }
    }

    /// Waits for a pod, if the request does not have one. Cancel-safe: the place in the queue is the seat's.
    pub(crate) async fn granted(&mut self) -> Result<(), RequestRefusal> {
        let SeatStage::Waiting(waiting) = &mut self.stage else { return Ok(()) };
        // The other end lives as long as the revision, which the seat keeps.
        let answer = (&mut waiting.receiver).await.unwrap_or(Err(RequestRefusal::Gone));
        let waited = self.revision.now().saturating_since(waiting.since);
        self.stage = SeatStage::Over;
        let dispatch = answer?;
        self.revision.metrics.waits.observe(waited.as_secs_f64());
        self.take(RequestTurn::Granted(dispatch));
        Ok(())
    }

    /// The pod takes requests: it is no longer suspect, nor full.
    pub(crate) fn started(&self) {
        // For all others a started request changes nothing, and the lock is not taken: this is the way of
        // nearly every request.
        match self.stage {
            SeatStage::Running(dispatch) if dispatch.is_trial || dispatch.slice != Slice::Undivided => {
                self.revision.tell(RequestEvent::Started { dispatch });
            }
            SeatStage::Direct(pick) if pick.is_trial => {
                self.revision.tell(RequestEvent::DirectStarted { pick });
            }
            SeatStage::Running(_)
            | SeatStage::Direct(_)
            | SeatStage::Waiting(_)
            | SeatStage::Resting
            | SeatStage::Over => {}
        }
    }

    /// The pod never started the request, which has a slot: it waits again, ahead of those that came later.
    pub(crate) fn queue_again(self) -> Result<Self, RequestRefusal> {
        self.revision.metrics.retries.inc();
        self.wait_again(|dispatch| RequestEvent::NotStarted { dispatch })
    }

    /// The pod had no room: others have filled it. The request, which has a slot, waits again where it was.
    pub(crate) fn queue_again_for_want_of_room(self) -> Result<Self, RequestRefusal> {
        self.revision.metrics.full_pods.inc();
        self.wait_again(|dispatch| RequestEvent::FoundNoRoom { dispatch })
    }

    /// The pod never started the request, which went past the queue. Until the request waits elsewhere, its
    /// seat shows that the revision holds it.
    pub(crate) fn note_not_started(&self) {
        if let SeatStage::Direct(pick) = self.stage {
            self.revision.tell(RequestEvent::DirectNotStarted { pick });
        }
    }

    /// The pod's app refused the request, which rests: its slot, if it has one, goes to others.
    pub(crate) fn rest(&mut self) {
        if self.is_direct() {
            return self.note_not_started();
        }
        self.revision.metrics.retries.inc();
        let dispatch = self.end_run();
        self.stage = SeatStage::Resting;
        self.revision.tell(RequestEvent::RestBegan { dispatch });
    }

    /// The rest of a request that had a slot is over: it waits again.
    pub(crate) fn rest_ended(mut self, arrived: Timestamp) -> Result<Self, RequestRefusal> {
        self.stage = SeatStage::Over;
        let turn = self.revision.join(|ticket| RequestEvent::RestEnded { ticket, arrived })?;
        self.take(turn);
        Ok(self)
    }

    fn wait_again(mut self, event: impl FnOnce(Dispatch) -> RequestEvent) -> Result<Self, RequestRefusal> {
        let dispatch = self.end_run();
        let turn = self.revision.join_again(dispatch.ticket, event(dispatch))?;
        self.take(turn);
        Ok(self)
    }

    /// The request holds from now on what its turn has brought.
    fn take(&mut self, turn: RequestTurn) {
        self.stage = match turn {
            RequestTurn::Granted(dispatch) => {
                self.revision.metrics.in_flight.inc();
                SeatStage::Running(dispatch)
            }
            RequestTurn::Waits(waiting) => SeatStage::Waiting(waiting),
        };
    }

    /// The request has ended: all that it holds is given back.
    pub(crate) fn end(mut self, now: Timestamp) {
        self.give_back(now);
    }

    fn give_back(&mut self, now: Timestamp) {
        match std::mem::replace(&mut self.stage, SeatStage::Over) {
            SeatStage::Waiting(waiting) => self.revision.leave(waiting),
            SeatStage::Running(dispatch) => {
                self.revision.metrics.in_flight.dec();
                self.revision.tell_at(RequestEvent::Ended { dispatch }, now);
            }
            SeatStage::Resting => self.revision.tell_at(RequestEvent::RestGivenUp, now),
            SeatStage::Direct(pick) => self.revision.tell_at(RequestEvent::DirectEnded { pick }, now),
            SeatStage::Over => {}
        }
    }

    /// The request runs in its pod no more. The caller tells the revision, each in its own way.
    fn end_run(&mut self) -> Dispatch {
        let SeatStage::Running(dispatch) = self.stage else {
            unreachable!("only a request that runs gives its slot back")
        };
        self.stage = SeatStage::Over;
        self.revision.metrics.in_flight.dec();
        dispatch
    }
}

impl Drop for RequestSeat {
    fn drop(&mut self) {
        if !matches!(self.stage, SeatStage::Over) {
            self.give_back(self.revision.now());
        }
    }
}
