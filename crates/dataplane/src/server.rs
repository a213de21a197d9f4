//! Accepts connections and serves HTTP/1.1 and HTTP/2 (with prior knowledge) on one port.
//!
//! A connection is one task. Which of the two protocols it speaks is found in its first bytes: HTTP/2 begins
//! with a preface that no HTTP/1.1 request can begin with.

mod date;
mod http1;
mod http2;
mod limits;
mod pages;
mod protocols;
mod service;
mod unserved;

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use runtime::{Backoff, ErrorChain, is_of_one_connection};
use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;
use tracing::{debug, warn};

pub use limits::{HalfClosedLimits, ServerLimits};
pub use pages::{PageService, serve_pages};
pub use service::{Abort, Service, UnservedRequest};

use crate::connection::Connection;
use crate::connection::budget::ConnectionBudget;
use crate::connection::drain::Drain;
use crate::socket::Socket;
use crate::socket::options::keep_alive;
use crate::socket::silence::LOOKS_PER_SILENCE;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// How exactly the idle time is kept.
const SWEEPS_PER_IDLE_TIME: u32 = 64;

/// Accepts connections until [`Drain::stop_accepting`], then those that already wait, and returns;
/// connections live on as local tasks. Fails only if the listener cannot be used.
pub async fn serve<S: Service>(
    listener: TcpListener,
    service: Rc<S>,
    drain: Drain,
    limits: ServerLimits,
) -> io::Result<()> {
    serve_at(listener, ServerDoor { service, drain, limits, channel: Channel::Plain }).await
}

/// Like [`serve`], for clients that speak TLS.
#[cfg(feature = "tls")]
pub async fn serve_tls<S: Service>(
    listener: TcpListener,
    service: Rc<S>,
    drain: Drain,
    limits: ServerLimits,
    tls: Tls,
) -> io::Result<()> {
    serve_at(listener, ServerDoor { service, drain, limits, channel: Channel::Tls(tls) }).await
}

/// A listener's service with the limits and the protocol of its connections.
struct ServerDoor<S> {
    service: Rc<S>,
    drain: Drain,
    limits: ServerLimits,
    channel: Channel,
}

/// The layer that carries the bytes of a connection.
#[derive(Clone)]
enum Channel {
    Plain,
    #[cfg(feature = "tls")]
    Tls(Tls),
}

async fn serve_at<S: Service>(listener: TcpListener, door: ServerDoor<S>) -> io::Result<()> {
    let (drain, limits) = (&door.drain, door.limits);
    listener.set_nonblocking(true)?;
    keep_alive(&listener)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let _entered = drain.enter_listener();
    let mut sweeps = tokio::time::interval(limits.idle_time / SWEEPS_PER_IDLE_TIME);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = tokio::time::interval(limits.silence / LOOKS_PER_SILENCE);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(1));
    loop {
        // Requested before the look at the budget, so that no client comes between the two unnoticed.
        let over_limit = drain.budget().over_limit();
        // Cancel-safe: a connection that was not accepted stays in the kernel, and the others only wait for a
        // state of the drain.
        let accepted = tokio::select! {
            biased;
            accepted = accept_within(&listener, drain.budget()) => accepted,
            () = drain.accepting_stopped() => break,
            () = drain.make_room() => continue,
            () = over_limit => continue,
            _ = sweeps.tick(), if drain.connections() > 0 => {
                drain.dismiss_old(limits.idle_time);
                continue;
            }
            _ = looks.tick(), if drain.connections() + drain.upgraded() > 0 => {
                let drain = drain.clone();
                // A panic in a look is reported and costs that look; the next one comes.
                tokio::task::spawn_local(async move { drain.end_silent(limits.silence).await });
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
    // A client that is connected but not yet accepted may have written its request; closing the listener
    // would reset it. The kernel is asked itself: the runtime may not have heard of them yet.
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

fn spawn<S: Service>(stream: TcpStream, peer: SocketAddr, door: &ServerDoor<S>) {
    let connection = Rc::new(Connection::accepted(&stream, peer));
    let entered = door.drain.enter(&connection);
    let (service, drain, limits) = (Rc::clone(&door.service), door.drain.clone(), door.limits);
    let channel = door.channel.clone();
    // Tokio keeps a panic to this one task. It drops the connection and its place among the open ones.
    tokio::task::spawn_local(async move {
        let _entered = entered;
        let socket = match channel {
            Channel::Plain => Socket::from(stream),
            // Boxed, because every connection would have room for a handshake.
            #[cfg(feature = "tls")]
            Channel::Tls(tls) => match Box::pin(tls.accept(stream, &connection, &drain)).await {
                Ok(socket) => socket,
                Err(error) => return debug!(error = %ErrorChain(&error), %peer, "a connection never began"),
            },
        };
        let mut served = pin!(protocols::run(socket, Rc::clone(&connection), service, &drain, limits));
        let end = poll_fn(|context| {
            connection.register(context);
            if connection.is_lost() { Poll::Ready(None) } else { served.as_mut().poll(context).map(Some) }
        });
        match end.await {
            Some(Ok(())) => {}
            Some(Err(error)) => debug!(error = %ErrorChain(&*error), "a connection ended early"),
            None => debug!(%peer, "a client is silent, and acknowledges nothing that is sent"),
        }
    });
}

#[cfg(test)]
mod tests;
