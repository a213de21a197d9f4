//! The fields of a head: lines as they came, for as long as no reader asks for more, or a [`HeaderMap`].
//!
//! Nearly every field of a message means nothing to a proxy, and passes. To take each out of the text, to
//! check it, to hash its name and to write it again costs far more than all that a proxy has to do. So a head
//! without any field that a proxy reads, changes or removes stays the text that it came in, and what a proxy
//! adds stands beside it. Every other head is a map from the beginning; and a head becomes one as soon as
//! a caller asks for that.

mod lines;
mod name;

use std::cell::OnceCell;

use http::header::{HeaderMap, HeaderName, HeaderValue};

pub(crate) use lines::{FieldLines, is_token_byte, map_of, text_length, write_header};
pub(crate) use name::FieldName;

/// The fields of a head; see the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// `None` once the map is what counts.
    lines: Option<FieldLines>,
    /// All of it, once it was asked for.
    map: OnceCell<HeaderMap>,
}

impl From<HeaderMap> for Fields {
    fn from(map: HeaderMap) -> Self {
        Self { lines: None, map: OnceCell::from(map) }
    }
}

impl From<FieldLines> for Fields {
    fn from(lines: FieldLines) -> Self {
        Self { lines: Some(lines), map: OnceCell::new() }
    }
}

impl Fields {
    /// All headers.
    pub fn map(&self) -> &HeaderMap {
        self.map.get_or_init(|| self.lines.as_ref().map(FieldLines::to_map).unwrap_or_default())
    }

    /// All headers, to be changed.
    pub fn map_mut(&mut self) -> &mut HeaderMap {
        self.map();
        self.lines = None;
        self.map.get_mut().expect("it was made above")
    }

    /// All headers, and nothing else.
    pub fn into_map(self) -> HeaderMap {
        self.map();
        self.map.into_inner().unwrap_or_default()
    }

    /// All headers, if one of them may concern a proxy: end at this hop, tell of the way, be one that only
    /// our own hops say, or be `Expect`. `None` if there is certainly no such header.
    pub fn of_hops(&self) -> Option<&HeaderMap> {
        if self.lines.is_some() { None } else { Some(self.map()) }
    }

    /// The same as [`Fields::of_hops`], to be changed.
    pub fn of_hops_mut(&mut self) -> Option<&mut HeaderMap> {
        if self.lines.is_some() { None } else { Some(self.map_mut()) }
    }

    /// The first value of a header.
    pub fn first(&self, name: &HeaderName) -> Option<&[u8]> {
        match &self.lines {
            Some(lines) => lines.first(name),
            None => self.map().get(name).map(HeaderValue::as_bytes),
        }
    }

    /// Sets a header that a proxy adds, and that [`Fields::of_hops`] would tell of.
    pub fn set_of_hops(&mut self, name: HeaderName, value: HeaderValue) {
        match &mut self.lines {
            Some(lines) => {
                debug_assert!(!FieldName::of(name.as_str().as_bytes()).passes(), "{name} may be there");
                lines.set(name, value);
                self.map = OnceCell::new();
            }
            None => {
                self.map_mut().insert(name, value);
            }
        }
    }

    /// How many headers there are.
    pub fn count(&self) -> usize {
        match &self.lines {
            Some(lines) => lines.count(),
            None => self.map().len(),
        }
    }

    /// The lines as they came, while they count.
    pub(crate) fn lines(&self) -> Option<&FieldLines> {
        self.lines.as_ref()
    }
}

#[cfg(test)]
mod tests;
