//! Header lines, read and written.

use std::io::Write;

use bytes::Bytes;

use super::framing::FramingHeaders;
use crate::fields::{FieldName, Fields, LineReader, map_of};

/// The headers of a head, of which httparse has found the places.
#[derive(Debug)]
pub(crate) struct FoundHeaders<'h> {
    /// What they say of their message.
    pub(crate) said: FramingHeaders,
    headers: &'h [httparse::Header<'h>],
    lines: LineReader<'h>,
}

impl<'h> FoundHeaders<'h> {
    /// Looks at the headers of `head`, which ends with its empty line.
    pub(crate) fn of(head: &'h [u8], headers: &'h [httparse::Header<'h>]) -> Self {
        let mut said = FramingHeaders::default();
        let mut lines = LineReader::new(head, headers.first().map(|header| header.name));
        for header in headers {
            let name = header.name.as_bytes();
            let field = FieldName::of(name);
            said.note(field, header.value);
            lines.read(field, name, header.value);
        }
        Self { said, headers, lines }
    }

    /// Whether each line is certainly a whole one: another look may find that it is one all the same.
    pub(crate) fn are_lines_plain(&self) -> bool {
        self.lines.is_plain()
    }

    /// The fields, and what they say of their message. `bytes` begins with the head. `None` if one has a name
    /// or a value that a header cannot have.
    pub(crate) fn into_fields(self, bytes: &Bytes) -> Option<(Fields, FramingHeaders)> {
        let Self { said, headers, lines } = self;
        let is_one_length = said.lengths <= 1 && !said.is_length_ambiguous;
        let lines = if is_one_length { lines.finish(bytes, headers.len(), said.length) } else { None };
        let fields = match lines {
            Some(lines) => Fields::from(lines),
            None => Fields::from(map_of(bytes, headers)?),
        };
        Some((fields, said))
    }
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

/// Writes `Content-Length` as a line, with its end.
pub(crate) fn write_length(length: u64, out: &mut Vec<u8>) {
    write!(out, "content-length: {length}\r\n").expect("writing to memory does not fail");
}
