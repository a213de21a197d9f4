//! A connection after its handshake. What was encrypted and the kernel did not take yet lies in here, so a
//! writer has to flush before it counts anything as sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A client's connection with TLS; see the module's documentation.
#[derive(Debug)]
pub(crate) struct TlsSocket(pub(super) TlsStream<TcpStream>);

impl TlsSocket {
    /// The TCP connection below the TLS session.
    pub(crate) fn tcp(&self) -> &TcpStream {
        self.0.get_ref().0
    }

    /// Sends `close_notify`, by which the peer tells an end from a cut connection. It is a few bytes, for
    /// which the kernel has room unless the peer has stopped reading.
    pub(crate) fn send_close_notify(&mut self) {
        self.0.get_mut().1.send_close_notify();
        let _ = Pin::new(&mut self.0).poll_flush(&mut Context::from_waker(Waker::noop()));
    }

    /// Nothing is encrypted behind what the kernel has not taken yet, so that a peer that does not read makes
    /// us keep little.
    fn poll_make_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.0.get_ref().1.wants_write() {
            return Pin::new(&mut self.0).poll_flush(context);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // What the kernel had no room for goes on its way by the task that looks at the connection next, and
        // that is the reader. A failure shows in the read.
        let _ = self.poll_make_room(context);
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_make_room(context))?;
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_make_room(context))?;
        Pin::new(&mut self.0).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
