//! Reads one head after the other, how long that may take, and how much memory.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Version;
use protocol::http1::{NextMessage, RequestHead, RequestReader, UnreadableRequest};
use protocol::http2::{MEMORY_PAUSE, OverShare, head_memory};
use protocol::{Ambiguity, ambiguity};
use tokio::time::Sleep;

use super::wire::ServerWire;
use crate::connection::drain::{Drain, Phase};
use crate::server::limits::ServerLimits;
use crate::server::service::Service;

/// As much as is read at once while a head is awaited. Heads are shorter, and what is read waits with its
/// request.
const READ_BYTES: usize = 8 * 1024;

/// A head up to this size is not counted.
pub(super) const COUNTED_BYTES: usize = 4 * 1024;

/// What a client says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientStart {
    /// A whole head is here, for [`HeadReader::take_head`].
    Request,
    /// A whole head is here that two readers could read in two ways.
    Ambiguous(Ambiguity),
    /// The client speaks HTTP/2. Its preface is not yet read.
    Preface,
    /// The client sends no more, or the server ends and need not read on.
    End,
}

/// Reads the heads of one connection.
pub(super) struct HeadReader {
    limits: ServerLimits,
    reader: RequestReader,
    /// Whether the head before was just answered, so that its client has most probably sent nothing yet.
    is_behind_answer: bool,
    /// When the patience with it ends.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Nothing more is read of it before then, for want of memory.
    pause: Option<Pin<Box<Sleep>>>,
}

impl HeadReader {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Self {
            limits,
            reader: RequestReader::new(limits.head),
            is_behind_answer: false,
            deadline: None,
            pause: None,
        }
    }

    /// Takes over the present limit of this service.
    pub(super) fn allow<S: Service>(&mut self, service: &S) {
        self.reader.limit_heads(service.head_limits_max(self.limits.head));
    }

    /// Reads until there is a head, and leaves what follows it.
    pub(super) fn poll_next(
        &mut self,
        wire: &ServerWire,
        drain: &Drain,
        context: &mut Context<'_>,
    ) -> Poll<Result<ClientStart, UnreadableRequest>> {
        loop {
            // What came behind the request before counts first: clients may send several without waiting.
            // Nearly always nothing has come, and the reader need not be asked.
            let unread = wire.take_unread();
            let is_begun = !unread.is_empty() || self.reader.has_begun();
            let taken = if is_begun { self.reader.take(unread)? } else { None };
            // A head has a time limit from its first byte on. Between two heads a connection may rest for as
            // long as the drain allows.
            if !self.reader.has_begun() {
                self.deadline = None;
            }
            if let Some((next, rest)) = taken {
                wire.put_unread(rest);
                self.hold_whole(wire)?;
                let version = match next {
                    NextMessage::Request => Version::HTTP_11,
                    NextMessage::Preface => Version::HTTP_2,
                };
                if !wire.may_speak(version) {
                    return Poll::Ready(Err(UnreadableRequest::NotAgreed));
                }
                return Poll::Ready(Ok(self.start_of(next)));
            }
            if self.poll_memory(wire, context)?.is_pending() {
                break;
            }
            let is_behind_answer = std::mem::take(&mut self.is_behind_answer);
            if is_behind_answer && wire.poll_worth_reading(context).is_pending() {
                break;
            }
            match wire.poll_read_head(READ_BYTES, context) {
                Poll::Ready(Ok(bytes)) if !bytes.is_empty() => wire.put_unread(bytes),
                Poll::Ready(Ok(_) | Err(_)) => return Poll::Ready(Ok(ClientStart::End)),
                Poll::Pending => break,
            }
        }
        // What has arrived by now is still served. A client that has asked nothing yet holds nothing; a drain
        // need not wait for it.
        let is_unwanted = drain.phase() == Phase::Closing || !self.reader.has_begun() && wire.is_dismissed();
        if is_unwanted && !wire.has_more_in_kernel() {
            return Poll::Ready(Ok(ClientStart::End));
        }
        if !self.reader.has_begun() {
            return Poll::Pending;
        }
        let deadline =
            self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limits.head_time)));
        deadline.as_mut().poll(context).map(|()| Err(UnreadableRequest::TooSlow))
    }

    /// Ready when more of the head may be read; an error when there was no memory for it for too long.
    fn poll_memory(
        &mut self,
        wire: &ServerWire,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), UnreadableRequest>> {
        let bytes = self.reader.partial_bytes();
        // What comes with one read counts as nothing, as nearly all heads do.
        if bytes <= READ_BYTES || wire.hold_head(self.reader.partial_memory()).is_ok() {
            self.pause = None;
            return Poll::Ready(Ok(()));
        }
        let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(MEMORY_PAUSE)));
        pause.as_mut().poll(context).map(|()| Err(UnreadableRequest::NoMemory { bytes }))
    }

    /// Counts the head that was read for as long as its request lasts.
    fn hold_whole(&mut self, wire: &ServerWire) -> Result<(), UnreadableRequest> {
        let Some(head) = self.reader.head().filter(|head| head.bytes > COUNTED_BYTES) else { return Ok(()) };
        let bytes = head_memory(head.bytes, head.request.fields().count());
        wire.hold_head(bytes).map_err(|OverShare| UnreadableRequest::NoMemory { bytes: head.bytes })
    }

    fn start_of(&self, message: NextMessage) -> ClientStart {
        match message {
            NextMessage::Request => {
                let doubt = self.reader.head().and_then(|head| ambiguity(&head.request));
                doubt.map_or(ClientStart::Request, ClientStart::Ambiguous)
            }
            NextMessage::Preface => ClientStart::Preface,
        }
    }

    /// Whether a part of the next head is here.
    pub(super) fn has_begun(&self) -> bool {
        self.reader.has_begun()
    }

    /// The head that was read, while it waits to be taken.
    pub(super) fn head(&self) -> Option<&RequestHead> {
        self.reader.head()
    }

    /// The head that was read.
    pub(super) fn take_head(&mut self) -> Option<RequestHead> {
        self.is_behind_answer = true;
        self.reader.take_head()
    }
}
