//! What travels after the head of a request or a response.
//!
//! One concrete type, whose most common kinds need no box: no body, one that is here, one of a stream of
//! HTTP/2. Around it a body may carry what must live exactly as long as it does: the place of its connection
//! in the pool, the timers of its request, and the clock of its bytes.

pub(crate) mod gate;
pub(crate) mod upgrade;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use protocol::http2::{ErrorCode, Receiver, StreamError};
use thiserror::Error;
use vocabulary::LateTimeout;

use crate::body::upgrade::ClientUpgrade;
use crate::http1::IncomingError;
use crate::socket::stream::ReadAheadStream;
use crate::timers::{Activity, ExceededLimit, Timers};

/// Why a body ended before its end. The task that writes the body out then breaks the message visibly:
/// HTTP/1.1 closes without a terminator, HTTP/2 resets the stream.
#[derive(Debug, Error)]
pub enum BodyError {
    /// The peer that sent it over HTTP/1.1 failed.
    #[error("the sender of the body failed: {0}")]
    Incoming(#[source] IncomingError),
    /// The peer that sent the body over HTTP/2 failed, or the stream was reset.
    #[error("the sender of the body failed: {0}")]
    Stream(#[source] StreamError),
    /// One of the request's timers fired after the response had begun.
    #[error("{0} after the response had begun")]
    Expired(ExceededLimit),
    /// A source that is neither a connection nor a stream failed; the text says how.
    #[error("the source of the body failed: {0}")]
    Source(String),
}

impl BodyError {
    /// What a stream of HTTP/2 that cannot go on is reset with: what the other side said, if it said
    /// something.
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Stream(error) => error.code(),
            Self::Expired(_) => ErrorCode::CANCEL,
            Self::Incoming(_) | Self::Source(_) => ErrorCode::INTERNAL_ERROR,
        }
    }
}

/// The body of a response, which the timers of its exchange can break off.
pub trait ResponseBody: HttpBody<Data = Bytes, Error = BodyError> + Unpin + 'static {
    /// Takes the whole body, if it is here as bytes of which none was taken: nothing is left of it then.
    /// `None` takes nothing, and the body is to be polled.
    fn take_whole(&mut self) -> Option<Bytes>;

    /// Ready once a timer has fired. Polled while the client takes nothing: the body itself is not polled
    /// then, and cannot report the timer.
    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<ExceededLimit>;
}

/// The text that a late response ends with where it is not broken off, as in Knative.
const APPENDED: &[u8] = b"request timeout";

/// Where a body comes from piece by piece: a connection of HTTP/1.1, or something that keeps a copy for a
/// second attempt. Boxed, so that a body knows nothing of connections.
type BodySource = Pin<Box<dyn HttpBody<Data = Bytes, Error = BodyError>>>;

/// The body of a request or a response.
#[derive(Default)]
pub struct Body {
    kind: BodyKind,
    activity: Option<Activity>,
    timers: Option<Timers>,
}

#[derive(Default)]
enum BodyKind {
    #[default]
    Empty,
    Full(Bytes),
    /// On a stream of HTTP/2.
    Stream(Receiver),
    /// No body: the client offers to speak another protocol.
    Upgradable(ClientUpgrade),
    /// No body: what follows the head is another protocol.
    Switched(Box<ReadAheadStream>),
    Source(BodySource),
}

impl Body {
    /// A body without bytes and without trailers.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A body that is known whole.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::from(if bytes.is_empty() { BodyKind::Empty } else { BodyKind::Full(bytes) })
    }

    /// A body with a source of its own.
    pub fn custom(source: impl HttpBody<Data = Bytes, Error = BodyError> + 'static) -> Self {
        Self::from(BodyKind::Source(Box::pin(source)))
    }

    /// Marks every byte (and the end) of this body on the clock of its request.
    pub fn note_activity(&mut self, activity: Option<Activity>) {
        self.activity = activity;
    }

    /// Lets the timers of its request break this body off, also while its receiver takes nothing. Each frame
    /// counts as activity.
    #[must_use]
    pub(crate) fn with_timers(mut self, timers: Timers) -> Self {
        self.activity = timers.activity();
        self.timers = Some(timers);
        self
    }

    /// A connection on which another protocol is spoken from now on.
    pub(crate) fn switched(stream: ReadAheadStream) -> Self {
        Self::from(BodyKind::Switched(Box::new(stream)))
    }

    /// The connection behind a response to an upgrade; `None` of every other body.
    pub(crate) fn into_switched(self) -> Option<ReadAheadStream> {
        if let BodyKind::Switched(stream) = self.kind { Some(*stream) } else { None }
    }

    /// No body, but an offer to speak another protocol.
    pub(crate) fn upgradable(upgrade: ClientUpgrade) -> Self {
        Self::from(BodyKind::Upgradable(upgrade))
    }

    /// The client's offer to speak another protocol. It is made once.
    pub(crate) fn take_upgrade(&mut self) -> Option<ClientUpgrade> {
        if !matches!(self.kind, BodyKind::Upgradable(_)) {
            return None;
        }
        if let BodyKind::Upgradable(upgrade) = std::mem::take(&mut self.kind) { Some(upgrade) } else { None }
    }

    /// The last frame of a body whose time is up, or the reason for which it is broken off. A body of a known
    /// length is: what is appended beyond it would be taken for the next answer.
    fn end_late(&mut self, expired: ExceededLimit) -> Result<Frame<Bytes>, BodyError> {
        let appends = self.timers.take().is_some_and(|timers| timers.late() == LateTimeout::Append);
        if !appends || self.size_hint().exact().is_some() {
            return Err(BodyError::Expired(expired));
        }
        self.kind = BodyKind::Empty;
        Ok(Frame::data(Bytes::from_static(APPENDED)))
    }

    /// Whether nothing will come, known without reading.
    pub fn is_empty(&self) -> bool {
        self.is_end_stream()
    }
}

impl From<BodyKind> for Body {
    fn from(kind: BodyKind) -> Self {
        Self { kind, activity: None, timers: None }
    }
}

impl From<Receiver> for Body {
    fn from(receiver: Receiver) -> Self {
        Self::from(if receiver.is_end_stream() { BodyKind::Empty } else { BodyKind::Stream(receiver) })
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            BodyKind::Empty => "Empty",
            BodyKind::Full(_) => "Full",
            BodyKind::Stream(_) => "Stream",
            BodyKind::Upgradable(_) => "Upgradable",
            BodyKind::Switched(_) => "Switched",
            BodyKind::Source(_) => "Source",
        };
        formatter.debug_tuple("Body").field(&kind).finish()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let polled = match &mut this.kind {
            BodyKind::Empty | BodyKind::Upgradable(_) | BodyKind::Switched(_) => Poll::Ready(None),
            BodyKind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                this.kind = BodyKind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            BodyKind::Stream(receiver) => Pin::new(receiver).poll_frame(context).map_err(BodyError::Stream),
            BodyKind::Source(source) => source.as_mut().poll_frame(context),
        };
        match &polled {
            Poll::Ready(_) => {
                if let Some(activity) = &this.activity {
                    activity.mark();
                }
            }
            Poll::Pending => {
                if let Poll::Ready(expired) = this.poll_expired(context) {
                    return Poll::Ready(Some(this.end_late(expired)));
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Empty | BodyKind::Upgradable(_) | BodyKind::Switched(_) => true,
            BodyKind::Full(bytes) => bytes.is_empty(),
            BodyKind::Stream(receiver) => receiver.is_end_stream(),
            BodyKind::Source(source) => source.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Empty | BodyKind::Upgradable(_) | BodyKind::Switched(_) => SizeHint::with_exact(0),
            BodyKind::Full(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            BodyKind::Stream(receiver) => receiver.size_hint(),
            BodyKind::Source(source) => source.size_hint(),
        }
    }
}

impl ResponseBody for Body {
    fn take_whole(&mut self) -> Option<Bytes> {
        let BodyKind::Full(bytes) = &mut self.kind else { return None };
        let bytes = std::mem::take(bytes);
        self.kind = BodyKind::Empty;
        if let Some(activity) = &self.activity {
            activity.mark();
        }
        Some(bytes)
    }

    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<ExceededLimit> {
        self.timers.as_mut().map_or(Poll::Pending, |timers| timers.poll_expired(context))
    }
}

/// A value that is held while a body is sent, and hears of the bytes.
pub trait BodyGuard {
    /// Notes that `bytes` more of the body are on their way to the client.
    fn sent(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

impl<Guard: BodyGuard> BodyGuard for Option<Guard> {
    fn sent(&mut self, bytes: usize) {
        if let Some(guard) = self {
            guard.sent(bytes);
        }
    }
}

/// A body together with something that must be held until it was sent or dropped: a slot, an entry in a load
/// meter.
#[derive(Debug)]
pub struct GuardedBody<Guard> {
    body: Body,
    /// Dropped after the body, and so after its connection returned to the pool.
    guard: Guard,
}

impl<Guard> GuardedBody<Guard> {
    /// `guard` is dropped when the body was sent, failed, or is no longer wanted.
    pub fn new(body: Body, guard: Guard) -> Self {
        Self { body, guard }
    }
}

impl<Guard: BodyGuard + Unpin> HttpBody for GuardedBody<Guard> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.guard.sent(data.len());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<Guard: BodyGuard + Unpin + 'static> ResponseBody for GuardedBody<Guard> {
    fn take_whole(&mut self) -> Option<Bytes> {
        let whole = self.body.take_whole()?;
        self.guard.sent(whole.len());
        Some(whole)
    }

    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<ExceededLimit> {
        self.body.poll_expired(context)
    }
}
