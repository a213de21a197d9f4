//! Header lines, read and written.

use std::io::Write;

use bytes::Bytes;
use http::header::HeaderMap;

use super::framing::FramingHeaders;
use crate::fields::{FieldName, map_of};

/// Headers whose values are parts of `bytes`, and what they say of their message. `None` if one has a name or
/// a value that a header cannot have.
pub(crate) fn read_headers(
    bytes: &Bytes,
    headers: &[httparse::Header<'_>],
) -> Option<(HeaderMap, FramingHeaders)> {
    let mut said = FramingHeaders::default();
    for header in headers {
        said.note(FieldName::of(header.name.as_bytes()), header.value);
    }
    Some((map_of(bytes, headers)?, said))
}

/// Writes `Content-Length` as a line, with its end.
pub(crate) fn write_length(length: u64, out: &mut Vec<u8>) {
    write!(out, "content-length: {length}\r\n").expect("writing to memory does not fail");
}
