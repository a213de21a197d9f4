//! The trace of a request's way: `Forwarded` and `X-Forwarded-*`, as Knative keeps them.

use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::fields::Fields;

pub(super) const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
pub(super) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub(super) const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// As long as the parts of a `Forwarded` may be. From longer ones none is built: each comma can become six
/// bytes, and what a request gains on its way must fit into what its next hop allows for.
pub(super) const FORWARDED_PARTS_BYTES_MAX: usize = 2 * 1024;

/// The address of the peer that sent a request to this process, in the form in which it is added to
/// `X-Forwarded-For`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The address as it is written.
    pub fn to_value(self) -> HeaderValue {
        HeaderValue::try_from(self.0.to_canonical().to_string()).expect("an address is header text")
    }
}

/// Forgets what a sender says of a request's way here: `Forwarded`, and every `X-Forwarded-*`.
pub fn strip_forwarded(headers: &mut HeaderMap) {
    let is_about_way = |name: &HeaderName| *name == FORWARDED || name.as_str().starts_with("x-forwarded-");
    let about_way: Vec<HeaderName> = headers.keys().filter(|name| is_about_way(name)).cloned().collect();
    for name in about_way {
        headers.remove(name);
    }
}

/// Keeps the trace of a request's way up to date: builds `Forwarded` from the `X-Forwarded-*` headers when
/// only those are there, then appends the sender to `X-Forwarded-For` (in this order, as Knative does: the
/// last hop is in the latter only). `sender` is its address as [`ClientAddress::to_value`] writes it, once
/// for all requests of a connection.
///
/// A head that is no map says nothing of the way. Beside it stands at most the protocol, by which a caller
/// says that the request came over TLS.
pub fn set_forwarded_for(fields: &mut Fields, sender: &HeaderValue) {
    if let Some(headers) = fields.of_hops_mut() {
        return extend_forwarded(headers, sender);
    }
    if let Some(forwarded) = fields.added(&X_FORWARDED_PROTO).and_then(forwarded_from_protocol) {
        fields.set_of_hops(FORWARDED, forwarded);
    }
    fields.set_of_hops(X_FORWARDED_FOR, sender.clone());
}

/// `Forwarded` where nothing else is known of the way.
fn forwarded_from_protocol(protocol: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_bytes(&[b"proto=", protocol].concat()).ok()
}

fn extend_forwarded(headers: &mut HeaderMap, sender: &HeaderValue) {
    let is_known = |name: &HeaderName| {
        matches!(name.as_str(), "forwarded" | "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto")
    };
    if !headers.keys().any(is_known) {
        headers.insert(X_FORWARDED_FOR, sender.clone());
        return;
    }
    if headers.get(FORWARDED).is_none_or(HeaderValue::is_empty)
        && let Some(forwarded) = forwarded_from_parts(headers)
    {
        headers.insert(FORWARDED, forwarded);
    }
    let mut known: Vec<&[u8]> = headers.get_all(X_FORWARDED_FOR).iter().map(HeaderValue::as_bytes).collect();
    known.push(sender.as_bytes());
    let value = HeaderValue::from_bytes(&known.join(&b", "[..])).expect("header text joined is header text");
    headers.insert(X_FORWARDED_FOR, value);
}

/// `Forwarded` as Knative builds it. An empty first node suppresses the separator before the host, in which
/// we follow it on purpose: no app can rely on a better spelling of nonsense.
fn forwarded_from_parts(headers: &HeaderMap) -> Option<HeaderValue> {
    let first =
        |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (nodes, host, proto) = (first(X_FORWARDED_FOR), first(X_FORWARDED_HOST), first(X_FORWARDED_PROTO));
    if nodes.is_empty() && host.is_empty() && proto.is_empty() {
        return None;
    }
    if nodes.len() + host.len() + proto.len() > FORWARDED_PARTS_BYTES_MAX {
        return None;
    }
    let mut text = String::new();
    let mut nodes = nodes.split(',').map(str::trim);
    let mut is_separated = false;
    if !first(X_FORWARDED_FOR).is_empty() {
        let node = nodes.next().unwrap_or_default();
        push_node(&mut text, node);
        is_separated = !node.is_empty();
    }
    for (name, value) in [("host", host), ("proto", proto)] {
        if !value.is_empty() {
            if is_separated {
                text.push(';');
            }
            text.push_str(name);
            text.push('=');
            text.push_str(value);
            is_separated = true;
        }
    }
    if !first(X_FORWARDED_FOR).is_empty() {
        for node in nodes {
            text.push_str(", ");
            push_node(&mut text, node);
        }
    }
    HeaderValue::try_from(text).ok()
}

fn push_node(text: &mut String, node: &str) {
    text.push_str("for=");
    if node.contains(':') {
        text.push_str("\"[");
        text.push_str(node);
        text.push_str("]\"");
    } else {
        text.push_str(node);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::fields::{FieldList, FieldName};

    #[test]
    fn the_way_is_told_alike_whatever_form_a_head_has() {
        let lines = Bytes::from_static(b"accept: a\r\nx-mine: b\r\n\r\n");
        let (lines, _) = Fields::read(&lines, 0, 10, |_, _| {}).expect("ordinary lines");
        let map = lines.map().clone();
        let mut list = FieldList::default();
        for (name, value) in &map {
            list.push(FieldName::Passing, name.clone(), value.clone());
        }
        for is_encrypted in [false, true] {
            let told =
                [lines.clone(), Fields::from(list.clone()), Fields::from(map.clone())].map(|mut fields| {
                    if is_encrypted {
                        fields.set_of_hops(X_FORWARDED_PROTO, HeaderValue::from_static("https"));
                    }
                    set_forwarded_for(&mut fields, &HeaderValue::from_static("192.0.2.7"));
                    fields.into_map()
                });
            let forwarded = told[0].get(FORWARDED).map(HeaderValue::as_bytes);
            assert_eq!(forwarded, is_encrypted.then_some(&b"proto=https"[..]));
            assert_eq!((&told[0], &told[1]), (&told[2], &told[2]));
        }
    }
}
