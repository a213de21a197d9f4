//! The two ends of one stream, as the tasks hold them that read and write it. Dropping an end tells the
//! session that its reader or writer is gone.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::PresentTime;
use super::frame::ErrorCode;
use super::session::{HasBody, Session};
use super::stream::{Stream, StreamError};
use crate::message::{Request, Response};

impl Session {
    /// Opens a stream with a request, whose body (if it has one) is to follow. The caller has seen that there
    /// is room.
    pub fn open<B>(self: &Rc<Self>, request: &Request<B>, body: HasBody) -> (Sender, Receiver) {
        let stream = self.open_stream(request, body);
        (Sender::new(Rc::clone(self), Rc::clone(&stream)), Receiver::new(Rc::clone(self), stream))
    }
}

/// Where a message is written.
#[derive(Debug)]
pub struct Sender {
    session: Rc<Session>,
    stream: Rc<Stream>,
}

impl Sender {
    /// The writing end of a stream that the peer has opened.
    pub fn new(session: Rc<Session>, stream: Rc<Stream>) -> Self {
        Self { session, stream }
    }

    /// Why the stream has ended, if it has; otherwise wakes the task when it does.
    pub fn poll_error(&self, context: &Context<'_>) -> Poll<StreamError> {
        let mut state = self.stream.state.borrow_mut();
        if let Some(error) = state.error {
            return Poll::Ready(error);
        }
        state.sending.waiting.register(context);
        Poll::Pending
    }

    /// Sends the head of a response; `more` writes further fields.
    pub fn respond(&self, response: &Response<()>, body: HasBody, more: impl FnOnce(&mut Vec<u8>)) {
        self.session.send_response(&self.stream, response, body, more);
    }

    /// Breaks the stream off, unless it is over.
    pub fn reset(&self, code: ErrorCode) {
        self.session.reset(&self.stream, code);
    }

    /// How much of so many bytes may be sent now: at least one, or the task is woken when it may be.
    pub fn poll_room(&self, wanted: usize, context: &mut Context<'_>) -> Poll<Result<usize, StreamError>> {
        self.session.poll_room(&self.stream, wanted, context)
    }

    /// Lets others go on that wait for room.
    pub fn pass(&self) {
        self.session.pass();
    }

    /// How long a piece of so many bytes waits for more of its body, if it has to.
    pub fn patience_with(&self, bytes: usize, now: PresentTime<'_>) -> Option<Duration> {
        self.session.patience_with(&self.stream, bytes, now)
    }

    /// Sends a piece of the body for which there is room, which may be its last.
    pub fn data(&self, data: Bytes, is_end: bool, now: PresentTime<'_>) {
        self.session.send_data(&self.stream, data, is_end, now);
    }

    /// Ends the body with trailers, those that may be some.
    pub fn trailers(&self, trailers: &HeaderMap, now: PresentTime<'_>) {
        self.session.send_trailers(&self.stream, trailers, now);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.session.writer_gone(&self.stream);
    }
}

/// Where a message is read: a body, and on the side of the client the head of a response before it.
#[derive(Debug)]
pub struct Receiver {
    session: Rc<Session>,
    stream: Rc<Stream>,
}

impl Receiver {
    /// The reading end of a stream that the peer has opened.
    pub fn new(session: Rc<Session>, stream: Rc<Stream>) -> Self {
        Self { session, stream }
    }

    /// The head of the response.
    pub fn poll_response(&self, context: &Context<'_>) -> Poll<Result<Response<()>, StreamError>> {
        let mut state = self.stream.state.borrow_mut();
        // The response before the error, for the same reason as in the body: an app may answer and then break
        // the stream off.
        if let Some(response) = state.response.take() {
            let memory = std::mem::take(&mut state.response_memory);
            drop(state);
            self.session.head_taken(&self.stream, memory);
            return Poll::Ready(Ok(response));
        }
        if let Some(error) = state.error {
            return Poll::Ready(Err(error));
        }
        state.receiving.waiting.register(context);
        Poll::Pending
    }

    /// The whole body, if it is here and of one piece.
    pub fn take_whole(&self) -> Option<Bytes> {
        let whole = {
            let mut state = self.stream.state.borrow_mut();
            // Only if nothing else will come: then the body needs neither the stream nor a task, and the
            // stream is over by now.
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
        // What came before an error is read before the error is told: a response that was answered in full
        // and then reset is a full response.
        if let Some(data) = state.receiving.data.pop() {
            // `read` looks at the stream's state itself, and may forget the stream.
            drop(state);
            self.session.read(&self.stream, data.len());
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if state.receiving.is_ended {
            let trailers = state.receiving.trailers.take();
            let memory = std::mem::take(&mut state.receiving.trailers_memory);
            drop(state);
            self.session.head_taken(&self.stream, memory);
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
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
        let to_come = match (state.receiving.is_ended, &state.receiving.trailers) {
            (true, None) => Some(0),
            // A hop that wrote a length over HTTP/1.1 could not send trailers any more.
            (true, Some(_)) => None,
            (false, _) => state.receiving.length_left,
        };
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
