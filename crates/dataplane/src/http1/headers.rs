//! Header lines, read and written.

use std::io::Write;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::Malformed;
use super::framing::Said;

/// As many headers as a message may have.
pub(crate) const HEADERS_MAX: usize = 100;

/// Room for what a proxy adds. A map that grows is filled anew.
const ADDED_HEADERS: usize = 3;

/// Headers whose values are parts of `bytes`, and what they say of their message.
pub(crate) fn read_headers(
    bytes: &Bytes,
    headers: &[httparse::Header<'_>],
) -> Result<(HeaderMap, Said), Malformed> {
    let mut map = HeaderMap::with_capacity(headers.len() + ADDED_HEADERS);
    let mut said = Said::default();
    for header in headers {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Malformed::Head)?;
        let value =
            HeaderValue::from_maybe_shared(bytes.slice_ref(header.value)).map_err(|_| Malformed::Head)?;
        said.note(&name, &value);
        map.try_append(name, value).map_err(|_| Malformed::HeadTooLarge)?;
    }
    Ok((map, said))
}

/// Writes one line.
pub(crate) fn write_header(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes `Content-Length`.
pub(crate) fn write_length(length: u64, out: &mut Vec<u8>) {
    write!(out, "content-length: {length}\r\n").expect("writing to memory does not fail");
}
