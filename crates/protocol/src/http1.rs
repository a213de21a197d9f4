//! HTTP/1.1 (RFC 9112): how heads are read and written, where a body ends, how a message is written out.
//!
//! A server reads with [`RequestReader`] and answers with [`write_response`]; a client asks with
//! [`write_request`] and reads with [`ResponseReader`]. Bodies go through [`BodyDecoder`] and
//! [`OutgoingMessage`] at both.

mod decoder;
mod framing;
mod headers;
mod odd_target;
mod ordinary;
mod outgoing;
mod partial_head;
mod request_head;
mod request_reader;
mod response_head;
mod response_reader;
mod response_writing;
#[cfg(test)]
mod strict;

use thiserror::Error;
use vocabulary::HeadSizeLimit;

pub use decoder::{BodyDecoder, DecodedPiece};
pub use framing::BodyFraming;
pub use outgoing::{OutgoingMessage, WrongLength, spare_buffer};
pub use request_head::{RequestHead, UnreadableRequest};
pub use request_reader::{NextMessage, RequestReader};
pub use response_head::{BodilessResponse, BodySize, ResponseHead, write_request};
pub use response_reader::ResponseReader;
pub use response_writing::{AnnouncedResponse, Date, ResponseForm, write_response};

/// As many headers as a message may have.
const HEADERS_MAX: usize = 100;

/// As many as one of our proxies adds: to a request `Host`, `X-Forwarded-For`, `Forwarded`, `Expect`,
/// `ebb-expect`, `ebb-hop-key`, `ebb-pod`, `ebb-no-queue` and `K-Proxy-Request`, to a response `Date`,
/// `Connection`, and a length or `Transfer-Encoding`; and room for more of that kind.
const HOP_ADDED_HEADERS: usize = 16;

/// As much as one of our proxies makes a head longer: a `Forwarded` (which has a limit of its own, and so
/// takes 12 KiB), the sender's address, the hop's key, a length, a date, and for each header a blank that the
/// peer may have left out.
const HOP_ADDED_BYTES: usize = 16 * 1024;

/// The limits of the head of a message. Over HTTP/2 a head counts with all that its fields cost (RFC 9113
/// §10.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The largest head, in bytes. Also the most that one connection buffers of it.
    pub bytes: usize,
    /// The largest number of headers in one head.
    pub headers: usize,
}

impl HeadLimits {
    /// The limits of strangers, clients and apps, where no other size is set.
    pub const OUTER: Self = Self::outer(HeadSizeLimit::DEFAULT);

    /// The limits between our proxies, likewise.
    pub const HOP: Self = Self::hop(HeadSizeLimit::DEFAULT);

    /// The limits of strangers, where this size is set.
    pub const fn outer(size: HeadSizeLimit) -> Self {
        Self { bytes: size.bytes() as usize, headers: HEADERS_MAX }
    }

    /// The limits between our proxies, where this size is set: the inner one must not refuse a head that the
    /// outer one let through, with all that the outer one adds.
    pub const fn hop(size: HeadSizeLimit) -> Self {
        let Self { bytes, headers } = Self::outer(size);
        Self { bytes: bytes + HOP_ADDED_BYTES, headers: headers + HOP_ADDED_HEADERS }
    }

    /// Whether a head of so many bytes and headers is within them.
    pub const fn allow(self, bytes: usize, headers: usize) -> bool {
        bytes <= self.bytes && headers <= self.headers
    }
}

/// As many interim responses (1xx) as there may be before a response. A server that reports progress every
/// few seconds stays far below it for a whole hour.
const INTERIM_RESPONSES_MAX: u32 = 1_000;

/// As many bytes as they may have together.
const INTERIM_BYTES_MAX: usize = 256 * 1024;

/// Why what came is not a message that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedMessage {
    /// Neither a first line nor headers.
    #[error("the head is not HTTP/1.1")]
    Head,
    /// What a server says first that speaks HTTP/2 and nothing else.
    #[error("it is HTTP/2, which alone the app seems to speak; name its port h2c")]
    Http2,
    /// More than we read of one head.
    #[error("the head is longer than {} bytes or has more than {} headers", .0.bytes, .0.headers)]
    HeadTooLarge(HeadLimits),
    /// More interim responses (1xx) than we read before one response.
    #[error(
        "before the response there were more than {INTERIM_RESPONSES_MAX} interim responses (1xx) or {INTERIM_BYTES_MAX} bytes of them"
    )]
    Interim,
    /// A transfer coding that we cannot undo, so that the body would be unknown.
    #[error("its transfer encoding is not \"chunked\", once")]
    TransferEncoding,
    /// Of a version that has none, so that some would take the chunks for the body (RFC 9112 §6.1).
    #[error(
        "it is of HTTP/1.0, which has no transfer encoding; the app should answer in HTTP/1.1, or without"
    )]
    OldTransferEncoding,
    /// `Content-Length` is no number, or several that differ.
    #[error("its Content-Length is not one number")]
    ContentLength,
    /// Chunks are not divided as they must be.
    #[error("its chunks are not divided as HTTP/1.1 says")]
    Chunk,
    /// What follows the last chunk is not header lines.
    #[error("its trailers are not header lines of HTTP/1.1, or too many or too long")]
    Trailers,
}
