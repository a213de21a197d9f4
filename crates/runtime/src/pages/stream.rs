//! The bytes of a connection, whose times its place keeps.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::seat::PageSeat;

/// A connection that tells its place when bytes come and go, for a stack that keeps no times itself.
#[derive(Debug)]
pub struct PageStream<Stream> {
    stream: Stream,
    seat: PageSeat,
}

impl<Stream> PageStream<Stream> {
    /// A stream that notes its reads and writes at this place.
    pub fn new(stream: Stream, seat: PageSeat) -> Self {
        Self { stream, seat }
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for PageStream<Stream> {
    fn poll_read(self: Pin<&mut Self>, at: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let filled = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(at, into);
        if into.filled().len() > filled {
            this.seat.note_read();
        }
        read
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for PageStream<Stream> {
    fn poll_write(self: Pin<&mut Self>, at: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(at, bytes);
        match &written {
            Poll::Ready(Ok(_)) => this.seat.note_written(),
            Poll::Pending => this.seat.note_stalled(),
            Poll::Ready(Err(_)) => {}
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, at: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(at)
    }

    fn poll_shutdown(self: Pin<&mut Self>, at: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(at)
    }
}
