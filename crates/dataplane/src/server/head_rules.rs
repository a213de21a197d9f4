//! What hyper decides about the head of an HTTP/1.1 request before we see it, brought in line with the rest.
//!
//! hyper answers heads that it cannot read itself, with a bare status; every refusal of ours says why, so its answer is replaced on the way
//! out ([`HeadRules::replacement`]). And hyper resolves a request with both `Content-Length` and `Transfer-Encoding` by forgetting the former, which is
//! right, but then goes on on that connection, which is not: a proxy before us may have believed the length, and what it takes for the body we would
//! take for the next request. So lines that begin with the name are counted as they are read; when a chunked request comes and there were more of them
//! than requests with a length, it is the last one on its connection. A body in which such a line stands has the same effect; that costs
//! its client one connection, while parsing every head twice would cost everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use http_body::Body;

use crate::refusal::{Reason, Refusal, RequestKind};

const LENGTH: &[u8] = b"content-length";

/// The heads that hyper refuses by itself, and what there is to say about them.
const AUTOMATIC: [(&[u8], StatusCode, &str); 3] = [
    (
        b"HTTP/1.1 400 Bad Request\r\n",
        StatusCode::BAD_REQUEST,
        "the head of the request is malformed, or its length ambiguous",
    ),
    (b"HTTP/1.1 414 URI Too Long\r\n", StatusCode::URI_TOO_LONG, "the target of the request is too long"),
    (
        b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "the head of the request is too large",
    ),
];

/// What a connection's socket and its service tell each other. Atomic only because hyper wants what can be upgraded to be sendable.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadRules(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Lines read that begin with `Content-Length`.
    length_lines: AtomicUsize,
    /// Requests that had one.
    requests_with_length: AtomicUsize,
    /// Responses with a status of [`AUTOMATIC`] that are the service's, and not yet written.
    own_refusals: AtomicUsize,
    /// Whether the last request had a body, so that its client may still be sending.
    had_body: AtomicBool,
    /// What follows is not HTTP.
    is_over: AtomicBool,
}

impl HeadRules {
    /// Notes a request. Returns whether its connection must end with it.
    pub(super) fn is_ambiguous<B: Body>(&self, request: &Request<B>) -> bool {
        self.0.had_body.store(!request.body().is_end_stream(), Ordering::Relaxed);
        // Usually no length was read at all, and nothing has to be looked up.
        if self.0.length_lines.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let headers = request.headers();
        if headers.contains_key(CONTENT_LENGTH) {
            self.0.requests_with_length.fetch_add(1, Ordering::Relaxed);
        }
        headers.contains_key(TRANSFER_ENCODING)
            && self.0.length_lines.load(Ordering::Relaxed)
                > self.0.requests_with_length.load(Ordering::Relaxed)
    }

    /// Whether another protocol is spoken from now on.
    pub(super) fn are_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    /// Whether the client may still be sending when its last request is answered.
    pub(super) fn may_be_sending(&self) -> bool {
        self.0.had_body.load(Ordering::Relaxed)
    }

    /// Notes a response of the service.
    pub(super) fn responded<B>(&self, response: &Response<B>) {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.0.is_over.store(true, Ordering::Relaxed);
        }
        if AUTOMATIC.iter().any(|(_, status, _)| *status == response.status()) {
            self.0.own_refusals.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What to write instead of `bytes`, if they are an answer of hyper's own making. An answer of the service that looks alike was noted before it could be
    /// written, so it is never mistaken for one.
    pub(super) fn replacement(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (line, status, detail) = AUTOMATIC.iter().find(|(line, ..)| bytes.starts_with(line))?;
        let own = &self.0.own_refusals;
        if own.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok() {
            return None;
        }
        let refusal = Refusal::new(Reason::BadRequest, *detail).with_status(*status);
        let mut text = line.to_vec();
        for (name, value) in refusal.into_response(RequestKind::Plain).headers() {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        let length = detail.len() + 1;
        text.extend(format!("connection: close\r\ncontent-length: {length}\r\n\r\n{detail}\n").into_bytes());
        Some(text)
    }
}

/// Counts the lines that begin with `Content-Length`, in whatever pieces they are read.
#[derive(Debug)]
pub(super) struct LengthLines {
    rules: HeadRules,
    /// How much of the name was seen at the beginning of the line that is being read; `None` if it begins otherwise.
    matched: Option<usize>,
}

impl LengthLines {
    pub(super) fn new(rules: HeadRules) -> Self {
        Self { rules, matched: None }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        loop {
            if let Some(matched) = self.matched {
                let awaited = &LENGTH[matched..];
                let have = awaited.len().min(bytes.len());
                if !bytes[..have].eq_ignore_ascii_case(&awaited[..have]) {
                    self.matched = None;
                } else if have < awaited.len() {
                    self.matched = Some(matched + have);
                    return;
                } else {
                    self.rules.0.length_lines.fetch_add(1, Ordering::Relaxed);
                    self.matched = None;
                    bytes = &bytes[have..];
                }
            }
            let Some(end_of_line) = memchr::memchr(b'\n', bytes) else { return };
            bytes = &bytes[end_of_line + 1..];
            self.matched = Some(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};

    use super::*;

    /// A request as hyper shows it to the service.
    fn shown(header: HeaderName) -> Request<crate::Body> {
        let mut request = Request::new(crate::Body::empty());
        request.headers_mut().insert(header, HeaderValue::from_static("1"));
        request
    }

    #[test]
    fn a_chunked_request_with_a_length_is_the_last_however_it_is_written_and_read() {
        let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\ncOnTeNt-LeNgTh: 5\r\n\r\n";
        for piece in 1..=head.len() {
            let rules = HeadRules::default();
            let mut lines = LengthLines::new(rules.clone());
            head.chunks(piece).for_each(|bytes| lines.read(bytes));
            // hyper shows the service one of the two.
            assert!(rules.is_ambiguous(&shown(TRANSFER_ENCODING)), "in pieces of {piece}");
        }
    }

    #[test]
    fn ordinary_requests_leave_a_connection_open() {
        let rules = HeadRules::default();
        let mut lines = LengthLines::new(rules.clone());
        for _ in 0..3 {
            lines.read(b"POST / HTTP/1.1\r\nContent-Length: 0\r\nX-Content-Length: 4\r\n\r\n");
            assert!(!rules.is_ambiguous(&shown(CONTENT_LENGTH)));
            lines.read(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
            assert!(!rules.is_ambiguous(&shown(TRANSFER_ENCODING)));
        }
    }

    #[test]
    fn only_answers_of_hypers_own_making_are_replaced() {
        let rules = HeadRules::default();
        let bare = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        rules.responded(&response);
        assert_eq!(rules.replacement(bare), None, "the app's own");
        let replaced = String::from_utf8(rules.replacement(bare).expect("nobody answered")).expect("ASCII");
        assert!(replaced.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{replaced}");
        assert!(replaced.contains("\r\nebb-error: bad-request; detail=\""), "{replaced}");
        let (head, body) = replaced.split_once("\r\n\r\n").expect("the head ends");
        assert!(head.ends_with(&format!("\r\ncontent-length: {}", body.len())), "{replaced}");
        assert_eq!(rules.replacement(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(rules.replacement(b"5\r\nhello\r\n"), None);
    }
}
