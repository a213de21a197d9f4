//! One request and the head of its response, on one connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use protocol::Request;
use protocol::http1::{MalformedMessage, ResponseHead, ResponseReader};

use super::super::SendErrorKind;
use super::super::pool::Pool;
use super::upload::{BodyFailure, Progress, Repeats, Upload};
use super::wire::{UnfinishedExchange, UpstreamWire};
use crate::body::Body;
use crate::body::gate::Gate;

/// A response whose body is to be read.
pub(super) struct UnreadResponse {
    pub(super) head: ResponseHead,
    /// Bytes that were read behind the head: the beginning of the body.
    pub(super) rest: Bytes,
    /// The sending of the request; `None` if all of it was sent before the head of the response came. Boxed,
    /// because it is there for hardly any response, and each would be moved with the room for it.
    pub(super) upload: Option<Box<Upload>>,
    pub(super) unfinished: UnfinishedExchange,
}

/// An exchange that ended without the head of a response.
pub(super) struct FailedExchange {
    pub(super) kind: SendErrorKind,
    pub(super) progress: Progress,
    /// Whether there was not one byte of an answer.
    pub(super) is_silent: bool,
    pub(super) request: Box<Request<Body>>,
}

/// Sends a request and reads until there is the head of a response.
pub(super) async fn exchange(
    wire: Rc<UpstreamWire>,
    request: Box<Request<Body>>,
    repeats: Repeats,
    pool: &Pool,
) -> Result<UnreadResponse, FailedExchange> {
    let unfinished = UnfinishedExchange::begin(&wire, pool.limits.given_up);
    let mut upload = Upload::new(Rc::clone(&wire), request, repeats);
    let mut reader = ResponseReader::new(pool.head.get());
    let mut has_waited = false;
    // The upload is not in here by value: whatever ends the exchange, how far it came decides whether the
    // request may be sent again.
    let found = poll_fn(|context| {
        // Written and read by one task, in this order: an app that answers before it has read everything is
        // heard in the same turn, and one whose window is full is read although nothing can be written.
        if !upload.is_done()
            && let Poll::Ready(Err(failed)) = upload.poll(context)
        {
            return Poll::Ready(Err(failed.into()));
        }
        // Right behind the request hardly any app has answered.
        if !std::mem::replace(&mut has_waited, true) {
            ready!(wire.poll_worth_reading(context));
        }
        poll_head(&mut reader, &wire, &upload.request, context)
    })
    .await;
    match found {
        Ok(head) => {
            // The end of an upload that the peer stopped reading tells that its connection is not used again.
            let outlasts_head = !upload.is_done() || upload.has_peer_stopped_reading;
            let upload = outlasts_head.then(|| Box::new(upload));
            Ok(UnreadResponse { head, rest: reader.into_rest(), upload, unfinished })
        }
        Err(kind) => Err(FailedExchange {
            kind,
            progress: upload.progress,
            is_silent: !reader.is_begun(),
            request: upload.request,
        }),
    }
}

impl From<BodyFailure> for SendErrorKind {
    fn from(failed: BodyFailure) -> Self {
        match failed {
            BodyFailure::Broken => Self::RequestBody,
            BodyFailure::Malformed(why) => Self::MalformedRequest(why),
        }
    }
}

fn poll_head(
    reader: &mut ResponseReader,
    wire: &UpstreamWire,
    request: &Request<Body>,
    context: &mut Context<'_>,
) -> Poll<Result<ResponseHead, SendErrorKind>> {
    loop {
        if reader.has_unread() {
            let on_continue = || Gate::open_of(request.extensions());
            if let Some(head) = reader.take_head(request.method(), on_continue).map_err(malformed)? {
                return Poll::Ready(Ok(head));
            }
        }
        match wire.poll_read_head(context) {
            Poll::Ready(Ok(bytes)) if !bytes.is_empty() => reader.put(bytes),
            // A reset and an orderly end say the same: there will be no answer.
            Poll::Ready(Ok(_) | Err(_)) => return Poll::Ready(Err(SendErrorKind::Closed)),
            Poll::Pending => return Poll::Pending,
        }
    }
}

fn malformed(why: MalformedMessage) -> SendErrorKind {
    tracing::debug!(%why, "an upstream's answer cannot be forwarded");
    SendErrorKind::MalformedAnswer(why)
}
