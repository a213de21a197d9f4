//! Connections to what we send requests to: apps and queue-proxies.
//!
//! Each thread has its own pool, so nothing is locked and a socket never leaves its thread. HTTP/1.1
//! connections wait in a list, last in first out, for a short while only (a peer that closes an idle one
//! races with our next request); HTTP/2 connections are shared by their streams.
//!
//! What a pool must never do is send a request twice that a peer may have begun. So the first question after
//! every failure is whether it was [`PeerStart`]: what was never written goes to another connection without
//! any client noticing.

mod address_numbers;
mod dial;
mod error;
mod http1;
mod http2;
mod limits;
mod pool;

use std::net::SocketAddr;
use std::rc::Rc;

use futures_util::future::Either;
use http::Version;
use prometheus_client::metrics::counter::Counter;
use protocol::http1::HeadLimits;
use protocol::{Request, Response};
use runtime::Clock;
use vocabulary::LateBytes;

pub(crate) use dial::dial;
pub use error::{PeerStart, SendError, SendErrorKind};
pub use limits::{GivenUpRequests, LateBodies, LostRequests, PriorKnowledge, UpstreamLimits};

use crate::body::Body;
use address_numbers::AddressNumbers;
use pool::Pool;

/// Which protocol a request is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One request at a time on a connection.
    Http1,
    /// With prior knowledge, many streams on a connection.
    Http2,
}

impl Protocol {
    /// The protocol of a request that came in with this version: it goes out as it came.
    pub fn of(version: Version) -> Self {
        if version == Version::HTTP_2 { Self::Http2 } else { Self::Http1 }
    }
}

/// A pool of connections, for one thread. Clones share it.
#[derive(Clone)]
pub struct Upstreams(Rc<Pool>);

impl Upstreams {
    /// A pool that has no connections yet.
    pub fn new(clock: Clock, limits: UpstreamLimits) -> Self {
        Self::counting_late_bytes(clock, limits, Counter::default())
    }

    /// A pool that counts in `late_bytes` the connections on which bytes came behind a whole response.
    pub fn counting_late_bytes(clock: Clock, limits: UpstreamLimits, late_bytes: Counter) -> Self {
        Self(Rc::new(Pool::new(clock, limits, late_bytes)))
    }

    /// Sends a request and waits for the head of its response. Dropping the future breaks the exchange off at
    /// the peer, promptly.
    ///
    /// A request that a reused connection lost before a byte of it was written goes out again on another one;
    /// so does one without a body whose method may be repeated, if no byte of a response was seen. Every
    /// other failure is the caller's to judge.
    pub fn send(
        &self,
        to: SocketAddr,
        protocol: Protocol,
        request: impl Into<Box<Request<Body>>>,
    ) -> impl Future<Output = Result<Response<Body>, SendError>> {
        // A request is large, and futures that hold one are copied as often as they are nested. It is boxed
        // for its whole way. No async block around the two: an answer would be moved once more.
        let request = request.into();
        match protocol {
            Protocol::Http1 => Either::Left(http1::send(&self.0, to, request)),
            // No larger than the other: what is needed seldom is boxed there.
            Protocol::Http2 => Either::Right(http2::send(&self.0, to, request)),
        }
    }

    /// How large the head of a response may be from now on. Cheap where nothing changes.
    pub fn limit_heads(&self, limits: HeadLimits) {
        if self.0.head.replace(limits) != limits {
            for host in self.0.hosts.borrow().values() {
                host.http2.limit_heads(limits);
            }
        }
    }

    /// Closes the connections to `address` that no request uses; those in use close when they are done.
    pub fn close_idle(&self, address: SocketAddr) {
        let closed = self.0.hosts.borrow_mut().get_mut(&AddressNumbers::from(address)).map(|host| {
            host.http2.retire();
            host.generation += 1;
            std::mem::take(&mut host.idle)
        });
        // Dropping a connection touches the map.
        drop(closed);
        self.0.forget_if_unused(address);
    }

    /// How many connections to `address` exist or are being established.
    #[cfg(test)]
    pub(crate) fn connections(&self, address: SocketAddr) -> usize {
        self.0.hosts.borrow().get(&AddressNumbers::from(address)).map_or(0, |host| host.open)
    }

    /// The report on apps that sent bytes behind whole responses; `None` once their connections are used
    /// again.
    pub fn late_bytes(&self) -> Option<LateBytes> {
        let until = self.0.hosts.borrow().values().filter_map(|host| host.distrusted_until).max()?;
        let reuse_in = until.checked_since(self.0.clock.now()).filter(|left| !left.is_zero())?;
        let connections = u32::try_from(self.0.late_bytes.get()).unwrap_or(u32::MAX);
        Some(LateBytes { connections, reuse_in })
    }

    /// How many connections to all addresses exist or are being established.
    #[cfg(test)]
    pub(crate) fn connections_in_all(&self) -> usize {
        self.0.hosts.borrow().values().map(|host| host.open).sum()
    }
}

#[cfg(test)]
mod tests;
