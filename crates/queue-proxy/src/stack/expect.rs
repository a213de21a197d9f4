//! `Expect: 100-continue`: a client that wants to hear from the app before it sends its body.
//!
//! Between activator and queue-proxy the header means something else, "not before you have a slot for it",
//! and is answered by reading; there a client's own wish travels as `ebb-expect`.
//!
//! A body leaves as soon as one of these happens:
//!
//! ```text
//!   the app says 100 Continue    we ask the client for it, and it flows
//!   PATIENCE is over             the same: an app that knows nothing of this waits for the body
//!   the app's final head         the client is not asked any more, since the head may be a refusal; what it
//!                                sends all the same, because it has waited for long enough, flows
//! ```

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use dataplane::{Body, BodyError, Gate, Request, names};
use http::header::{EXPECT, HeaderMap, HeaderValue};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

/// How long the app may take to ask for the body before it gets it unasked: apps that know nothing of this
/// wait for the body.
const PATIENCE: Duration = Duration::from_secs(1);

/// On a request of an activator: its own expectation ends here, the client's goes on.
pub(super) fn restore(headers: &mut HeaderMap) {
    headers.remove(EXPECT);
    if headers.remove(names::EBB_EXPECT).is_some() {
        headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    }
}

/// Holds back the body of a request that expects `100 Continue`, until the app says so or [`PATIENCE`] is
/// over. The gate is opened when the head of the app's answer has come.
pub(super) fn hold_body(request: &mut Request<Body>) -> Option<Gate> {
    if request.body().is_empty() {
        return None;
    }
    let expectation = request.fields().of_hops()?.get(EXPECT)?;
    if !expectation.as_bytes().eq_ignore_ascii_case(b"100-continue") {
        return None;
    }
    let gate = Gate::opened_by_continue(request.extensions_mut());
    let held =
        HeldBody { body: std::mem::take(request.body_mut()), gate: gate.clone(), hold: BodyStage::Unasked };
    *request.body_mut() = Body::custom(held);
    Some(gate)
}

struct HeldBody {
    body: Body,
    /// Opened by the app's `100 Continue` or by its answer.
    gate: Gate,
    hold: BodyStage,
}

/// How far a body is from flowing.
enum BodyStage {
    /// The app has not asked for the body: the request waits for its turn, and the app cannot ask for what it
    /// has not heard of.
    Unasked,
    /// The app is being asked.
    Asking(Pin<Box<Sleep>>),
    /// The body flows to the app.
    Over,
}

impl BodyStage {
    /// Ready once the app was asked for long enough.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if matches!(self, Self::Unasked) {
            *self = Self::Asking(Box::pin(tokio::time::sleep(PATIENCE)));
        }
        match self {
            Self::Asking(patience) => patience.as_mut().poll(context),
            Self::Unasked | Self::Over => Poll::Ready(()),
        }
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if !matches!(this.hold, BodyStage::Over) {
            let is_over = this.hold.poll_patience(context).is_ready();
            if !is_over && this.gate.poll_open(context).is_pending() {
                return Poll::Pending;
            }
            this.hold = BodyStage::Over;
        }
        Pin::new(&mut this.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
