//! A client's connection, with or without TLS. Both are read and written alike; without TLS every call is the
//! socket's own.

pub(crate) mod diagnosis;
pub(crate) mod open_connections;
pub(crate) mod options;
pub(crate) mod silence;
pub(crate) mod small_writes;
pub(crate) mod stream;
#[cfg(feature = "tls")]
mod tls;

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[cfg(feature = "tls")]
use tls::TlsSocket;

/// A client's connection; see the module's documentation.
#[derive(Debug)]
pub(crate) enum Socket {
    Plain(TcpStream),
    /// Boxed, because a connection without it has no room for its kilobyte.
    #[cfg(feature = "tls")]
    Tls(Box<TlsSocket>),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self::Plain(stream)
    }
}

#[cfg(feature = "tls")]
impl From<tokio_rustls::server::TlsStream<TcpStream>> for Socket {
    fn from(stream: tokio_rustls::server::TlsStream<TcpStream>) -> Self {
        Self::Tls(Box::new(TlsSocket(stream)))
    }
}

impl Socket {
    /// The TCP connection below, which carries TLS or plain bytes.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(socket) => socket.tcp(),
        }
    }

    /// Whether a read may be worth it. With TLS something may be decrypted already, so it always may.
    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => stream.poll_read_ready(context),
            #[cfg(feature = "tls")]
            Self::Tls(_) => Poll::Ready(Ok(())),
        }
    }

    /// Whether the peer has sent what the runtime has not heard of yet. It will hear of it.
    pub(crate) fn has_more_in_kernel(&self) -> bool {
        has_more_in_kernel(self.tcp())
    }

    /// Tells the peer that nothing more will come. What was written before must be flushed.
    pub(crate) fn shut_down(&mut self) {
        self.send_close_notify();
        // A failure means that it has ended already.
        let _ = SockRef::from(self.tcp()).shutdown(Shutdown::Write);
    }

    /// Announces the end of what we send, which a peer with TLS can tell from a cut connection. Nothing
    /// without TLS.
    pub(crate) fn send_close_notify(&mut self) {
        match self {
            Self::Plain(_) => {}
            #[cfg(feature = "tls")]
            Self::Tls(socket) => socket.send_close_notify(),
        }
    }

    /// Lets the coming close break the connection instead of ending it.
    pub(crate) fn break_on_close(&self) {
        // A failure only means that the peer sees a close instead of a reset.
        let _ = SockRef::from(self.tcp()).set_linger(Some(Duration::ZERO));
    }
}

/// Whether bytes have arrived that no reader has taken.
pub(crate) fn has_more_in_kernel(stream: &TcpStream) -> bool {
    let mut first = [MaybeUninit::uninit(); 1];
    matches!(SockRef::from(stream).peek(&mut first), Ok(1..))
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            #[cfg(feature = "tls")]
            Self::Tls(socket) => Pin::new(&mut **socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            #[cfg(feature = "tls")]
            Self::Tls(socket) => Pin::new(&mut **socket).poll_write(context, bytes),
        }
    }

    /// Without TLS the kernel has all that was written.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            #[cfg(feature = "tls")]
            Self::Tls(socket) => Pin::new(&mut **socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            #[cfg(feature = "tls")]
            Self::Tls(socket) => Pin::new(&mut **socket).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            #[cfg(feature = "tls")]
            Self::Tls(socket) => Pin::new(&mut **socket).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
