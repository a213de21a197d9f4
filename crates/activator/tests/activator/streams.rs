//! What flows while it flows: nothing is buffered whole, and a broken answer never looks like a whole one.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use vocabulary::{PodState, RequestTimeouts};

use crate::world::{HOST, World, assignment, within};

/// A pod that reads the head of one request and then does as the test says.
async fn scripted<Script: Future<Output = ()> + Send + 'static>(
    script: impl FnOnce(BufReader<TcpStream>, String) -> Script + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut socket = BufReader::new(listener.accept().await.unwrap().0);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            socket.read_line(&mut head).await.unwrap();
        }
        script(socket, head).await;
    });
    address
}

async fn client(world: &World, request: &str) -> BufReader<TcpStream> {
    let mut socket = TcpStream::connect(world.address).await.unwrap();
    socket.write_all(request.replace("HOST", HOST).as_bytes()).await.unwrap();
    BufReader::new(socket)
}

/// Reads until the text has come.
async fn read_until(socket: &mut BufReader<TcpStream>, text: &str) -> String {
    let mut read = Vec::new();
    within(text, async {
        while !String::from_utf8_lossy(&read).contains(text) {
            read.push(socket.read_u8().await.unwrap());
        }
    })
    .await;
    String::from_utf8(read).unwrap()
}

async fn read_all(socket: &mut BufReader<TcpStream>) -> String {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = within("the end of the connection", socket.read_to_end(&mut rest)).await;
    String::from_utf8(rest).unwrap()
}

#[tokio::test]
async fn server_sent_events_arrive_one_by_one() {
    let world = World::start();
    let (seen, is_seen) = oneshot::channel();
    let pod = scripted(async move |mut socket, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        socket.write_all(format!("{head}d\r\ndata: first\n\n\r\n").as_bytes()).await.unwrap();
        is_seen.await.unwrap();
        socket.write_all(b"e\r\ndata: second\n\n\r\n0\r\n\r\n").await.unwrap();
        let _ = socket.read_u8().await;
    })
    .await;
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    let mut socket = client(&world, "GET /events HTTP/1.1\r\nhost: HOST\r\n\r\n").await;
    read_until(&mut socket, "data: first\n\n").await;
    seen.send(()).unwrap();
    read_until(&mut socket, "data: second\n\n\r\n0\r\n\r\n").await;
}

#[tokio::test]
async fn early_hints_do_not_change_the_final_status() {
    let world = World::start();
    let pod = scripted(async |mut socket, _| {
        let answer = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno";
        socket.write_all(answer.as_bytes()).await.unwrap();
        let _ = socket.read_u8().await;
    })
    .await;
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    let mut socket = client(&world, "GET / HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n").await;
    let answer = read_all(&mut socket).await;
    assert!(answer.contains("HTTP/1.1 404 Not Found\r\n") && answer.ends_with("\r\n\r\nno"), "{answer}");
}

/// Answers before the rest of the request's body has come, and goes on after it.
async fn answer_around(socket: &mut BufReader<TcpStream>, rest: &str) {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nearly\r\n";
    socket.write_all(answer.as_bytes()).await.unwrap();
    assert_eq!(read_until(socket, rest).await, rest);
    socket.write_all(b"4\r\nlate\r\n0\r\n\r\n").await.unwrap();
    let _ = socket.read_u8().await;
}

#[tokio::test]
async fn a_pod_that_answers_before_it_asks_for_the_body_may_still_read_it() {
    let world = World::start();
    let pod = scripted(async |mut socket, head| {
        assert!(head.contains("expect: 100-continue\r\n"), "{head}");
        answer_around(&mut socket, "4\r\nbody\r\n0\r\n\r\n").await;
    })
    .await;
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    let mut socket =
        client(&world, "POST / HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n").await;
    read_until(&mut socket, "early").await;
    socket.write_all(b"4\r\nbody\r\n0\r\n\r\n").await.unwrap();
    read_until(&mut socket, "late").await;
}

#[tokio::test]
async fn a_body_that_is_kept_flows_on_after_an_early_answer() {
    let world = World::start();
    let pod = scripted(async |mut socket, head| {
        assert!(!head.contains("expect:"), "{head}");
        assert_eq!(read_until(&mut socket, "bo").await, "bo", "what is there leaves at once");
        answer_around(&mut socket, "dy").await;
    })
    .await;
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    let mut socket = client(&world, "POST / HTTP/1.1\r\nhost: HOST\r\ncontent-length: 4\r\n\r\nbo").await;
    read_until(&mut socket, "early").await;
    socket.write_all(b"dy").await.unwrap();
    read_until(&mut socket, "late").await;
    assert_eq!(world.metric("activator_replay_bytes"), 0.0, "it has started");
}

#[tokio::test]
async fn an_answer_that_falls_silent_is_broken_off_visibly() {
    let world = World::start();
    let pod = scripted(async |mut socket, _| {
        let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
        socket.write_all(answer.as_bytes()).await.unwrap();
        let _ = socket.read_u8().await;
    })
    .await;
    let mut assigned = assignment(1, &[("a", pod, PodState::Ready)]);
    assigned.timeouts = RequestTimeouts { idle: Some(Duration::from_millis(200)), ..Default::default() };
    let _autoscaler = world.synced(&[assigned]).await;
    let mut socket = client(&world, "GET / HTTP/1.1\r\nhost: HOST\r\n\r\n").await;
    let answer = read_all(&mut socket).await;
    assert!(answer.contains("first") && !answer.contains("0\r\n\r\n"), "{answer}");
}

/// A pod that answers like a gRPC server: the request's messages, and a status in trailers.
async fn grpc_pod() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let answering = hyper::service::service_fn(async |request: Request<Incoming>| {
            assert_eq!(request.headers()["te"], "trailers");
            let sent = request.into_body().collect().await.unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            trailers.insert(
                "x-sent",
                sent.trailers().map_or(HeaderValue::from_static("none"), |t| t["x-end"].clone()),
            );
            let frames = [Frame::data(sent.to_bytes()), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
            let mut response = Response::new(StreamBody::new(futures_util::stream::iter(frames)));
            response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
            Ok::<_, Infallible>(response)
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(socket), answering).await;
    });
    address
}

#[tokio::test]
async fn a_grpc_call_keeps_its_messages_and_its_trailers_both_ways() {
    let (world, pod) = (World::start(), grpc_pod().await);
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    let socket = TcpStream::connect(world.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    let mut trailers = HeaderMap::new();
    trailers.insert("x-end", HeaderValue::from_static("yes"));
    let frames =
        [Frame::data(Bytes::from_static(b"message")), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
    let request = Request::post(format!("http://{HOST}/service/Method"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(StreamBody::new(futures_util::stream::iter(frames)))
        .unwrap();
    let response = within("the answer", sender.send_request(request)).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].as_bytes()),
        (200, &b"application/grpc"[..])
    );
    let body = within("the body", response.into_body().collect()).await.unwrap();
    let trailers = body.trailers().unwrap();
    assert_eq!((trailers["grpc-status"].as_bytes(), trailers["x-sent"].as_bytes()), (&b"0"[..], &b"yes"[..]));
    assert_eq!(body.to_bytes(), "message");
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A pod that sends back what it gets, as it gets it.
async fn echo_pod() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let answering = hyper::service::service_fn(async |request: Request<Incoming>| {
            Ok::<_, Infallible>(Response::new(request.into_body()))
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(socket), answering).await;
    });
    address
}

/// As gRPC does at both ends to find out how much a connection carries: with every piece a ping, and room for
/// what came.
#[tokio::test]
async fn pings_with_every_piece_of_a_stream_break_nothing() {
    const PIECE: &[u8] = b"a message";
    let (data, ping, go_away) = (0, 6, 7);
    let (world, pod) = (World::start(), echo_pod().await);
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    let mut socket = BufReader::new(TcpStream::connect(world.address).await.unwrap());
    let mut head = Vec::new();
    for text in [":method", "POST", ":scheme", "http", ":authority", HOST, ":path", "/"] {
        if text.starts_with(':') {
            head.push(0);
        }
        head.push(u8::try_from(text.len()).unwrap());
        head.extend_from_slice(text.as_bytes());
    }
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[]), &frame(1, 4, 1, &head)];
    socket.write_all(&preface.concat()).await.unwrap();
    let room = u32::try_from(PIECE.len()).unwrap().to_be_bytes();
    let measured = [
        frame(data, 0, 1, PIECE),
        frame(ping, 0, 0, b"measured"),
        frame(8, 0, 0, &room),
        frame(8, 0, 1, &room),
    ];
    let measured = measured.concat().repeat(100);
    for _ in 0..200 {
        socket.write_all(&measured).await.unwrap();
        let (mut bytes, mut answers) = (100 * PIECE.len(), 100);
        while bytes + answers > 0 {
            let mut head = [0; 9];
            within("a frame", socket.read_exact(&mut head)).await.unwrap();
            let mut payload = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
            within("its rest", socket.read_exact(&mut payload)).await.unwrap();
            assert!(head[3] != go_away && head[3] != 3, "the stream or its connection ends: {payload:?}");
            if head[3] == data {
                bytes -= payload.len();
            }
            answers -= usize::from(head[3] == ping && payload == b"measured");
        }
    }
}
