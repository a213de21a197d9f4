//! Is a client still there from which nothing is read?
//!
//! A client that has gone is found by reading, as long as its bytes are read. Two kinds of clients are not:
//!
//! * One that has sent more than a reader has asked for: a body that waits for an app, or the next request.
//! * One that has ended its sending side behind a whole request (`nc -N`, `socat`): no further request comes,
//!   and it waits for its answer. `close()` sends the same FIN as `shutdown(SHUT_WR)`, so a client that was
//!   closed looks the same until its kernel has forgotten the socket.
//!
//! Of both the kernel knows more than a read says: a reset, or questions that were not answered, are an error
//! of the socket. The runtime tells a reader of a socket nothing after its end, and a writer nothing while
//! there is room; so a second descriptor of the same socket waits for errors alone. It is there only while
//! a request is under way and nothing is read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::connection::drain::WatchedConnection;
use crate::server::limits::HalfClosedLimits;
use crate::socket::options::probe_half_closed;

/// Waits for an error of a client's socket.
pub(super) struct SocketWatch(Pin<Box<dyn Future<Output = ()>>>);

impl SocketWatch {
    /// Fails where there is no descriptor left.
    pub(super) fn begin(stream: &TcpStream) -> io::Result<Self> {
        let socket = TcpStream::from_std(SockRef::from(stream).try_clone()?.into())?;
        Ok(Self(Box::pin(async move {
            // If the runtime ends, so does the connection.
            let _ = socket.ready(Interest::ERROR).await;
        })))
    }

    /// Ready once the socket is broken.
    pub(super) fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

/// A client that has ended its sending side behind a whole request.
pub(super) struct HalfClosedClient {
    limits: HalfClosedLimits,
    /// Runs since the last byte of a response went to it.
    silence: Option<Pin<Box<Sleep>>>,
    /// Its second descriptor has a place among those that all connections share.
    _counted: WatchedConnection,
}

impl HalfClosedClient {
    /// From now on the kernel asks it whether it is there.
    pub(super) fn new(stream: &TcpStream, limits: HalfClosedLimits, counted: WatchedConnection) -> Self {
        // A failure means that the connection has ended, which shows at once.
        let _ = probe_half_closed(stream, limits.probe_interval);
        Self { limits, silence: None, _counted: counted }
    }

    /// A part of a response went to it.
    pub(super) fn note_written(&mut self) {
        self.silence = None;
    }

    /// Ready when no byte of a response that has begun has gone to it for too long.
    pub(super) fn poll_silent(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let limit = self.limits.silence;
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        silence.as_mut().poll(context)
    }
}
