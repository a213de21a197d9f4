//! Requests and responses of any kind, for properties.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

/// What is said, apart from a first line.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) headers: HeaderMap,
    /// In the pieces in which the writer gives it.
    pub(crate) body: Vec<Bytes>,
    pub(crate) trailers: HeaderMap,
    /// Whether its length is known before it is sent.
    pub(crate) has_length: bool,
}

impl Message {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.body.concat()
    }

    pub(crate) fn length(&self) -> u64 {
        self.body.iter().map(|piece| piece.len() as u64).sum()
    }
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let piece = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 1..40),
        1 => (1..30_000_usize).prop_map(|length| vec![b'x'; length]),
    ];
    let body = prop::collection::vec(piece.prop_map(Bytes::from), 0..6);
    (headers(5), body, headers(2), any::<bool>()).prop_map(|(headers, body, trailers, has_length)| {
        // Trailers have no place behind a body of a known length in HTTP/1.1.
        let trailers = if has_length || body.is_empty() { HeaderMap::new() } else { trailers };
        Message { headers, body, trailers, has_length }
    })
}

/// Headers of no meaning to any program here.
fn headers(most: usize) -> impl Strategy<Value = HeaderMap> {
    let name = "x-[a-z0-9!#$%&'*+.^_`|~-]{1,12}";
    // Blanks around a value are not part of it.
    let value = "([!-~]([ -~]{0,30}[!-~])?)?";
    prop::collection::vec((name, value), 0..=most).prop_map(|lines| {
        let line = |(name, value): (String, String)| {
            let name = HeaderName::try_from(name).expect("legal");
            (name, HeaderValue::try_from(value).expect("legal"))
        };
        lines.into_iter().map(line).collect()
    })
}

/// Those headers by name, without what ends of a connection add.
pub(crate) fn lines(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| name.as_str().starts_with("x-")) {
        lines.entry(name.to_string()).or_default().push(value.to_str().expect("ASCII").to_owned());
    }
    lines
}

/// In which sizes something is handed over, over and over.
pub(crate) fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![3 => 1..20_usize, 1 => 1..5_000_usize, 1 => Just(usize::MAX)];
    prop::collection::vec(size, 1..6)
}
