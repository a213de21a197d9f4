//! What makes a request ambiguous, or impossible to forward?
//!
//! Two servers that disagree on where a request ends disagree on what the next one is (request smuggling), so
//! nothing doubtful is passed on. Some of this is legal by the letter of RFC 9112, which leaves it to each
//! reader; it is looked at once the head was read, for both protocols alike.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Version};
use thiserror::Error;

use crate::message::Request;
use crate::target::may_be_host;

/// Why a request is not forwarded. The text is what its client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Ambiguity {
    /// CONNECT: a tunnel to anywhere the client names.
    #[error("client sent unsupported CONNECT request")]
    Connect,
    /// More or other than chunks.
    #[error("the only transfer encoding is \"chunked\", once")]
    TransferEncoding,
    /// Even if they say the same.
    #[error("more than one Content-Length")]
    Lengths,
    /// Even if they say the same.
    #[error("more than one Host")]
    Hosts,
    /// Two ways to find the end.
    #[error("both Content-Length and Transfer-Encoding")]
    LengthBesideChunks,
    /// Some readers take the user for the host.
    #[error("a target that names a user")]
    User,
    /// HTTP/1.1 asks for a `Host` in each request.
    #[error("no Host")]
    NoHost,
    /// More than a host and a port, or less.
    #[error("a Host that is not the name of a host, perhaps with a port")]
    MalformedHost,
}

/// What makes a request ambiguous or impossible to forward, if something does. The connection must close
/// after such a one.
pub fn ambiguity<B>(request: &Request<B>) -> Option<Ambiguity> {
    if *request.method() == Method::CONNECT {
        return Some(Ambiguity::Connect);
    }
    let host = match request.fields().of_hops() {
        // A head that is no map has one length at most, one host at most, and no transfer encoding.
        None => request.fields().host(),
        Some(headers) => match unambiguous_host(headers) {
            Ok(host) => host,
            Err(ambiguity) => return Some(ambiguity),
        },
    };
    let authority = request.target().authority();
    match host {
        _ if authority.is_some_and(|authority| authority.as_str().contains('@')) => Some(Ambiguity::User),
        // Also where the target names one (RFC 9112 §3.2): a server that looks at the header alone finds
        // nothing.
        None if request.version() == Version::HTTP_11 => Some(Ambiguity::NoHost),
        Some(host) if !may_be_host(host) => Some(Ambiguity::MalformedHost),
        Some(_) | None => None,
    }
}

/// The one `Host`, if there is one. An error if two readers may find two ends of the message, or two hosts.
fn unambiguous_host(headers: &HeaderMap) -> Result<Option<&[u8]>, Ambiguity> {
    // One look at each header is cheaper than a search for each name.
    let (mut encoding, mut length, mut host) = (None, None, None);
    for (name, value) in headers {
        let (seen, twice) = match *name {
            TRANSFER_ENCODING => (&mut encoding, Ambiguity::TransferEncoding),
            CONTENT_LENGTH => (&mut length, Ambiguity::Lengths),
            HOST => (&mut host, Ambiguity::Hosts),
            _ => continue,
        };
        if seen.replace(value).is_some() {
            return Err(twice);
        }
    }
    match encoding {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            Err(Ambiguity::TransferEncoding)
        }
        Some(_) if length.is_some() => Err(Ambiguity::LengthBesideChunks),
        Some(_) | None => Ok(host.map(HeaderValue::as_bytes)),
    }
}

/// Whether this is a scheme (RFC 3986 §3.1); `http::Uri` takes more for one.
pub(crate) fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}
