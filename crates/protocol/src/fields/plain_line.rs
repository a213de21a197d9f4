//! One line of a head, and the bytes that it may have.

use std::ops::Range;

use crate::byte_table::{allowed_length, alphanumeric_or};

/// Where the parts of a line are that is written as we would write it, but for the case of its name.
pub(super) struct PlainLine {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    pub(super) end: usize,
}

impl PlainLine {
    /// The line that begins at `begin`.
    pub(super) fn read(text: &[u8], begin: usize) -> Option<Self> {
        let colon = begin + allowed_length(&text[begin..], &IS_TOKEN);
        let value = colon + 2;
        let end = value + text_length(text.get(value..)?);
        // Blanks around a value mean nothing, and are left out where heads are written.
        let is_plain = colon > begin
            && end > value
            && text[colon..value] == *b": "
            && !is_blank(text[value])
            && !is_blank(text[end - 1])
            && text.get(end..end + 2)? == b"\r\n";
        is_plain.then(|| Self { name: begin..colon, value: value..end, end: end + 2 })
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether a byte may be part of a token (RFC 9110 §5.6.2), for each byte.
static IS_TOKEN: [bool; 256] = alphanumeric_or(b"!#$%&'*+-.^_`|~");

/// Whether a byte may be part of a token (RFC 9110 §5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    IS_TOKEN[usize::from(byte)]
}

/// How many bytes at the beginning may stand in the value of a field, or in the words behind a status: `HTAB
/// / SP / VCHAR / obs-text` (RFC 9110 §5.5).
pub(crate) fn text_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = text.get(at..at + 8)
        && is_text_of_eight(eight)
    {
        at += 8;
    }
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    at + text[at..].iter().position(|byte| !is_text(*byte)).unwrap_or(text.len() - at)
}

/// Whether all of eight bytes are text, without a tab.
fn is_text_of_eight(eight: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let Ok(eight) = <[u8; 8]>::try_from(eight) else { return false };
    let eight = u64::from_ne_bytes(eight);
    // Both are 0 only if there is no such byte; the high bit of a byte from 0x80 on is no borrowed one.
    let control = eight.wrapping_sub(ONES * 0x20) & !eight & HIGH;
    let other = eight ^ (ONES * 0x7f);
    let delete = other.wrapping_sub(ONES) & !other & HIGH;
    control | delete == 0
}
