//! What both sides of HTTP/1.1 share, our server and our connections to apps, beside the protocol itself: the
//! buffer that everything is read into, and how what is to be written reaches a socket.

mod flushing;
mod reading;

use std::io;
use std::time::Duration;

use protocol::http1::MalformedMessage;
use thiserror::Error;

pub(crate) use flushing::poll_flush;
pub(crate) use reading::{READ_BYTES, poll_read, poll_read_head, poll_read_in_place};

/// How long a peer that may still be sending has to notice that we closed our side. Closing the other side
/// while bytes arrive resets the connection, and a peer that sees the reset first never reads our last words.
/// One that reads while it writes closes within a round trip.
pub(crate) const LINGER_LIMIT: Duration = Duration::from_secs(2);

/// Why a message ended before its end.
#[derive(Debug, Error)]
pub enum IncomingError {
    /// Reading from the connection failed; the source says why.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The peer closed the connection in the middle of the body.
    #[error("the connection ended in the middle of the body")]
    Truncated,
    /// The bytes that came are not the body that the head announced.
    #[error("{0}")]
    Malformed(MalformedMessage),
}
