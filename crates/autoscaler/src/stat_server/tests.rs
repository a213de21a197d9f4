//! The server before a client of the field's WebSocket library, over a connection in memory.

use bytes::Bytes;
use futures_util::SinkExt as _;
use tokio::io::DuplexStream;
use tokio_tungstenite::client_async;

use super::*;
use crate::stat_desk::StatWord;

/// N6: concurrency 1 and 1 request of `default/hello-00001` at `activator-1`.
const PUSH: &[u8] =
    b"\x0a\x37\x0a\x07default\x12\x0bhello-00001\x1a\x1f\x0a\x0bactivator-1\x11\0\0\0\0\0\0\xf0\x3f\x21\0\0\0\0\0\0\xf0\x3f";

/// A connection to this server.
async fn connect(server: &StatServer) -> WebSocketStream<DuplexStream> {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let server = server.clone();
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let response = server.answer(request.map(Body::new));
        async move { Ok::<_, Infallible>(response) }
    });
    let http = hyper::server::conn::http1::Builder::new();
    tokio::spawn(http.serve_connection(TokioIo::new(theirs), service).with_upgrades());
    let (socket, _) = client_async("ws://autoscaler.knative-serving.svc.cluster.local:8080/", ours)
        .await
        .expect("it is accepted");
    socket
}

fn request(headers: &[(&str, &str)]) -> Request {
    let mut request = Request::builder();
    for (key, value) in headers {
        request = request.header(*key, *value);
    }
    request.body(Body::empty()).expect("a request")
}

#[tokio::test]
async fn a_frame_of_an_activator_arrives_and_a_broken_one_ends_nothing() {
    let desk = StatDesk::default();
    let mut words = desk.listen(&ReplicaName::new("activator-1"));
    let server = StatServer::new(desk, CancellationToken::new());
    let mut socket = connect(&server).await;
    for message in [
        Message::Binary(Bytes::from_static(b"\xff\xff")),
        Message::Text("ignored".into()),
        Message::Binary(Bytes::from_static(PUSH)),
    ] {
        socket.send(message).await.expect("it is taken");
    }
    let Some(StatWord::Said(loads)) = words.recv().await else { panic!("nothing was said") };
    let names: Vec<&str> = loads.iter().map(|(revision, _)| revision.as_str()).collect();
    assert_eq!(names, ["default/revision/hello-00001"]);
    drop(socket);
    assert_eq!(words.recv().await, Some(StatWord::Left));
}

#[tokio::test]
async fn a_ping_is_answered() {
    let server = StatServer::new(StatDesk::default(), CancellationToken::new());
    let mut socket = connect(&server).await;
    socket.send(Message::Ping(Bytes::from_static(b"beat"))).await.expect("it is taken");
    let answer = socket.next().await.expect("an answer").expect("a message");
    assert_eq!(answer, Message::Pong(Bytes::from_static(b"beat")));
}

#[tokio::test]
async fn the_end_of_the_program_is_told_as_a_restart() {
    let stop = CancellationToken::new();
    let server = StatServer::new(StatDesk::default(), stop.clone());
    let mut socket = connect(&server).await;
    stop.cancel();
    let Some(Ok(Message::Close(Some(frame)))) = socket.next().await else { panic!("it is not closed") };
    assert_eq!(u16::from(frame.code), 1012);
}

#[tokio::test(start_paused = true)]
async fn an_activator_that_is_silent_is_dropped() {
    let server = StatServer::new(StatDesk::default(), CancellationToken::new());
    let mut socket = connect(&server).await;
    // Without a close: there is nobody to read it.
    let ended = socket.next().await.expect("it ends");
    assert!(ended.is_err(), "{ended:?}");
}

#[tokio::test]
async fn probes_of_kubelet_and_other_autoscalers_get_no_websocket() {
    let server = StatServer::new(StatDesk::default(), CancellationToken::new());
    let status = |headers: &[(&str, &str)]| server.answer(request(headers)).status();
    assert_eq!(status(&[("user-agent", "kube-probe/1.34")]), StatusCode::OK);
    assert_eq!(status(&[("k-kubelet-probe", "queue"), ("upgrade", "websocket")]), StatusCode::OK);
    let bucket = ("host", "autoscaler-bucket-00-of-02.knative-serving.svc.cluster.local:8080");
    assert_eq!(status(&[bucket, ("upgrade", "websocket")]), StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(status(&[("upgrade", "websocket")]), StatusCode::BAD_REQUEST);
    let takes = |headers: &[(&str, &str)]| StatServer::takes(request(headers).headers());
    assert!(takes(&[("upgrade", "WebSocket")]) && takes(&[("user-agent", "kube-probe/1.34")]));
    assert!(!takes(&[("user-agent", "curl/8")]));
}

#[tokio::test]
async fn a_listener_of_its_own_takes_load_and_keeps_a_place_for_each_connection() {
    let desk = StatDesk::default();
    let mut words = desk.listen(&ReplicaName::new("activator-1"));
    let server = StatServer::new(desk, CancellationToken::new());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let serving = tokio::spawn(server.serve(listener).expect("it can be used"));
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (mut socket, _) = client_async("ws://autoscaler:8080/", stream).await.expect("it is accepted");
    socket.send(Message::Binary(Bytes::from_static(PUSH))).await.expect("it is taken");
    assert!(matches!(words.recv().await, Some(StatWord::Said(_))));
    serving.abort();
}

#[tokio::test]
async fn a_request_that_is_no_load_and_no_probe_is_told_where_the_api_is() {
    let server = StatServer::new(StatDesk::default(), CancellationToken::new());
    assert_eq!(server.answer_any(request(&[("user-agent", "curl/8")])).status(), StatusCode::NOT_FOUND);
    assert_eq!(server.answer_any(request(&[("user-agent", "kube-probe/1.34")])).status(), StatusCode::OK);
}
