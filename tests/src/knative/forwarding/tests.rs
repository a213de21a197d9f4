//! One hop over real connections: from a client over HTTP/1.1 to an app in either protocol.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// Only bounds how long a failing test takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server on a free port of the loopback address, as long as the test runs.
async fn served<Answer, Answering>(answer: Answer) -> SocketAddr
where
    Answer: Fn(Request<Incoming>) -> Answering + Clone + Send + 'static,
    Answering: Future<Output = Response<StandInBody>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it has one");
    // A panic of it leaves requests unanswered, which the test sees.
    tokio::spawn(async move {
        let _ = serve_listener(listener, answer).await;
    });
    address
}

/// An app that says how it was asked, or switches protocols and sends every byte back.
async fn app(mut request: Request<Incoming>) -> Response<StandInBody> {
    if text(request.headers(), "upgrade") != "echo" {
        return plain(StatusCode::OK, format!("{:?} to {}", request.version(), host_of(&request)));
    }
    let switched = hyper::upgrade::on(&mut request);
    // It ends with the connection, which the test holds.
    tokio::spawn(async move {
        let (mut from, mut to) = tokio::io::split(TokioIo::new(switched.await.expect("it switches")));
        let _ = tokio::io::copy(&mut from, &mut to).await;
    });
    let mut answer = plain(StatusCode::SWITCHING_PROTOCOLS, "");
    set(answer.headers_mut(), "connection", "Upgrade");
    set(answer.headers_mut(), "upgrade", "echo");
    answer
}

/// The app, which leaves out what came over its first connection, as a program does that says in this moment
/// that it leaves.
async fn leaving_app() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it has one");
    // A panic of it leaves requests unanswered, which the test sees.
    tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.expect("the proxy connects");
        read_to_head(&mut first).await.expect("a request is sent");
        // Settings, none of which is said, and a GOAWAY without an error that names no stream.
        let settings: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let go_away: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let leaving = [&settings[..], &go_away[..]].concat();
        first.write_all(&leaving).await.expect("the connection is open");
        let _ = serve_listener(listener, app).await;
    });
    address
}

/// Reads the preface of HTTP/2, and frames up to the head of a request.
async fn read_to_head(client: &mut TcpStream) -> std::io::Result<()> {
    client.read_exact(&mut [0; 24]).await?;
    loop {
        let mut frame = [0; 9];
        client.read_exact(&mut frame).await?;
        let length = u16::from_be_bytes([frame[1], frame[2]]);
        client.read_exact(&mut vec![0; usize::from(length)]).await?;
        if frame[3] == 1 {
            return Ok(());
        }
    }
}

/// A connection to a proxy before the app, on which this head was sent.
async fn asked(speaks_h2c: bool, head: &str) -> TcpStream {
    asked_before(served(app).await, speaks_h2c, head).await
}

/// A connection to a proxy before this address, on which this head was sent.
async fn asked_before(to: SocketAddr, speaks_h2c: bool, head: &str) -> TcpStream {
    let forwarder = HopClient::new();
    let proxy = served(move |request| {
        let forwarder = forwarder.clone();
        async move { forwarder.forward(request, to, speaks_h2c, ()).await }
    });
    let mut client = TcpStream::connect(proxy.await).await.expect("the proxy listens");
    client.write_all(head.as_bytes()).await.expect("the connection is open");
    client
}

/// What the client has read once this text is in it.
async fn read_until(client: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(text) {
            let byte = client.read_u8().await.expect("the answer goes on");
            read.push(byte);
        }
    };
    let is_read = tokio::time::timeout(PATIENCE, reading).await;
    let read = String::from_utf8_lossy(&read).into_owned();
    is_read.unwrap_or_else(|_| panic!("{text:?} does not come: {read}"));
    read
}

#[tokio::test]
async fn the_host_of_the_client_arrives_in_either_protocol() {
    for (speaks_h2c, expected) in
        [(false, "HTTP/1.1 to shop.example.com"), (true, "HTTP/2.0 to shop.example.com")]
    {
        let mut client = asked(speaks_h2c, "GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n").await;
        read_until(&mut client, expected).await;
    }
}

#[tokio::test]
async fn a_request_that_a_leaving_hop_leaves_out_goes_over_another_connection() {
    let head = "GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n";
    let mut client = asked_before(leaving_app().await, true, head).await;
    read_until(&mut client, "HTTP/2.0 to shop.example.com").await;
}

#[tokio::test]
async fn a_connection_that_switches_protocols_is_carried_byte_for_byte() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    let mut client = asked(false, head).await;
    let switched = read_until(&mut client, "\r\n\r\n").await;
    assert!(switched.starts_with("HTTP/1.1 101 "), "{switched}");
    client.write_all(b"one two").await.expect("the connection is open");
    assert_eq!(read_until(&mut client, "two").await, "one two");
}
