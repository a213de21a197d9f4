//! The first lines of ordinary heads, which are nearly all: of HTTP/1.1, and without anything in them that
//! two readers could take for two things. Every other line is left to `httparse`.

use std::ops::Range;

use http::{Method, StatusCode};

use crate::byte_table::{allowed_length, alphanumeric_or};
use crate::fields::text_length;

/// What follows the target of a request.
const VERSION_AND_END: &[u8] = b" HTTP/1.1\r\n";

/// The first line of an ordinary request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OrdinaryRequestLine {
    /// One that every server knows.
    pub(super) method: Method,
    /// Where the target is: a path, perhaps with a query, by the letter of RFC 3986.
    pub(super) target: Range<usize>,
    /// Where the line has its end.
    pub(super) end: usize,
}

impl OrdinaryRequestLine {
    /// The line at the beginning of a head. `None` if it is not ordinary, or not whole.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        let (method, begin) = ordinary_method(head)?;
        let target = &head[begin..];
        let length = allowed_length(target, &MAY_BE_IN_PATH);
        let is_ordinary = target.starts_with(b"/") && target[length..].starts_with(VERSION_AND_END);
        let end = begin + length;
        is_ordinary.then(|| Self { method, target: begin..end, end: end + VERSION_AND_END.len() })
    }
}

/// The method at the beginning of a head, and where the target begins.
fn ordinary_method(head: &[u8]) -> Option<(Method, usize)> {
    // Most requests are of this one, and a word whose length is known is compared without a call.
    if head.starts_with(b"GET ") {
        return Some((Method::GET, b"GET ".len()));
    }
    let (method, word) = match head.first()? {
        b'H' => (Method::HEAD, &b"HEAD "[..]),
        b'D' => (Method::DELETE, &b"DELETE "[..]),
        b'O' => (Method::OPTIONS, &b"OPTIONS "[..]),
        b'P' => match head.get(1)? {
            b'O' => (Method::POST, &b"POST "[..]),
            b'U' => (Method::PUT, &b"PUT "[..]),
            _ => (Method::PATCH, &b"PATCH "[..]),
        },
        _ => return None,
    };
    head.starts_with(word).then_some((method, word.len()))
}

/// Whether a byte may stand in a path or a query by the letter of RFC 3986 (§3.3, §3.4), for each byte. What
/// follows a percent sign is for the app to judge.
static MAY_BE_IN_PATH: [bool; 256] = alphanumeric_or(b"-._~!$&'()*+,;=:@/?%");

/// The first line of an ordinary response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OrdinaryStatusLine {
    pub(super) status: StatusCode,
    /// Where the line has its end.
    pub(super) end: usize,
}

impl OrdinaryStatusLine {
    /// The line at the beginning of a head. `None` if it is not ordinary, or not whole.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        let status = head.strip_prefix(b"HTTP/1.1 ")?;
        let (status, reason) = (status.get(..3)?, status[3..].strip_prefix(b" ")?);
        let length = text_length(reason);
        let is_whole = reason[length..].starts_with(b"\r\n");
        let end = head.len() - reason.len() + length + 2;
        let status = StatusCode::from_bytes(status).ok()?;
        is_whole.then_some(Self { status, end })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Uri;

    use super::*;

    #[test]
    fn a_line_is_ordinary_to_its_last_byte() {
        let read = |line: &str| OrdinaryRequestLine::read(line.as_bytes());
        for method in ["GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT", "PATCH"] {
            let line = format!("{method} /a/%7e?b=c&d HTTP/1.1\r\n");
            let found = read(&format!("{line}Host: h\r\n\r\n")).expect("ordinary");
            assert_eq!((found.method.as_str(), found.end), (method, line.len()));
            assert_eq!(&line[found.target], "/a/%7e?b=c&d");
            for length in 0..line.len() {
                assert_eq!(read(&line[..length]), None, "{}", &line[..length]);
            }
        }
        for line in [
            "get / HTTP/1.1\r\n",
            "GETS / HTTP/1.1\r\n",
            "CONNECT h:80 HTTP/1.1\r\n",
            "OPTIONS * HTTP/1.1\r\n",
            "GET http://h/ HTTP/1.1\r\n",
            "GET  / HTTP/1.1\r\n",
            "GET /  HTTP/1.1\r\n",
            "GET /#a HTTP/1.1\r\n",
            "GET /<a> HTTP/1.1\r\n",
            "GET /\u{e9} HTTP/1.1\r\n",
            "GET / HTTP/1.0\r\n",
            "GET / HTTP/1.1\n",
            "GET / HTTP/1.1 \r\n",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn a_uri_holds_every_ordinary_target() {
        for (byte, may_be) in (0..=u8::MAX).zip(MAY_BE_IN_PATH) {
            for before in ["/", "/a", "/?", "/a?b"] {
                let target = Bytes::from([before.as_bytes(), &[byte], b"c"].concat());
                let line = [&b"GET "[..], &target, VERSION_AND_END].concat();
                assert_eq!(OrdinaryRequestLine::read(&line).is_some(), may_be, "{target:?}");
                if may_be {
                    let uri = Uri::from_maybe_shared(target.clone()).expect("legal");
                    let path = uri.path_and_query().expect("there is one");
                    assert_eq!(path.as_str().as_bytes(), &target[..]);
                }
            }
        }
    }

    #[test]
    fn a_status_has_three_digits_and_its_words_are_text() {
        let read = |line: &str| OrdinaryStatusLine::read(line.as_bytes());
        for line in
            ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 299 \r\n", "HTTP/1.1 404 Ni\u{e9} da, wirklich\tnicht\r\n"]
        {
            let found = read(&format!("{line}A: b\r\n\r\n")).expect("ordinary");
            assert_eq!((found.status.as_str(), found.end), (&line[9..12], line.len()));
            for length in 0..line.len() {
                assert_eq!(OrdinaryStatusLine::read(&line.as_bytes()[..length]), None, "{length}");
            }
        }
        for line in [
            "HTTP/1.0 200 OK\r\n",
            "HTTP/1.1  200 OK\r\n",
            "HTTP/1.1 200\r\n",
            "HTTP/1.1 099 OK\r\n",
            "HTTP/1.1 2000 OK\r\n",
            "HTTP/1.1 200 O\x7fK\r\n",
            "HTTP/1.1 200 OK\n",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
