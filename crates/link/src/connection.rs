//! What does a link run over? Anything that carries bytes both ways: TCP here, TLS on a cluster, whatever a
//! test puts in between.
//!
//! Both directions are boxed instead of being type parameters: a [`crate::Reader`] would drag them through
//! every signature that a link passes, and one more jump per read is nothing beside the system call below it.

use std::fmt;
use std::io;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use vocabulary::LinkAddress;

pub(crate) type IncomingBytes = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type OutgoingBytes = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection, whatever carries it.
pub struct ByteStream {
    pub(crate) incoming: IncomingBytes,
    pub(crate) outgoing: OutgoingBytes,
}

impl ByteStream {
    /// Any stream that is one value. What comes as two halves of its own ([`TcpStream`]) needs no lock
    /// between them, so it has a conversion.
    pub fn of(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (incoming, outgoing) = tokio::io::split(stream);
        Self { incoming: Box::new(incoming), outgoing: Box::new(outgoing) }
    }
}

impl From<TcpStream> for ByteStream {
    fn from(stream: TcpStream) -> Self {
        // Frames are small and urgent. Failure leaves a slower link, which is no reason to refuse it.
        let _ = stream.set_nodelay(true);
        let (incoming, outgoing) = stream.into_split();
        Self { incoming: Box::new(incoming), outgoing: Box::new(outgoing) }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ByteStream").finish_non_exhaustive()
    }
}

/// How a connection to an address is made.
pub trait Dial: fmt::Debug + Send + Sync + 'static {
    /// Makes one attempt to connect. The caller gives it up after `WRITE_MAX`.
    fn connect(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<ByteStream>>;

    /// Makes one attempt as far as an accepted TCP connection, and closes that without a byte. It fails where
    /// the host or its network is dead or no process listens; the kernel of a process that stalls still
    /// accepts. The caller has a time limit of its own.
    fn reach(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<()>>;
}

/// [`Dial::reach`] over TCP, with or without TLS above it.
pub(crate) fn reach_by_tcp(address: LinkAddress) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move { TcpStream::connect(address.socket).await.map(drop) })
}

/// Dials over TCP without TLS, for links within one machine.
#[derive(Clone, Copy, Debug)]
pub struct TcpDialler;

impl Dial for TcpDialler {
    fn connect(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<ByteStream>> {
        Box::pin(async move { Ok(TcpStream::connect(address.socket).await?.into()) })
    }

    fn reach(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<()>> {
        reach_by_tcp(address)
    }
}
