//! The socket of an accepted connection: its first bytes can be looked at, and it can be broken instead of closed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What an HTTP/2 connection begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

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
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, reset: Reset) -> Self {
        Self { stream, ahead: [0; PREFACE.len()], unread: 0..0, reset }
    }

    /// Reads until it is clear what the peer speaks. Nothing of it is lost.
    pub(crate) async fn detect(&mut self) -> io::Result<Spoken> {
        loop {
            let have = self.unread.end;
            if self.ahead[..have] != PREFACE[..have] {
                return Ok(Spoken::Http1);
            }
            if have == PREFACE.len() {
                return Ok(Spoken::Http2);
            }
            let read = self.stream.read(&mut self.ahead[have..]).await?;
            if read == 0 {
                return Ok(if have == 0 { Spoken::Nothing } else { Spoken::Http1 });
            }
            self.unread.end += read;
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
        if !self.unread.is_empty() {
            let take = self.unread.len().min(buffer.remaining());
            let until = self.unread.start + take;
            buffer.put_slice(&self.ahead[self.unread.start..until]);
            self.unread.start = until;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
