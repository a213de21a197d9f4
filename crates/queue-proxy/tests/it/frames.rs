//! HTTP/2 frame by frame: what peers do in earnest, faster and more often than any network lets them.

use bytes::{Buf, BytesMut};
use http::Response;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

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

/// As gRPC does at both ends to find out how much a connection carries: with every piece a ping, and room for what came.
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
