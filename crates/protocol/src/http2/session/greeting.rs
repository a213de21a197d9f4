//! Does the peer speak HTTP/2 at all? Its first words say so (RFC 9113 §3.4).

use std::task::{Context, Poll};

use super::Session;

/// The kind of a peer's first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerPreface {
    /// SETTINGS, the first frame of a connection of HTTP/2.
    Http2,
    /// Something else, or the end of the connection.
    Other,
}

impl Session {
    /// Ready when the peer's first frame has come. One task at a time may wait for it.
    pub fn poll_greeting(&self, context: &Context<'_>) -> Poll<PeerPreface> {
        let mut core = self.0.borrow_mut();
        if core.has_settings {
            return Poll::Ready(PeerPreface::Http2);
        }
        if core.is_closed {
            return Poll::Ready(PeerPreface::Other);
        }
        core.greeting.register(context);
        Poll::Pending
    }
}
