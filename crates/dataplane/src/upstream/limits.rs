//! The limits of a pool, and what it may expect of its peers.

use std::time::Duration;

use protocol::http1::HeadLimits;
use protocol::http2::MemoryBudget;

/// What becomes of a request that a reused connection lost after it was written and before a byte of an
/// answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostRequests {
    /// A request without a body whose method may be repeated goes out once more, on a new connection: the
    /// peer is an app, and apps close idle connections in the instant that they are used.
    Repeat,
    /// The failure is reported: the peer is one of our own hops, which never closes an idle connection first,
    /// so it has died with the request, and another must not meet the same fate.
    Report,
}

/// Whether the peer may send a body behind a response that has none (to HEAD, or 204 or 304), a moment after
/// its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateBodies {
    /// The peer may send one: it is an app. After such a response its connection is used again only if the
    /// app has proved that it sends none.
    Possible,
    /// The peer sends none: it is one of our own hops.
    Impossible,
}

/// How the connection of a request over HTTP/1.1 ends when the client has given the request up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUpRequests {
    /// The connection is closed in order, as apps expect.
    Closed,
    /// The connection is reset: the peer is one of our own hops, to which a plain close behind a whole
    /// request may only say that no further one comes.
    Reset,
}

/// Whether a peer is known to speak HTTP/2 before it has said anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorKnowledge {
    /// The peer is one of our own hops: requests go out with the first bytes.
    Certain,
    /// The peer is an app that clients or the name of a port say to speak HTTP/2. Until its first frame has
    /// confirmed that, requests wait, so that none is lost on an app that does not.
    Unconfirmed,
}

/// The limits of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// How long a connection may take to be established. Longer than any healthy peer needs, even one starved
    /// of CPU.
    pub connect: Duration,
    /// How long an unused HTTP/1.1 connection is kept. Must be shorter than what peers keep, or requests meet
    /// closed connections.
    pub idle: Duration,
    /// How many connections one address may have; a request beyond that is refused.
    pub connections_per_address: usize,
    /// How large the head of a response may be, until [`super::Upstreams::limit_heads`] says otherwise.
    pub head: HeadLimits,
    /// How much of an HTTP/2 response a stream accepts before a reader takes of it, in bytes: as long as
    /// its client takes nothing, that is all that is held of it here.
    pub unread_window: u32,
    /// Like `unread_window`, on a connection on which more than `unread_window` of several responses was
    /// read, while little of `memory` is in use.
    pub proven_window: u32,
    /// How much it accepts when much was read of it: it grows from the above as it is read.
    pub stream_window: u32,
    /// The budget of the process for bytes that no reader has taken yet.
    pub memory: &'static MemoryBudget,
    /// What becomes of a request whose connection broke before an answer.
    pub lost_requests: LostRequests,
    /// Whether bodies may come where there are none.
    pub late_bodies: LateBodies,
    /// How the peer hears that the client has given its request up.
    pub given_up: GivenUpRequests,
    /// Whether each peer that is asked over HTTP/2 is known to speak it.
    pub prior_knowledge: PriorKnowledge,
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            // Common servers keep idle connections for 5 s (Node, Apache) or more; 2 s (gunicorn) is the
            // shortest default known to us.
            idle: Duration::from_millis(1500),
            connections_per_address: 10_000,
            head: HeadLimits::OUTER,
            // 40 connections of clients that open 250 streams each and take nothing make us hold 20 MB with
            // this, and 160 with the next, here and in the hop before.
            unread_window: 2 * 1024,
            // One frame, and most responses. With 4 KiB only a response of 16 KB costs 1.13 × HAProxy's CPU
            // time instead of 0.68 (`hop`, 64 connections), for the rounds that it waits.
            proven_window: 16 * 1024,
            stream_window: 256 * 1024,
            memory: <&MemoryBudget>::default(),
            lost_requests: LostRequests::Repeat,
            late_bodies: LateBodies::Possible,
            given_up: GivenUpRequests::Closed,
            prior_knowledge: PriorKnowledge::Unconfirmed,
        }
    }
}
