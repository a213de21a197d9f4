//! A socket for a library that stops reading when it cannot write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::small_writes::poll_write_pieces;

/// A connection on which reading has the last word. A peer may answer and close before it has read a request; the next write then fails while the
/// answer waits to be read, and hyper would report the former and never see the latter. So what cannot be written is taken as written:
/// either an answer is found, or reading fails just the same.
#[derive(Debug)]
pub(super) struct Outward {
    stream: TcpStream,
    is_deaf: bool,
}

impl Outward {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, is_deaf: false }
    }

    /// Notes a peer that reads no more; whatever was to be written counts as done.
    fn heard<T>(&mut self, written: Poll<io::Result<T>>, done: T) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(Err(error))
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                self.is_deaf = true;
                Poll::Ready(Ok(done))
            }
            Poll::Ready(_) | Poll::Pending => written,
        }
    }
}

impl AsyncRead for Outward {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Outward {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.heard(written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        if self.is_deaf {
            return Poll::Ready(Ok(length));
        }
        let written = poll_write_pieces(&mut self.stream, context, slices);
        self.heard(written, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.heard(flushed, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
