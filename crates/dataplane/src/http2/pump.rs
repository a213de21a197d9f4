//! A body on its way out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame};
use protocol::http2::{SMALL_BYTES, Sender};
use runtime::Clock;
use tokio::time::Sleep;

use crate::body::{BodyError, ResponseBody};

/// Why a body was not sent to its end.
#[derive(Debug)]
pub(crate) enum SendFailure {
    /// The stream ended; its reader knows why.
    Stream,
    /// The body failed; the stream was broken off.
    Body(BodyError),
}

/// Takes the pieces of a body and sends them on a stream, as there is room.
#[derive(Debug)]
pub(crate) struct Pump {
    sender: Sender,
    clock: Clock,
    /// The piece of the body for which there is no room yet.
    rest: Bytes,
    /// Small pieces that wait for more of the body before they go out. Boxed, because nearly no body has any.
    joining: Option<Box<JoinedPieces>>,
    /// The end of the body, once the body has given it.
    end: Option<BodyEnd>,
    has_begun: bool,
    is_done: bool,
}

/// Small pieces that go out together.
#[derive(Debug)]
struct JoinedPieces {
    bytes: BytesMut,
    /// Then they go, however few they are.
    until: Pin<Box<Sleep>>,
}

impl JoinedPieces {
    fn new(first: &Bytes, patience: Duration) -> Self {
        let mut bytes = BytesMut::with_capacity(SMALL_BYTES);
        bytes.extend_from_slice(first);
        Self { bytes, until: Box::pin(tokio::time::sleep(patience)) }
    }
}

#[derive(Debug)]
enum BodyEnd {
    Plain,
    Trailers(HeaderMap),
}

/// Whether a body goes on after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PiecePosition {
    Last,
    Other,
}

impl Pump {
    pub(crate) fn new(sender: Sender, clock: Clock) -> Self {
        Self { sender, clock, rest: Bytes::new(), joining: None, end: None, has_begun: false, is_done: false }
    }

    /// Whether something was taken from the body.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether the whole body, its end included, was handed to the session.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Sends what can be sent. Ready at the end.
    pub(crate) fn poll<B>(&mut self, body: &mut B, context: &mut Context<'_>) -> Poll<Result<(), SendFailure>>
    where
        B: ResponseBody,
    {
        while !self.is_done {
            if !self.rest.is_empty() {
                ready!(self.poll_rest(body, context))?;
                continue;
            }
            if let Some(end) = self.end.take() {
                self.is_done = true;
                match end {
                    BodyEnd::Plain => self.sender.data(Bytes::new(), true, &|| self.clock.now()),
                    BodyEnd::Trailers(trailers) => self.sender.trailers(&trailers, &|| self.clock.now()),
                }
                continue;
            }
            // Looked at before the body: a source that has nothing to say for long would keep a stream that
            // is over.
            if self.sender.poll_error(context).is_ready() {
                return Poll::Ready(Err(SendFailure::Stream));
            }
            // What is certainly there is not taken before there is room: meanwhile its sender is not told
            // that it was read. What may be the end of the body, or its trailers, needs none.
            if body.size_hint().lower() > 0 {
                ready!(self.sender.poll_room(1, context)).map_err(|_| SendFailure::Stream)?;
            }
            if let Some(whole) = body.take_whole() {
                self.has_begun = true;
                self.take_piece(whole, PiecePosition::Last);
                continue;
            }
            match Pin::new(&mut *body).poll_frame(context) {
                Poll::Ready(frame) => {
                    self.has_begun = true;
                    let is_end = body.is_end_stream();
                    self.take(frame, if is_end { PiecePosition::Last } else { PiecePosition::Other })?;
                }
                Poll::Pending if self.poll_patience(context).is_ready() => self.end_joining(),
                Poll::Pending => {
                    // The room that was kept for this stream is for others.
                    self.sender.pass();
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends as much of the rest as there is room for.
    fn poll_rest<B>(&mut self, body: &B, context: &mut Context<'_>) -> Poll<Result<(), SendFailure>>
    where
        B: HttpBody,
    {
        let room =
            ready!(self.sender.poll_room(self.rest.len(), context)).map_err(|_| SendFailure::Stream)?;
        let piece = self.rest.split_to(room);
        let is_end = match &self.end {
            None => body.is_end_stream(),
            Some(BodyEnd::Plain) => true,
            Some(BodyEnd::Trailers(_)) => false,
        };
        self.is_done = self.rest.is_empty() && is_end;
        self.sender.data(piece, self.is_done, &|| self.clock.now());
        Poll::Ready(Ok(()))
    }

    /// Takes the next frame of the body, its end, or its failure.
    fn take(
        &mut self,
        frame: Option<Result<Frame<Bytes>, BodyError>>,
        piece: PiecePosition,
    ) -> Result<(), SendFailure> {
        let end = match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.take_piece(data, piece);
                    return Ok(());
                }
                Err(frame) => BodyEnd::Trailers(frame.into_trailers().unwrap_or_default()),
            },
            Some(Err(error)) => {
                self.sender.reset(error.code());
                return Err(SendFailure::Body(error));
            }
            None => BodyEnd::Plain,
        };
        self.end_joining();
        self.end = Some(end);
        Ok(())
    }

    fn take_piece(&mut self, data: Bytes, piece: PiecePosition) {
        if let Some(joining) = &mut self.joining {
            joining.bytes.extend_from_slice(&data);
            if piece == PiecePosition::Last || joining.bytes.len() >= SMALL_BYTES {
                self.end_joining();
            }
            return;
        }
        match self.sender.patience_with(data.len(), &|| self.clock.now()) {
            Some(patience) if piece == PiecePosition::Other => {
                self.joining = Some(Box::new(JoinedPieces::new(&data, patience)));
            }
            Some(_) | None => self.rest = data,
        }
    }

    /// Ready when what is joined has waited for long enough.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.joining {
            Some(joining) => joining.until.as_mut().poll(context),
            None => Poll::Pending,
        }
    }

    /// Sends the joined pieces as they are.
    fn end_joining(&mut self) {
        if let Some(joining) = self.joining.take() {
            self.rest = joining.bytes.freeze();
        }
    }
}
