//! What an activator is given at its start.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use dataplane::{Certificates, ConnectionBudget, MemoryBudget};
use link::LinkAccess;
use runtime::{Clock, LogFormat, RequestReporting};
use tokio::sync::watch;
use vocabulary::ReplicaName;

use crate::forwarders::TrustedForwarders;
use crate::metrics::ActivatorMetrics;
use crate::place::ActivatorPlace;

/// How an activator runs. What it serves comes over its link.
#[derive(Clone, Debug)]
pub struct ActivatorConfig {
    /// Its name; two activators that run at the same time have different ones.
    pub name: ReplicaName,
    /// Threads that serve requests; at least 1.
    pub workers: usize,
    /// What it refuses rather than hold.
    pub limits: Limits,
    /// The connections that clients may have, shared with all activators of the process; see
    /// [`ActivatorMetrics::connection_budget`].
    pub connections: Arc<ConnectionBudget>,
    /// The clock of the process, from which timestamps and timers come.
    pub clock: Clock,
    /// What it counts. Register once per process and clone: an activator that takes over goes on with the
    /// same counters.
    pub metrics: ActivatorMetrics,
    /// What is told about each request. It may change while the activator runs.
    pub reporting: watch::Receiver<Arc<RequestReporting>>,
    /// How the lines of its request log look.
    pub log_format: LogFormat,
    /// Clients whose word about a request's way here is passed on; that of others is replaced.
    pub forwarders: TrustedForwarders,
    /// How requests name their revisions, and which words pods understand.
    pub place: ActivatorPlace,
}

/// Limits of what one activator holds. Each is refused with `queue-full` and has a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that may wait per revision.
    pub waiting_per_revision: u32,
    /// Requests that may wait in all.
    pub waiting_in_all: u32,
    /// Bytes of request bodies kept in all, so that requests that no pod started can be sent to another.
    pub replay_bytes_in_all: usize,
    /// Bytes of one request's body kept for that.
    pub replay_bytes_per_request: usize,
    /// The memory that connections may use for bytes that no reader has taken yet. All activators of a
    /// process share it.
    pub unread_memory: &'static MemoryBudget,
}

impl Default for Limits {
    /// The numbers of the documentation: 10,000 as Knative means its queue to be, and what 256 MiB of replay
    /// allow.
    fn default() -> Self {
        Self {
            waiting_per_revision: 10_000,
            waiting_in_all: 100_000,
            replay_bytes_in_all: 256 << 20,
            replay_bytes_per_request: 64 << 10,
            unread_memory: <&MemoryBudget>::default(),
        }
    }
}

/// The sockets that an activator accepts on, bound by its owner.
#[derive(Debug)]
pub struct Listeners {
    /// Requests, HTTP/1.1 and HTTP/2. The owner keeps the socket and lends clones (`try_clone`), so that a
    /// new activator can accept before the old one stops.
    pub requests: TcpListener,
    /// One more socket for the same, where a cluster's Services lead to two ports.
    pub more_requests: Option<TcpListener>,
    /// The same from clients that speak TLS, if somewhere they do.
    pub tls: Option<TlsListener>,
    /// The autoscaler dials this. Every activator has its own: a link belongs to one of them.
    pub link: TcpListener,
    /// What proves on that socket that a caller is the autoscaler.
    pub link_access: LinkAccess,
}

/// The listener for clients that speak TLS, with the certificates for it.
#[derive(Debug)]
pub struct TlsListener {
    /// A bound socket that listens.
    pub socket: TcpListener,
    /// The certificates that clients are shown; they may be replaced while they are in use.
    pub certificates: Arc<Certificates>,
}

impl TlsListener {
    /// Another handle of the same socket and certificates.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, certificates: Arc::clone(&self.certificates) })
    }
}
