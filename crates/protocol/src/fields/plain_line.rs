//! One line of a head, and the bytes that it may have.

use std::ops::Range;

use super::name::FieldName;
use crate::byte_table::{allowed_length, alphanumeric_or};

/// A line that is written as we would write it, but for the case of its name.
pub(super) struct PlainLine {
    /// The part that its name plays.
    pub(super) field: FieldName,
    /// Where its value is in the text.
    pub(super) value: Range<usize>,
    pub(super) end: usize,
}

impl PlainLine {
    /// The line that begins at `begin`.
    pub(super) fn read(text: &[u8], begin: usize) -> Option<Self> {
        let line = text.get(begin..)?;
        let (field, length) = FieldName::of_usual_line(line).or_else(|| Self::read_name(line))?;
        let value = begin + length;
        let end = value + text_length(&text[value..]);
        // Blanks around a value mean nothing, and are left out where heads are written.
        let is_plain = end > value
            && !is_blank(text[value])
            && !is_blank(text[end - 1])
            && text.get(end..end + 2)? == b"\r\n";
        is_plain.then(|| Self { field, value: value..end, end: end + 2 })
    }

    /// Any name at the beginning of a line, and how long it is with `: ` behind it.
    fn read_name(line: &[u8]) -> Option<(FieldName, usize)> {
        let colon = allowed_length(line, &IS_TOKEN);
        let is_plain = colon > 0 && line[colon..].starts_with(b": ");
        is_plain.then(|| (FieldName::of(&line[..colon]), colon + 2))
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
    while let Some(eight) = text[at..].first_chunk::<8>() {
        match first_odd_of_eight(*eight) {
            None => at += 8,
            Some(place) if eight[place] == b'\t' => at += place + 1,
            Some(place) => return at + place,
        }
    }
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    at + text[at..].iter().position(|byte| !is_text(*byte)).unwrap_or(text.len() - at)
}

/// The place of the first of eight bytes that is a tab or no text.
fn first_odd_of_eight(eight: [u8; 8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The first byte is the lowest, so that what is borrowed comes from a byte before: behind the first such
    // byte others may look like one, and before it none does. The high bit of a byte from 0x80 on is its own.
    let eight = u64::from_le_bytes(eight);
    let control = eight.wrapping_sub(ONES * 0x20) & !eight & HIGH;
    let other = eight ^ (ONES * 0x7f);
    let delete = other.wrapping_sub(ONES) & !other & HIGH;
    let odd = control | delete;
    (odd != 0).then(|| odd.trailing_zeros() as usize / 8)
}
