//! One accepted connection, as far as other tasks than its own may know of it or ask of it.

pub(crate) mod budget;
pub(crate) mod drain;

#[cfg(feature = "tls")]
use std::cell::OnceCell;
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Waker};

use http::Version;
use http::header::HeaderValue;
use protocol::ClientAddress;
use runtime::Clock;
use tokio::net::TcpStream;
use vocabulary::{RequestTimeouts, Timestamp};

#[cfg(feature = "tls")]
use crate::certificates::PresentedCertificate;
use crate::socket::silence::ConnectionEnds;
use crate::timers::{SpareTimers, Timers};

/// Where a connection is kept among others.
pub(crate) type Slot = usize;

/// What a service may know about the connection that a request came on, and ask of it.
#[derive(Debug)]
pub struct Connection {
    peer: SocketAddr,
    /// The addresses by which the kernel knows the connection; `None` where it has ended already.
    ends: Option<ConnectionEnds>,
    forwarded_for: HeaderValue,
    is_encrypted: Cell<bool>,
    /// The certificate that its client was shown in the TLS handshake.
    #[cfg(feature = "tls")]
    presented: OnceCell<PresentedCertificate>,
    /// The protocol that the client agreed on in the TLS handshake, if it asked for one.
    agreed: Cell<Option<Version>>,
    is_retired: Cell<bool>,
    is_from_hop: Cell<bool>,
    is_lost: Cell<bool>,
    /// Whether it carries streams, each of which waits by itself.
    has_streams: Cell<bool>,
    occupation: Cell<Occupation>,
    slot: Cell<Slot>,
    spare_timers: SpareTimers,
    waker: RefCell<Option<Waker>>,
}

/// What a connection does, as far as that decides whether it may be closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Occupation {
    /// A request or a part of one may be on the connection.
    #[default]
    Working,
    /// The connection holds nothing, and stands in the list of idle ones.
    Resting,
    /// The connection held nothing and was asked to go. It stays if something has arrived by then.
    Dismissed,
}

impl Connection {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        // A socket of both families calls addresses of IPv4 `::ffff:10.0.0.7`.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        Self {
            peer,
            ends: None,
            forwarded_for: ClientAddress(peer.ip()).to_value(),
            is_encrypted: Cell::default(),
            #[cfg(feature = "tls")]
            presented: OnceCell::new(),
            agreed: Cell::default(),
            is_retired: Cell::default(),
            is_from_hop: Cell::default(),
            is_lost: Cell::default(),
            has_streams: Cell::default(),
            occupation: Cell::default(),
            slot: Cell::default(),
            spare_timers: SpareTimers::default(),
            waker: RefCell::default(),
        }
    }

    /// A connection that was just accepted, with its addresses as the kernel knows them.
    pub(crate) fn accepted(stream: &TcpStream, peer: SocketAddr) -> Self {
        Self { ends: ConnectionEnds::with(stream, peer).ok(), ..Self::new(peer) }
    }

    /// The address and port of the client's end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address of this end. `None` of a connection that ended before it was asked for.
    pub fn own_ip(&self) -> Option<IpAddr> {
        self.ends.map(|ends| ends.own.ip().to_canonical())
    }

    /// The other end's address as it is added to `X-Forwarded-For`.
    pub fn forwarded_for(&self) -> &HeaderValue {
        &self.forwarded_for
    }

    /// Starts the timers that `limits` names for a request of this connection, which arrived at `arrived_at`.
    pub fn start_timers(&self, limits: RequestTimeouts, arrived_at: Timestamp, clock: Clock) -> Timers {
        if self.has_streams.get() {
            // Timers hold the waker of the stream that had them last, and with it the memory of the whole
            // stream. The next stream has another waker, so that here they would be of no use.
            return Timers::start_at(limits, arrived_at, clock);
        }
        self.spare_timers.start(limits, arrived_at, clock)
    }

    /// The connection speaks HTTP/2: its requests are streams.
    pub(crate) fn mark_as_of_streams(&self) {
        self.has_streams.set(true);
    }

    /// Whether it speaks TLS with us.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted.get()
    }

    /// Its TLS handshake is over, in which this protocol was agreed on (ALPN) and this certificate was shown.
    #[cfg(feature = "tls")]
    pub(crate) fn mark_as_encrypted(&self, agreed: Option<Version>, presented: PresentedCertificate) {
        self.is_encrypted.set(true);
        self.agreed.set(agreed);
        self.presented.set(presented).expect("a connection shakes hands once");
    }

    /// Whether a request for this host (without its port) belongs on another connection of its client: over
    /// TLS, the certificate that was shown here does not cover the host, and one does that another connection
    /// would be shown.
    #[cfg(feature = "tls")]
    pub fn misdirects(&self, host: &str) -> bool {
        self.presented.get().is_some_and(|presented| presented.misdirects(host))
    }

    /// Whether a client that speaks this keeps to what it agreed on.
    pub(crate) fn may_speak(&self, version: Version) -> bool {
        self.agreed.get().is_none_or(|agreed| agreed == version)
    }

    /// Tell the peer to come back on another connection: the next HTTP/1.1 response says `Connection: close`,
    /// HTTP/2 gets GOAWAY. Nothing that runs is disturbed.
    pub fn retire(&self) {
        // Each request of a client may ask for this while its routing has changed; one wake is enough.
        if !self.is_retired.replace(true) {
            self.wake();
        }
    }

    /// Whether the connection is to close after its present request: [`Connection::retire`] was called.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.get()
    }

    /// The peer is one of our own hops, which closes its idle connections itself.
    pub fn mark_as_hop(&self) {
        self.is_from_hop.set(true);
    }

    /// Whether one of our own hops is the client: [`Connection::mark_as_hop`] was called.
    pub(crate) fn is_from_hop(&self) -> bool {
        self.is_from_hop.get()
    }

    /// The addresses by which the kernel knows the connection, if it was open when it was accepted.
    pub(crate) fn ends(&self) -> Option<ConnectionEnds> {
        self.ends
    }

    /// The peer is gone, and will not say so: what the connection does is broken off.
    pub(crate) fn mark_as_lost(&self) {
        self.is_lost.set(true);
        self.wake();
    }

    /// Whether the peer is gone without a close: [`Connection::mark_as_lost`] was called.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    pub(crate) fn occupation(&self) -> Occupation {
        self.occupation.get()
    }

    /// Notes what it does, for the [`Drain`](crate::Drain) that keeps it and tells the two apart.
    pub(crate) fn set_occupation(&self, occupation: Occupation) {
        self.occupation.set(occupation);
    }

    /// Whether it was asked to go because it held nothing.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.occupation.get() == Occupation::Dismissed
    }

    /// Where its drain keeps it.
    pub(crate) fn slot(&self) -> Slot {
        self.slot.get()
    }

    pub(crate) fn keep_at(&self, slot: Slot) {
        self.slot.set(slot);
    }

    /// Makes the connection's task look at what is asked of it.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Remembers how to wake this connection's task. It is the same for the whole life of the task, so once
    /// is enough.
    pub(crate) fn register(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if waker.is_none() {
            *waker = Some(context.waker().clone());
        }
    }
}
