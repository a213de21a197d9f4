//! One request and the head of its response, on one connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use protocol::http1::{HeadLimits, Malformed, ResponseHead, ResponseReader};

use super::super::SendErrorKind;
use super::upload::{BodyFailed, Progress, Upload};
use super::wire::Wire;
use crate::body::Body;
use crate::gate::Gate;

/// A response whose body is to be read.
pub(super) struct Answered {
    pub(super) head: ResponseHead,
    /// What was read after the head.
    pub(super) rest: Bytes,
    /// Perhaps not done.
    pub(super) upload: Upload,
}

/// No response.
pub(super) struct Failed {
    pub(super) kind: SendErrorKind,
    pub(super) progress: Progress,
    /// Whether there was not one byte of an answer.
    pub(super) is_silent: bool,
    pub(super) request: Box<Request<Body>>,
}

/// Sends a request and reads until there is the head of a response.
pub(super) async fn exchange(
    wire: Rc<Wire>,
    request: Box<Request<Body>>,
    limits: HeadLimits,
) -> Result<Answered, Failed> {
    let mut upload = Upload::new(Rc::clone(&wire), request);
    let mut reader = ResponseReader::new(limits);
    let found = poll_fn(|context| {
        if !upload.is_done()
            && let Poll::Ready(Err(failed)) = upload.poll(context)
        {
            return Poll::Ready(Err(failed.into()));
        }
        poll_head(&mut reader, &wire, &upload.request, context)
    })
    .await;
    match found {
        Ok(head) => Ok(Answered { head, rest: reader.into_rest(), upload }),
        Err(kind) => Err(Failed {
            kind,
            progress: upload.progress,
            is_silent: !reader.is_begun(),
            request: upload.request,
        }),
    }
}

impl From<BodyFailed> for SendErrorKind {
    fn from(failed: BodyFailed) -> Self {
        match failed {
            BodyFailed::Broken => Self::RequestBody,
            BodyFailed::Malformed(why) => Self::MalformedRequest(why),
        }
    }
}

fn poll_head(
    reader: &mut ResponseReader,
    wire: &Wire,
    request: &Request<Body>,
    context: &mut Context<'_>,
) -> Poll<Result<ResponseHead, SendErrorKind>> {
    loop {
        if let Some(head) =
            reader.take_head(request.method(), || Gate::open_of(request)).map_err(malformed)?
        {
            return Poll::Ready(Ok(head));
        }
        match wire.poll_read(context) {
            Poll::Ready(Ok(bytes)) if !bytes.is_empty() => reader.put(bytes),
            Poll::Ready(Ok(_) | Err(_)) => return Poll::Ready(Err(SendErrorKind::Closed)),
            Poll::Pending => return Poll::Pending,
        }
    }
}

fn malformed(why: Malformed) -> SendErrorKind {
    tracing::debug!(%why, "an upstream's answer cannot be forwarded");
    SendErrorKind::MalformedAnswer(why)
}
