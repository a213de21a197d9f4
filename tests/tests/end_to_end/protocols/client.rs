//! Clients as close to the wire as a test needs: one connection of a known protocol, or plain bytes.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tests::Ebb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::protocols::world::within;

/// The body of every request that the client sends.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The body of a request that has none.
pub(crate) fn empty() -> Body {
    Empty::new().boxed_unsync()
}

/// A body that is there at once.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body whose frames are sent one by one; it ends when the sender is dropped.
pub(crate) fn channel() -> (mpsc::Sender<Frame<Bytes>>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    let frames = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|frame| (Ok(frame), receiver))
    });
    (sender, StreamBody::new(frames).boxed_unsync())
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    /// With prior knowledge, on the same port.
    Http2,
}

/// Both of them, for tests that prove the same of each.
pub(crate) const PROTOCOLS: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

impl Protocol {
    /// A request for a host in the form that the protocol wants.
    pub(crate) fn request(self, method: Method, host: &str, path: &str, body: Body) -> Request<Body> {
        let builder = match self {
            Self::Http1 => Request::builder().uri(path).header("host", host),
            Self::Http2 => Request::builder().uri(format!("http://{host}{path}")).version(Version::HTTP_2),
        };
        builder.method(method).body(body).expect("tests write well-formed requests")
    }
}

/// One connection. Dropping it resets it and breaks off what is under way.
pub(crate) struct Client {
    protocol: Protocol,
    sender: Sender,
    connection: tokio::task::JoinHandle<()>,
}

enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

impl Client {
    pub(crate) async fn connect(ebb: &Ebb, protocol: Protocol) -> Self {
        Self::connect_to(ebb.requests, protocol).await
    }

    pub(crate) async fn connect_to(address: SocketAddr, protocol: Protocol) -> Self {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.set_nodelay(true).expect("the connection is open");
        // So that dropping it resets it: a plain close behind a whole request looks like the end of the
        // sending side, whose client may still read its answer.
        stream.set_zero_linger().expect("the connection is open");
        let io = TokioIo::new(stream);
        // A request that waits for a response on it sees how a connection ends.
        let (sender, connection) = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await.expect("nothing is sent yet");
                let connection = tokio::spawn(async { connection.await.unwrap_or_default() });
                (Sender::Http1(sender), connection)
            }
            Protocol::Http2 => {
                let shaken = http2::handshake(TokioExecutor::new(), io).await;
                let (sender, connection) = shaken.expect("the server speaks HTTP/2");
                let connection = tokio::spawn(async { connection.await.unwrap_or_default() });
                (Sender::Http2(sender), connection)
            }
        };
        Self { protocol, sender, connection }
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn send(&mut self, request: Request<Body>) -> hyper::Result<Response<Incoming>> {
        let sending = async {
            match &mut self.sender {
                Sender::Http1(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
                Sender::Http2(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
            }
        };
        within("the head of a response", sending).await
    }

    /// A request without a body.
    pub(crate) async fn get(&mut self, host: &str, path: &str) -> Response<Incoming> {
        let request = self.protocol.request(Method::GET, host, path, empty());
        self.send(request).await.expect("there is a response")
    }

    /// A request with a body.
    pub(crate) async fn post(&mut self, host: &str, path: &str, body: Body) -> Response<Incoming> {
        let request = self.protocol.request(Method::POST, host, path, body);
        self.send(request).await.expect("there is a response")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// A request without a body on a connection of its own. The connection lives until the response is dropped or
/// at its end.
pub(crate) async fn get(ebb: &Ebb, protocol: Protocol, host: &str, path: &str) -> Answer {
    let mut client = Client::connect(ebb, protocol).await;
    Answer::read(client.get(host, path).await).await
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) trailers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Reads a response to its end, which must be a clean one.
    pub(crate) async fn read(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = within("the rest of a response", body.collect()).await.expect("the body ends cleanly");
        let trailers = body.trailers().cloned().unwrap_or_default();
        Self { status: head.status.as_u16(), headers: head.headers, trailers, body: body.to_bytes() }
    }

    /// The value of a header; empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The first word of `ebb-error`.
    pub(crate) fn reason(&self) -> &str {
        self.header("ebb-error").split(';').next().unwrap_or_default()
    }

    /// The body of the response, as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The next piece of data of a response, which must be there.
pub(crate) async fn next_data(body: &mut Incoming) -> Bytes {
    let frame = within("the next piece of a response", body.frame()).await;
    let frame = frame.expect("the response goes on").expect("the response is whole");
    frame.into_data().expect("data comes before trailers")
}

/// Reads exactly as many bytes of a response as `expected` has, in whatever pieces, and compares.
pub(crate) async fn expect_data(body: &mut Incoming, expected: &[u8]) {
    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        seen.extend_from_slice(&next_data(body).await);
    }
    assert_eq!(seen, expected);
}

/// A connection that carries exactly the bytes that the test writes.
pub(crate) struct RawClient(TcpStream);

impl RawClient {
    pub(crate) async fn connect(ebb: &Ebb) -> Self {
        let stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
        stream.set_nodelay(true).expect("the connection is open");
        Self(stream)
    }

    pub(crate) async fn write(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.expect("the connection is open");
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn end_sending(&mut self) {
        self.0.shutdown().await.expect("the connection is open");
    }

    /// Reads up to and with this text.
    pub(crate) async fn read_until(&mut self, text: &str) {
        let mut seen = Vec::new();
        while !seen.ends_with(text.as_bytes()) {
            seen.push(within(text, self.0.read_u8()).await.expect("the response goes on"));
        }
    }

    /// Reads the head of a response, interim ones too, and not a byte of what follows.
    pub(crate) async fn read_head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let byte = within("the head of a response", self.0.read_u8()).await;
            head.push(byte.expect("the head is whole"));
        }
        String::from_utf8(head).expect("heads are ASCII")
    }

    /// Reads until the server closes; a reset counts as that.
    pub(crate) async fn read_rest(&mut self) -> String {
        let (Ok(rest) | Err(rest)) = self.read_to_close().await;
        rest
    }

    /// Reads until the server closes in order; or, as an error, what came before a reset.
    pub(crate) async fn read_to_close(&mut self) -> Result<String, String> {
        let mut rest = Vec::new();
        let closed = within("the end of the connection", self.0.read_to_end(&mut rest)).await;
        let rest = String::from_utf8_lossy(&rest).into_owned();
        if closed.is_ok() { Ok(rest) } else { Err(rest) }
    }
}
