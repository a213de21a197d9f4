//! The fields of a head: lines as they came, for as long as no reader asks for more, or a [`HeaderMap`].
//!
//! Nearly every field of a message means nothing to a proxy, and passes. To take each out of the text, to
//! check it, to hash its name and to write it again costs far more than all that a proxy has to do. So a head
//! without any field that a proxy reads, changes or removes stays the text that it came in, and what a proxy
//! adds stands beside it. Every other head is a map from the beginning; and a head becomes one as soon as
//! a caller asks for that.

mod added;
mod lines;
mod name;
mod plain_line;

use std::cell::OnceCell;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

pub(crate) use lines::{FieldLines, map_of, write_header};
pub(crate) use name::FieldName;
pub(crate) use plain_line::{is_token_byte, text_length};

/// The fields of a head; see the module's documentation.
#[derive(Clone, Debug)]
pub struct Fields(FieldsForm);

#[derive(Clone, Debug)]
enum FieldsForm {
    /// The lines as they came, and their map, once it was asked for.
    Lines(FieldLines, OnceCell<Box<HeaderMap>>),
    Map(HeaderMap),
}

impl Default for Fields {
    fn default() -> Self {
        Self::from(HeaderMap::new())
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
            FieldsForm::Map(map) => map,
        }
    }

    /// All headers as one map, to be changed.
    pub fn map_mut(&mut self) -> &mut HeaderMap {
        if let FieldsForm::Lines(lines, map) = &mut self.0 {
            let map = map.take().map_or_else(|| lines.to_map(), |map| *map);
            self.0 = FieldsForm::Map(map);
        }
        match &mut self.0 {
            FieldsForm::Map(map) => map,
            FieldsForm::Lines(..) => unreachable!("lines became a map above"),
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
            FieldsForm::Lines(..) => None,
            FieldsForm::Map(map) => Some(map),
        }
    }

    /// The same as [`Fields::of_hops`], to be changed.
    pub fn of_hops_mut(&mut self) -> Option<&mut HeaderMap> {
        match &mut self.0 {
            FieldsForm::Lines(..) => None,
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
            FieldsForm::Map(map) => map.get(name).map(HeaderValue::as_bytes),
        }
    }

    /// Sets a header that a proxy adds, and that [`Fields::of_hops`] would tell of.
    pub fn set_of_hops(&mut self, name: HeaderName, value: HeaderValue) {
        match &mut self.0 {
            FieldsForm::Lines(lines, map) => {
                debug_assert!(!FieldName::of(name.as_str().as_bytes()).passes(), "{name} may be there");
                lines.set(name, value);
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
            FieldsForm::Map(map) => map.len(),
        }
    }

    /// The lines as they came, while they count.
    pub(crate) fn lines(&self) -> Option<&FieldLines> {
        match &self.0 {
            FieldsForm::Lines(lines, _) => Some(lines),
            FieldsForm::Map(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
