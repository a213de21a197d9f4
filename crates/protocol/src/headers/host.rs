//! The host that a request is for, and the form of its target for the next hop.

use http::header::{HOST, HeaderValue};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{Uri, Version};

use crate::fields::text_length;
use crate::message::Request;
use crate::target::may_be_host;

/// The host (with its port, if it names one) that a request is for: from an absolute or HTTP/2 target, else
/// from `Host`.
pub fn effective_host<B>(request: &Request<B>) -> Option<&str> {
    match request.target().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.fields().host().and_then(to_text),
    }
}

/// The same as [`effective_host`] as its client wrote it, which may be no text.
pub fn written_host<B>(request: &Request<B>) -> Option<&[u8]> {
    match request.target().authority() {
        Some(authority) => Some(authority.as_str().as_bytes()),
        None => request.fields().host(),
    }
}

/// Whether a value is a host, perhaps with a port, as a `Host` must be that is taken.
pub fn is_host(value: &HeaderValue) -> bool {
    !value.is_empty() && may_be_host(value.as_bytes())
}

/// A value that is text, as [`HeaderValue::to_str`] takes it.
fn to_text(value: &[u8]) -> Option<&str> {
    let is_text = value.is_ascii() && text_length(value) == value.len();
    if is_text { std::str::from_utf8(value).ok() } else { None }
}

/// Brings the target of a request into the form that its next hop expects, with the host it is for: HTTP/1.1
/// gets a path and `Host`, HTTP/2 a whole URI. `host` overrides what the request says; without any,
/// `fallback` (the address it is sent to) stands in.
pub fn set_host<B>(request: &mut Request<B>, host: Option<HeaderValue>, fallback: &str) {
    let is_http2 = request.version() == Version::HTTP_2;
    let is_changed = host.is_some();
    let is_as_wanted = !is_http2 && !is_changed && request.target().authority().is_none();
    if is_as_wanted && request.fields().host().is_some() {
        return;
    }
    if is_http2 && !is_changed && request.target().authority().is_some() {
        forget_host_header(request);
        return;
    }
    let host = host
        .or_else(|| {
            request.target().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok())
        })
        .or_else(|| request.headers().get(HOST).cloned())
        .or_else(|| HeaderValue::from_str(fallback).ok());
    if is_http2 {
        if let Some(authority) = host.as_ref().and_then(|host| Authority::try_from(host.as_bytes()).ok()) {
            let mut parts = Parts::default();
            parts.scheme = Some(Scheme::HTTP);
            parts.authority = Some(authority);
            parts.path_and_query = Some(path_of(request.uri()));
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
        }
        forget_host_header(request);
        return;
    }
    if request.target().authority().is_some() {
        let mut parts = Parts::default();
        parts.path_and_query = Some(path_of(request.uri()));
        *request.uri_mut() = Uri::from_parts(parts).expect("a path alone is a target");
    }
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
}

/// Over HTTP/2 the target names the host.
fn forget_host_header<B>(request: &mut Request<B>) {
    if request.fields().host().is_some() {
        request.headers_mut().remove(HOST);
    }
}

/// The path with its query; a target that goes on with its query right after the host has the path `/`.
fn path_of(uri: &Uri) -> PathAndQuery {
    let root = || PathAndQuery::from_static("/");
    match uri.path_and_query() {
        None => root(),
        Some(path) if path.as_str().starts_with('?') => {
            PathAndQuery::try_from(["/", path.as_str()].concat()).unwrap_or_else(|_| root())
        }
        Some(path) => path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_text_as_its_type_says_it() {
        for byte in (0..=u8::MAX).filter(|byte| HeaderValue::from_bytes(&[*byte]).is_ok()) {
            for before in [&b""[..], b"example.com:", b"example"] {
                let value = HeaderValue::from_bytes(&[before, &[byte]].concat()).expect("legal");
                assert_eq!(to_text(value.as_bytes()), value.to_str().ok(), "{value:?}");
            }
        }
    }
}
