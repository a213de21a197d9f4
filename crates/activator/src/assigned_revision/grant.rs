//! What a request holds of its revision: a place in the queue, a pod, its part of the load. Each gives back
//! what it holds when it is dropped, so a client that leaves, a timer and a panic all end the same way.

use std::net::SocketAddr;
use std::sync::Arc;

use throttling::{DirectPick, Dispatch, Origin, Throttler, Ticket};
use tokio::sync::oneshot;
use vocabulary::{Slice, Timestamp};

use super::handover::leave;
use super::{AssignedRevision, QueueRefusal};
use crate::context::WaitingPlace;

/// When a request may go.
pub(crate) enum QueueTurn {
    /// A slot is free: the request goes at once.
    Now(Grant),
    /// Every slot is taken: the request waits for its turn.
    Later(QueuePlace),
}

/// A request's part of its revision's load, from arrival to the last byte of its answer.
pub(crate) struct LoadPart(Arc<AssignedRevision>);

impl LoadPart {
    pub(super) fn new(revision: &Arc<AssignedRevision>) -> Self {
        Self(Arc::clone(revision))
    }
}

impl Drop for LoadPart {
    fn drop(&mut self) {
        let now = self.0.context.clock.now();
        let mut state = self.0.state.lock();
        state.meter.finished(Origin::Direct, now);
        if self.0.context.is_leaving() {
            self.0.report_decline(&mut state, now);
        }
        self.0.note_request_end(&mut state);
    }
}

/// A place in the queue.
pub(crate) struct QueuePlace {
    revision: Arc<AssignedRevision>,
    ticket: Ticket,
    since: Timestamp,
    receiver: oneshot::Receiver<Dispatch>,
    is_over: bool,
    _place: WaitingPlace,
}

impl QueuePlace {
    pub(super) fn new(
        revision: &Arc<AssignedRevision>,
        (ticket, since): (Ticket, Timestamp),
        receiver: oneshot::Receiver<Dispatch>,
        place: WaitingPlace,
    ) -> Self {
        Self { revision: Arc::clone(revision), ticket, since, receiver, is_over: false, _place: place }
    }

    /// Waits for a pod. Dropping the future leaves the queue.
    pub(crate) async fn granted(mut self) -> Result<Grant, QueueRefusal> {
        let Ok(dispatch) = (&mut self.receiver).await else {
            let is_gone = self.revision.state.lock().is_gone;
            return Err(if is_gone { QueueRefusal::Gone } else { QueueRefusal::Held });
        };
        self.is_over = true;
        let waited = self.revision.context.clock.now().saturating_since(self.since);
        self.revision.metrics.waits.observe(waited.as_secs_f64());
        Ok(Grant::new(&self.revision, dispatch))
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut guard = self.revision.state.lock();
        let state = &mut *guard;
        // Under the lock: a grant may come in this instant, and would be lost.
        let late = self.receiver.try_recv().ok();
        // It may have been given a slot in the same instant. That slot goes to the next request, which may be
        // waiting for it.
        if leave(&mut state.throttler, &mut state.waiters, self.ticket, late) {
            self.revision.pump(state, self.revision.context.clock.now());
        }
    }
}

/// A slot in a pod.
pub(crate) struct Grant {
    revision: Arc<AssignedRevision>,
    /// `None` once the grant has ended.
    dispatch: Option<Dispatch>,
    address: SocketAddr,
}

impl Grant {
    pub(super) fn new(revision: &Arc<AssignedRevision>, dispatch: Dispatch) -> Self {
        revision.metrics.in_flight.inc();
        Self { revision: Arc::clone(revision), address: dispatch.address, dispatch: Some(dispatch) }
    }

    /// The address at which the pod usually takes requests.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the slot is in this activator's slice of the pods, outside it, or in pods that are not
    /// divided.
    pub(crate) fn slice(&self) -> Slice {
        self.dispatch.map_or(Slice::Undivided, |dispatch| dispatch.slice)
    }

    /// The pod takes requests: whatever made it suspect, or full, is over.
    pub(crate) fn started(&self) {
        // For all others a started request changes nothing, and the lock is not taken: this is the way of
        // nearly every request.
        let is_news = |dispatch: &Dispatch| dispatch.is_trial || dispatch.slice != Slice::Undivided;
        if let Some(dispatch) = self.dispatch.filter(is_news) {
            let now = self.revision.context.clock.now();
            let mut state = self.revision.state.lock();
            state.throttler.note_started(dispatch.pod);
            if dispatch.slice == Slice::Outside {
                state.throttler.note_admitted_outside(now);
            }
            self.revision.pump(&mut state, now);
        }
    }

    /// The pod never started the request: it waits again, ahead of those that came later.
    pub(crate) fn requeue(self) -> Result<QueueTurn, QueueRefusal> {
        self.revision.metrics.retries.inc();
        self.wait_again(Throttler::requeue)
    }

    /// The pod had no room: others have filled it. The request waits again, where it was.
    pub(crate) fn requeue_for_want_of_room(self) -> Result<QueueTurn, QueueRefusal> {
        self.revision.metrics.full_pods.inc();
        self.wait_again(Throttler::requeue_for_want_of_room)
    }

    /// The pod never started the request, which gives its slot back and rests.
    pub(crate) fn not_started(self) {
        self.revision.metrics.retries.inc();
        if let Some(dispatch) = self.dispatch {
            let now = self.revision.context.clock.now();
            self.revision.state.lock().throttler.note_not_started(dispatch.pod, now);
        }
    }

    fn wait_again(
        mut self,
        requeue: impl FnOnce(&mut Throttler, &Dispatch, Timestamp),
    ) -> Result<QueueTurn, QueueRefusal> {
        let revision = Arc::clone(&self.revision);
        let dispatch = self.dispatch.take().expect("a grant ends once");
        // Taken and counted out by hand, because the grant's drop would give the slot back, which the requeue
        // does in its own way.
        revision.metrics.in_flight.dec();
        let now = revision.context.clock.now();
        let mut state = revision.state.lock();
        requeue(&mut state.throttler, &dispatch, now);
        // The revision may have gone, or be held, while the pod was asked. The ticket is in the queue again
        // by now.
        if let Some(refused) = state.refuses_all() {
            state.throttler.abandon(dispatch.ticket);
            return Err(refused);
        }
        revision.turn(&mut state, dispatch.ticket, now)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(dispatch) = self.dispatch.take() {
            self.revision.metrics.in_flight.dec();
            let mut state = self.revision.state.lock();
            state.throttler.finish(dispatch.pod);
            self.revision.pump(&mut state, self.revision.context.clock.now());
        }
    }
}

/// A pod that was picked past queue and slots.
pub(crate) struct DirectRequest {
    revision: Arc<AssignedRevision>,
    pick: DirectPick,
}

impl DirectRequest {
    pub(super) fn new(revision: &Arc<AssignedRevision>, pick: DirectPick) -> Self {
        Self { revision: Arc::clone(revision), pick }
    }

    /// The address at which the pod usually takes requests.
    pub(crate) fn address(&self) -> SocketAddr {
        self.pick.address
    }

    /// The pod takes requests: whatever made it suspect is over.
    pub(crate) fn started(&self) {
        if self.pick.is_trial {
            let mut state = self.revision.state.lock();
            state.throttler.note_started(self.pick.pod);
            self.revision.pump(&mut state, self.revision.context.clock.now());
        }
    }

    /// The pod never started the request. Until the request waits elsewhere, this value shows that the
    /// revision holds it.
    pub(crate) fn not_started(&self) {
        let now = self.revision.context.clock.now();
        self.revision.state.lock().throttler.note_not_started(self.pick.pod, now);
    }
}

impl Drop for DirectRequest {
    fn drop(&mut self) {
        let mut state = self.revision.state.lock();
        state.throttler.finish_direct(self.pick.pod);
        self.revision.note_request_end(&mut state);
    }
}
