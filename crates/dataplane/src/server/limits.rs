//! The limits that a server has for its clients.

use std::time::Duration;

use protocol::http1::HeadLimits;
use protocol::http2::MemoryBudget;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// How large a head is read where the service has no limit of its own
    /// ([`Service::head_limits_max`](super::Service::head_limits_max)); more is answered 431.
    pub head: HeadLimits,
    /// How long the head of a request may take, from its first byte to its end; over HTTP/1.1 more is
    /// answered with 408, over HTTP/2 it ends the connection, as a DATA frame does of which no byte comes for
    /// as long. Waiting for the first byte is not limited.
    pub head_time: Duration,
    /// How many streams one HTTP/2 connection may have open.
    pub streams_per_connection: u32,
    /// How many bytes of one HTTP/2 request body are accepted before the service reads some.
    pub stream_window: u32,
    /// How long a connection may hold nothing: before its first request, between two of HTTP/1.1, without a
    /// stream of HTTP/2.
    pub idle_time: Duration,
    /// How long a peer may leave unanswered what is sent to it again and again, before it counts as gone.
    pub silence: Duration,
    /// How long a client of HTTP/1.1 that has ended its sending side is waited for.
    pub half_closed: HalfClosedLimits,
    /// The budget of the process for bytes that no reader has taken yet.
    pub memory: &'static MemoryBudget,
}

/// The limits for a client that has ended its sending side behind a whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfClosedLimits {
    /// How long it is left alone before the kernel asks whether it is there, and between two such questions;
    /// three without an answer are its end.
    pub probe_interval: Duration,
    /// How long no byte of a response that has begun may go to it.
    pub silence: Duration,
}

impl Default for HalfClosedLimits {
    fn default() -> Self {
        // A closed client looks like one that waits. Its kernel forgets the socket after 60 s
        // (`net.ipv4.tcp_fin_timeout`) and answers the next question with a reset, so its place is free after
        // 70 s; the place of a client whose machine is gone, after 40 s.
        Self { probe_interval: Duration::from_secs(10), silence: Duration::from_mins(1) }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        // 250 streams are Knative's. A stream's window is small, so that a request that waits for its turn
        // costs its sender's memory and not ours; the connection's does not limit anything.
        Self {
            head: HeadLimits::OUTER,
            // Knative gives 60 s, which count from the end of the request before. A head is one packet, or a
            // few.
            head_time: Duration::from_secs(30),
            streams_per_connection: 250,
            stream_window: 64 * 1024,
            // Longer than load balancers keep theirs to us (600 s is the longest default known to us), so
            // that they close first and write nothing to a connection that we are closing.
            idle_time: Duration::from_mins(15),
            // With the time until it is looked for, a dead one is gone within two minutes.
            silence: Duration::from_secs(80),
            half_closed: HalfClosedLimits::default(),
            memory: <&MemoryBudget>::default(),
        }
    }
}
