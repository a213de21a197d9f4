//! The lines of a head, as they came.

use std::ops::Range;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use super::header_list::HeaderList;
use super::name::FieldName;
use super::plain_line::PlainLine;
use crate::content_length::parse_length;

/// Room for what a proxy adds. A map that grows is filled anew.
pub(super) const ADDED_HEADERS: usize = 3;

/// A head up to this size may stay lines. What a larger one costs is counted by its headers, which are read
/// at once.
const KEPT_BYTES_MAX: usize = 4 * 1024;

/// As many lines as may be left out of what is written. Of more a map is made.
const DROPPED_MAX: usize = 2;

/// The field lines of a head, those that are left out where they are written, and what is added to them. Each
/// of the others passes as it came: it is none that a proxy changes or removes, and it is written as we would
/// write it, but for the case of its name.
#[derive(Clone, Debug)]
pub(crate) struct FieldLines {
    /// The lines with their ends, and the empty line behind them.
    text: Bytes,
    seen: SeenFields,
    /// Whether those that are left out are no headers of the message any more.
    is_hop_over: bool,
    added: HeaderList,
}

/// What the lines have of those names that proxies look at.
#[derive(Clone, Debug, Default)]
struct SeenFields {
    /// How many lines there are.
    count: u16,
    /// Where the value of the one `Host` is; empty without one.
    host: Range<u16>,
    /// Where the value of the first `User-Agent` is; empty without one.
    user_agent: Range<u16>,
    /// The number in the one `Content-Length`.
    length: Option<u64>,
    has_date: bool,
    has_content_type: bool,
    /// The lines that end at this hop, in their order; empty where there are fewer.
    dropped: [Range<u16>; DROPPED_MAX],
}

impl FieldLines {
    /// The lines of the head at the beginning of `bytes`, which begin at `begin`, and whether each of them
    /// passes or is left out. `note` is called with each field and its value. `None` if the end of the head
    /// is missing, if one of the lines is written in another way than ours, or if there are more than
    /// `count_max`: another reader has to look at them.
    pub(super) fn read(
        bytes: &Bytes,
        begin: usize,
        count_max: usize,
        mut note: impl FnMut(FieldName, &[u8]),
    ) -> Option<(Self, bool)> {
        let (mut seen, mut pass) = (SeenFields::default(), true);
        let text = bytes.get(begin..bytes.len().min(KEPT_BYTES_MAX))?;
        let mut at = 0;
        while text.get(at..at + 2)? != b"\r\n" {
            let line = PlainLine::read(text, at)?;
            let value = &text[line.value.clone()];
            note(line.field, value);
            pass &= seen.note(at, &line, value);
            at = line.end;
        }
        if usize::from(seen.count) > count_max {
            return None;
        }
        let text = bytes.slice(begin..begin + at + 2);
        Some((Self { text, seen, is_hop_over: false, added: HeaderList::default() }, pass))
    }

    /// How many bytes the lines have, with the empty line behind them.
    pub(super) fn length_of_text(&self) -> usize {
        self.text.len()
    }

    /// How many headers there are.
    pub(super) fn count(&self) -> usize {
        let gone = self.seen.dropped.iter().filter(|dropped| self.is_hop_over && !dropped.is_empty());
        usize::from(self.seen.count) - gone.count() + self.added.list().len()
    }

    /// The lines that are left out where lines are written are no headers any more.
    pub(super) fn forget_dropped(&mut self) {
        self.is_hop_over = true;
    }

    /// Sets a header that is not among the lines.
    pub(super) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.added.set(name, value);
    }

    /// Adds a header that is neither among the lines nor beside them.
    pub(super) fn add(&mut self, name: HeaderName, value: HeaderValue) {
        self.added.push(name, value);
    }

    /// The value of a header that was set.
    pub(super) fn added(&self, name: &HeaderName) -> Option<&[u8]> {
        self.added.first(name)
    }

    /// The value of `Host`, of which there is one at most.
    pub(crate) fn host(&self) -> Option<&[u8]> {
        self.at(&self.seen.host)
    }

    /// The value of the first `User-Agent`.
    pub(super) fn user_agent(&self) -> Option<&[u8]> {
        self.at(&self.seen.user_agent)
    }

    /// Whether one of the lines is a `Content-Type`.
    pub(super) fn has_content_type(&self) -> bool {
        self.seen.has_content_type
    }

    /// The bytes at a place; `None` at an empty one.
    fn at(&self, place: &Range<u16>) -> Option<&[u8]> {
        if place.is_empty() { None } else { self.text.get(usize::from(place.start)..usize::from(place.end)) }
    }

    /// The number in `Content-Length`, of which there is one at most.
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
            USER_AGENT => return self.user_agent(),
            CONTENT_TYPE if !self.seen.has_content_type => return None,
            CONTENT_LENGTH if self.seen.length.is_none() => return None,
            _ => {}
        }
        let is_line = |known: &[u8]| known.eq_ignore_ascii_case(name.as_str().as_bytes());
        let came = self.parts().find(|(known, _)| is_line(known)).map(|(_, value)| value);
        came.or_else(|| self.added.first(name))
    }

    /// The names and values of the lines.
    fn parts(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut at = 0_usize;
        std::iter::from_fn(move || {
            let line = loop {
                let begin = at;
                let length = memchr::memchr(b'\r', self.text.get(begin..)?)?;
                at = begin + length + 2;
                if !self.is_hop_over || !self.seen.is_dropped(begin) {
                    break &self.text[begin..begin + length];
                }
            };
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line.get(colon + 2..)?))
        })
    }

    /// Writes all of it but for the lines that end at this hop, without the empty line at its end.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut begin = 0_usize;
        for dropped in self.seen.dropped.iter().filter(|dropped| !dropped.is_empty()) {
            out.extend_from_slice(&self.text[begin..usize::from(dropped.start)]);
            begin = usize::from(dropped.end);
        }
        out.extend_from_slice(&self.text[begin..self.text.len() - 2]);
        for (name, value) in self.added.list() {
            write_header(name, value, out);
        }
    }

    /// The same as a map.
    pub(super) fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.count() + ADDED_HEADERS);
        for (name, value) in self.parts() {
            let name = HeaderName::from_bytes(name).expect("a token is a name");
            let value = HeaderValue::from_maybe_shared(self.text.slice_ref(value)).expect("text is a value");
            map.append(name, value);
        }
        for (name, value) in self.added.list() {
            map.append(name, value.clone());
        }
        map
    }
}

impl SeenFields {
    /// Whether the line that begins at `begin` ends at this hop.
    fn is_dropped(&self, begin: usize) -> bool {
        self.dropped.iter().any(|dropped| !dropped.is_empty() && usize::from(dropped.start) == begin)
    }

    /// Leaves a line out of what is written. Says whether there is room for it among those that are.
    fn drop_line(&mut self, begin: usize, end: usize) -> bool {
        let Some(line) = short_range(&(begin..end)) else { return false };
        match self.dropped.iter_mut().find(|dropped| Range::is_empty(dropped)) {
            Some(free) => {
                *free = line;
                true
            }
            None => false,
        }
    }

    /// Notes the field of the line that begins at `begin`, with its value, and says whether the line passes,
    /// or is left out, without a doubt.
    fn note(&mut self, begin: usize, line: &PlainLine, value: &[u8]) -> bool {
        let place = &line.value;
        self.count += 1;
        match line.field {
            FieldName::Passing => {}
            FieldName::Host => {
                let is_first = self.host.is_empty();
                let Some(place) = short_range(place) else { return false };
                self.host = place;
                return is_first;
            }
            FieldName::ContentLength => {
                let is_first = self.length.is_none();
                self.length = parse_length(value);
                return is_first && self.length.is_some();
            }
            FieldName::Date => self.has_date = true,
            FieldName::UserAgent => {
                if self.user_agent.is_empty() {
                    let Some(place) = short_range(place) else { return false };
                    self.user_agent = place;
                }
            }
            FieldName::ContentType => self.has_content_type = true,
            FieldName::Dropped => return self.drop_line(begin, line.end),
            FieldName::Connection => return names_no_header(value) && self.drop_line(begin, line.end),
            FieldName::TransferEncoding | FieldName::Expect | FieldName::OfHops => return false,
        }
        true
    }
}

/// A place within the first 64 KiB, beyond which no line is kept.
fn short_range(place: &Range<usize>) -> Option<Range<u16>> {
    Some(u16::try_from(place.start).ok()?..u16::try_from(place.end).ok()?)
}

/// Whether a `Connection` names no header that ends with it, nor another protocol.
fn names_no_header(connection: &[u8]) -> bool {
    connection.eq_ignore_ascii_case(b"keep-alive") || connection.eq_ignore_ascii_case(b"close")
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
