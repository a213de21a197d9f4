//! Connections to what we send requests to: apps and queue-proxies.
//!
//! Each thread has its own pool, so nothing is locked and a socket never leaves its thread. HTTP/1.1
//! connections wait in a list, last in first out, for a short while only (a peer that closes an idle one
//! races with our next request); HTTP/2 connections are shared by their streams.
//!
//! What a pool must never do is send a request twice that a peer may have begun. So the first question after
//! every failure is whether it was [`PeerStart`]: what was never written goes to another connection without
//! anybody noticing.

mod dial;
mod error;
mod http1;
mod http2;
mod limits;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use http::{Request, Response, Version};
use prometheus_client::metrics::counter::Counter;
use protocol::http1::HeadLimits;
use runtime::{Clock, vital};
use vocabulary::{LateBytes, Timestamp};

pub(crate) use dial::dial;
pub use error::{PeerStart, SendError, SendErrorKind};
pub use limits::{GivenUpRequests, LateBodies, LostRequests, PriorKnowledge, UpstreamLimits};

use crate::body::Body;
use http1::{Http1Connection, Manners};
use http2::Http2Host;

/// For how long no connection is used again to an app that sent bytes behind a whole response.
const DISTRUST_TIME: Duration = Duration::from_mins(10);

/// Which protocol a request is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One request at a time on a connection.
    Http1,
    /// With prior knowledge, many streams on a connection.
    Http2,
}

impl Protocol {
    /// As it came in, so it goes out.
    pub fn of(version: Version) -> Self {
        if version == Version::HTTP_2 { Self::Http2 } else { Self::Http1 }
    }
}

/// A pool of connections, for one thread. Clones share it.
#[derive(Clone)]
pub struct Upstreams(Rc<Pool>);

pub(crate) struct Pool {
    clock: Clock,
    limits: UpstreamLimits,
    head: Cell<HeadLimits>,
    /// How many connections bytes came on behind a whole response.
    late_bytes: Counter,
    /// Few, or looked up by a busy activator: comparing addresses is cheaper than hashing them against
    /// collisions that nobody can cause.
    hosts: RefCell<BTreeMap<SocketAddr, Host>>,
    /// Whether a task is running that closes what was idle for too long.
    is_sweeping: Cell<bool>,
}

#[derive(Default)]
struct Host {
    /// Oldest first.
    idle: Vec<Http1Connection>,
    http2: Http2Host,
    /// Whether the app sends bodies where there are none. Known for as long as the pool lives.
    manners: Manners,
    /// Established and being established, both protocols.
    open: usize,
    /// No connection is kept before then: bytes came behind a whole response.
    distrusted_until: Option<Timestamp>,
    /// Grows with every [`Upstreams::close_idle`]; a connection of an earlier generation is not kept any
    /// more.
    generation: u64,
}

impl Host {
    fn is_unused(&self) -> bool {
        self.idle.is_empty()
            && self.http2.is_unused()
            && self.open == 0
            && self.manners.is_unknown()
            && self.distrusted_until.is_none()
    }
}

impl Upstreams {
    /// A pool without connections.
    pub fn new(clock: Clock, limits: UpstreamLimits) -> Self {
        Self::counting_late_bytes(clock, limits, Counter::default())
    }

    /// The same, where connections are counted on which bytes came behind a whole response.
    pub fn counting_late_bytes(clock: Clock, limits: UpstreamLimits, late_bytes: Counter) -> Self {
        Self(Rc::new(Pool {
            clock,
            limits,
            head: Cell::new(limits.head),
            late_bytes,
            hosts: RefCell::default(),
            is_sweeping: Cell::default(),
        }))
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
        // for its whole way.
        let request = request.into();
        async move {
            match protocol {
                Protocol::Http1 => http1::send(&self.0, to, request).await,
                // Boxed, because the future of every HTTP/1.1 request would have room for it.
                Protocol::Http2 => Box::pin(http2::send(&self.0, to, request)).await,
            }
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
        let closed = self.0.hosts.borrow_mut().get_mut(&address).map(|host| {
            host.http2.retire();
            host.generation += 1;
            std::mem::take(&mut host.idle)
        });
        // Dropping a connection touches the map.
        drop(closed);
        self.0.forget_if_unused(address);
    }

    /// [`Upstreams::close_idle`] for every address that is not to be kept.
    pub fn close_all_except(&self, is_kept: impl Fn(SocketAddr) -> bool) {
        let addresses: Vec<SocketAddr> =
            self.0.hosts.borrow().keys().copied().filter(|address| !is_kept(*address)).collect();
        for address in addresses {
            self.close_idle(address);
        }
    }

    /// How many connections to `address` exist or are being established.
    pub fn connections(&self, address: SocketAddr) -> usize {
        self.0.hosts.borrow().get(&address).map_or(0, |host| host.open)
    }

    /// What is to be told of apps that sent bytes behind whole responses; `None` once their connections are
    /// used again.
    pub fn late_bytes(&self) -> Option<LateBytes> {
        let until = self.0.hosts.borrow().values().filter_map(|host| host.distrusted_until).max()?;
        let reuse_in = until.checked_since(self.0.clock.now()).filter(|left| !left.is_zero())?;
        let connections = u32::try_from(self.0.late_bytes.get()).unwrap_or(u32::MAX);
        Some(LateBytes { connections, reuse_in })
    }

    /// How many connections exist in all.
    pub fn connections_in_all(&self) -> usize {
        self.0.hosts.borrow().values().map(|host| host.open).sum()
    }
}

impl Pool {
    /// The limits, with the size of response heads that was set last.
    fn limits(&self) -> UpstreamLimits {
        UpstreamLimits { head: self.head.get(), ..self.limits }
    }

    /// Looks at or changes what is known of an address.
    fn with_host<Answer>(&self, address: SocketAddr, use_host: impl FnOnce(&mut Host) -> Answer) -> Answer {
        use_host(self.hosts.borrow_mut().entry(address).or_default())
    }

    fn forget_if_unused(&self, address: SocketAddr) {
        let mut hosts = self.hosts.borrow_mut();
        if hosts.get(&address).is_some_and(Host::is_unused) {
            hosts.remove(&address);
        }
    }

    /// Counts a connection to `address`, if one more is allowed, and says of which generation it is.
    fn open(self: &Rc<Self>, address: SocketAddr) -> Result<(CountedConnection, u64), SendErrorKind> {
        let limit = self.limits.connections_per_address;
        self.with_host(address, |host| {
            if host.open >= limit {
                return Err(SendErrorKind::TooManyConnections { limit });
            }
            host.open += 1;
            Ok((CountedConnection { pool: Rc::downgrade(self), address }, host.generation))
        })
    }

    /// Keeps an HTTP/1.1 connection for the next request.
    fn put_idle(self: &Rc<Self>, address: SocketAddr, mut connection: Http1Connection) {
        connection.idle_since = self.clock.now();
        let refused = self.with_host(address, |host| {
            // Somebody has asked since this connection was opened that none to the address be kept.
            let is_distrusted = host.distrusted_until.is_some_and(|until| connection.idle_since < until);
            if connection.generation != host.generation || is_distrusted {
                return Some(connection);
            }
            host.idle.push(connection);
            None
        });
        if refused.is_some() {
            return;
        }
        if !self.is_sweeping.replace(true) {
            let sweeping = sweep(Rc::downgrade(self), self.clock, self.limits.idle);
            tokio::task::spawn_local(vital("the sweep of idle connections", sweeping));
        }
    }

    /// Bytes came behind a whole response. They cost their connection; and since some of them may be too late
    /// the next time to be seen before another client's request, no connection to the app is used again for a
    /// while.
    fn note_late_bytes(&self, address: SocketAddr) {
        if self.limits.late_bodies == LateBodies::Impossible {
            return;
        }
        self.late_bytes.inc();
        let now = self.clock.now();
        let (before, idle) = self.with_host(address, |host| {
            (host.distrusted_until.replace(now + DISTRUST_TIME), std::mem::take(&mut host.idle))
        });
        // Dropping a connection touches the map.
        drop(idle);
        if before.is_none_or(|before| before <= now) {
            let minutes = DISTRUST_TIME.as_secs() / 60;
            tracing::warn!(%address, minutes, "the app sent bytes behind a whole response; its connections are used for one request each for so many minutes");
        }
    }

    /// The most recently used idle connection to `address`. Those before it that were idle for too long are
    /// closed by the sweep.
    fn take_idle(self: &Rc<Self>, address: SocketAddr, now: Timestamp) -> Option<Http1Connection> {
        let oldest = now - self.limits.idle;
        loop {
            let connection = self.hosts.borrow_mut().get_mut(&address)?.idle.pop()?;
            if connection.idle_since >= oldest && connection.is_usable() {
                return Some(connection);
            }
            connection.discard(self, address);
        }
    }

    /// Closes what was idle for too long. Returns whether anything idle is left.
    fn close_expired(self: &Rc<Self>) -> bool {
        let oldest = self.clock.now() - self.limits.idle;
        let mut expired = Vec::new();
        let mut is_any_left = false;
        for (&address, host) in self.hosts.borrow_mut().iter_mut() {
            let fresh_from = host.idle.partition_point(|connection| connection.idle_since < oldest);
            expired.extend(host.idle.drain(..fresh_from).map(|connection| (address, connection)));
            is_any_left |= !host.idle.is_empty();
        }
        // Closing a connection touches the map.
        for (address, connection) in expired {
            connection.discard(self, address);
        }
        is_any_left
    }
}

/// Runs while a pool has idle connections.
async fn sweep(pool: Weak<Pool>, clock: Clock, idle: Duration) {
    loop {
        clock.sleep_until(clock.now() + idle).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.close_expired() {
            pool.is_sweeping.set(false);
            return;
        }
    }
}

/// One connection that counts towards the limit of its address.
struct CountedConnection {
    pool: Weak<Pool>,
    address: SocketAddr,
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let Some(pool) = self.pool.upgrade() else { return };
        pool.with_host(self.address, |host| host.open = host.open.saturating_sub(1));
        pool.forget_if_unused(self.address);
    }
}

#[cfg(test)]
mod tests;
