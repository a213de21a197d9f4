//! Accepts connections and serves HTTP/1.1 and HTTP/2 (with prior knowledge) on one port.
//!
//! A connection is one task. Which of the two protocols it speaks is found in its first bytes: HTTP/2 begins with a preface that no HTTP/1.1
//! request can begin with.

mod connection;
mod http1;
mod http2;
mod unserved;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response};
use protocol::http1::HeadLimits;
use protocol::http2::MemoryBudget;
use runtime::Backoff;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;
use tracing::{debug, warn};

pub use connection::Connection;
pub(crate) use connection::Occupation;
pub(crate) use http1::RequestBody;
pub use unserved::UnservedRequest;

use crate::body::{Body, ResponseBody};
use crate::budget::ConnectionBudget;
use crate::drain::Drain;
use crate::socket::Socket;
use crate::socket_options::keep_alive;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// What answers requests. It is a plain async function, whose state is shared by `Rc`, not locked.
pub trait Service: 'static {
    /// What its responses carry.
    type Body: ResponseBody;

    /// Answers one request. When the future is dropped, the client has gone. Every connection has room for a future, also while it waits for a request: one
    /// that is large is better boxed.
    fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Abort>> + 'static;

    /// The server answered a request itself, which this service therefore never sees: it may count it.
    fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        let _ = unserved;
    }
}

/// Break the exchange off without an answer: HTTP/1.1 closes the connection, HTTP/2 resets the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the exchange was broken off on purpose")]
pub struct Abort;

impl From<Infallible> for Abort {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// How large the head of a request may be; more is answered 431.
    pub head: HeadLimits,
    /// How long the head of an HTTP/1.1 request may take from its first byte to its end; more is answered 408. Waiting for the first byte is not limited.
    pub head_time: Duration,
    /// How many streams one HTTP/2 connection may have open.
    pub streams_per_connection: u32,
    /// How many bytes of one HTTP/2 request body are accepted before somebody reads them.
    pub stream_window: u32,
    /// How long a connection may hold nothing: before its first request, between two of HTTP/1.1, without a stream of HTTP/2.
    pub idle_time: Duration,
    /// What HTTP/2 connections may hold of what nobody has read.
    pub memory: &'static MemoryBudget,
}

impl Default for ServerLimits {
    fn default() -> Self {
        // 250 streams are Knative's. A stream's window is small, so that a request that waits for its turn costs its sender's memory and not ours; the
        // connection's does not limit anything.
        Self {
            head: HeadLimits::OUTER,
            // Knative gives 60 s, which count from the end of the request before. A head is one packet, or a few.
            head_time: Duration::from_secs(30),
            streams_per_connection: 250,
            stream_window: 64 * 1024,
            // Longer than load balancers keep theirs to us (600 s is the longest default known to us), so that they close first and write nothing to a
            // connection that we are closing.
            idle_time: Duration::from_mins(15),
            memory: <&MemoryBudget>::default(),
        }
    }
}

/// How exactly the idle time is kept.
const SWEEPS_PER_IDLE_TIME: u32 = 64;

/// Accepts connections until [`Drain::stop_accepting`], then those that already wait, and returns; connections live on as local tasks. Fails
/// only if the listener cannot be used.
pub async fn serve<S: Service>(
    listener: TcpListener,
    service: Rc<S>,
    drain: Drain,
    limits: ServerLimits,
) -> io::Result<()> {
    serve_at(listener, Door { service, drain, limits, channel: Channel::Plain }).await
}

/// The same for clients that speak TLS.
#[cfg(feature = "tls")]
pub async fn serve_tls<S: Service>(
    listener: TcpListener,
    service: Rc<S>,
    drain: Drain,
    limits: ServerLimits,
    tls: Tls,
) -> io::Result<()> {
    serve_at(listener, Door { service, drain, limits, channel: Channel::Tls(tls) }).await
}

/// Where connections come in.
struct Door<S> {
    service: Rc<S>,
    drain: Drain,
    limits: ServerLimits,
    channel: Channel,
}

/// What the bytes of a connection travel in.
#[derive(Clone)]
enum Channel {
    Plain,
    #[cfg(feature = "tls")]
    Tls(Tls),
}

async fn serve_at<S: Service>(listener: TcpListener, door: Door<S>) -> io::Result<()> {
    let (drain, limits) = (&door.drain, door.limits);
    listener.set_nonblocking(true)?;
    keep_alive(&listener)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let _entered = drain.enter_listener();
    let mut sweeps = tokio::time::interval(limits.idle_time / SWEEPS_PER_IDLE_TIME);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(1));
    loop {
        // Asked for before the look, so that nobody comes between the two unnoticed.
        let crowd = drain.budget().crowd();
        let accepted = tokio::select! {
            biased;
            accepted = accept_within(&listener, drain.budget()) => accepted,
            () = drain.accepting_stopped() => break,
            () = drain.make_room() => continue,
            () = crowd => continue,
            _ = sweeps.tick(), if drain.connections() > 0 => {
                drain.dismiss_old(limits.idle_time);
                continue;
            }
        };
        match accepted {
            Ok((socket, peer)) => {
                backoff.reset();
                spawn(socket, peer, &door);
            }
            Err(error) => {
                // Out of file descriptors, or the peer has gone already: neither is a reason to stop serving.
                debug!(%error, "accepting a connection failed");
                if !is_of_one_connection(&error) {
                    warn!(%error, "cannot accept connections for now");
                    tokio::time::sleep(backoff.next_wait()).await;
                }
            }
        }
    }
    // Who is established but not yet accepted may have written its request; closing the listener would reset it.
    // The kernel is asked itself: the runtime may not have heard of them yet.
    let listener = listener.into_std()?;
    while let Some((socket, peer)) = accept_now(&listener)? {
        spawn(socket, peer, &door);
    }
    Ok(())
}

/// The next connection, once there is room for it.
async fn accept_within(
    listener: &tokio::net::TcpListener,
    budget: &ConnectionBudget,
) -> io::Result<(TcpStream, SocketAddr)> {
    budget.room().await;
    listener.accept().await
}

/// A connection that waits to be accepted, if there is one.
fn accept_now(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    loop {
        match listener.accept() {
            Ok((socket, peer)) => {
                socket.set_nonblocking(true)?;
                return Ok(Some((TcpStream::from_std(socket)?, peer)));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

fn spawn<S: Service>(stream: TcpStream, peer: SocketAddr, door: &Door<S>) {
    let connection = Rc::new(Connection::new(peer));
    let entered = door.drain.enter(&connection);
    let (service, drain, limits) = (Rc::clone(&door.service), door.drain.clone(), door.limits);
    let channel = door.channel.clone();
    tokio::task::spawn_local(async move {
        let _entered = entered;
        let socket = match channel {
            Channel::Plain => Socket::from(stream),
            // Boxed, because every connection would have room for a handshake.
            #[cfg(feature = "tls")]
            Channel::Tls(tls) => match Box::pin(tls.accept(stream, &connection, &drain)).await {
                Ok(socket) => socket,
                Err(error) => return debug!(error = %Chain(&error), %peer, "a connection never began"),
            },
        };
        if let Err(error) = connection::run(socket, connection, service, &drain, limits).await {
            debug!(error = %Chain(&*error), "a connection ended early");
        }
    });
}

/// An error with its causes, on one line.
pub(crate) struct Chain<'a>(pub(crate) &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(formatter, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
