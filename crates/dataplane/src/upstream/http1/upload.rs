//! A request on its way out, and how much of it is gone.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use http_body::Body as HttpBody;
use protocol::http1::{
    BodySize, MalformedMessage, OutgoingMessage, WrongLength, spare_buffer, write_request,
};
use protocol::{Fields, Request, RequestTarget};

use super::wire::UpstreamWire;
use crate::body::{Body, BodyError};
use crate::http1::IncomingError;

/// The request's own body failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyFailure {
    /// The body broke off, or is not as long as its head says.
    Broken,
    /// The bytes that the client sends are not chunks of HTTP/1.1.
    Malformed(MalformedMessage),
}

impl From<WrongLength> for BodyFailure {
    fn from(_: WrongLength) -> Self {
        Self::Broken
    }
}

impl From<BodyError> for BodyFailure {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Incoming(IncomingError::Malformed(why)) => Self::Malformed(why),
            BodyError::Incoming(IncomingError::Io(_) | IncomingError::Truncated)
            | BodyError::Stream(_)
            | BodyError::Expired(_)
            | BodyError::Source(_) => Self::Broken,
        }
    }
}

/// What was written of a request, and what was not.
pub(super) struct Upload {
    wire: Rc<UpstreamWire>,
    pub(super) request: Box<Request<Body>>,
    outgoing: OutgoingMessage,
    repeats: Repeats,
    pub(super) progress: Progress,
    /// The peer reads no more. Reading has the last word: a peer may answer and close before it has read
    /// everything, and whether it did is found there.
    pub(super) has_peer_stopped_reading: bool,
}

/// Whether a request of which something was written may be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    /// The request is never sent again.
    Never,
    /// The request is sent again if its connection turns out to have been closed.
    IfLost,
}

/// How much of a request is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing was written and the body was not touched: it can go elsewhere as it is.
    Whole,
    /// Nothing was written, but the body has begun to be read.
    Read,
    /// The peer may have some of it.
    Written,
}

impl Upload {
    pub(super) fn new(wire: Rc<UpstreamWire>, request: Box<Request<Body>>, repeats: Repeats) -> Self {
        let mut head = spare_buffer();
        let framing = write_request(&request, size_of(request.body()), &mut head);
        let outgoing = OutgoingMessage::new(head, framing);
        Self { wire, request, outgoing, repeats, progress: Progress::Whole, has_peer_stopped_reading: false }
    }

    /// Lets go of the head of the request, once it is written and will not be sent again. What decides over
    /// its answer (the method, a body that is held back) stays.
    fn drop_head(&mut self) {
        if self.repeats == Repeats::Never
            && self.request.fields().count() > 0
            && self.outgoing.is_head_written()
        {
            *self.request.fields_mut() = Fields::default();
            *self.request.target_mut() = RequestTarget::default();
        }
    }

    /// Whether everything was written, or the peer wants no more.
    pub(super) fn is_done(&self) -> bool {
        self.has_peer_stopped_reading || self.outgoing.is_done()
    }

    /// Writes as much as can be written. Ready when it is done.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyFailure>> {
        while !self.is_done() {
            // The beginning of the body leaves with the head, if it is there already.
            let next = self.poll_body(context)?;
            let flushed = self.wire.poll_flush(&mut self.outgoing, context);
            if self.outgoing.is_begun() {
                self.progress = Progress::Written;
                self.drop_head();
            }
            match flushed {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "an upstream reads no more");
                    self.has_peer_stopped_reading = true;
                }
                Poll::Pending => return Poll::Pending,
            }
            ready!(next);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes as much of the body as goes out at once.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyFailure>> {
        while self.outgoing.wants_body() {
            let frame = ready!(Pin::new(self.request.body_mut()).poll_frame(context));
            // Whatever the body gives is taken from its source for good, be it an error. From here on the
            // request cannot go elsewhere as it was.
            if self.progress == Progress::Whole {
                self.progress = Progress::Read;
            }
            let frame = frame.transpose().map_err(|error| {
                tracing::debug!(%error, "the body of a request broke off");
                BodyFailure::from(error)
            })?;
            self.outgoing.take(frame)?;
        }
        Poll::Ready(Ok(()))
    }
}

fn size_of(body: &Body) -> BodySize {
    if body.is_empty() {
        return BodySize::Empty;
    }
    body.size_hint().exact().map_or(BodySize::Unknown, BodySize::Exact)
}

/// The rest of an upload whose answer has begun already. Returns whether the connection can be used again.
pub(super) struct UploadRest(pub(super) Box<Upload>);

impl Future for UploadRest {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let done = ready!(self.0.poll(context));
        if done.is_err() {
            // The peer must not take what it got for the whole, and neither must our client take the answer
            // for one to it.
            self.0.wire.break_off();
        }
        Poll::Ready(done.is_ok() && !self.0.has_peer_stopped_reading)
    }
}
