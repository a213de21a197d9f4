//! Heads of messages: a request's is written, a response's is read.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use http::{Method, StatusCode, Version};

use super::framing::{BodyFraming, FramingHeaders, TransferCoding};
use super::headers::{read_headers, write_length};
use super::ordinary::OrdinaryStatusLine;
use super::{HeadLimits, MalformedMessage};
use crate::content_length::parse_length;
use crate::fields::{Fields, write_header};
use crate::message::{Request, Response, ResponseParts};
use crate::target::path_and_query;

/// The head of a response.
#[derive(Debug)]
pub struct ResponseHead {
    /// What it says, without its body.
    pub response: Response<()>,
    /// How the end of the response's body is found.
    pub framing: BodyFraming,
    /// Whether the connection may be used again after the body.
    pub is_kept_alive: bool,
    /// Set if there is no body, whatever the headers say.
    pub bodiless: Option<BodilessResponse>,
}

/// What the head of a response without a body says of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodilessResponse {
    /// The head names neither a length above zero nor chunks.
    Silent,
    /// That there would be one: with a length above zero, or chunks.
    Announcing,
}

impl BodilessResponse {
    fn of(said: &FramingHeaders) -> Self {
        let is_announcing = said.coding.is_some() || (said.lengths > 0 && said.length != Some(0));
        if is_announcing { Self::Announcing } else { Self::Silent }
    }
}

/// How much there is of a request's body, as far as that is known before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    /// The request has no body.
    Empty,
    /// The body has exactly so many bytes.
    Exact(u64),
    /// It comes as it comes.
    Unknown,
}

/// Writes the head of a request. Returns how its body is to be framed: as its own headers say, else by the
/// length that is known, else in chunks.
pub fn write_request<B>(request: &Request<B>, size: BodySize, out: &mut Vec<u8>) -> BodyFraming {
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(path_and_query(request));
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let announced = write_request_fields(request.fields(), out);
    let framing = request_framing(announced, size);
    match framing {
        BodyFraming::Length(length) if length > 0 && announced == AnnouncedLength::Unsaid => {
            write_length(length, out);
        }
        BodyFraming::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        BodyFraming::Length(_) | BodyFraming::UntilClose => {}
    }
    out.extend_from_slice(b"\r\n");
    framing
}

/// What the headers of a request say of the length of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnnouncedLength {
    /// The head has no `Content-Length`.
    Unsaid,
    /// There is a `Content-Length`, and it is no number.
    Nonsense,
    Bytes(u64),
}

/// Writes the headers of a request except `Transfer-Encoding`, which the caller writes if the body is
/// chunked. Returns what the headers say of the length of the body.
fn write_request_fields(fields: &Fields, out: &mut Vec<u8>) -> AnnouncedLength {
    if let Some(lines) = fields.lines() {
        lines.write(out);
        return lines.length().map_or(AnnouncedLength::Unsaid, AnnouncedLength::Bytes);
    }
    let headers = fields.map();
    for (name, value) in headers {
        if *name != TRANSFER_ENCODING {
            write_header(name, value, out);
        }
    }
    match headers.get(CONTENT_LENGTH).map(|value| parse_length(value.as_bytes())) {
        None => AnnouncedLength::Unsaid,
        Some(None) => AnnouncedLength::Nonsense,
        Some(Some(length)) => AnnouncedLength::Bytes(length),
    }
}

fn request_framing(announced: AnnouncedLength, size: BodySize) -> BodyFraming {
    match (size, announced) {
        (BodySize::Empty, _) => BodyFraming::Length(0),
        (BodySize::Exact(_) | BodySize::Unknown, AnnouncedLength::Bytes(length))
        | (BodySize::Exact(length), AnnouncedLength::Unsaid | AnnouncedLength::Nonsense) => {
            BodyFraming::Length(length)
        }
        (BodySize::Unknown, AnnouncedLength::Unsaid | AnnouncedLength::Nonsense) => BodyFraming::Chunked,
    }
}

/// Reads the head of a response to a request with this method and how many bytes it takes; `None` while its
/// end is missing.
pub(super) fn read_response(
    bytes: &Bytes,
    method: &Method,
    limits: HeadLimits,
) -> Result<Option<(ResponseHead, usize)>, MalformedMessage> {
    match read_ordinary(bytes, method, limits) {
        Some(read) => Ok(Some(read)),
        None => read_any(bytes, method, limits),
    }
}

/// Reads a head of any kind, as [`read_response`] does.
fn read_any(
    bytes: &Bytes,
    method: &Method,
    limits: HeadLimits,
) -> Result<Option<(ResponseHead, usize)>, MalformedMessage> {
    let too_large = MalformedMessage::HeadTooLarge(limits);
    let mut headers = [const { MaybeUninit::uninit() }; HeadLimits::HOP.headers];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(too_large),
        Err(_) if begins_with_settings(bytes) => return Err(MalformedMessage::Http2),
        Err(_) => return Err(MalformedMessage::Head),
    };
    if length > limits.bytes || parsed.headers.len() > limits.headers {
        return Err(too_large);
    }
    let is_http10 = parsed.version == Some(0);
    let mut response = Response::new(());
    *response.version_mut() = if is_http10 { Version::HTTP_10 } else { Version::HTTP_11 };
    *response.status_mut() =
        parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(MalformedMessage::Head)?;
    let (headers, said) = read_headers(bytes, parsed.headers).ok_or(MalformedMessage::Head)?;
    *response.fields_mut() = Fields::from(headers);
    Ok(Some((head_of(response, method, &said)?, length)))
}

/// Reads a head about which there is nothing to be said: it is of HTTP/1.1, and its lines are written as we
/// would write them. `None` for every other, which may be whole and legal all the same.
fn read_ordinary(bytes: &Bytes, method: &Method, limits: HeadLimits) -> Option<(ResponseHead, usize)> {
    let OrdinaryStatusLine { status, end } = OrdinaryStatusLine::read(bytes)?;
    let mut said = FramingHeaders::default();
    let note = |field, value: &[u8]| said.note(field, value);
    let (fields, end) = Fields::read(bytes, end, limits.headers, note)?;
    if end > limits.bytes {
        return None;
    }
    let head = ResponseParts { status, version: Version::HTTP_11, fields };
    // If it is refused, the reader of every head says why.
    Some((head_of(Response::from_parts(head, ()), method, &said).ok()?, end))
}

/// The head of a response that was read, with what its headers say of their message.
fn head_of(
    mut response: Response<()>,
    method: &Method,
    said: &FramingHeaders,
) -> Result<ResponseHead, MalformedMessage> {
    let is_http10 = response.version() == Version::HTTP_10;
    let framing = response_framing(&mut response, method, said)?;
    let is_kept_alive = framing != BodyFraming::UntilClose && said.keeps_alive(is_http10);
    let bodiless = is_bodiless(response.status(), method).then(|| BodilessResponse::of(said));
    Ok(ResponseHead { response, framing, is_kept_alive, bodiless })
}

/// Whether this is the head of a SETTINGS frame on no stream, of a length that settings have (RFC 9113 §4.1).
fn begins_with_settings(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0, _, 4, 0, 0, 0, 0, 0, ..])
}

/// Whether a response has no body, whatever its headers say (RFC 9112 §6.3).
fn is_bodiless(status: StatusCode, method: &Method) -> bool {
    *method == Method::HEAD
        || status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}

fn response_framing(
    response: &mut Response<()>,
    method: &Method,
    said: &FramingHeaders,
) -> Result<BodyFraming, MalformedMessage> {
    if is_bodiless(response.status(), method) {
        return Ok(BodyFraming::Length(0));
    }
    match said.coding {
        // HTTP/1.0 knows no chunks, and a reader that follows its rules takes them for the body (RFC 9112
        // §6.1).
        Some(_) if response.version() == Version::HTTP_10 => {
            return Err(MalformedMessage::OldTransferEncoding);
        }
        Some(TransferCoding::Chunked) => {
            // A length beside it says nothing (RFC 9112 §6.3), and must not be passed on.
            response.headers_mut().remove(CONTENT_LENGTH);
            return Ok(BodyFraming::Chunked);
        }
        // The header ends here, and the client would take what is encoded for the body itself.
        Some(TransferCoding::ChunkedAtLast | TransferCoding::Unknown) => {
            return Err(MalformedMessage::TransferEncoding);
        }
        None => {}
    }
    if said.is_length_ambiguous {
        return Err(MalformedMessage::ContentLength);
    }
    let Some(length) = said.length else { return Ok(BodyFraming::UntilClose) };
    if said.lengths > 1 {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(BodyFraming::Length(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<Option<(ResponseHead, usize)>, MalformedMessage> {
        read_response(&Bytes::copy_from_slice(head.as_bytes()), &Method::GET, HeadLimits::OUTER)
    }

    fn framing(headers: &str) -> Result<(BodyFraming, bool), MalformedMessage> {
        let (head, _) = read(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n"))?.expect("the head is whole");
        Ok((head.framing, head.is_kept_alive))
    }

    #[test]
    fn framing_is_that_of_rfc_9112() {
        for (headers, expected) in [
            ("Content-Length: 5\r\n", Ok((BodyFraming::Length(5), true))),
            ("Content-Length: 5\r\nconnection: Foo, Close\r\n", Ok((BodyFraming::Length(5), false))),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", Ok((BodyFraming::Length(5), true))),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(MalformedMessage::ContentLength)),
            ("Content-Length: +5\r\n", Err(MalformedMessage::ContentLength)),
            ("Content-Length: \r\n", Err(MalformedMessage::ContentLength)),
            ("Content-Length: 99999999999999999999\r\n", Err(MalformedMessage::ContentLength)),
            ("Transfer-Encoding: chunked\r\n", Ok((BodyFraming::Chunked, true))),
            ("Transfer-Encoding: Chunked\r\nContent-Length: 3\r\n", Ok((BodyFraming::Chunked, true))),
            ("Transfer-Encoding: gzip, chunked\r\n", Err(MalformedMessage::TransferEncoding)),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                Err(MalformedMessage::TransferEncoding),
            ),
            ("Transfer-Encoding: gzip\r\n", Err(MalformedMessage::TransferEncoding)),
            ("Transfer-Encoding: identity\r\n", Err(MalformedMessage::TransferEncoding)),
            ("Transfer-Encoding:\r\n", Err(MalformedMessage::TransferEncoding)),
            ("", Ok((BodyFraming::UntilClose, false))),
        ] {
            assert_eq!(framing(headers), expected, "{headers}");
        }
    }

    /// What both readers of heads tell of one.
    fn told((head, length): (ResponseHead, usize)) -> String {
        let ResponseHead { response, framing, is_kept_alive, bodiless } = head;
        let (status, headers) = (response.status(), response.headers());
        format!("{length} {status} {headers:?} {framing:?} {is_kept_alive} {bodiless:?}")
    }

    #[test]
    fn an_ordinary_head_says_what_the_reader_of_every_head_finds() {
        for lines in [
            "",
            "Server: s\r\n",
            "Content-Length: 5\r\nA: b, c\r\na: \u{e9}\tx\r\n",
            "Content-Length: 0\r\nDate: d\r\n",
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "Connection: close\r\nContent-Length: 3\r\n",
            "ebb-error: x\r\nKeep-Alive: timeout=5\r\n",
        ] {
            for status in ["200 OK", "204 No Content", "304 ", "404 Not Found"] {
                for method in [Method::GET, Method::HEAD] {
                    let bytes = Bytes::from(format!("HTTP/1.1 {status}\r\n{lines}\r\nbehind"));
                    let ordinary = read_ordinary(&bytes, &method, HeadLimits::OUTER).expect("ordinary");
                    let any = read_any(&bytes, &method, HeadLimits::OUTER).expect("legal").expect("whole");
                    assert_eq!(told(ordinary), told(any), "{method} {status} {lines}");
                }
            }
        }
        for lines in
            ["A:b\r\n", "A: b \r\n", "A: b\n", "Content-Length: x\r\n", "Transfer-Encoding: gzip\r\n"]
        {
            let bytes = Bytes::from(format!("HTTP/1.1 200 OK\r\n{lines}\r\n"));
            assert!(read_ordinary(&bytes, &Method::GET, HeadLimits::OUTER).is_none(), "{lines}");
        }
    }

    #[test]
    fn a_length_beside_chunks_is_not_passed_on() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n";
        let (head, length) = read(text).expect("legal").expect("whole");
        assert!(!head.response.headers().contains_key(CONTENT_LENGTH));
        assert_eq!(length, text.len());
    }

    #[test]
    fn http_1_0_has_no_chunks() {
        for connection in ["", "Connection: keep-alive\r\n"] {
            let text = format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n{connection}\r\n");
            assert_eq!(read(&text).expect_err("ambiguous"), MalformedMessage::OldTransferEncoding);
        }
    }

    #[test]
    fn a_bodiless_response_has_no_body_whatever_its_head_says() {
        for (status, method) in
            [("204 No Content", Method::GET), ("304 N", Method::GET), ("200 OK", Method::HEAD)]
        {
            let text = format!("HTTP/1.1 {status}\r\nContent-Length: 7\r\n\r\n");
            let read = read_response(&Bytes::from(text), &method, HeadLimits::OUTER);
            let head = read.expect("legal").expect("whole").0;
            assert_eq!((head.framing, head.is_kept_alive), (BodyFraming::Length(0), true));
            assert_eq!(head.response.headers()[CONTENT_LENGTH], "7");
        }
    }

    #[test]
    fn http_1_0_keeps_a_connection_only_if_it_says_so() {
        for (line, kept) in [("Connection: keep-alive\r\n", true), ("", false)] {
            let text = format!("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n{line}\r\n");
            assert_eq!(read(&text).expect("legal").expect("whole").0.is_kept_alive, kept);
        }
    }

    #[test]
    fn every_part_of_a_head_is_partial_and_nonsense_is_refused() {
        let text = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n";
        for length in 0..text.len() {
            assert!(read(&text[..length]).expect("so far so good").is_none(), "{length} bytes");
        }
        assert_eq!(read("SSH-2.0-OpenSSH\r\n\r\n").expect_err("not HTTP"), MalformedMessage::Head);
        assert_eq!(
            read("\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0d").expect_err("not 1.1"),
            MalformedMessage::Http2
        );
    }

    #[test]
    fn a_hop_of_ours_may_say_more_than_an_app() {
        for limits in [HeadLimits::OUTER, HeadLimits::HOP] {
            let read = |text: String| read_response(&Bytes::from(text), &Method::GET, limits);
            let counted = |count| format!("HTTP/1.1 204 N\r\n{}\r\n", "a: b\r\n".repeat(count));
            assert!(read(counted(limits.headers)).expect("legal").is_some());
            let too_large = MalformedMessage::HeadTooLarge(limits);
            assert_eq!(read(counted(limits.headers + 1)).expect_err("too many"), too_large);
            let long = |bytes: usize| {
                let around = "HTTP/1.1 204 N\r\na: \r\n\r\n".len();
                format!("HTTP/1.1 204 N\r\na: {}\r\n\r\n", "b".repeat(bytes - around))
            };
            assert!(read(long(limits.bytes)).expect("legal").is_some());
            assert_eq!(read(long(limits.bytes + 1)).expect_err("too long"), too_large);
        }
    }

    #[test]
    fn a_request_says_how_long_it_is() {
        let written = |request: http::request::Builder, size| {
            let mut out = Vec::new();
            let request = Request::from(request.body(()).expect("legal"));
            let framing = write_request(&request, size, &mut out);
            (String::from_utf8(out).expect("ASCII"), framing)
        };
        let get = written(http::Request::get("/a?b").header("host", "h"), BodySize::Empty);
        assert_eq!(get, ("GET /a?b HTTP/1.1\r\nhost: h\r\n\r\n".to_owned(), BodyFraming::Length(0)));
        let head = "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\n".to_owned();
        assert_eq!(written(http::Request::post("/"), BodySize::Exact(3)), (head, BodyFraming::Length(3)));
        let head = "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n".to_owned();
        let empty = written(http::Request::post("/").header("content-length", "0"), BodySize::Empty);
        assert_eq!(empty, (head, BodyFraming::Length(0)));
        let stream = written(http::Request::post("/").header("transfer-encoding", "x"), BodySize::Unknown);
        let head = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
        assert_eq!(stream, (head, BodyFraming::Chunked));
    }
}
