//! Which connections are there to which address, and which of them may be used again?

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use protocol::http1::HeadLimits;
use runtime::{Clock, vital};
use vocabulary::Timestamp;

use super::address_numbers::AddressNumbers;
use super::error::SendErrorKind;
use super::http1::{LateBodyRecord, UpstreamWire};
use super::http2::Http2Host;
use super::limits::{LateBodies, UpstreamLimits};

/// For how long no connection is used again to an app that sent bytes behind a whole response.
const DISTRUST_TIME: Duration = Duration::from_mins(10);

/// The connections of one thread, by address.
pub(super) struct Pool {
    pub(super) clock: Clock,
    pub(super) limits: UpstreamLimits,
    pub(super) head: Cell<HeadLimits>,
    /// Counts the connections on which bytes came behind a whole response.
    pub(super) late_bytes: Counter,
    /// Few, or looked up by a busy activator: comparing numbers is cheaper than hashing them against
    /// collisions that no client can cause.
    pub(super) hosts: RefCell<BTreeMap<AddressNumbers, Host>>,
    /// Whether a task is running that closes what was idle for too long.
    is_sweeping: Cell<bool>,
}

#[derive(Default)]
pub(super) struct Host {
    /// Unused connections of HTTP/1.1, with the one that was idle for longest first.
    pub(super) idle: Vec<Http1Connection>,
    pub(super) http2: Http2Host,
    /// Whether the app sends bodies where there are none. Known for as long as the pool lives.
    pub(super) late_body_record: LateBodyRecord,
    /// Established and being established, both protocols.
    pub(super) open: usize,
    /// Until this time no connection is kept, because bytes came behind a whole response.
    pub(super) distrusted_until: Option<Timestamp>,
    /// Grows with every [`super::Upstreams::close_idle`]; a connection of an earlier generation is not kept
    /// any more.
    pub(super) generation: u64,
}

impl Host {
    fn is_unused(&self) -> bool {
        self.idle.is_empty()
            && self.http2.is_unused()
            && self.open == 0
            && self.late_body_record.is_unknown()
            && self.distrusted_until.is_none()
    }
}

impl Pool {
    pub(super) fn new(clock: Clock, limits: UpstreamLimits, late_bytes: Counter) -> Self {
        Self {
            clock,
            limits,
            head: Cell::new(limits.head),
            late_bytes,
            hosts: RefCell::default(),
            is_sweeping: Cell::default(),
        }
    }

    /// The limits, with the size of response heads that was set last.
    pub(super) fn limits(&self) -> UpstreamLimits {
        UpstreamLimits { head: self.head.get(), ..self.limits }
    }

    /// Looks at or changes what is known of an address.
    pub(super) fn with_host<Answer>(
        &self,
        address: SocketAddr,
        use_host: impl FnOnce(&mut Host) -> Answer,
    ) -> Answer {
        use_host(self.hosts.borrow_mut().entry(address.into()).or_default())
    }

    pub(super) fn forget_if_unused(&self, address: SocketAddr) {
        let (mut hosts, numbers) = (self.hosts.borrow_mut(), AddressNumbers::from(address));
        if hosts.get(&numbers).is_some_and(Host::is_unused) {
            hosts.remove(&numbers);
        }
    }

    /// Counts a new connection to `address`, if one more is allowed. Returns its count and its generation.
    pub(super) fn open(
        self: &Rc<Self>,
        address: SocketAddr,
    ) -> Result<(CountedConnection, u64), SendErrorKind> {
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
    pub(super) fn put_idle(self: &Rc<Self>, address: SocketAddr, mut connection: Http1Connection) {
        connection.idle_since = self.clock.now();
        let refused = self.with_host(address, |host| {
            // Since this connection was opened, [`super::Upstreams::close_idle`] has asked that none to the
            // address be kept.
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
    pub(super) fn note_late_bytes(&self, address: SocketAddr) {
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

    /// Notes that the app sent a body behind a response that has none.
    pub(super) fn note_late_body(&self, address: SocketAddr) {
        let before = self.with_host(address, |host| {
            std::mem::replace(&mut host.late_body_record, LateBodyRecord::SendsBodies)
        });
        if before != LateBodyRecord::SendsBodies {
            tracing::info!(%address, "the app sends bodies behind HEAD, 204 or 304; connections are not used again after those");
        }
    }

    /// The most recently used idle connection to `address`. Those before it that were idle for too long are
    /// closed by the sweep.
    pub(super) fn take_idle(self: &Rc<Self>, address: SocketAddr, now: Timestamp) -> Option<Http1Connection> {
        let oldest = now - self.limits.idle;
        let numbers = AddressNumbers::from(address);
        loop {
            let connection = self.hosts.borrow_mut().get_mut(&numbers)?.idle.pop()?;
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
        for (&numbers, host) in self.hosts.borrow_mut().iter_mut() {
            let address = SocketAddr::from(numbers);
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

/// A connection over HTTP/1.1, which has at most one request at a time.
pub(super) struct Http1Connection {
    pub(super) wire: Rc<UpstreamWire>,
    pub(super) idle_since: Timestamp,
    /// The generation of its host when it was opened: the pool keeps it only while that is the present one.
    pub(super) generation: u64,
    /// Whether its last response had no body, so that something may come for one.
    pub(super) is_after_bodiless: bool,
    /// Shared with the task that sends the rest of a request body, as long as that holds the socket.
    pub(super) opened: Rc<CountedConnection>,
}

impl Http1Connection {
    pub(super) fn is_usable(&self) -> bool {
        self.wire.is_quiet()
    }

    /// Closes a connection that is not used again, and remembers it if the app sent something behind its last
    /// response.
    pub(super) fn discard(self, pool: &Rc<Pool>, address: SocketAddr) {
        if !self.wire.has_unread_in_kernel() {
            return;
        }
        if self.is_after_bodiless {
            pool.note_late_body(address);
        } else {
            pool.note_late_bytes(address);
        }
    }
}

/// Closes connections that were idle for too long, for as long as a pool has idle connections.
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

/// The count of one connection towards the limit of its address; dropping this uncounts it.
pub(super) struct CountedConnection {
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
