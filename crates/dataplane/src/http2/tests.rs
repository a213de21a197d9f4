//! Both ends against a peer that writes its frames by hand, and so can break every rule.

mod client;
mod costs;
mod halves;
mod rules;
mod server;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt;
use protocol::http2::frame::{
    ACK, END_HEADERS, END_STREAM, FRAME_HEAD_BYTES, FrameHead, FrameKind, write_frame, write_setting,
};
use protocol::http2::hpack::{Field, HpackDecoder, encode_field, encode_response};
use protocol::http2::{ErrorCode, PREFACE};
use protocol::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::body::{Body, BodyError};
use crate::connection::Connection;
use crate::server::{Abort, Service};

/// Longer than anything here takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new()
        .block_on(&runtime, async { tokio::time::timeout(PATIENCE, test).await.expect("in time") });
}

/// Runs a test whose clock goes on when no task does.
fn run_paused(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

/// The answer to this says that everything before it was looked at.
const SETTLED: &[u8; 8] = b"settled?";

/// As it is written in HTTP/1.1.
fn line(field: &Field) -> String {
    match field {
        Field::Method(method) => format!(":method: {method}"),
        Field::Scheme(scheme) => format!(":scheme: {scheme}"),
        Field::Authority(authority) => format!(":authority: {authority}"),
        Field::Path(path) => format!(":path: {path}"),
        Field::Status(status) => format!(":status: {}", status.as_str()),
        Field::Header(name, value) => format!("{name}: {}", value.to_str().expect("ASCII")),
        Field::OddPath(path) => format!(":path: {}", path.escape_ascii()),
        Field::RefusedTarget(problem) => format!("refused: {problem}"),
        Field::Malformed => "malformed".to_owned(),
    }
}

/// One end of a connection, frame by frame.
struct PeerRole {
    socket: TcpStream,
    read: BytesMut,
    decoder: HpackDecoder,
}

/// A frame that the hand-written peer has received, decoded.
#[derive(Debug, PartialEq, Eq)]
enum ReceivedFrame {
    /// The fields of a head, as lines of `name: value`.
    Head {
        stream: u32,
        lines: Vec<String>,
        is_end: bool,
    },
    Data {
        stream: u32,
        data: Bytes,
        is_end: bool,
    },
    Reset {
        stream: u32,
        code: ErrorCode,
    },
    GoAway {
        last: u32,
        code: ErrorCode,
    },
    WindowUpdate {
        stream: u32,
        more: u32,
    },
    Ping {
        is_ack: bool,
    },
    /// The acknowledgement of the SETTINGS that [`PeerRole::settle`] sent.
    Settled,
    Settings {
        is_ack: bool,
    },
    Closed,
}

impl PeerRole {
    fn new(socket: TcpStream) -> Self {
        socket.set_nodelay(true).expect("open");
        Self { socket, read: BytesMut::new(), decoder: HpackDecoder::default() }
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("open");
    }

    async fn frame(&mut self, kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) {
        self.write(&frame(kind, flags, stream, payload)).await;
    }

    /// The next frame, whatever it is.
    async fn next(&mut self) -> ReceivedFrame {
        match self.next_raw().await {
            Some((head, payload)) => self.understand(head, payload),
            None => ReceivedFrame::Closed,
        }
    }

    /// The next frame as it is; `None` at the end.
    async fn next_raw(&mut self) -> Option<(FrameHead, Bytes)> {
        loop {
            if let Some(head) = self.read.first_chunk::<FRAME_HEAD_BYTES>().map(|head| FrameHead::read(*head))
                && self.read.len() >= FRAME_HEAD_BYTES + head.length
            {
                let payload = self.read.split_to(FRAME_HEAD_BYTES + head.length).split_off(FRAME_HEAD_BYTES);
                return Some((head, payload.freeze()));
            }
            match self.socket.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    fn understand(&mut self, head: FrameHead, payload: Bytes) -> ReceivedFrame {
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        let (stream, is_end) = (head.stream, head.has(END_STREAM));
        match head.kind {
            FrameKind::Data => ReceivedFrame::Data { stream, data: payload, is_end },
            FrameKind::Headers => {
                assert!(head.has(END_HEADERS), "the heads here are short");
                let mut lines = Vec::new();
                self.decoder
                    .decode(&payload, |field, _| {
                        lines.push(line(&field));
                        ControlFlow::Continue(())
                    })
                    .expect("legal");
                ReceivedFrame::Head { stream, lines, is_end }
            }
            FrameKind::Reset => ReceivedFrame::Reset { stream, code: ErrorCode(number(0)) },
            FrameKind::GoAway => ReceivedFrame::GoAway { last: number(0), code: ErrorCode(number(4)) },
            FrameKind::WindowUpdate => ReceivedFrame::WindowUpdate { stream, more: number(0) },
            FrameKind::Ping if &payload[..] == SETTLED => ReceivedFrame::Settled,
            FrameKind::Ping => ReceivedFrame::Ping { is_ack: head.has(ACK) },
            FrameKind::Settings => ReceivedFrame::Settings { is_ack: head.has(ACK) },
            FrameKind::Priority | FrameKind::PushPromise | FrameKind::Continuation | FrameKind::Unknown => {
                panic!("we never write {:?}", head.kind)
            }
        }
    }

    /// The next frame that says something about a stream or the end of the connection.
    async fn next_of_note(&mut self) -> ReceivedFrame {
        self.next_but(|got| {
            matches!(
                got,
                ReceivedFrame::Settings { .. }
                    | ReceivedFrame::WindowUpdate { stream: 0, .. }
                    | ReceivedFrame::Ping { is_ack: true }
            )
        })
        .await
    }

    /// The next frame but for those that do not matter.
    async fn next_but(&mut self, does_not_matter: impl Fn(&ReceivedFrame) -> bool) -> ReceivedFrame {
        loop {
            let got = self.next().await;
            if !does_not_matter(&got) {
                return got;
            }
        }
    }

    /// Waits until everything that was written has been looked at.
    async fn settle(&mut self) -> Vec<ReceivedFrame> {
        self.frame(FrameKind::Ping, 0, 0, SETTLED).await;
        let mut before = Vec::new();
        loop {
            let got = self.next().await;
            if got == ReceivedFrame::Settled {
                return before;
            }
            before.push(got);
        }
    }
}

fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(kind, flags, stream, payload, &mut out);
    out
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    write_setting(id, value, &mut payload);
    frame(FrameKind::Settings, 0, 0, &payload)
}

/// Fields as literals with new names, so that nothing is checked before it is sent.
fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in lines {
        out.push(0);
        for text in [name, value] {
            out.push(u8::try_from(text.len()).expect("short"));
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

const REQUEST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", "/")];

/// A request with these fields beside the usual ones.
fn request(stream: u32, flags: u8, more: &[(&str, &str)]) -> Vec<u8> {
    frame(FrameKind::Headers, END_HEADERS | flags, stream, &block(&[&REQUEST[..], more].concat()))
}

fn response(stream: u32, flags: u8, status: u16, headers: &[(&'static str, &'static str)]) -> Vec<u8> {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    let mut block = Vec::new();
    encode_response(status.try_into().expect("legal"), &headers.into(), &mut block);
    frame(FrameKind::Headers, END_HEADERS | flags, stream, &block)
}

fn trailers(stream: u32, name: &'static str, value: &'static str) -> Vec<u8> {
    let mut block = Vec::new();
    encode_field(&HeaderName::from_static(name), &HeaderValue::from_static(value), &mut block);
    frame(FrameKind::Headers, END_HEADERS | END_STREAM, stream, &block)
}
