//! The headers of a head that came one by one, as those of HTTP/2 do.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::header_list::HeaderList;
use super::lines::ADDED_HEADERS;
use super::name::FieldName;
use crate::content_length::parse_length;

/// Headers in their order. As long as none is odd, each passes: it is none that a proxy changes or removes.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldList {
    headers: HeaderList,
    has_host: bool,
    /// The number in the one `Content-Length`.
    length: Option<u64>,
    /// Whether one of them has to be looked at in a map, or stands there once too often.
    is_odd: bool,
}

impl FieldList {
    /// Adds a header at the end; `field` is the part that its name plays.
    pub(crate) fn push(&mut self, field: FieldName, name: HeaderName, value: HeaderValue) {
        self.is_odd |= !self.note(field, &value);
        self.headers.push(name, value);
    }

    /// Notes a field, and says whether it passes without a doubt.
    fn note(&mut self, field: FieldName, value: &HeaderValue) -> bool {
        match field {
            FieldName::Passing | FieldName::Date | FieldName::UserAgent | FieldName::ContentType => true,
            FieldName::Host => !std::mem::replace(&mut self.has_host, true),
            FieldName::ContentLength => {
                let is_first = self.length.is_none();
                self.length = parse_length(value.as_bytes());
                is_first && self.length.is_some()
            }
            FieldName::TransferEncoding
            | FieldName::Connection
            | FieldName::Dropped
            | FieldName::Expect
            | FieldName::OfHops => false,
        }
    }

    /// Whether a map has to be made of them.
    pub(super) fn is_odd(&self) -> bool {
        self.is_odd
    }

    /// All headers in their order.
    pub(super) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        self.headers.list()
    }

    /// The number in `Content-Length`, of which there is one at most while none of the headers is odd.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Sets a header that is not among them.
    pub(super) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.set(name, value);
    }

    /// Adds a header that a proxy says and that is not among them.
    pub(super) fn add(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.push(name, value);
    }

    /// The first value of a header.
    pub(super) fn first(&self, name: &HeaderName) -> Option<&[u8]> {
        self.headers.first(name)
    }

    /// The same as a map.
    pub(super) fn to_map(&self) -> HeaderMap {
        self.clone().into_map()
    }

    /// Makes a map of them.
    pub(crate) fn into_map(self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.headers.list().len() + ADDED_HEADERS);
        self.headers.move_to(&mut map);
        map
    }
}
