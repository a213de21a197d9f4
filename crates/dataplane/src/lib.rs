//! Sockets under throttling: how requests get in, how they get out again, and what happens to them in
//! between.
//!
//! Everything here lives on one thread: a current-thread runtime with local tasks owns its sockets, its pool
//! and its counters, so the hot path takes no lock and sends nothing through a channel. A process that wants
//! more cores runs several such threads that share nothing but the listening socket.
//!
//! Which request may run is not decided here (`throttling` does that); this crate carries the answer out.

mod body;
mod breaker;
#[cfg(feature = "tls")]
mod certificates;
mod connection;
mod http1;
mod http2;
mod metrics_page;
mod plain_text;
mod proxy;
mod refusal;
mod server;
mod socket;
mod status_class;
mod sync;
mod timers;
#[cfg(feature = "tls")]
mod tls;
mod traces;
mod upstream;
#[cfg(test)]
mod vectors;

pub mod probe;

/// How many sockets a runtime that proxies looks at before it goes on with what they brought. More would let
/// requests pile up in front of the app before the first answer is read: each takes a connection of its own
/// then, and all of them are cold when their turn comes.
pub const IO_EVENTS_PER_TICK: usize = 128;

pub use body::gate::Gate;
pub use body::upgrade::ClientUpgrade;
pub use body::{Body, BodyError, BodyGuard, GuardedBody, ResponseBody};
pub use breaker::{AsyncBreaker, BreakerFull, Permit};
#[cfg(feature = "tls")]
pub use certificates::{CertificateFiles, CertificateProblem, CertificateValidity, Certificates};
pub use connection::Connection;
pub use connection::budget::{ClosedIdleConnections, ConnectionBudget};
pub use connection::drain::Drain;
pub use http1::IncomingError;
pub use metrics_page::metrics_page;
pub use plain_text::plain_line;
pub use protocol::http1::{HeadLimits, MalformedMessage};
pub use protocol::http2::{ErrorCode, MemoryBudget, StreamError};
pub use protocol::{
    BodyPieces, Fields, RawTarget, Request, RequestParts, Response, connection_asks_to_upgrade,
    effective_host, has_internal, is_host, names, remove_hop_by_hop, set_forwarded_for, set_host,
    strip_forwarded, strip_internal, strip_refusal, strip_shadowing, written_host,
};
pub use proxy::app_refusals::{AppRefusals, SecondAttempt, text_of_refusals};
pub use proxy::bridge::translate;
pub use proxy::failed_hop::{HopFailure, NextHop, limit_reached};
pub use proxy::{ForwardingTerms, Hop};
pub use refusal::{HEAD_SIZE_SETTING, NotStartedMark, Refusal, RefusalReason, RequestKind};
#[cfg(feature = "tls")]
pub use server::serve_tls;
pub use server::{
    Abort, HalfClosedLimits, PageService, ServerLimits, Service, UnservedRequest, serve, serve_pages,
};
pub use socket::open_connections::{ConnectionId, ConnectionReader, KernelConnection};
pub use status_class::{STATUS_CLASSES, status_class};
pub use timers::{Activity, ExceededLimit, Timers};
#[cfg(feature = "tls")]
pub use tls::{FailedHandshakes, Tls, note_tls};
pub use traces::{Attribute, Span, SpanCounts, Tracer};
pub use upstream::{
    GivenUpRequests, LateBodies, LostRequests, PeerStart, PriorKnowledge, Protocol, SendError, SendErrorKind,
    UpstreamLimits, Upstreams,
};
