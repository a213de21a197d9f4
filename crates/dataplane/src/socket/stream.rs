//! A connection on which something else than HTTP/1.1 is spoken from now on, with what was read of it
//! already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::socket::Socket;
use crate::socket::small_writes::poll_write_pieces;

/// A connection with the bytes that were read ahead.
#[derive(Debug)]
pub(crate) struct ReadAheadStream {
    stream: Socket,
    unread: Bytes,
}

impl ReadAheadStream {
    pub(crate) fn new(stream: impl Into<Socket>, unread: Bytes) -> Self {
        Self { stream: stream.into(), unread }
    }

    /// The TCP connection below the stream, which carries TLS or plain bytes.
    pub(crate) fn tcp(&self) -> &TcpStream {
        self.stream.tcp()
    }

    /// The stream, and what was read of it.
    pub(crate) fn into_parts(self) -> (Socket, Bytes) {
        (self.stream, self.unread)
    }
}

impl AsyncRead for ReadAheadStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..length]);
        self.unread.advance(length);
        if self.unread.is_empty() {
            // What was read may be a part of something much larger.
            self.unread = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ReadAheadStream {
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
        poll_write_pieces(&mut self.stream, context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
