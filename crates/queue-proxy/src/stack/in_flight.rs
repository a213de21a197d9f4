//! The resources that a request holds from its arrival to the last byte of its answer, and the records of its
//! end.

use std::rc::Rc;

use dataplane::{Body, BodyGuard, GuardedBody, Permit, Refusal, Response, Span};
use http::StatusCode;

use super::logging::Line;
use crate::load::CountedRequest;
use crate::metrics::{QueueProxyMetrics, RequestOutcome};

/// A request that counts, from its arrival to the end of its response.
pub(crate) struct InFlight {
    /// Dropped first: the slot goes on before the request stops to count.
    permit: Option<Permit>,
    /// `None` for a kubelet's probe that a mesh has rewritten: it is no load (P9).
    counted: Option<CountedRequest>,
    metrics: Rc<QueueProxyMetrics>,
    outcome: RequestOutcome,
    pub(super) line: Option<Box<Line>>,
    /// `None` for nearly all: without settings, and for those whose trace is not kept.
    pub(super) span: Option<Box<Span>>,
}

impl InFlight {
    /// A request that has just arrived. `counted` is `None` for one that is no load.
    pub(super) fn new(counted: Option<CountedRequest>, metrics: Rc<QueueProxyMetrics>) -> Self {
        Self { permit: None, counted, metrics, outcome: RequestOutcome::Cancelled, line: None, span: None }
    }

    /// The request has its slot, and goes to the app.
    pub(super) fn admitted(&mut self, permit: Option<Permit>) {
        self.permit = permit;
        if let Some(span) = &mut self.span {
            let queued = span.event("admitted");
            span.note("ebb.queue_seconds", queued);
        }
    }

    /// The head of the app's answer has come, with this status.
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.outcome = RequestOutcome::Answered(status);
        if let Some(span) = &mut self.span {
            let took = span.event("answered");
            span.note("ebb.app_seconds", took);
            span.answered(status);
        }
    }

    /// The request is refused: the app gives no answer.
    pub(super) fn refused(&mut self, refusal: &Refusal) {
        self.outcome = RequestOutcome::Refused(refusal.reason);
        if let Some(span) = &mut self.span {
            span.refused(refusal);
        }
    }
}

impl BodyGuard for InFlight {
    fn sent(&mut self, bytes: usize) {
        if let Some(line) = &mut self.line {
            line.sent(bytes);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        drop(self.permit.take());
        if let Some(counted) = self.counted.take() {
            self.metrics.ended(self.outcome, counted.end());
        }
        if let Some(line) = &mut self.line {
            match self.outcome {
                RequestOutcome::Answered(status) => line.answered(status),
                RequestOutcome::Refused(reason) => line.answered(reason.status()),
                RequestOutcome::Cancelled => {}
            }
        }
    }
}

/// An answer with what its request holds until the body is sent; `None` for one that never counted.
pub(super) type ProxyResponse = Response<GuardedBody<Option<InFlight>>>;

/// A body behind which nothing is held.
pub(super) fn without_guard(body: Body) -> GuardedBody<Option<InFlight>> {
    GuardedBody::new(body, None)
}
