//! What HTTP/2 can carry and HTTP/1.1 could not: fields that would become several lines, or another length,
//! on the way.

use tests::http2::{FRAME_HEAD, PREFACE, flag, frame, kind, literals, settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{read_notes, recorded};
use crate::protocols::world::{ROUTINGS, within};

/// `:status: 200` at the beginning of a head, by its number in the static table.
const OK: u8 = 0x88;

/// One request; `HOST` stands for the host. All of these are malformed by RFC 9113, section 8.
struct MalformedMessage {
    what: &'static str,
    /// Instead of `:method`, `:scheme`, `:authority` and `:path`, where they are not empty.
    pseudo: [&'static str; 4],
    fields: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const PLAIN: [&str; 4] = ["POST", "http", "HOST", "/malformed"];

const fn with(what: &'static str, fields: &'static [(&'static str, &'static str)]) -> MalformedMessage {
    MalformedMessage { what, pseudo: PLAIN, fields, body: "hello" }
}

const fn asking(what: &'static str, pseudo: [&'static str; 4]) -> MalformedMessage {
    MalformedMessage { what, pseudo, fields: &[], body: "hello" }
}

/// A `host` beside `:authority` is not among them: no server may look at it, and it is not passed on.
const CASES: &[MalformedMessage] = &[
    with("a length less than the body", &[("content-length", "0")]),
    with("a length more than the body", &[("content-length", "50")]),
    with("two lengths", &[("content-length", "5"), ("content-length", "6")]),
    with("a length with a plus", &[("content-length", "+5")]),
    with("a transfer coding", &[("transfer-encoding", "chunked")]),
    with("a connection field", &[("connection", "content-length"), ("content-length", "5")]),
    with("an upgrade", &[("upgrade", "websocket")]),
    with("a line end within a value", &[("x", "y\r\ntransfer-encoding: chunked")]),
    with("a line feed within a value", &[("x", "y\ntransfer-encoding: chunked")]),
    with("a carriage return within a value", &[("x", "y\rz")]),
    with("a NUL within a value", &[("x", "y\0z")]),
    with("a line feed at the end of a value", &[("x", "y\n")]),
    with("a carriage return at the beginning of a value", &[("x", "\ry")]),
    with("a line end within a name", &[("x: y\r\ncontent-length", "5")]),
    with("a colon within a name", &[("content-length: 5", "y")]),
    with("a space within a name", &[("content-length ", "5")]),
    with("a name in capitals", &[("Content-Length", "5")]),
    with("a name that is empty", &[("", "y")]),
    with("a pseudo-field behind the others", &[("x", "y"), (":path", "/other")]),
    with("an unknown pseudo-field", &[(":x", "y")]),
    asking(
        "a line end within the method",
        ["GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "http", "HOST", "/malformed"],
    ),
    asking("a space within the method", ["GET /other", "http", "HOST", "/malformed"]),
    asking("a line end within the path", ["POST", "http", "HOST", "/malformed HTTP/1.1\r\nX: y"]),
    asking("a space within the path", ["POST", "http", "HOST", "/malformed HTTP/1.1"]),
    asking("a path that does not begin with a slash", ["POST", "http", "HOST", "malformed"]),
    asking("an empty path", ["POST", "http", "HOST", ""]),
    asking("a line end within the authority", ["POST", "http", "HOST\r\nX: y", "/malformed"]),
    asking("a space within the authority", ["POST", "http", "HOST x", "/malformed"]),
];

#[tokio::test]
async fn nothing_that_http_2_can_hide_gets_past() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let files = ROUTINGS.map(|routing| folder.path().join(routing.service()));
    let ebb = recorded(&files).await;
    for (routing, file) in ROUTINGS.into_iter().zip(&files) {
        let mut wrong = Vec::new();
        for case in CASES {
            let said = exchange(&ebb, case, &routing.host()).await;
            // Each case gets through at most once: to see the next one, too, what was noted is forgotten.
            if said == FramingHeaders::Ok || !read_notes(file).is_empty() {
                wrong.push((case.what, said));
            }
            let _ = std::fs::remove_file(file);
        }
        assert!(wrong.is_empty(), "{routing:?}: the app got {wrong:#?}");
        // The frames are right otherwise: what is not malformed does get through, to an app that speaks no
        // HTTP/2.
        exchange(&ebb, &with("nothing", &[("content-length", "5")]), &routing.host()).await;
        assert!(!read_notes(file).is_empty(), "{routing:?}: a plain request did not get through");
    }
}

/// What became of a stream.
#[derive(Debug, PartialEq, Eq)]
enum FramingHeaders {
    Ok,
    AnotherStatus,
    Reset,
    ConnectionEnded,
}

async fn exchange(ebb: &tests::Ebb, case: &MalformedMessage, host: &str) -> FramingHeaders {
    let mut stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
    let [method, scheme, authority, path] = case.pseudo.map(|value| value.replace("HOST", host));
    let pseudo =
        [(":method", &*method), (":scheme", &*scheme), (":authority", &*authority), (":path", &*path)];
    let head = [literals(&pseudo), literals(case.fields)].concat();
    let request = [
        PREFACE.to_vec(),
        settings(&[]),
        frame(kind::SETTINGS, flag::ACK, 0, &[]),
        frame(kind::HEADERS, flag::END_HEADERS, 1, &head),
        frame(kind::DATA, flag::END_STREAM, 1, case.body.as_bytes()),
    ];
    // It may be closed before all of it is written.
    let _ = stream.write_all(&request.concat()).await;
    within(case.what, outcome(&mut stream)).await
}

async fn outcome(stream: &mut TcpStream) -> FramingHeaders {
    loop {
        let mut head = [0; FRAME_HEAD];
        if stream.read_exact(&mut head).await.is_err() {
            return FramingHeaders::ConnectionEnded;
        }
        let [high, middle, low, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        if stream.read_exact(&mut payload).await.is_err() {
            return FramingHeaders::ConnectionEnded;
        }
        match kind {
            kind::HEADERS if payload.first() == Some(&OK) => return FramingHeaders::Ok,
            kind::HEADERS => return FramingHeaders::AnotherStatus,
            kind::RST_STREAM => return FramingHeaders::Reset,
            kind::GOAWAY => return FramingHeaders::ConnectionEnded,
            _ => {}
        }
    }
}
