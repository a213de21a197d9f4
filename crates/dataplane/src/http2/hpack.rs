//! The compression of HTTP/2 heads (RFC 7541).
//!
//! Reading is complete: both tables, Huffman codes, changes of size. Writing uses the static table and nothing else: a proxy writes each head
//! once, and looking for what was written before, or squeezing letters into bits, costs more than the bytes it saves on the
//! way to a neighbour.

mod decode;
mod encode;
mod huffman;
mod table;

use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, StatusCode};
use thiserror::Error;

pub(super) use decode::Decoder;
pub(super) use encode::{Encoder, encode_field, encode_request, encode_response, encode_text};

/// One line of a head, understood. Entries of the tables are kept like this, so that what a peer repeats is not parsed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Method(Method),
    Scheme(Scheme),
    Authority(Authority),
    Path(PathAndQuery),
    Status(StatusCode),
    Header(HeaderName, HeaderValue),
    /// Legal for HPACK, and so part of the table, but not for HTTP: the message in which it stands is malformed.
    Malformed,
}

/// A head that cannot be read. The connection must end, because its table is out of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum CompressionError {
    #[error("an index beyond the tables")]
    Index,
    #[error("a number that is too large")]
    Integer,
    #[error("a Huffman code without meaning")]
    Huffman,
    #[error("a change of the table's size that is too large or out of place")]
    TableSize,
    #[error("it ends in the middle of a field")]
    Truncated,
}

#[cfg(test)]
mod tests;
