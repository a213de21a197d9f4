//! The fields of a head: lines as they came, for as long as no reader asks for more, or a [`HeaderMap`].
//!
//! Nearly every field of a message means nothing to a proxy, and passes. To take each out of the text, to
//! check it, to hash its name and to write it again costs far more than all that a proxy has to do. So a head
//! without any field that a proxy reads, changes or removes stays the text that it came in, or the list of
//! fields in which HTTP/2 brings it, and what a proxy adds stands beside it. Every other head is a map from
//! the beginning; and a head becomes one as soon as a caller asks for that.

mod header_list;
mod lines;
mod list;
mod name;
mod plain_line;

use std::cell::OnceCell;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use crate::content_length::parse_length;
pub(crate) use lines::{FieldLines, map_of, write_header};
pub(crate) use list::FieldList;
pub(crate) use name::FieldName;
pub(crate) use plain_line::{is_token_byte, text_length};

/// A length that is no number, or several that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AmbiguousLength;

/// The fields of a head; see the module's documentation.
#[derive(Clone, Debug)]
pub struct Fields(FieldsForm);

#[derive(Clone, Debug)]
enum FieldsForm {
    /// The lines as they came, and their map, once it was asked for.
    Lines(FieldLines, OnceCell<Box<HeaderMap>>),
    /// The same of headers that came without lines.
    List(FieldList, OnceCell<Box<HeaderMap>>),
    Map(HeaderMap),
}

impl Default for Fields {
    /// No headers, in the form that costs least to make and to drop: each message begins and ends so.
    fn default() -> Self {
        Self(FieldsForm::List(FieldList::default(), OnceCell::new()))
    }
}

impl From<HeaderMap> for Fields {
    fn from(map: HeaderMap) -> Self {
        Self(FieldsForm::Map(map))
    }
}

impl From<FieldLines> for Fields {
    fn from(lines: FieldLines) -> Self {
        Self(FieldsForm::Lines(lines, OnceCell::new()))
    }
}

impl From<FieldList> for Fields {
    fn from(list: FieldList) -> Self {
        if list.is_odd() {
            return Self::from(list.into_map());
        }
        Self(FieldsForm::List(list, OnceCell::new()))
    }
}

impl Fields {
    /// The fields of the head at the beginning of `bytes`, whose lines begin at `begin`, and where the head
    /// ends. `note` is called with each field and its value. `None` if the end of the head is missing, or if
    /// another reader has to look at it: one of the lines is written in another way than ours, or there are
    /// more than `count_max`.
    pub(crate) fn read(
        bytes: &Bytes,
        begin: usize,
        count_max: usize,
        note: impl FnMut(FieldName, &[u8]),
    ) -> Option<(Self, usize)> {
        let (lines, pass) = FieldLines::read(bytes, begin, count_max, note)?;
        let end = begin + lines.length_of_text();
        Some((if pass { Self::from(lines) } else { Self::from(lines.to_map()) }, end))
    }

    /// All headers, as one map.
    pub fn map(&self) -> &HeaderMap {
        match &self.0 {
            FieldsForm::Lines(lines, map) => map.get_or_init(|| Box::new(lines.to_map())),
            FieldsForm::List(list, map) => map.get_or_init(|| Box::new(list.to_map())),
            FieldsForm::Map(map) => map,
        }
    }

    /// All headers as one map, to be changed.
    pub fn map_mut(&mut self) -> &mut HeaderMap {
        let made = match &mut self.0 {
            FieldsForm::Lines(lines, map) => Some(map.take().map_or_else(|| lines.to_map(), |map| *map)),
            FieldsForm::List(list, map) => {
                Some(map.take().map_or_else(|| std::mem::take(list).into_map(), |map| *map))
            }
            FieldsForm::Map(_) => None,
        };
        if let Some(made) = made {
            self.0 = FieldsForm::Map(made);
        }
        match &mut self.0 {
            FieldsForm::Map(map) => map,
            FieldsForm::Lines(..) | FieldsForm::List(..) => unreachable!("they became a map above"),
        }
    }

    /// All headers as one map, for good.
    pub fn into_map(mut self) -> HeaderMap {
        std::mem::take(self.map_mut())
    }

    /// All headers, if one of them may concern a proxy: end at this hop, tell of the way, be one that only
    /// our own hops say, or be `Expect`. `None` if there is certainly no such header.
    pub fn of_hops(&self) -> Option<&HeaderMap> {
        match &self.0 {
            FieldsForm::Lines(..) | FieldsForm::List(..) => None,
            FieldsForm::Map(map) => Some(map),
        }
    }

    /// The same as [`Fields::of_hops`], to be changed.
    pub fn of_hops_mut(&mut self) -> Option<&mut HeaderMap> {
        match &mut self.0 {
            FieldsForm::Lines(..) | FieldsForm::List(..) => None,
            FieldsForm::Map(map) => Some(map),
        }
    }

    /// Forgets those of the lines that are left out where they are written.
    pub(crate) fn forget_dropped(&mut self) {
        if let FieldsForm::Lines(lines, map) = &mut self.0 {
            lines.forget_dropped();
            map.take();
        }
    }

    /// The first value of a header.
    pub fn first(&self, name: &HeaderName) -> Option<&[u8]> {
        match &self.0 {
            FieldsForm::Lines(lines, _) => lines.first(name),
            FieldsForm::List(list, _) => list.first(name),
            FieldsForm::Map(map) => map.get(name).map(HeaderValue::as_bytes),
        }
    }

    /// The first `Host`. Where the head came in lines, its place was noted.
    pub fn host(&self) -> Option<&[u8]> {
        match &self.0 {
            FieldsForm::Lines(lines, _) => lines.host(),
            FieldsForm::List(..) | FieldsForm::Map(_) => self.first(&HOST),
        }
    }

    /// The first `User-Agent`. Where the head came in lines, its place was noted.
    pub fn user_agent(&self) -> Option<&[u8]> {
        match &self.0 {
            FieldsForm::Lines(lines, _) => lines.user_agent(),
            FieldsForm::List(..) | FieldsForm::Map(_) => self.first(&USER_AGENT),
        }
    }

    /// The first `Content-Type`. Where the head came in lines without one, that was noted.
    pub fn content_type(&self) -> Option<&[u8]> {
        match &self.0 {
            FieldsForm::Lines(lines, _) if !lines.has_content_type() => None,
            FieldsForm::Lines(..) | FieldsForm::List(..) | FieldsForm::Map(_) => self.first(&CONTENT_TYPE),
        }
    }

    /// The value of a header that a proxy has added to a head that is no map.
    pub(crate) fn added(&self, name: &HeaderName) -> Option<&[u8]> {
        match &self.0 {
            FieldsForm::Lines(lines, _) => lines.added(name),
            FieldsForm::List(list, _) => list.first(name),
            FieldsForm::Map(_) => None,
        }
    }

    /// Sets a header that a proxy adds, and that [`Fields::of_hops`] would tell of.
    pub fn set_of_hops(&mut self, name: HeaderName, value: HeaderValue) {
        debug_assert!(!FieldName::of(name.as_str().as_bytes()).passes(), "{name} may be there");
        match &mut self.0 {
            FieldsForm::Lines(lines, map) => {
                lines.set(name, value);
                map.take();
            }
            FieldsForm::List(list, map) => {
                list.set(name, value);
                map.take();
            }
            FieldsForm::Map(map) => {
                map.insert(name, value);
            }
        }
    }

    /// As [`Fields::set_of_hops`], of a header that is certainly not there yet: none is looked for.
    pub fn add_of_hops(&mut self, name: HeaderName, value: HeaderValue) {
        debug_assert!(self.first(&name).is_none(), "{name} is there");
        match &mut self.0 {
            FieldsForm::Lines(lines, map) => {
                lines.add(name, value);
                map.take();
            }
            FieldsForm::List(list, map) => {
                list.add(name, value);
                map.take();
            }
            FieldsForm::Map(map) => {
                map.insert(name, value);
            }
        }
    }

    /// How many headers there are.
    pub fn count(&self) -> usize {
        match &self.0 {
            FieldsForm::Lines(lines, _) => lines.count(),
            FieldsForm::List(list, _) => list.headers().len(),
            FieldsForm::Map(map) => map.len(),
        }
    }

    /// The lines as they came, while they count.
    pub(crate) fn lines(&self) -> Option<&FieldLines> {
        match &self.0 {
            FieldsForm::Lines(lines, _) => Some(lines),
            FieldsForm::List(..) | FieldsForm::Map(_) => None,
        }
    }

    /// Shows each header, in the order in which they are to be written.
    pub(crate) fn each(&self, mut show: impl FnMut(&HeaderName, &HeaderValue)) {
        match &self.0 {
            FieldsForm::List(list, _) => {
                for (name, value) in list.headers() {
                    show(name, value);
                }
            }
            FieldsForm::Lines(..) | FieldsForm::Map(_) => {
                for (name, value) in self.map() {
                    show(name, value);
                }
            }
        }
    }

    /// The number in `Content-Length`; an error if that is no number, or several.
    pub(crate) fn announced_length(&self) -> Result<Option<u64>, AmbiguousLength> {
        let map = match &self.0 {
            FieldsForm::Lines(lines, _) => return Ok(lines.length()),
            FieldsForm::List(list, _) => return Ok(list.length()),
            FieldsForm::Map(map) => map,
        };
        let mut found = None;
        for value in map.get_all(CONTENT_LENGTH) {
            let length = parse_length(value.as_bytes()).ok_or(AmbiguousLength)?;
            if found.replace(length).is_some_and(|other| other != length) {
                return Err(AmbiguousLength);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
