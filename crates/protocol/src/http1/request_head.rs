//! The head of a request: what it says, and why it cannot be answered by an app.
//!
//! Where two servers could read two different requests out of the same bytes, there is none: lines end with
//! carriage return and line feed, a length is one number, and what is encoded for the transfer ends in
//! chunks. What a request asks for is not judged here, see [`crate::ambiguity`].

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::{Extensions, Method, Uri, Version};
use thiserror::Error;

use super::HeadLimits;
use super::framing::{BodyFraming, FramingHeaders, TransferCoding};
use super::headers::read_headers;
use super::ordinary::OrdinaryRequestLine;
use super::response_writing::ResponseForm;
use crate::ambiguity::is_scheme;
use crate::fields::Fields;
use crate::message::{Request, RequestParts};
use crate::request_target::RequestTarget;
use crate::target::{TARGET_BYTES_MAX, TargetProblem, may_be_host};

/// A request whose body is still to be read.
#[derive(Debug)]
pub struct RequestHead {
    /// What it says, without its body.
    pub request: Request<()>,
    /// How many bytes it has, with its end.
    pub bytes: usize,
    /// How the end of the request's body is found.
    pub framing: BodyFraming,
    /// How its answer is to be written.
    pub asked: ResponseForm,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether the client would speak another protocol from now on.
    pub offers_upgrade: bool,
}

/// Why there is no request in what a client sent. The text is what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnreadableRequest {
    /// The request line has not the three words method, target and version.
    #[error("the request line is not one of HTTP/1.1")]
    RequestLine,
    /// The request line names another version of HTTP, or another protocol.
    #[error("the version of the request is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// The target has no form that its method allows.
    #[error("{0}")]
    Target(TargetProblem),
    /// The name of a header is not a token (RFC 9110 §5.6.2).
    #[error("the name of a header has a character, perhaps a space before the colon, that no name may have")]
    HeaderName,
    /// The value of a header has a control character.
    #[error("the value of a header has a control character")]
    HeaderValue,
    /// Half an end of a line.
    #[error("a line of the head does not end with carriage return and line feed")]
    LineEnd,
    /// The head has more headers than the limit allows.
    #[error("the head of the request has more than {limit} headers")]
    TooManyHeaders {
        /// How many there may be.
        limit: usize,
    },
    /// The head is longer than the limit allows.
    #[error("the head of the request is longer than {limit} bytes")]
    TooLong {
        /// How many bytes it may have.
        limit: usize,
    },
    /// There is no memory for more of the head. The reader that keeps its parts reports this.
    #[error(
        "{bytes} bytes of the head of the request have come, and there is no memory for more of it now; send it again later, or a shorter one"
    )]
    NoMemory {
        /// How much of it has come.
        bytes: usize,
    },
    /// The head was not whole in time. The task that waits for it reports this.
    #[error("the head of the request did not come to its end in time")]
    TooSlow,
    /// The protocol is another than TLS agreed on. The server reports this.
    #[error("the request is not in the protocol that the TLS handshake agreed on (ALPN)")]
    NotAgreed,
    /// No number, or several that differ.
    #[error("the Content-Length of the request is not one number")]
    ContentLength,
    /// The last transfer encoding is not `chunked`, so the end of the body is unknown.
    #[error("the transfer encoding of the request does not end with \"chunked\"")]
    TransferEncoding,
    /// Of a version that has none.
    #[error("a request of HTTP/1.0 has no transfer encoding")]
    OldTransferEncoding,
}

impl UnreadableRequest {
    fn because(error: httparse::Error, limits: HeadLimits) -> Self {
        match error {
            httparse::Error::HeaderName => Self::HeaderName,
            httparse::Error::HeaderValue => Self::HeaderValue,
            httparse::Error::NewLine => Self::LineEnd,
            httparse::Error::TooManyHeaders => Self::TooManyHeaders { limit: limits.headers },
            httparse::Error::Version => Self::Version,
            httparse::Error::Status | httparse::Error::Token => Self::RequestLine,
        }
    }
}

impl From<TargetProblem> for UnreadableRequest {
    fn from(problem: TargetProblem) -> Self {
        Self::Target(problem)
    }
}

/// Reads a head whose target is one to `httparse` and `http::Uri`, as nearly all are, and how many bytes it
/// takes; `None` while its end is missing.
pub(super) fn read_plain(
    bytes: &Bytes,
    limits: HeadLimits,
) -> Result<Option<(RequestHead, usize)>, UnreadableRequest> {
    match read_ordinary(bytes, limits) {
        Some(read) => Ok(Some(read)),
        None => read_any(bytes, limits),
    }
}

/// Reads a head of any kind, as [`read_plain`] does.
pub(super) fn read_any(
    bytes: &Bytes,
    limits: HeadLimits,
) -> Result<Option<(RequestHead, usize)>, UnreadableRequest> {
    let mut headers = [const { MaybeUninit::uninit() }; HeadLimits::HOP.headers];
    let mut parsed = httparse::Request::new(&mut []);
    let parsing = parsed.parse_with_uninit_headers(bytes, &mut headers);
    let length = match parsing.map_err(|error| UnreadableRequest::because(error, limits))? {
        httparse::Status::Complete(length) => length,
        // It skips line feeds before a request, however many there are.
        httparse::Status::Partial if bytes.starts_with(b"\n") => return Err(UnreadableRequest::LineEnd),
        httparse::Status::Partial => return Ok(None),
    };
    if !are_lines_whole(&bytes[..length], parsed.headers) {
        return Err(UnreadableRequest::LineEnd);
    }
    if length > limits.bytes {
        return Err(UnreadableRequest::TooLong { limit: limits.bytes });
    }
    if parsed.headers.len() > limits.headers {
        return Err(UnreadableRequest::TooManyHeaders { limit: limits.headers });
    }
    let is_http10 = parsed.version == Some(0);
    let method = parsed.method.and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    let mut request = Request::new(());
    *request.method_mut() = method.ok_or(UnreadableRequest::RequestLine)?;
    *request.target_mut() = target(bytes, parsed.path.unwrap_or_default(), request.method())?.into();
    *request.version_mut() = if is_http10 { Version::HTTP_10 } else { Version::HTTP_11 };
    let (headers, said) = read_headers(bytes, parsed.headers).ok_or(UnreadableRequest::HeaderName)?;
    *request.fields_mut() = Fields::from(headers);
    Ok(Some((head_of(request, length, &said)?, length)))
}

/// The head of a request that was read, with what its headers say of their message.
fn head_of(
    request: Request<()>,
    bytes: usize,
    said: &FramingHeaders,
) -> Result<RequestHead, UnreadableRequest> {
    let is_http10 = request.version() == Version::HTTP_10;
    let framing = request_framing(said, is_http10)?;
    // Where a length stands beside chunks, a hop before us may have ended the request by the length, and have
    // taken what we find behind it for something else.
    let is_ambiguous = said.coding.is_some() && said.lengths > 0;
    Ok(RequestHead {
        bytes,
        framing,
        asked: ResponseForm {
            is_http10,
            is_head: *request.method() == Method::HEAD,
            keeps_alive: said.keeps_alive(is_http10) && !is_ambiguous,
        },
        expects_continue: said.expects_continue && !is_http10,
        offers_upgrade: said.connection.upgrade && !is_http10 && framing == BodyFraming::Length(0),
        request,
    })
}

/// Reads a head about which there is nothing to be said: its method is one that everyone knows, its target is
/// a path whose every byte may stand there, and its lines are written as we would write them. `None` for
/// every other, which may be whole and legal all the same.
pub(super) fn read_ordinary(bytes: &Bytes, limits: HeadLimits) -> Option<(RequestHead, usize)> {
    let OrdinaryRequestLine { method, target, end } = OrdinaryRequestLine::read(bytes)?;
    let mut said = FramingHeaders::default();
    let note = |field, value: &[u8]| said.note(field, value);
    let (fields, end) = Fields::read(bytes, end, limits.headers, note)?;
    if end > limits.bytes {
        return None;
    }
    let target = RequestTarget::of_path(bytes.slice(target));
    let (version, extensions) = (Version::HTTP_11, Extensions::new());
    let request = Request::from_parts(RequestParts { method, target, version, fields, extensions }, ());
    // If it is refused, the reader of every head says why.
    Some((head_of(request, end, &said).ok()?, end))
}

/// Whether each line ends with carriage return and line feed; httparse is content with the latter.
fn are_lines_whole(head: &[u8], headers: &[httparse::Header<'_>]) -> bool {
    let begins_a_line = |name: &str| {
        let at = name.as_ptr().addr() - head.as_ptr().addr();
        head[..at].ends_with(b"\r\n")
    };
    !head.starts_with(b"\n")
        && head.ends_with(b"\r\n\r\n")
        && headers.iter().all(|header| begins_a_line(header.name))
}

/// A target in the form that its method has (RFC 9112 §3.2): `http::Uri` reads each form for any method, and
/// more than there are.
fn target(bytes: &Bytes, text: &str, method: &Method) -> Result<Uri, TargetProblem> {
    if text.len() > TARGET_BYTES_MAX {
        return Err(TargetProblem::TooLong);
    }
    let uri = Uri::from_maybe_shared(bytes.slice_ref(text.as_bytes()));
    if *method == Method::CONNECT {
        // It is refused, wherever it would lead.
        return Ok(uri.unwrap_or_default());
    }
    let uri = uri.map_err(|_| TargetProblem::Form)?;
    let is_legal = match (text.as_bytes(), uri.authority()) {
        // What is behind a `#`, which no target has, is missing in what was read.
        ([b'/', ..], _) => uri.path_and_query().is_some_and(|path| path.as_str().len() == text.len()),
        (b"*", _) => *method == Method::OPTIONS,
        ([_, ..], Some(authority)) => {
            uri.scheme_str().is_some_and(is_scheme)
                && may_be_host(authority.as_str().as_bytes())
                && !text.contains('#')
        }
        (_, None) | ([], _) => false,
    };
    if is_legal { Ok(uri) } else { Err(TargetProblem::Form) }
}

fn request_framing(said: &FramingHeaders, is_http10: bool) -> Result<BodyFraming, UnreadableRequest> {
    match said.coding {
        Some(_) if is_http10 => Err(UnreadableRequest::OldTransferEncoding),
        Some(TransferCoding::Unknown) => Err(UnreadableRequest::TransferEncoding),
        Some(TransferCoding::Chunked | TransferCoding::ChunkedAtLast) => Ok(BodyFraming::Chunked),
        None if said.is_length_ambiguous => Err(UnreadableRequest::ContentLength),
        None => Ok(BodyFraming::Length(said.length.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request_reader::read_request;
    use super::*;
    use crate::target::MisplacedByte;

    fn read(text: &str) -> Result<Option<(RequestHead, usize)>, UnreadableRequest> {
        read_request(&Bytes::copy_from_slice(text.as_bytes()), HeadLimits::OUTER)
    }

    fn whole(text: &str) -> Result<RequestHead, UnreadableRequest> {
        let (head, length) = read(text)?.expect("the head is whole");
        assert_eq!(length, text.len(), "{text:?}");
        Ok(head)
    }

    #[test]
    fn the_parts_of_a_request_are_what_was_sent() {
        let head =
            whole("PATCH /a/../%zz?b=c HTTP/1.1\r\nHost: h\r\nX-Mine:  a,\tb \r\nx-MINE: \u{e9}\r\n\r\n");
        let RequestHead { request, framing, asked, .. } = head.expect("legal");
        assert_eq!(
            (request.method().as_str(), request.uri().to_string()),
            ("PATCH", "/a/../%zz?b=c".to_owned())
        );
        assert_eq!(
            (request.version(), framing, asked.keeps_alive),
            (Version::HTTP_11, BodyFraming::Length(0), true)
        );
        let mine: Vec<&[u8]> =
            request.headers().get_all("x-mine").iter().map(http::HeaderValue::as_bytes).collect();
        assert_eq!(mine, [&b"a,\tb"[..], "\u{e9}".as_bytes()]);
    }

    #[test]
    fn framing_is_that_of_rfc_9112() {
        for (headers, expected) in [
            ("", Ok(BodyFraming::Length(0))),
            ("Content-Length: 5\r\n", Ok(BodyFraming::Length(5))),
            // The service refuses these two, and counts them.
            ("Content-Length: 5\r\nContent-Length: 5\r\n", Ok(BodyFraming::Length(5))),
            ("Transfer-Encoding: gzip, Chunked\r\n", Ok(BodyFraming::Chunked)),
            ("Transfer-Encoding: chunked\r\n", Ok(BodyFraming::Chunked)),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(UnreadableRequest::ContentLength)),
            ("Content-Length: 5, 5\r\n", Err(UnreadableRequest::ContentLength)),
            ("Content-Length: +5\r\n", Err(UnreadableRequest::ContentLength)),
            ("Content-Length:\r\n", Err(UnreadableRequest::ContentLength)),
            ("Content-Length: 99999999999999999999\r\n", Err(UnreadableRequest::ContentLength)),
            ("Transfer-Encoding: chunked, gzip\r\n", Err(UnreadableRequest::TransferEncoding)),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
                Err(UnreadableRequest::TransferEncoding),
            ),
            ("Transfer-Encoding: xchunked\r\n", Err(UnreadableRequest::TransferEncoding)),
        ] {
            let head = whole(&format!("POST / HTTP/1.1\r\n{headers}\r\n"));
            assert_eq!(head.map(|head| head.framing), expected, "{headers}");
        }
        let old = whole("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(old.expect_err("unknown to HTTP/1.0"), UnreadableRequest::OldTransferEncoding);
    }

    #[test]
    fn a_connection_is_kept_unless_something_speaks_against_it() {
        for (version, headers, expected) in [
            ("1.1", "", true),
            ("1.1", "Connection: foo, Close\r\n", false),
            ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
            ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", false),
            ("1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", false),
        ] {
            let head = whole(&format!("POST / HTTP/{version}\r\n{headers}\r\n")).expect("legal");
            assert_eq!(head.asked.keeps_alive, expected, "{version} {headers}");
        }
    }

    #[test]
    fn expectations_and_upgrades_are_seen_in_http_1_1_only() {
        for (version, expected) in [("1.1", true), ("1.0", false)] {
            let head =
                format!("GET / HTTP/{version}\r\nExpect: 100-Continue\r\nConnection: x, upgrade\r\n\r\n");
            let head = whole(&head).expect("legal");
            assert_eq!((head.expects_continue, head.offers_upgrade), (expected, expected));
        }
        let with_body = whole("GET / HTTP/1.1\r\nConnection: upgrade\r\nContent-Length: 1\r\n\r\n");
        assert!(!with_body.expect("legal").offers_upgrade);
    }

    fn misplaced(byte: u8, place: usize) -> UnreadableRequest {
        UnreadableRequest::Target(TargetProblem::Byte(MisplacedByte { byte, place }))
    }

    #[test]
    fn texts_that_two_readers_could_divide_differently_are_refused() {
        for (text, expected) in [
            ("GET / HTTP/1.1\nHost: h\r\n\r\n", UnreadableRequest::LineEnd),
            ("GET / HTTP/1.1\r\nHost: h\n\r\n", UnreadableRequest::LineEnd),
            ("GET / HTTP/1.1\r\nA: b\nHost: h\r\n\r\n", UnreadableRequest::LineEnd),
            ("GET / HTTP/1.1\r\nHost: h\r\n\n", UnreadableRequest::LineEnd),
            ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", UnreadableRequest::HeaderName),
            ("GET / HTTP/1.1\r\n A: b\r\n\r\n", UnreadableRequest::HeaderName),
            ("GET / HTTP/1.1\r\nA : b\r\n\r\n", UnreadableRequest::HeaderName),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", UnreadableRequest::HeaderName),
            ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", UnreadableRequest::HeaderValue),
            ("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", UnreadableRequest::HeaderValue),
            ("GET / HTTP/2.0\r\n\r\n", UnreadableRequest::Version),
            ("GET /\r\n\r\n", UnreadableRequest::RequestLine),
            ("GET  / HTTP/1.1\r\n\r\n", UnreadableRequest::RequestLine),
            ("\x16\x03\x01\x02\0\x01\0", UnreadableRequest::RequestLine),
            ("\nGET / HTTP/1.1\r\n\r\n", UnreadableRequest::LineEnd),
            ("\n\n", UnreadableRequest::LineEnd),
            ("GET x/y HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET h HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET h:80 HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET ?x HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET http://user@h/ HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET http://user:word@h HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET /a#b HTTP/1.1\r\n\r\n", misplaced(b'#', 3)),
            ("GET http://h/a#b HTTP/1.1\r\n\r\n", misplaced(b'#', 11)),
            ("GET * HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET +http://h/ HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
            ("GET ht~p://h/ HTTP/1.1\r\n\r\n", UnreadableRequest::Target(TargetProblem::Form)),
        ] {
            assert_eq!(read(text).expect_err(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_part_of_a_head_is_partial() {
        let text = "POST /a HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
        for length in 0..text.len() {
            assert!(read(&text[..length]).expect("so far so good").is_none(), "{length} bytes");
        }
    }

    #[test]
    fn each_limit_is_named() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HeadLimits::OUTER.headers + 1));
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(TARGET_BYTES_MAX));
        let too_many = UnreadableRequest::TooManyHeaders { limit: HeadLimits::OUTER.headers };
        for (text, expected) in [
            (many, too_many),
            (long, UnreadableRequest::Target(TargetProblem::TooLong)),
            ("GET / HTTP/3\r\n\r\n".to_owned(), UnreadableRequest::Version),
        ] {
            assert_eq!(read(&text).expect_err("beyond a limit"), expected, "{text:.40}");
        }
        let longest = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(TARGET_BYTES_MAX - 1));
        assert!(read(&longest).expect("legal").is_some());
    }
}
