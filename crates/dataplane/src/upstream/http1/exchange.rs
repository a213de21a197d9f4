//! One request and the head of its response, on one connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{Request, StatusCode};

use super::super::SendErrorKind;
use super::head::{ResponseHead, read_response};
use super::upload::{BodyFailed, Progress, Upload};
use super::wire::Wire;
use crate::body::Body;
use crate::http1::{HEAD_BYTES_MAX, Malformed};

/// What to do when the peer asks for the body of a request.
#[derive(Clone)]
struct OnContinue(Arc<dyn Fn() + Send + Sync>);

/// Calls `tell` whenever an HTTP/1.1 peer answers `request` with `100 Continue`. Never called on HTTP/2, which does not show us these.
pub fn on_continue<B>(request: &mut Request<B>, tell: impl Fn() + Send + Sync + 'static) {
    request.extensions_mut().insert(OnContinue(Arc::new(tell)));
}

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
pub(super) async fn exchange(wire: Rc<Wire>, request: Box<Request<Body>>) -> Result<Answered, Failed> {
    let mut upload = Upload::new(Rc::clone(&wire), request);
    let mut input = Input::default();
    let found = poll_fn(|context| {
        if !upload.is_done()
            && let Poll::Ready(Err(BodyFailed)) = upload.poll(context)
        {
            return Poll::Ready(Err(SendErrorKind::RequestBody));
        }
        input.poll_head(&wire, &upload.request, context)
    })
    .await;
    match found {
        Ok(head) => Ok(Answered { head, rest: input.unread, upload }),
        Err(kind) => Err(Failed {
            kind,
            progress: upload.progress,
            is_silent: !input.is_begun,
            request: upload.request,
        }),
    }
}

/// What the peer says before the body of its response.
#[derive(Default)]
struct Input {
    unread: Bytes,
    is_begun: bool,
}

impl Input {
    fn poll_head(
        &mut self,
        wire: &Wire,
        request: &Request<Body>,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, SendErrorKind>> {
        loop {
            if let Some(head) = self.take_head(request).map_err(malformed)? {
                return Poll::Ready(Ok(head));
            }
            match wire.poll_read(context) {
                Poll::Ready(Ok(bytes)) if !bytes.is_empty() => self.take(bytes),
                Poll::Ready(Ok(_) | Err(_)) => return Poll::Ready(Err(SendErrorKind::Closed)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn take(&mut self, bytes: Bytes) {
        self.is_begun = true;
        self.unread = if self.unread.is_empty() {
            bytes
        } else {
            // Rare enough to be copied: a head that came in pieces.
            let mut joined = BytesMut::with_capacity(self.unread.len() + bytes.len());
            joined.extend_from_slice(&self.unread);
            joined.extend_from_slice(&bytes);
            joined.freeze()
        };
    }

    /// The head of the response, if it is whole. Interim responses before it are passed over: clients get those of our server only.
    fn take_head(&mut self, request: &Request<Body>) -> Result<Option<ResponseHead>, Malformed> {
        while !self.unread.is_empty() {
            let Some((head, length)) = read_response(&self.unread, request.method())? else {
                let is_too_long = self.unread.len() > HEAD_BYTES_MAX;
                return if is_too_long { Err(Malformed::HeadTooLarge) } else { Ok(None) };
            };
            let _head = self.unread.split_to(length);
            let status = head.response.status();
            if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
            if status == StatusCode::CONTINUE
                && let Some(OnContinue(tell)) = request.extensions().get()
            {
                tell();
            }
        }
        Ok(None)
    }
}

fn malformed(why: Malformed) -> SendErrorKind {
    tracing::debug!(%why, "an upstream's answer cannot be forwarded");
    SendErrorKind::Malformed
}
