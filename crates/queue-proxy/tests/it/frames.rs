//! HTTP/2 frame by frame: what peers do in earnest, faster and more often than any network lets them.

use std::cell::Cell;
use std::rc::Rc;

use bytes::{Buf, BytesMut};
use http::Response;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{App, HOP_KEY, Proxy, run, text};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request with further headers, every field a literal with a new name.
fn request(stream: u32, flags: u8, more: &[(&str, &str)]) -> Vec<u8> {
    let usual = [(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", "/")];
    let mut block = Vec::new();
    for (name, value) in usual.iter().chain(more) {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("short"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(HEADERS, END_HEADERS | flags, stream, &block)
}

/// A client that writes its frames itself.
struct Client {
    stream: TcpStream,
    read: BytesMut,
}

impl Client {
    async fn connect(proxy: &Proxy) -> Self {
        let mut client = Self { stream: proxy.connect().await, read: BytesMut::new() };
        client.write(&[&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat()).await;
        client
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("open");
    }

    /// The next frame: its kind, its stream, its payload.
    async fn next(&mut self) -> (u8, u32, BytesMut) {
        loop {
            if let Some([a, b, c, kind, _flags, stream @ ..]) = self.read.first_chunk::<9>() {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                let (kind, stream) = (*kind, u32::from_be_bytes(*stream));
                if self.read.len() >= 9 + length {
                    self.read.advance(9);
                    let payload = self.read.split_to(length);
                    assert!(kind != GO_AWAY, "the connection ends: {payload:?}");
                    return (kind, stream, payload);
                }
            }
            let count = self.stream.read_buf(&mut self.read).await.expect("open");
            assert!(count > 0, "the connection was closed");
        }
    }
}

/// As gRPC does at both ends to find out how much a connection carries: with every piece a ping, and room for
/// what came.
#[test]
fn pings_with_every_piece_of_a_stream_break_nothing() {
    const PIECE: &[u8] = b"a message";
    run(async {
        let app = App::start(|request| {
            let body = request.into_body().map_err(std::io::Error::other).boxed_unsync();
            Box::pin(async { Response::new(body) })
        })
        .await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut client = Client::connect(&proxy).await;
        client.write(&request(1, 0, &[])).await;
        let room = u32::try_from(PIECE.len()).expect("short").to_be_bytes();
        let measured = [
            frame(DATA, 0, 1, PIECE),
            frame(PING, 0, 0, b"measured"),
            frame(WINDOW_UPDATE, 0, 0, &room),
            frame(WINDOW_UPDATE, 0, 1, &room),
        ]
        .concat();
        for _ in 0..200 {
            client.write(&measured.repeat(100)).await;
            let (mut bytes, mut answers) = (100 * PIECE.len(), 100);
            while bytes + answers > 0 {
                match client.next().await {
                    (DATA, 1, payload) => bytes -= payload.len(),
                    (PING, 0, payload) if payload == "measured"[..] => answers -= 1,
                    (RESET, ..) => panic!("the stream was broken off"),
                    _ => {}
                }
            }
        }
    });
}

/// An activator passes on what its clients break off, over connections that others share.
#[test]
fn requests_that_a_hop_breaks_off_end_no_others() {
    run(async {
        let app = App::start(|_| Box::pin(async { text(200, "hello") })).await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut client = Client::connect(&proxy).await;
        let hop = [("ebb-hop-key", HOP_KEY)];
        client.write(&request(1, 0, &hop)).await;
        for stream in (3..8_000).step_by(2) {
            let cancelled =
                [request(stream, END_STREAM, &hop), frame(RESET, 0, stream, &8_u32.to_be_bytes())];
            client.write(&cancelled.concat()).await;
        }
        client.write(&request(8_001, END_STREAM, &hop)).await;
        loop {
            match client.next().await {
                (DATA, 8_001, payload) if payload == "hello"[..] => break,
                (RESET, 8_001, _) => panic!("an honest request was lost"),
                _ => {}
            }
        }
    });
}

/// An app that refuses so many streams and answers the next ones; counts how often it was asked.
async fn refusing_app(refusals: u32) -> (u16, Rc<Cell<u32>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let asked = Rc::new(Cell::new(0));
    let counted = Rc::clone(&asked);
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(refuse_streams(stream, refusals, Rc::clone(&counted)));
        }
    });
    (port, asked)
}

async fn refuse_streams(stream: TcpStream, refusals: u32, asked: Rc<Cell<u32>>) {
    const ACK: u8 = 1;
    const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
    // `:status: 200` of the static table.
    const OK: [u8; 1] = [0x88];
    let mut app = Client { stream, read: BytesMut::new() };
    let mut preface = [0; 24];
    app.stream.read_exact(&mut preface).await.expect("open");
    app.write(&[frame(SETTINGS, 0, 0, &[]), frame(SETTINGS, ACK, 0, &[])].concat()).await;
    loop {
        let (kind, stream, _) = app.next().await;
        if kind == HEADERS {
            asked.set(asked.get() + 1);
            let answer = if asked.get() > refusals {
                frame(HEADERS, END_HEADERS | END_STREAM, stream, &OK)
            } else {
                frame(RESET, 0, stream, &REFUSED_STREAM)
            };
            app.write(&answer).await;
        }
    }
}

/// An activator paces its own attempts; who comes without one is not told to try again at once either.
#[test]
fn an_app_that_refuses_is_asked_with_patience_for_clients_of_no_hop_too() {
    run(async {
        for (refusals, status) in [(9, 200), (u32::MAX, 502)] {
            let (app, asked) = refusing_app(refusals).await;
            let proxy = Proxy::start(app, &[]).await;
            let mut client = crate::world::http2(proxy.ports.requests).await;
            let request = http::Request::get("http://h/").body(crate::world::streamed(&[]));
            let response = client.send_request(request.expect("legal")).await.expect("an answer");
            assert_eq!(response.status(), status);
            if status == 200 {
                assert_eq!(asked.get(), 10);
                continue;
            }
            let error = response.headers()["ebb-error"].to_str().expect("text");
            assert!(error.starts_with("upstream-reset; detail=\"the app refused the request"), "{error}");
            assert!(!response.headers().contains_key("ebb-not-started"), "nobody is to try again");
            assert!((12..=24).contains(&asked.get()), "asked {} times", asked.get());
        }
    });
}
