//! What both sides of HTTP/1.1 share, our server and our connections to apps: how headers are read and written, where a body ends, how a message is
//! written out, and the buffer that everything is read into.

mod decoder;
mod framing;
mod headers;
mod outgoing;
mod reading;

use std::io;
use std::time::Duration;

use thiserror::Error;

pub(crate) use decoder::{Decoded, Decoder};
pub(crate) use framing::{Framing, Said, Words, number};
pub(crate) use headers::{HEADERS_MAX, read_headers, write_header, write_length};
pub(crate) use outgoing::{Outgoing, WrongLength, spare_buffer};
pub(crate) use reading::{COPIED_BYTES_MAX, READ_BYTES, poll_read, poll_read_in_place};

/// As long as the head of a response may be, as that of a request.
pub(crate) const HEAD_BYTES_MAX: usize = 256 * 1024;

/// How long a peer that may still be sending has to notice that we closed our side. Closing the other side while bytes arrive resets the connection, and a
/// peer that sees the reset first never reads our last words. One that reads while it writes closes within a round trip.
pub(crate) const LINGER_LIMIT: Duration = Duration::from_secs(2);

/// Why what came is not a message that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Neither a first line nor headers.
    #[error("the head is not HTTP/1.1")]
    Head,
    /// More than we read of one head.
    #[error("the head is longer than {HEAD_BYTES_MAX} bytes or has more than {HEADERS_MAX} headers")]
    HeadTooLarge,
    /// `Content-Length` is no number, or several that differ.
    #[error("its Content-Length is not one number")]
    ContentLength,
    /// Chunks are not divided as they must be.
    #[error("its chunks are not divided as HTTP/1.1 says")]
    Chunk,
}

/// Why a message ended before its end.
#[derive(Debug, Error)]
pub enum IncomingError {
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The connection ended.
    #[error("the connection ended in the middle of the body")]
    Truncated,
    /// What came is not a body as announced.
    #[error("{0}")]
    Malformed(Malformed),
}
