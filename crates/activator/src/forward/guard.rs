//! What a request holds of its pod while the pod works on it, and gives back at the end of the answer.

use std::net::SocketAddr;
use std::sync::Arc;

use dataplane::{BodyGuard, GuardedBody, Span, Upstreams};
use http::StatusCode;
use vocabulary::Timestamp;

use crate::shared_revision::{RequestSeat, SharedRevision};

/// What a response carries: its body, and what the request holds until that is sent.
pub(crate) type AnswerBody = GuardedBody<Option<Guard>>;

/// What a request holds from its grant to the last byte of its answer. When it lets go of a pod that the
/// activator was told to leave, the guard closes the connection too: no other code does.
pub(crate) struct Guard {
    seat: Option<RequestSeat>,
    address: SocketAddr,
    /// When its pod was granted; `None` for a request that has not waited for one.
    pub(super) granted_at: Option<Timestamp>,
    /// The status of its answer, and when the request arrived.
    pub(super) answer: Option<(StatusCode, Timestamp)>,
    /// Over with the last byte of the answer.
    pub(super) span: Option<Box<Span>>,
    revision: Arc<SharedRevision>,
    upstreams: Upstreams,
}

impl Guard {
    pub(super) fn new(
        seat: RequestSeat,
        address: SocketAddr,
        revision: &Arc<SharedRevision>,
        upstreams: &Upstreams,
    ) -> Self {
        Self {
            address,
            granted_at: None,
            answer: None,
            span: None,
            seat: Some(seat),
            revision: Arc::clone(revision),
            upstreams: upstreams.clone(),
        }
    }

    pub(super) fn seat(&self) -> &RequestSeat {
        self.seat.as_ref().expect("a guard holds its seat until it ends")
    }

    pub(super) fn into_seat(mut self) -> RequestSeat {
        self.seat.take().expect("a guard holds its seat until it ends")
    }
}

impl BodyGuard for Guard {}

impl Drop for Guard {
    fn drop(&mut self) {
        // One look at the clock for both.
        let now = self.revision.now();
        if let Some(seat) = self.seat.take() {
            seat.end(now);
        }
        if let Some((status, arrived)) = self.answer {
            self.revision.answered(status, now.saturating_since(arrived));
        }
        if !self.revision.keeps(self.address) {
            self.upstreams.close_idle(self.address);
        }
    }
}
