//! The lines of a head, as they came.

use std::ops::Range;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use super::name::FieldName;

/// Room for what a proxy adds. A map that grows is filled anew.
const ADDED_HEADERS: usize = 3;

/// A head up to this size keeps its lines. What a larger one costs is counted by its headers, which are read
/// at once.
const KEPT_BYTES_MAX: usize = 4 * 1024;

/// The field lines of a head that pass as they came, and what is added to them: none of them is one that a
/// proxy changes or removes, and each is written as we would write it, but for the case of its name.
#[derive(Clone, Debug)]
pub(crate) struct FieldLines {
    /// The lines with their ends, and the empty line behind them.
    text: Bytes,
    count: usize,
    seen: SeenFields,
    added: Vec<(HeaderName, HeaderValue)>,
}

/// What the lines have of those names that proxies look at.
#[derive(Clone, Debug, Default)]
struct SeenFields {
    /// Where in the text the value of `Host` is.
    host: Option<Range<usize>>,
    /// The one `Content-Length`.
    length: Option<u64>,
    has_date: bool,
    has_user_agent: bool,
    has_content_type: bool,
}

/// The lines of a head while they are looked at, one after the other.
#[derive(Debug)]
pub(crate) struct LineReader<'h> {
    head: &'h [u8],
    /// Where the lines begin.
    begin: usize,
    /// Where the last line that was looked at ends.
    end: usize,
    /// Whether all of them pass, and are written as we would write them.
    is_plain: bool,
    hosts: usize,
    seen: SeenFields,
}

impl<'h> LineReader<'h> {
    /// For the lines of `head`, which ends with its empty line. `first` is the name in the first line.
    pub(crate) fn new(head: &'h [u8], first: Option<&str>) -> Self {
        let begin = first.map_or(0, |name| place_in(head, name.as_bytes()));
        let is_plain = head.len() <= KEPT_BYTES_MAX && head[..begin].ends_with(b"\r\n") && head[0] != b'\n';
        Self { head, begin, end: begin, is_plain, hosts: 0, seen: SeenFields::default() }
    }

    /// Looks at the next line.
    pub(crate) fn read(&mut self, field: FieldName, name: &[u8], value: &[u8]) {
        if !self.is_plain {
            return;
        }
        let begin = self.end + name.len() + 2;
        let end = begin + value.len();
        // What was left out around the value, and a line end of another kind, would make these differ.
        self.is_plain = field.passes()
            && place_in(self.head, name) == self.end
            && place_in(self.head, value) == begin
            && self.head.get(begin - 2..begin) == Some(b": ")
            && self.head.get(end..end + 2) == Some(b"\r\n");
        self.end = end + 2;
        match field {
            FieldName::Host => {
                self.hosts += 1;
                self.seen.host = Some(begin - self.begin..end - self.begin);
            }
            FieldName::Date => self.seen.has_date = true,
            FieldName::UserAgent => self.seen.has_user_agent = true,
            FieldName::ContentType => self.seen.has_content_type = true,
            FieldName::Passing
            | FieldName::ContentLength
            | FieldName::TransferEncoding
            | FieldName::Connection
            | FieldName::Expect
            | FieldName::OfHops => {}
        }
    }

    /// Whether each line was a whole one that passes, so far.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain && self.head.get(self.end..) == Some(b"\r\n")
    }

    /// The lines, if all of them pass as they came. `bytes` begins with the head; `length` is the number in
    /// the one `Content-Length`, if there is one.
    pub(crate) fn finish(self, bytes: &Bytes, count: usize, length: Option<u64>) -> Option<FieldLines> {
        if !self.is_plain() || self.hosts > 1 {
            return None;
        }
        let text = bytes.slice(self.begin..self.head.len());
        Some(FieldLines { text, count, seen: SeenFields { length, ..self.seen }, added: Vec::new() })
    }
}

/// Where in `head` a part of it begins. What is no part of it is nowhere in it.
fn place_in(head: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr().wrapping_sub(head.as_ptr().addr())
}

impl FieldLines {
    /// How many headers there are.
    pub(super) fn count(&self) -> usize {
        self.count + self.added.len()
    }

    /// Sets a header that is not among the lines.
    pub(super) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        match self.added.iter_mut().find(|(known, _)| *known == name) {
            Some((_, former)) => *former = value,
            None => self.added.push((name, value)),
        }
    }

    /// The value of `Host`, of which there is one at most.
    pub(crate) fn host(&self) -> Option<&[u8]> {
        self.seen.host.clone().and_then(|place| self.text.get(place))
    }

    /// The number in `Content-Length`.
    pub(crate) fn length(&self) -> Option<u64> {
        self.seen.length
    }

    /// Whether there is a `Date`.
    pub(crate) fn has_date(&self) -> bool {
        self.seen.has_date
    }

    /// The first value of a header.
    pub(super) fn first(&self, name: &HeaderName) -> Option<&[u8]> {
        match *name {
            HOST => return self.host(),
            USER_AGENT if !self.seen.has_user_agent => return None,
            CONTENT_TYPE if !self.seen.has_content_type => return None,
            CONTENT_LENGTH if self.seen.length.is_none() => return None,
            _ => {}
        }
        let is_line = |known: &[u8]| known.eq_ignore_ascii_case(name.as_str().as_bytes());
        let came = self.iter().find(|(known, _)| is_line(known)).map(|(_, value)| value);
        came.or_else(|| {
            self.added.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_bytes())
        })
    }

    /// The names and values of the lines.
    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.text[..];
        std::iter::from_fn(move || {
            let end = memchr::memchr(b'\r', rest)?;
            let (line, after) = rest.split_at(end);
            rest = after.get(2..)?;
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line.get(colon + 2..)?))
        })
    }

    /// Writes all of it, without the empty line at its end.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text[..self.text.len() - 2]);
        for (name, value) in &self.added {
            write_header(name, value, out);
        }
    }

    /// The same as a map.
    pub(super) fn to_map(&self) -> HeaderMap {
        let mut parsed = vec![httparse::EMPTY_HEADER; self.count];
        let read = match httparse::parse_headers(&self.text, &mut parsed) {
            Ok(httparse::Status::Complete((_, headers))) => map_of(&self.text, headers),
            Ok(httparse::Status::Partial) | Err(_) => None,
        };
        let mut map = read.expect("lines that were read once can be read again");
        for (name, value) in &self.added {
            map.append(name, value.clone());
        }
        map
    }
}

/// Headers whose values are parts of `bytes`. `None` if one is none to [`HeaderMap`].
pub(crate) fn map_of(bytes: &Bytes, headers: &[httparse::Header<'_>]) -> Option<HeaderMap> {
    let mut map = HeaderMap::with_capacity(headers.len() + ADDED_HEADERS);
    for header in headers {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value)).ok()?;
        map.try_append(name, value).ok()?;
    }
    Some(map)
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
