//! The head of a response, as the client's version of HTTP/1 wants it.

use http::StatusCode;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};

use super::framing::{BodyFraming, ConnectionOptions};
use super::headers::write_length;
use crate::content_length::parse_length;
use crate::fields::{Fields, write_header};
use crate::message::ResponseParts;

/// A point in time as RFC 9110 writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub type Date = [u8; 29];

/// What of a request decides how its response is written.
#[derive(Clone, Copy, Debug)]
pub struct ResponseForm {
    /// Whether its client speaks HTTP/1.0.
    pub is_http10: bool,
    /// Only the head is wanted.
    pub is_head: bool,
    /// Whether the client would use the connection again.
    pub keeps_alive: bool,
}

/// What was said of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncedResponse {
    /// How the end of the response's body will be found.
    pub framing: BodyFraming,
    /// Whether the connection is closed after it.
    pub is_last: bool,
}

/// Writes the head of a response whose body has `exact` bytes, if that is known. It is dated with the
/// present, unless it says when it was made.
pub fn write_response(
    head: &ResponseParts,
    exact: Option<u64>,
    form: ResponseForm,
    date: impl FnOnce() -> Date,
    out: &mut Vec<u8>,
) -> AnnouncedResponse {
    let status = head.status;
    let has_length = !status.is_informational() && status != StatusCode::NO_CONTENT;
    let has_body = has_length && status != StatusCode::NOT_MODIFIED && !form.is_head;
    write_status_line(status, form, out);
    let SaidOfResponse { length, is_dated, own } = write_fields(&head.fields, status, has_length, out);
    // The length of a body that is not sent need not be announced if it would have been 0.
    if let Some(exact) = exact.filter(|exact| length.is_none() && has_length && (has_body || *exact > 0)) {
        write_length(exact, out);
    }
    let framing = match length.or(exact) {
        _ if !has_body => BodyFraming::Length(0),
        Some(length) => BodyFraming::Length(length),
        None if form.is_http10 => BodyFraming::UntilClose,
        None => BodyFraming::Chunked,
    };
    let is_last = !form.keeps_alive || own.close || framing == BodyFraming::UntilClose;
    if framing == BodyFraming::Chunked {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    if status != StatusCode::SWITCHING_PROTOCOLS {
        if is_last {
            out.extend_from_slice(b"connection: close\r\n");
        } else if form.is_http10 {
            out.extend_from_slice(b"connection: keep-alive\r\n");
        }
    }
    if !is_dated {
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(&date());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    AnnouncedResponse { framing, is_last }
}

/// Writes the first line of a response, with its end.
fn write_status_line(status: StatusCode, form: ResponseForm, out: &mut Vec<u8>) {
    // Nearly all are this one, which is cheaper to write whole.
    if status == StatusCode::OK && !form.is_http10 {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(if form.is_http10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// What the headers of a response say of its body, its connection and its time.
#[derive(Debug, Default)]
struct SaidOfResponse {
    length: Option<u64>,
    is_dated: bool,
    /// What the response's own `Connection` asks for.
    own: ConnectionOptions,
}

/// Writes the headers of a response, but for those that say how it ends and what becomes of its connection,
/// and for a length that it cannot have.
fn write_fields(fields: &Fields, status: StatusCode, has_length: bool, out: &mut Vec<u8>) -> SaidOfResponse {
    if let Some(lines) = fields.lines().filter(|lines| has_length || lines.length().is_none()) {
        lines.write(out);
        let (length, is_dated) = (lines.length(), lines.has_date());
        return SaidOfResponse { length, is_dated, own: ConnectionOptions::default() };
    }
    let mut said = SaidOfResponse::default();
    for (name, value) in fields.map() {
        match *name {
            // How the message ends is decided elsewhere. One that switches protocols keeps its own
            // `Connection`.
            TRANSFER_ENCODING => continue,
            CONNECTION if status != StatusCode::SWITCHING_PROTOCOLS => {
                said.own.note(value.as_bytes());
                continue;
            }
            CONTENT_LENGTH => match parse_length(value.as_bytes()) {
                Some(number) if has_length && said.length.is_none() => said.length = Some(number),
                Some(_) | None => continue,
            },
            DATE => said.is_dated = true,
            _ => {}
        }
        write_header(name, value, out);
    }
    said
}

#[cfg(test)]
mod tests {
    use crate::message::Response;

    use super::*;

    fn now() -> Date {
        *b"Sun, 06 Nov 1994 08:49:37 GMT"
    }

    const ORDINARY: ResponseForm = ResponseForm { is_http10: false, is_head: false, keeps_alive: true };
    const HEAD: ResponseForm = ResponseForm { is_head: true, ..ORDINARY };
    const LAST: ResponseForm = ResponseForm { keeps_alive: false, ..ORDINARY };
    const OLD: ResponseForm = ResponseForm { is_http10: true, ..ORDINARY };

    /// The head that is written, its lines divided by bars, and what was announced.
    fn written(
        status: u16,
        headers: &[(&str, &str)],
        exact: Option<u64>,
        asked: ResponseForm,
    ) -> (String, AnnouncedResponse) {
        let mut response = http::Response::builder().status(status).header("date", "then");
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let (parts, ()) = Response::from(response.body(()).expect("legal")).into_parts();
        let mut out = Vec::new();
        let announced = write_response(&parts, exact, asked, now, &mut out);
        let text = String::from_utf8(out).expect("ASCII");
        let lines = text.strip_suffix("\r\n\r\n").expect("it ends").replace("\r\n", "|");
        (lines.replace("|date: then", ""), announced)
    }

    #[test]
    fn a_response_says_how_long_it_is_and_what_becomes_of_the_connection() {
        let (length, chunked, close) =
            ("|content-length: 2", "|transfer-encoding: chunked", "|connection: close");
        for (headers, exact, asked, expected, framing) in [
            (&[][..], Some(2), ORDINARY, length.to_owned(), BodyFraming::Length(2)),
            (&[], Some(0), ORDINARY, "|content-length: 0".to_owned(), BodyFraming::Length(0)),
            (&[], None, ORDINARY, chunked.to_owned(), BodyFraming::Chunked),
            (&[("content-length", "2")], None, ORDINARY, length.to_owned(), BodyFraming::Length(2)),
            (&[("content-length", "x")], Some(2), ORDINARY, length.to_owned(), BodyFraming::Length(2)),
            (&[("transfer-encoding", "x")], Some(2), ORDINARY, length.to_owned(), BodyFraming::Length(2)),
            (
                &[("connection", "close")],
                Some(2),
                ORDINARY,
                format!("{length}{close}"),
                BodyFraming::Length(2),
            ),
            (
                &[("a", "1"), ("a", "2")],
                Some(2),
                LAST,
                format!("|a: 1|a: 2{length}{close}"),
                BodyFraming::Length(2),
            ),
            (&[], None, LAST, format!("{chunked}{close}"), BodyFraming::Chunked),
        ] {
            let (text, announced) = written(200, headers, exact, asked);
            assert_eq!(text, format!("HTTP/1.1 200 OK{expected}"));
            assert_eq!(announced, AnnouncedResponse { framing, is_last: text.contains(close) }, "{text}");
        }
    }

    #[test]
    fn a_bodiless_response_announces_no_body() {
        let length = &[("content-length", "3")][..];
        for (status, headers, exact, asked, expected) in [
            (200, length, Some(0), HEAD, "HTTP/1.1 200 OK|content-length: 3"),
            (200, &[], Some(3), HEAD, "HTTP/1.1 200 OK|content-length: 3"),
            (200, &[], Some(0), HEAD, "HTTP/1.1 200 OK"),
            (200, &[], None, HEAD, "HTTP/1.1 200 OK"),
            (204, length, Some(0), ORDINARY, "HTTP/1.1 204 No Content"),
            (204, &[], Some(0), ORDINARY, "HTTP/1.1 204 No Content"),
            (304, length, Some(0), ORDINARY, "HTTP/1.1 304 Not Modified|content-length: 3"),
            (299, &[], Some(0), ORDINARY, "HTTP/1.1 299 |content-length: 0"),
        ] {
            let (text, announced) = written(status, headers, exact, asked);
            assert_eq!(text, expected);
            assert_eq!(
                announced,
                AnnouncedResponse { framing: BodyFraming::Length(0), is_last: false },
                "{text}"
            );
        }
    }

    #[test]
    fn http_1_0_knows_no_chunks_and_closes_unless_both_sides_say_otherwise() {
        let (text, announced) = written(200, &[], Some(1), OLD);
        assert_eq!(text, "HTTP/1.0 200 OK|content-length: 1|connection: keep-alive");
        assert_eq!(announced, AnnouncedResponse { framing: BodyFraming::Length(1), is_last: false });
        let (text, announced) = written(200, &[], None, OLD);
        assert_eq!(text, "HTTP/1.0 200 OK|connection: close");
        assert_eq!(announced, AnnouncedResponse { framing: BodyFraming::UntilClose, is_last: true });
    }

    #[test]
    fn a_switch_of_protocols_keeps_its_own_connection() {
        let (text, _) = written(101, &[("connection", "Upgrade"), ("upgrade", "x")], Some(0), ORDINARY);
        assert_eq!(text, "HTTP/1.1 101 Switching Protocols|connection: Upgrade|upgrade: x");
    }

    #[test]
    fn a_response_is_dated_once() {
        let (parts, ()) = Response::new(()).into_parts();
        let mut out = Vec::new();
        write_response(&parts, Some(0), ORDINARY, now, &mut out);
        let text = String::from_utf8(out).expect("ASCII");
        assert_eq!(text.matches("\r\ndate: ").count(), 1, "{text}");
    }
}
