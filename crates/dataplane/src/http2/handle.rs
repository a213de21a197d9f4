//! The two ends of one stream, as the tasks hold them that read and write it. Dropping one says that nobody is there any more.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::frame::ErrorCode;
use super::session::{HasBody, Session};
use super::stream::{Stream, StreamError};
use crate::body::BodyError;

/// Where a message is written.
#[derive(Debug)]
pub(crate) struct Sender {
    session: Rc<Session>,
    stream: Rc<Stream>,
}

impl Sender {
    pub(super) fn new(session: Rc<Session>, stream: Rc<Stream>) -> Self {
        Self { session, stream }
    }

    /// Why the stream has ended, if it has; otherwise wakes the task when it does.
    pub(super) fn poll_error(&self, context: &Context<'_>) -> Poll<StreamError> {
        let mut state = self.stream.state.borrow_mut();
        if let Some(error) = state.error {
            return Poll::Ready(error);
        }
        state.sending.waiting.register(context);
        Poll::Pending
    }

    /// Sends the head of a response; `more` writes further fields.
    pub(super) fn respond(&self, response: &Response<()>, body: HasBody, more: impl FnOnce(&mut Vec<u8>)) {
        self.session.send_response(&self.stream, response, body, more);
    }

    /// Breaks the stream off, unless it is over.
    pub(super) fn reset(&self, code: ErrorCode) {
        self.session.reset(&self.stream, code);
    }

    fn poll_room(&self, wanted: usize, context: &mut Context<'_>) -> Poll<Result<usize, StreamError>> {
        self.session.poll_room(&self.stream, wanted, context)
    }

    /// Lets others go on that wait for room.
    fn pass(&self) {
        self.session.pass();
    }

    fn data(&self, data: Bytes, is_end: bool) {
        self.session.send_data(&self.stream, data, is_end);
    }

    fn trailers(&self, trailers: &HeaderMap) {
        self.session.send_trailers(&self.stream, trailers);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.session.writer_gone(&self.stream);
    }
}

/// Why a body was not sent to its end.
#[derive(Debug)]
pub(crate) enum SendFailure {
    /// The stream ended; its reader knows why.
    Stream,
    /// The body failed; the stream was broken off.
    Body(BodyError),
}

/// A body on its way out.
#[derive(Debug)]
pub(crate) struct Pump {
    sender: Sender,
    /// What there is no room for yet.
    rest: Bytes,
    has_begun: bool,
    is_done: bool,
}

impl Pump {
    pub(crate) fn new(sender: Sender) -> Self {
        Self { sender, rest: Bytes::new(), has_begun: false, is_done: false }
    }

    /// Whether something was taken from the body.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether everything was sent.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Sends what can be sent. Ready at the end.
    pub(crate) fn poll<B>(&mut self, body: &mut B, context: &mut Context<'_>) -> Poll<Result<(), SendFailure>>
    where
        B: HttpBody<Data = Bytes, Error = BodyError> + Unpin,
    {
        while !self.is_done {
            if !self.rest.is_empty() {
                let room = ready!(self.sender.poll_room(self.rest.len(), context))
                    .map_err(|_| SendFailure::Stream)?;
                let piece = self.rest.split_to(room);
                self.is_done = self.rest.is_empty() && body.is_end_stream();
                self.sender.data(piece, self.is_done);
                continue;
            }
            if self.sender.poll_error(context).is_ready() {
                return Poll::Ready(Err(SendFailure::Stream));
            }
            // What is certainly there is not taken before there is room: meanwhile its sender is not told that it was read. What may be the end of the
            // body, or its trailers, needs none.
            if body.size_hint().lower() > 0 {
                ready!(self.sender.poll_room(1, context)).map_err(|_| SendFailure::Stream)?;
            }
            let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
                // The room that was kept for this stream is for others.
                self.sender.pass();
                return Poll::Pending;
            };
            self.has_begun = true;
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => {
                        self.is_done = true;
                        self.sender.trailers(&frame.into_trailers().unwrap_or_default());
                    }
                },
                Some(Err(error)) => {
                    self.sender.reset(error.code());
                    return Poll::Ready(Err(SendFailure::Body(error)));
                }
                None => {
                    self.is_done = true;
                    self.sender.data(Bytes::new(), true);
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Where a message is read: a body, and on the side of the client the head of a response before it.
#[derive(Debug)]
pub(crate) struct Receiver {
    session: Rc<Session>,
    stream: Rc<Stream>,
}

impl Receiver {
    pub(super) fn new(session: Rc<Session>, stream: Rc<Stream>) -> Self {
        Self { session, stream }
    }

    /// The head of the response.
    pub(crate) fn poll_response(&self, context: &Context<'_>) -> Poll<Result<Response<()>, StreamError>> {
        let mut state = self.stream.state.borrow_mut();
        if let Some(response) = state.response.take() {
            return Poll::Ready(Ok(response));
        }
        if let Some(error) = state.error {
            return Poll::Ready(Err(error));
        }
        state.receiving.waiting.register(context);
        Poll::Pending
    }

    /// The whole body, if it is here and of one piece.
    pub(crate) fn take_whole(&self) -> Option<Bytes> {
        let whole = {
            let mut state = self.stream.state.borrow_mut();
            let is_whole = state.receiving.is_ended
                && state.receiving.data.is_one_piece()
                && state.receiving.trailers.is_none();
            is_whole.then(|| state.receiving.data.pop().unwrap_or_default())
        };
        if let Some(bytes) = &whole {
            self.session.read(&self.stream, bytes.len());
        }
        whole
    }
}

impl HttpBody for Receiver {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let mut state = self.stream.state.borrow_mut();
        if let Some(data) = state.receiving.data.pop() {
            drop(state);
            self.session.read(&self.stream, data.len());
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if state.receiving.is_ended {
            return Poll::Ready(
                state.receiving.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))),
            );
        }
        if let Some(error) = state.error {
            return Poll::Ready(Some(Err(error)));
        }
        state.receiving.waiting.register(context);
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let state = self.stream.state.borrow();
        state.receiving.is_ended && state.receiving.data.is_empty() && state.receiving.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.stream.state.borrow();
        let here = state.receiving.data.bytes() as u64;
        let to_come = if state.receiving.is_ended { Some(0) } else { state.receiving.length_left };
        let Some(to_come) = to_come else {
            let mut hint = SizeHint::default();
            hint.set_lower(here);
            return hint;
        };
        SizeHint::with_exact(to_come + here)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.session.reader_gone(&self.stream);
    }
}
