//! What a decoder gives at a time of a body.

use bytes::Bytes;
use http::HeaderMap;

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodedPiece {
    /// The next bytes of the body.
    Data(Bytes),
    /// What follows the last chunk; the body is over.
    Trailers(HeaderMap),
    /// The body has ended, without trailers.
    End,
    /// Nothing is left of the input.
    More,
}

/// The first bytes of `input`, at most as many as are left.
pub(super) fn take(input: &mut Bytes, left: &mut u64) -> Bytes {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    *left -= length as u64;
    input.split_to(length)
}
