//! A request on its way out: its head, then its body as it comes.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Request};
use http_body::Body as HttpBody;

use super::head::{Framing, write_header, write_request};
use super::wire::Wire;
use crate::body::Body;

/// The request's own body failed, or is not as long as its head says.
#[derive(Debug)]
pub(super) struct BodyFailed;

/// What was written of a request, and what was not.
pub(super) struct Upload {
    wire: Rc<Wire>,
    pub(super) request: Box<Request<Body>>,
    body: Sending,
    /// What goes out next: the head, or the line before a chunk, or trailers.
    before: Vec<u8>,
    before_written: usize,
    /// After that, a piece of the body.
    data: Bytes,
    /// After that, the end of a chunk.
    after: &'static [u8],
    pub(super) progress: Progress,
    /// The peer reads no more. Reading has the last word: a peer may answer and close before it has read everything, and whether it did is found there.
    pub(super) is_deaf: bool,
}

/// Which of its body is still to be asked for.
enum Sending {
    Length(u64),
    Chunks,
    Complete,
}

/// How much of a request is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing was written and the body was not touched: it can go elsewhere as it is.
    Whole,
    /// Nothing was written, but the body has begun to be read.
    Read,
    /// The peer may have some of it.
    Written,
}

impl Upload {
    pub(super) fn new(wire: Rc<Wire>, request: Box<Request<Body>>) -> Self {
        let mut before = Vec::with_capacity(512);
        let body = match write_request(&request, &mut before) {
            Framing::Length(0) => Sending::Complete,
            Framing::Length(length) => Sending::Length(length),
            Framing::Chunked | Framing::UntilClose => Sending::Chunks,
        };
        Self {
            wire,
            request,
            body,
            before,
            before_written: 0,
            data: Bytes::new(),
            after: b"",
            progress: Progress::Whole,
            is_deaf: false,
        }
    }

    /// Whether everything was written, or the peer wants no more.
    pub(super) fn is_done(&self) -> bool {
        self.is_deaf || (matches!(self.body, Sending::Complete) && self.is_written())
    }

    fn is_written(&self) -> bool {
        self.before.is_empty() && self.data.is_empty() && self.after.is_empty()
    }

    /// Whether a piece of the body may be taken. Not before the end of the last chunk is out: what the next one puts before its data would overtake it.
    fn wants_body(&self) -> bool {
        self.data.is_empty() && self.after.is_empty() && !matches!(self.body, Sending::Complete)
    }

    /// Writes as much as can be written. Ready when it is done.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyFailed>> {
        while !self.is_done() {
            // The first piece of the body leaves with the head, if it is there already.
            let next = if self.wants_body() { self.poll_body(context)? } else { Poll::Ready(()) };
            match self.poll_flush(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "an upstream reads no more");
                    self.is_deaf = true;
                }
                Poll::Pending => return Poll::Pending,
            }
            ready!(next);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the next piece of the body.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, BodyFailed> {
        let Poll::Ready(frame) = Pin::new(self.request.body_mut()).poll_frame(context) else {
            return Ok(Poll::Pending);
        };
        if self.progress == Progress::Whole {
            self.progress = Progress::Read;
        }
        match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => self.take_data(data)?,
                Err(frame) => self.end(frame.into_trailers().ok().as_ref())?,
            },
            Some(Err(error)) => {
                tracing::debug!(%error, "the body of a request broke off");
                return Err(BodyFailed);
            }
            None => self.end(None)?,
        }
        Ok(Poll::Ready(()))
    }

    fn take_data(&mut self, data: Bytes) -> Result<(), BodyFailed> {
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.body {
            Sending::Length(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or(BodyFailed)?;
                if *left == 0 {
                    self.body = Sending::Complete;
                }
            }
            Sending::Chunks => {
                self.before.extend_from_slice(format!("{:X}\r\n", data.len()).as_bytes());
                self.after = b"\r\n";
            }
            Sending::Complete => return Err(BodyFailed),
        }
        self.data = data;
        Ok(())
    }

    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<(), BodyFailed> {
        match self.body {
            Sending::Length(_) => return Err(BodyFailed),
            Sending::Chunks => {
                self.before.extend_from_slice(b"0\r\n");
                for (name, value) in trailers.into_iter().flatten() {
                    write_header(name, value, &mut self.before);
                }
                self.before.extend_from_slice(b"\r\n");
                self.body = Sending::Complete;
            }
            Sending::Complete => {}
        }
        Ok(())
    }

    /// Writes what is there.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_written() {
            let before = &self.before[self.before_written..];
            let pieces = [before, &self.data[..], self.after].map(IoSlice::new);
            // Usually it is one piece, which is cheaper to write than a list of one.
            let pieces = match (before.is_empty(), self.data.is_empty()) {
                (false, true) if self.after.is_empty() => &pieces[..1],
                (true, false) if self.after.is_empty() => &pieces[1..2],
                (_, _) => &pieces[..],
            };
            let mut written = ready!(self.wire.poll_write(context, pieces))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.progress = Progress::Written;
            let of_before = written.min(self.before.len() - self.before_written);
            self.before_written += of_before;
            written -= of_before;
            if self.before_written == self.before.len() {
                self.before = Vec::new();
                self.before_written = 0;
            }
            let of_data = written.min(self.data.len());
            self.data.advance(of_data);
            if self.data.is_empty() {
                self.data = Bytes::new();
            }
            self.after = &self.after[written - of_data..];
        }
        Poll::Ready(Ok(()))
    }
}

/// The rest of an upload whose answer has begun already. Returns whether the connection can be used again.
pub(super) struct Rest(pub(super) Upload);

impl Future for Rest {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let done = ready!(self.0.poll(context));
        if done.is_err() {
            // The peer must not take what it got for the whole, and neither must our client take the answer for one to it.
            self.0.wire.break_off();
        }
        Poll::Ready(done.is_ok() && !self.0.is_deaf)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use http_body::Frame;
    use http_body_util::StreamBody;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::super::super::Opened;
    use super::*;

    #[tokio::test]
    async fn a_chunk_never_overtakes_the_end_of_the_one_before() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("open");
        let (mut peer, _) = listener.accept().await.expect("open");
        let frames = [Ok(Frame::data(Bytes::from_static(b"a")))];
        let body = Body::custom(StreamBody::new(futures_util::stream::iter(frames)));
        let wire = Rc::new(Wire::new(stream, Opened::uncounted()));
        let mut upload = Upload::new(wire, Box::new(Request::new(body)));
        // The kernel took everything but the last byte of a chunk.
        upload.before.clear();
        upload.after = b"\n";
        poll_fn(|context| upload.poll(context)).await.expect("the body is whole");
        drop(upload);
        let mut written = String::new();
        peer.read_to_string(&mut written).await.expect("open");
        assert_eq!(written, "\n1\r\na\r\n0\r\n\r\n");
    }
}
