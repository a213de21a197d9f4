//! One request and the head of its response, on one connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{Request, StatusCode};

use super::super::SendErrorKind;
use super::head::{ResponseHead, read_response};
use super::upload::{BodyFailed, Progress, Upload};
use super::wire::Wire;
use crate::body::Body;
use crate::http1::{HeadLimits, INTERIM_BYTES_MAX, INTERIM_RESPONSES_MAX, Malformed, PartialHead};

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
pub(super) async fn exchange(
    wire: Rc<Wire>,
    request: Box<Request<Body>>,
    limits: HeadLimits,
) -> Result<Answered, Failed> {
    let mut upload = Upload::new(Rc::clone(&wire), request);
    let mut input = Input::new(limits);
    let found = poll_fn(|context| {
        if !upload.is_done()
            && let Poll::Ready(Err(failed)) = upload.poll(context)
        {
            return Poll::Ready(Err(failed.into()));
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

impl From<BodyFailed> for SendErrorKind {
    fn from(failed: BodyFailed) -> Self {
        match failed {
            BodyFailed::Broken => Self::RequestBody,
            BodyFailed::Malformed(why) => Self::MalformedRequest(why),
        }
    }
}

/// What the peer says before the body of its response.
struct Input {
    limits: HeadLimits,
    /// What was read last; behind the head, once that was found.
    unread: Bytes,
    /// What was read before that, while it is no whole head.
    partial: Option<PartialHead>,
    is_begun: bool,
    interim_responses: u32,
    interim_bytes: usize,
}

impl Input {
    fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            unread: Bytes::new(),
            partial: None,
            is_begun: false,
            interim_responses: 0,
            interim_bytes: 0,
        }
    }

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
                Poll::Ready(Ok(bytes)) if !bytes.is_empty() => {
                    self.is_begun = true;
                    self.unread = bytes;
                }
                Poll::Ready(Ok(_) | Err(_)) => return Poll::Ready(Err(SendErrorKind::Closed)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The head of the response, if it is whole. Interim responses before it are passed over: clients get those of our server only.
    fn take_head(&mut self, request: &Request<Body>) -> Result<Option<ResponseHead>, Malformed> {
        while let Some(mut bytes) = self.gather()? {
            // Some apps end a body with a line too many.
            while bytes.starts_with(b"\r\n") {
                bytes.advance(2);
                self.pass_over(2)?;
            }
            if bytes.is_empty() {
                break;
            }
            let Some((head, length)) = read_response(&bytes, request.method(), self.limits)? else {
                self.partial = Some(PartialHead::new(bytes));
                self.check_length()?;
                break;
            };
            self.unread = bytes.slice(length..);
            let status = head.response.status();
            if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
            self.interim_responses += 1;
            self.pass_over(length)?;
            if status == StatusCode::CONTINUE
                && let Some(OnContinue(tell)) = request.extensions().get()
            {
                tell();
            }
        }
        Ok(None)
    }

    /// What was read, with what there was of the head; `None` if it need not be looked at yet.
    fn gather(&mut self) -> Result<Option<Bytes>, Malformed> {
        let fresh = std::mem::take(&mut self.unread);
        if fresh.is_empty() {
            return Ok(None);
        }
        let Some(mut partial) = self.partial.take() else { return Ok(Some(fresh)) };
        if partial.add(&fresh) {
            return Ok(Some(partial.into_bytes()));
        }
        self.partial = Some(partial);
        self.check_length()?;
        Ok(None)
    }

    fn check_length(&self) -> Result<(), Malformed> {
        let is_too_long = self.partial.as_ref().is_some_and(|partial| partial.len() > self.limits.bytes);
        if is_too_long { Err(Malformed::HeadTooLarge(self.limits)) } else { Ok(()) }
    }

    /// So much came before the response. An app that goes on like that for ever would keep us busy for as long.
    fn pass_over(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.interim_bytes += bytes;
        let is_too_much =
            self.interim_responses > INTERIM_RESPONSES_MAX || self.interim_bytes > INTERIM_BYTES_MAX;
        if is_too_much { Err(Malformed::Interim) } else { Ok(()) }
    }
}

fn malformed(why: Malformed) -> SendErrorKind {
    tracing::debug!(%why, "an upstream's answer cannot be forwarded");
    SendErrorKind::MalformedAnswer(why)
}
