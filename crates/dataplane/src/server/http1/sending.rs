//! A response on its way out: its body is asked for as fast as the client takes it, and no faster.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use protocol::http1::{AnnouncedResponse, BodyFraming, OutgoingMessage};

use super::failure::{BrokenResponse, ConnectionError};
use super::wire::ServerWire;
use crate::body::{BodyError, ResponseBody};

/// So many bytes are as good as sent: the kernel takes them from us, whatever the client does.
const SMALL_REST: usize = 16 * 1024;

/// How many pieces of a body are written before others get their turn: responses that are sent at the same
/// time end at about the same time.
const PIECES_PER_TURN: u32 = 4;

/// A response on its way out.
pub(super) struct SendingResponse<'w, B> {
    pub(super) wire: &'w ServerWire,
    pub(super) outgoing: OutgoingMessage,
    /// `None` once it is not needed any more. What it holds is free before a client can know that the
    /// response is over, and act on that.
    pub(super) body: Option<B>,
    pub(super) announced: AnnouncedResponse,
    pub(super) is_switched: bool,
    /// Why the body broke off. What came before goes out first.
    pub(super) failure: Option<ConnectionError>,
}

impl<B: ResponseBody> SendingResponse<'_, B> {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        let sent = ready!(self.poll_send(context));
        if sent.is_err() && self.announced.framing == BodyFraming::UntilClose {
            self.wire.reset();
        }
        Poll::Ready(sent)
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        ready!(self.wire.poll_end_interim(context))?;
        let mut pieces = 0;
        while !self.outgoing.is_done() {
            if pieces == PIECES_PER_TURN {
                context.waker().wake_by_ref();
                return self.poll_gone(context);
            }
            pieces += 1;
            let next = self.poll_body(context);
            if self.outgoing.rest().is_some_and(|rest| rest <= SMALL_REST) {
                self.body = None;
            }
            if self.wire.poll_flush(&mut self.outgoing, context)?.is_pending() {
                if let Some(body) = &mut self.body
                    && let Poll::Ready(expired) = body.poll_expired(context)
                {
                    return Poll::Ready(Err(BodyError::Expired(expired).into()));
                }
                return self.poll_gone(context);
            }
            if let Some(failure) = self.failure.take() {
                return Poll::Ready(Err(failure));
            }
            if next.is_pending() {
                return self.poll_gone(context);
            }
        }
        if self.wire.poll_sent(context)?.is_pending() {
            return self.poll_gone(context);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes as much of the body as goes out at once.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.failure.is_none() && self.outgoing.wants_body() {
            let Some(body) = &mut self.body else { break };
            // Most bodies are here with their heads. A frame has room for trailers, and would be moved with
            // that room through each function that asks for it.
            if let Some(whole) = body.take_whole() {
                let taken = self.outgoing.take_data(whole);
                self.failure = taken.map_err(|wrong| BrokenResponse::from(wrong).into()).err();
                continue;
            }
            let frame = ready!(self.wire.during(|| Pin::new(body).poll_frame(context)));
            let taken = match frame.transpose() {
                Ok(frame) => self.outgoing.take(frame).map_err(|wrong| BrokenResponse::from(wrong).into()),
                Err(error) => Err(error.into()),
            };
            self.failure = taken.err();
        }
        Poll::Ready(())
    }

    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        if self.wire.poll_gone(context).is_ready() {
            return Poll::Ready(Err(BrokenResponse::ClientGone.into()));
        }
        self.wire.poll_silent(context).map(|()| Err(BrokenResponse::Silent.into()))
    }
}
