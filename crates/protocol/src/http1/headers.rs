//! Header lines, read and written.

use std::io::Write;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::MalformedMessage;
use super::framing::FramingHeaders;

/// Room for what a proxy adds. A map that grows is filled anew.
const ADDED_HEADERS: usize = 3;

/// Headers whose values are parts of `bytes`, and what they say of their message.
pub(crate) fn read_headers(
    bytes: &Bytes,
    headers: &[httparse::Header<'_>],
) -> Result<(HeaderMap, FramingHeaders), MalformedMessage> {
    let mut map = HeaderMap::with_capacity(headers.len() + ADDED_HEADERS);
    let mut said = FramingHeaders::default();
    for header in headers {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| MalformedMessage::Head)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value))
            .map_err(|_| MalformedMessage::Head)?;
        said.note(&name, &value);
        map.try_append(name, value).map_err(|_| MalformedMessage::Head)?;
    }
    Ok((map, said))
}

/// Whether a byte may be part of a token (RFC 9110 §5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Writes a header as a line of HTTP/1.1, with its end.
pub(crate) fn write_header(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes `Content-Length` as a line, with its end.
pub(crate) fn write_length(length: u64, out: &mut Vec<u8>) {
    write!(out, "content-length: {length}\r\n").expect("writing to memory does not fail");
}
