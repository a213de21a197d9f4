//! What a proxy does to headers: those of one hop end there, those that trace the way are extended, ours are
//! removed where the sender has not proved that it may set them.
//!
//! Everything is edited in place; names, order of repeated values, path and query are never normalised.

mod forwarded;
mod host;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderMap, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};

use crate::fields::Fields;
use forwarded::{FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO};

pub use forwarded::{ClientAddress, set_forwarded_for, strip_forwarded};
pub use host::{effective_host, is_host, set_host, written_host};

/// The names that Knative and we use on the wire.
pub mod names {
    use http::header::HeaderName;

    /// Proves to a queue-proxy that a request comes from an activator.
    pub const EBB_HOP_KEY: HeaderName = HeaderName::from_static("ebb-hop-key");
    /// Which pod a request was sent to. Another one, which has its address by now, refuses it with
    /// [`EBB_NOT_STARTED`].
    pub const EBB_POD: HeaderName = HeaderName::from_static("ebb-pod");
    /// Admit at once or refuse with [`EBB_NOT_STARTED`].
    pub const EBB_NO_QUEUE: HeaderName = HeaderName::from_static("ebb-no-queue");
    /// Excludes the request from measurement: it is a health check or a scrape.
    pub const EBB_UNMEASURED: HeaderName = HeaderName::from_static("ebb-unmeasured");
    /// On a response: no app saw this request.
    pub const EBB_NOT_STARTED: HeaderName = HeaderName::from_static("ebb-not-started");
    /// On a response: why we refused.
    pub const EBB_ERROR: HeaderName = HeaderName::from_static("ebb-error");
    /// The client sent `Expect: 100-continue` to the activator.
    pub const EBB_EXPECT: HeaderName = HeaderName::from_static("ebb-expect");
    /// `activator`: that activator counts this request already.
    pub const K_PROXY_REQUEST: HeaderName = HeaderName::from_static("k-proxy-request");
    /// The host that the client asked for.
    pub const K_ORIGINAL_HOST: HeaderName = HeaderName::from_static("k-original-host");
    /// Marks a request as a probe of Knative's networking.
    pub const K_NETWORK_PROBE: HeaderName = HeaderName::from_static("k-network-probe");
    /// Echoed by a network probe.
    pub const K_NETWORK_HASH: HeaderName = HeaderName::from_static("k-network-hash");
    /// Marks a kubelet's probe that a mesh has rewritten.
    pub const K_KUBELET_PROBE: HeaderName = HeaderName::from_static("k-kubelet-probe");
    /// Which revision, as an ingress says it.
    pub const KNATIVE_SERVING_REVISION: HeaderName = HeaderName::from_static("knative-serving-revision");
    /// In which namespace, as an ingress says it.
    pub const KNATIVE_SERVING_NAMESPACE: HeaderName = HeaderName::from_static("knative-serving-namespace");
    /// On a response: how long the request waited.
    pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
    /// The status code of a gRPC call, in trailers or in a head without a body.
    pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
    /// The text that belongs to the status code of a gRPC call.
    pub const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
}

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
/// Whether the sender asks to speak another protocol on this connection, and which, all that it names. HTTP/2
/// is left out, among others too: a client that wants it here begins with it, and a client that merely offers
/// it is served over HTTP/1.1. An app that took the offer would speak it with the client past us.
pub fn connection_asks_to_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let first = headers.get(UPGRADE)?;
    let is_named = headers
        .get_all(CONNECTION)
        .iter()
        .any(|value| tokens(value).any(|token| token.eq_ignore_ascii_case("upgrade")));
    if !is_named {
        return None;
    }
    let offered: Vec<&str> = headers.get_all(UPGRADE).iter().flat_map(tokens).collect();
    let kept: Vec<&str> = offered.iter().copied().filter(|token| !is_http2_token(token)).collect();
    match &kept[..] {
        [] => None,
        [one] if offered.len() == 1 && first.as_bytes() == one.as_bytes() => Some(first.clone()),
        _ => HeaderValue::try_from(kept.join(", ")).ok(),
    }
}

fn is_http2_token(token: &str) -> bool {
    let name = token.split('/').next().unwrap_or_default();
    name.eq_ignore_ascii_case("h2c") || name.eq_ignore_ascii_case("h2")
}

/// Whether a response switches to a protocol that was offered, and to nothing else. It must say to which.
pub fn switches_as_offered(response: &HeaderMap, offered: &HeaderValue) -> bool {
    let mut taken = response.get_all(UPGRADE).iter().flat_map(tokens).peekable();
    taken.peek().is_some()
        && taken.all(|taken| tokens(offered).any(|offered| offered.eq_ignore_ascii_case(taken)))
}

/// Removes what concerns one connection only: the well-known headers and those that `Connection` names. `Te:
/// trailers` stays (it says what the client can read), and so does `Trailer` (it announces what the body ends
/// with).
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if !has_hop_by_hop(headers) {
        return;
    }
    if headers.contains_key(CONNECTION) {
        remove_named_by_connection(headers);
    }
    for name in [
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TRANSFER_ENCODING,
        UPGRADE,
        HTTP2_SETTINGS,
    ] {
        headers.remove(name);
    }
    if headers.contains_key(TE) {
        let takes_trailers = headers
            .get_all(TE)
            .iter()
            .any(|value| tokens(value).any(|token| token.eq_ignore_ascii_case("trailers")));
        headers.remove(TE);
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
    }
}

/// Ends the hop on which a message came: the headers that concern it alone are removed, as
/// [`remove_hop_by_hop`] does it.
pub fn end_hop(fields: &mut Fields) {
    match fields.of_hops_mut() {
        Some(headers) => remove_hop_by_hop(headers),
        None => fields.forget_dropped(),
    }
}

/// Whether there is anything to remove. One look at each name is far cheaper than one search per name that is
/// hardly ever there.
pub fn has_hop_by_hop(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| is_hop_by_hop(name.as_str()))
}

fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
            | "te"
    )
}

fn remove_named_by_connection(headers: &mut HeaderMap) {
    let values: Vec<HeaderValue> = headers.get_all(CONNECTION).iter().cloned().collect();
    headers.remove(CONNECTION);
    for token in values.iter().flat_map(tokens) {
        // A client must not be able to make us forget what we rely on ourselves.
        if !is_end_to_end(token) {
            headers.remove(token);
        }
    }
}

/// Headers that `Connection` cannot remove: they frame or address the message, or were put there by our own
/// previous hop.
fn is_end_to_end(name: &str) -> bool {
    let is_ours =
        |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    ["host", "content-length", "te", "trailer"].iter().any(|kept| name.eq_ignore_ascii_case(kept))
        || ["k-", "ebb-", "x-forwarded-"].into_iter().any(is_ours)
}

/// The comma-separated words of a header; nothing for one that is not ASCII.
fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    value.to_str().unwrap_or_default().split(',').map(str::trim).filter(|token| !token.is_empty())
}

/// Whether a field may stand behind a body, in either protocol. Others decide where messages end, what they
/// are for, who sent them, as whom (`Authorization`, cookies), how a body is to be read or what only our own
/// hops may say; a reader that moves trailers to the headers must not be misled (RFC 9110 §6.5.1).
pub fn may_be_trailer(name: &HeaderName) -> bool {
    let ends_here = [
        AUTHORIZATION,
        CONNECTION,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        COOKIE,
        EXPECT,
        HOST,
        KEEP_ALIVE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        PROXY_CONNECTION,
        SET_COOKIE,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
        FORWARDED,
        X_FORWARDED_FOR,
        X_FORWARDED_HOST,
        X_FORWARDED_PROTO,
    ];
    !is_internal(name) && !is_shadowing(name) && !ends_here.contains(name)
}

fn is_internal(name: &HeaderName) -> bool {
    has_internal_prefix(name.as_str())
}

fn has_internal_prefix(name: &str) -> bool {
    name.starts_with("k-") || name.starts_with("knative-") || name.starts_with("ebb-")
}

/// Whether an app would take a header for one that only our hops may set, or that tells where a request comes
/// from: many apps see headers as CGI names them, where `X_Forwarded_For` and `X-Forwarded-For` are the same.
fn is_shadowing(name: &HeaderName) -> bool {
    let name = name.as_str();
    // Nearly every name is told apart by its first letter.
    matches!(name.as_bytes().first(), Some(b'e' | b'k' | b'x')) && name.contains('_') && {
        let folded = name.replace('_', "-");
        has_internal_prefix(&folded) || folded.starts_with("x-forwarded-")
    }
}

/// Removes from a request what an app could take for a header of ours that is spelt with `_`.
pub fn strip_shadowing(headers: &mut HeaderMap) {
    if !headers.keys().any(is_shadowing) {
        return;
    }
    let shadowing: Vec<HeaderName> = headers.keys().filter(|name| is_shadowing(name)).cloned().collect();
    for name in shadowing {
        headers.remove(name);
    }
}

/// Whether there is a request header that only our own hops may set.
pub fn has_internal(headers: &HeaderMap) -> bool {
    headers.keys().any(is_internal)
}

/// Removes every request header that only our own hops may set: `K-*`, `Knative-*`, `ebb-*`.
pub fn strip_internal(headers: &mut HeaderMap) {
    if !has_internal(headers) {
        return;
    }
    let internal: Vec<HeaderName> = headers.keys().filter(|name| is_internal(name)).cloned().collect();
    for name in internal {
        headers.remove(name);
    }
}

/// Removes from a response what only we say: an app must not be able to refuse in our name.
pub fn strip_refusal(headers: &mut HeaderMap) {
    if headers.keys().any(|name| name.as_str().starts_with("ebb-")) {
        headers.remove(names::EBB_NOT_STARTED);
        headers.remove(names::EBB_ERROR);
    }
}

#[cfg(test)]
mod tests;
