//! The compression of HTTP/2 heads (RFC 7541).
//!
//! Reading is complete: both tables, Huffman codes, changes of size. Writing uses the static table and
//! nothing else: a proxy writes each head once, and looking for what was written before, or squeezing letters
//! into bits, costs more than the bytes it saves on the way to a neighbour.

mod decode;
mod encode;
mod huffman;
mod repeats;
mod table;
mod unwanted;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, StatusCode};
use thiserror::Error;

use crate::target::TargetProblem;

pub use decode::HpackDecoder;
pub use encode::{Encoder, encode_field, encode_request, encode_response, encode_text};
pub use unwanted::UnwantedHead;

/// One line of a head, understood. Entries of the tables are kept like this, so that what a peer repeats is
/// not parsed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The pseudo-header `:method` of a request.
    Method(Method),
    /// The pseudo-header `:scheme` of a request.
    Scheme(Scheme),
    /// The pseudo-header `:authority` of a request.
    Authority(Authority),
    /// The pseudo-header `:path` of a request.
    Path(PathAndQuery),
    /// `:path` that a `http::Uri` cannot hold.
    OddPath(Bytes),
    /// `:scheme`, `:authority` or `:path` of which no target can be made. Its client is told why.
    RefusedTarget(TargetProblem),
    /// The pseudo-header `:status` of a response.
    Status(StatusCode),
    /// A header that is no pseudo-header.
    Header(HeaderName, HeaderValue),
    /// Legal for HPACK, and so part of the table, but not for HTTP: the message in which it stands is
    /// malformed.
    Malformed,
}

/// A head that cannot be read. The connection must end, because its table is out of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}", self.what())]
pub enum CompressionError {
    /// There is no such entry.
    Index,
    /// No length or index is as large.
    Integer,
    /// Its letters cannot be told.
    Huffman,
    /// A change of the table's size stands elsewhere than at the beginning of a head, comes too often, or
    /// exceeds our limit.
    TableSize,
    /// The block of the head ends in the middle of a field.
    Truncated,
}

impl CompressionError {
    /// What is wrong with the head.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Index => "a head with an index beyond the tables",
            Self::Integer => "a head with a number that is too large",
            Self::Huffman => "a head with a Huffman code without meaning",
            Self::TableSize => {
                "a head with a change of the table's size that is too large, out of place or one too many"
            }
            Self::Truncated => "a head that ends in the middle of a field",
        }
    }
}

#[cfg(test)]
mod tests;
