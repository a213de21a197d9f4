//! The HTTP/2 connections to one address, and which of them takes the next stream.

use std::cell::OnceCell;
use std::rc::Rc;

use protocol::http1::HeadLimits;
use protocol::http2::{HasBody, Session};
use tokio::sync::Notify;

use super::super::SendErrorKind;

/// From how many streams on a connection the next ones get another one. The frames of a connection wait for
/// one another at both ends: with many streams on one connection an app idles while we read, and we while it
/// does. Measured with the benchmark `hop` (1,000 streams, 12 B), against one connection for 250: with a
/// concurrency limit of 100, two connections instead of one answer 15 % more requests, and 20 % sooner at the
/// median; without a limit, 50 are as good as 250, and 334 and more answer 10 % later at p99. With 34 and
/// fewer, system calls cost more than that brings.
const STREAMS_COMFORTABLE: usize = 50;

/// What is known of one address.
#[derive(Default)]
pub(in crate::upstream) struct Http2Host {
    pub(super) connections: Vec<Rc<Session>>,
    /// Set while one request is establishing a connection; others wait for that one instead of opening their
    /// own.
    pub(super) dialing: Option<Rc<PendingDial>>,
    /// Whether it has said anything in HTTP/2. Known for as long as the pool lives.
    pub(super) has_greeted: bool,
}

/// An attempt to connect, as those see it that wait for its end.
#[derive(Default)]
pub(super) struct PendingDial {
    pub(super) is_over: Notify,
    /// Why the attempt failed. Empty as well if the request that made it was given up.
    pub(super) failure: OnceCell<SendErrorKind>,
}

impl Http2Host {
    pub(in crate::upstream) fn is_unused(&self) -> bool {
        self.connections.is_empty() && self.dialing.is_none() && !self.has_greeted
    }

    /// No further stream goes to these connections; they end with their last one.
    pub(in crate::upstream) fn retire(&mut self) {
        for session in self.connections.drain(..) {
            session.leave_now();
        }
    }

    pub(in crate::upstream) fn limit_heads(&self, limits: HeadLimits) {
        for session in &self.connections {
            session.limit_heads(limits.bytes, limits.headers);
        }
    }

    /// How many connections take no more bytes of bodies.
    #[cfg(test)]
    pub(in crate::upstream) fn choked(&self) -> usize {
        self.connections.iter().filter(|session| session.is_choked()).count()
    }

    /// A connection with room for one more stream: the first that is comfortable, so that few are open,
    /// otherwise the one with the fewest streams; one that is laden with small pieces only if all are. Where
    /// the request has a body, never one whose window is full of other requests' bodies.
    pub(super) fn with_room(&mut self, body: HasBody) -> Option<Rc<Session>> {
        let lets_by = |session: &Session| body == HasBody::No || !session.is_choked();
        let takes_one = |session: &Session| !session.is_closed() && session.has_room() && lets_by(session);
        // Nearly always there is one among the first, and the others need not be looked at.
        let is_comfortable = |session: &&Rc<Session>| takes_one(session) && is_comfortable(session);
        if let Some(session) = self.connections.iter().find(is_comfortable) {
            return Some(Rc::clone(session));
        }
        self.connections.retain(|session| !session.is_closed());
        let have_room = self.connections.iter().filter(|session| takes_one(session));
        have_room.min_by_key(|session| (session.is_laden(), session.streams())).cloned()
    }
}

/// Whether one more stream on a connection would be as well off as on one of its own.
pub(super) fn is_comfortable(session: &Session) -> bool {
    session.streams() < STREAMS_COMFORTABLE && !session.is_laden()
}

impl Drop for Http2Host {
    fn drop(&mut self) {
        self.retire();
    }
}
