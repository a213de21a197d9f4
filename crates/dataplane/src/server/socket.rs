//! The socket of an accepted connection: its first bytes can be looked at, it can be broken instead of closed, HTTP/1.1 heads are under our
//! rules, and an HTTP/1.1 client that is answered while it still sends gets to read its answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::http2::PREFACE;
use crate::small_writes::poll_write_pieces;

use super::head_rules::{HeadRules, LengthLines};

/// How long a client that may be in the middle of a body has to notice that we closed our side. Closing the other side while bytes arrive resets the
/// connection, and a client that sees the reset first never reads its answer. One that reads while it writes closes within a round trip.
const LINGER_LIMIT: Duration = Duration::from_secs(2);

/// What the first bytes of a connection say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Http1,
    Http2,
    /// The peer closed before it said anything.
    Nothing,
}

/// Whether the socket is to be reset instead of closed when it is dropped. Shared with the connection's task; atomic only because hyper wants
/// what can be upgraded to be sendable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reset(Arc<AtomicBool>);

impl Reset {
    /// Reset it: a plain close would look like the end of a body that has no length.
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A TCP stream with the bytes that were read ahead.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    ahead: [u8; PREFACE.len()],
    /// Which part of `ahead` was read from the peer and not yet handed on.
    unread: std::ops::Range<usize>,
    reset: Reset,
    /// Once it is known that HTTP/1.1 is spoken.
    rules: Option<(HeadRules, LengthLines)>,
    /// What was put in the place of an answer and is not yet written.
    replacement: Vec<u8>,
    /// The limit of what is going on after our side was closed.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, beginning: &Beginning, reset: Reset) -> Self {
        Self {
            stream,
            ahead: beginning.bytes,
            unread: 0..beginning.length,
            reset,
            rules: None,
            replacement: Vec::new(),
            lingering: None,
        }
    }

    /// Everything that is read and written from now on is HTTP/1.1.
    pub(crate) fn obey(mut self, rules: &HeadRules) -> Self {
        self.rules = Some((rules.clone(), LengthLines::new(rules.clone())));
        self
    }

    /// Whether a client of HTTP/1.1 may still be sending.
    fn lingers(&self) -> bool {
        self.rules.as_ref().is_some_and(|(rules, _)| rules.may_be_sending() && !rules.are_over())
    }

    /// Throws away what the client still sends, until it closes or the limit is reached.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // The limit first, or a client that never pauses would never let it be heard.
        let limit = self.lingering.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER_LIMIT)));
        if limit.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut unwanted = [0; 8 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut unwanted);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Writes out what was put in the place of an answer.
    fn poll_replacement(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.replacement.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.replacement))?;
            self.replacement.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// Whether something else will be written instead of `bytes`.
    fn is_replaced(&mut self, bytes: &[u8]) -> bool {
        let rules = self.rules.as_ref().map(|(rules, _)| rules).filter(|rules| !rules.are_over());
        let replacement = rules.and_then(|rules| rules.replacement(bytes));
        replacement.is_some_and(|replacement| {
            self.replacement = replacement;
            true
        })
    }
}

/// The first bytes of a connection.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    bytes: [u8; PREFACE.len()],
    length: usize,
}

impl Beginning {
    /// Reads until it is clear what the peer speaks. Nothing of it is lost.
    pub(crate) async fn detect(&mut self, stream: &mut TcpStream) -> io::Result<Spoken> {
        loop {
            let have = self.length;
            if self.bytes[..have] != PREFACE[..have] {
                return Ok(Spoken::Http1);
            }
            if have == PREFACE.len() {
                return Ok(Spoken::Http2);
            }
            let read = stream.read(&mut self.bytes[have..]).await?;
            if read == 0 {
                return Ok(if have == 0 { Spoken::Nothing } else { Spoken::Http1 });
            }
            self.length += read;
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.reset.0.load(Ordering::Relaxed) {
            // A failure here only means that the peer sees a close instead of a reset.
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if !self.unread.is_empty() {
            let take = self.unread.len().min(buffer.remaining());
            let until = self.unread.start + take;
            buffer.put_slice(&self.ahead[self.unread.start..until]);
            self.unread.start = until;
        }
        // A head in two pieces would make hyper double its buffer, so what follows what was read ahead is read with it.
        if buffer.remaining() > 0 {
            let read = Pin::new(&mut self.stream).poll_read(context, buffer);
            if buffer.filled().len() == before {
                ready!(read)?;
            }
        }
        if let Some((rules, lines)) = &mut self.rules
            && !rules.are_over()
        {
            lines.read(&buffer.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(context))?;
        if self.is_replaced(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(self.poll_replacement(context))?;
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        if self.lingers() { self.poll_linger(context).map(Ok) } else { Poll::Ready(Ok(())) }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(context))?;
        // hyper begins a message with its head, and its own answers have no body.
        if self.is_replaced(slices.first().map(|head| &**head).unwrap_or_default()) {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        poll_write_pieces(&mut self.stream, context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
