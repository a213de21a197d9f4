//! One test for each thing that must pass through untouched: gRPC trailers, WebSocket, server-sent events,
//! trailers, 103, 100, early responses, full duplex, HTTP/2.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{
    App, AppBody, Proxy, answer, ask, http2, parse, read_until, run, scripted, streamed, text,
};

/// An app that upgrades and sends back what it gets.
pub(crate) async fn echo_app() -> App {
    App::start(|mut request| {
        Box::pin(async move {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::task::spawn_local(async move {
                let Ok(upgraded) = upgrade.await else { return };
                let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
            let mut response = text(101, "");
            let headers = response.headers_mut();
            headers.insert("connection", HeaderValue::from_static("upgrade"));
            headers.insert("upgrade", HeaderValue::from_static("websocket"));
            headers.insert("sec-websocket-accept", HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
            response
        })
    })
    .await
}

/// A connection that has become a WebSocket.
pub(crate) async fn upgraded(proxy: &Proxy) -> TcpStream {
    let mut stream = proxy.connect().await;
    let request = b"GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(request).await.expect("open");
    let head = parse(read_until(&mut stream, "\r\n\r\n").await.as_bytes(), true);
    assert_eq!(
        (head.status, head.header("upgrade"), head.header("connection")),
        (101, "websocket", "Upgrade")
    );
    assert_eq!(head.header("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    stream
}

#[test]
fn a_websocket_carries_bytes_both_ways_until_one_side_ends() {
    run(async {
        let app = echo_app().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut stream = upgraded(&proxy).await;
        for message in ["one", "two"] {
            stream.write_all(message.as_bytes()).await.expect("open");
            assert_eq!(read_until(&mut stream, message).await, message);
        }
        stream.shutdown().await.expect("open");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("a clean end");
        assert!(rest.is_empty());
        let again = ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await;
        assert!(again.body.contains("queue_proxy_upgraded_streams 0"), "{}", again.body);
    });
}

fn frames_of(frames: Vec<Frame<Bytes>>) -> AppBody {
    StreamBody::new(futures_util::stream::iter(frames.into_iter().map(Ok))).boxed_unsync()
}

fn trailers(pairs: &[(&'static str, &'static str)]) -> Frame<Bytes> {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.insert(*name, HeaderValue::from_static(value));
    }
    Frame::trailers(map)
}

#[test]
fn h26_grpc_trailers_pass_both_ways_over_http2() {
    run(async {
        let app = App::start(|request| {
            Box::pin(async move {
                assert_eq!(
                    (request.version(), &request.headers()["te"]),
                    (Version::HTTP_2, &HeaderValue::from_static("trailers"))
                );
                let body = request.into_body().collect().await.expect("whole");
                assert_eq!(body.trailers().expect("the client's")["x-checksum"], "7");
                let message = Frame::data(body.to_bytes());
                Response::builder()
                    .header("content-type", "application/grpc")
                    .body(frames_of(vec![
                        message,
                        trailers(&[("grpc-status", "5"), ("grpc-message", "no such")]),
                    ]))
                    .expect("legal")
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[]).await;
        let body = frames_of(vec![
            Frame::data(Bytes::from_static(b"\0\0\0\0\x02hi")),
            trailers(&[("x-checksum", "7")]),
        ]);
        let request = Request::post("http://h/Service/Method")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(body)
            .expect("legal");
        let response = http2(proxy.ports.requests).await.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.expect("whole");
        let trailers = body.trailers().expect("the app's").clone();
        assert_eq!(
            (&trailers["grpc-status"], &trailers["grpc-message"]),
            (&HeaderValue::from_static("5"), &HeaderValue::from_static("no such"))
        );
        assert_eq!(body.to_bytes(), "\0\0\0\0\x02hi");
    });
}

/// All clients share a connection to the app.
#[test]
fn a_client_that_does_not_read_takes_nothing_from_the_others() {
    run(async {
        const LENGTH: usize = 4 * 1024 * 1024;
        let app = App::start(|_| {
            let body = http_body_util::Full::new(Bytes::from(vec![b'x'; LENGTH]));
            Box::pin(async { Response::new(body.map_err(|never| match never {}).boxed_unsync()) })
        })
        .await;
        let proxy = Proxy::start(app.port, &[]).await;
        let get = async |sender: &mut SendRequest<AppBody>| {
            let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
            let request = Request::get("http://h/").body(body).expect("legal");
            sender.send_request(request).await.expect("an answer")
        };
        let mut lazy = http2(proxy.ports.requests).await;
        let mut unread = Vec::new();
        for _ in 0..20 {
            unread.push(get(&mut lazy).await);
        }
        let mut other = http2(proxy.ports.requests).await;
        let answer = get(&mut other).await.into_body().collect().await;
        assert_eq!(answer.expect("whole").to_bytes().len(), LENGTH);
    });
}

/// H22, whether they were announced or not.
#[test]
fn h22_trailers_reach_an_http1_client() {
    run(async {
        let port = scripted(|mut stream, _| async move {
            let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n";
            stream.write_all(response).await.expect("open");
        })
        .await;
        let proxy = Proxy::start(port, &[]).await;
        let answer = proxy.get("/", &[("Te", "trailers")]).await;
        assert_eq!((answer.body.as_str(), answer.is_whole), ("abc", true));
        assert_eq!(answer.trailers.get("x-t"), Some(&HeaderValue::from_static("1")));
        assert_eq!(answer.trailers.get("x-u"), Some(&HeaderValue::from_static("2")));
    });
}

#[test]
fn server_sent_events_arrive_one_by_one() {
    run(async {
        let app = App::start(|_| {
            Box::pin(async {
                let events = &[(0, "data: 1\n\n"), (300, "data: 2\n\n"), (60_000, "data: 3\n\n")];
                Response::builder()
                    .header("content-type", "text/event-stream")
                    .body(streamed(events))
                    .expect("legal")
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut stream = proxy.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        let first = read_until(&mut stream, "data: 1").await;
        assert!(!first.contains("data: 2"));
        read_until(&mut stream, "data: 2").await;
    });
}

/// H18, H19: the final status is never lost; 103 itself is dropped, because the stack cannot send it.
#[test]
fn h18_h19_an_early_hint_never_changes_the_final_status() {
    run(async {
        for (status, expected) in [("200 OK", 200), ("404 Not Found", 404)] {
            let port = scripted(move |mut stream, _| async move {
                let response = format!(
                    "HTTP/1.1 103 Early Hints\r\nLink: </x.css>\r\n\r\nHTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok"
                );
                stream.write_all(response.as_bytes()).await.expect("open");
            })
            .await;
            let proxy = Proxy::start(port, &[]).await;
            let answer = proxy.get("/", &[]).await;
            assert_eq!((answer.status, answer.body.as_str()), (expected, "ok"));
        }
    });
}

#[test]
fn h20_h21_a_client_that_asks_before_it_sends_gets_the_apps_answer() {
    run(async {
        for (id, is_asked_for, final_status) in [("H20", true, 404), ("H21", false, 417)] {
            let port = scripted(move |mut stream, head| async move {
                assert!(head.contains("100-continue"), "{head}");
                if is_asked_for {
                    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.expect("open");
                    assert_eq!(read_until(&mut stream, "body").await, "body");
                }
                let response = format!("HTTP/1.1 {final_status} x\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(response.as_bytes()).await.expect("open");
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                assert!(rest.is_empty(), "a body that was not asked for came: {rest:?}");
            })
            .await;
            let proxy = Proxy::start(port, &[]).await;
            let mut stream = proxy.connect().await;
            let head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
            stream.write_all(head).await.expect("open");
            if is_asked_for {
                assert!(read_until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 100 "), "{id}");
                stream.write_all(b"body").await.expect("open");
            }
            assert_eq!(answer(&mut stream).await.status, final_status, "{id}");
        }
    });
}

/// The app can only say no to a body before it was sent if it hears of the request before the client is asked
/// to send.
#[test]
fn a_client_that_asks_before_it_sends_may_wait_long_for_its_turn() {
    run(async {
        let asked = Rc::new(tokio::sync::Notify::new());
        let busy = Rc::clone(&asked);
        let port = scripted(move |mut stream, head| {
            let busy = Rc::clone(&busy);
            async move {
                let status = if head.starts_with("GET") {
                    busy.notify_one();
                    // Longer than an app may take to ask for a body.
                    tokio::time::sleep(Duration::from_millis(1500)).await;
                    200
                } else {
                    417
                };
                let response = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(response.as_bytes()).await.expect("open");
            }
        })
        .await;
        let proxy = Proxy::start(port, &[("CONTAINER_CONCURRENCY", "1")]).await;
        let mut first = proxy.connect().await;
        first.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        asked.notified().await;
        let mut stream = proxy.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
        stream.write_all(head).await.expect("open");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("in order");
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with("HTTP/1.1 417 "), "{text}");
        // What would come next on this connection might be the body or might be a request.
        assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
    });
}

#[test]
fn requests_that_find_out_together_where_the_app_listens_all_get_there() {
    run(async {
        // No process listens there over IPv4 as long as this is kept: another test's server might, and be
        // found.
        let unheard = tokio::net::TcpSocket::new_v4().expect("a socket");
        unheard.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let port = unheard.local_addr().expect("bound").port();
        let app = App::start_at(&format!("[::1]:{port}"), |_| Box::pin(async { text(200, "hello") })).await;
        let proxy = Proxy::start(app.port, &[]).await;
        let client = http2(proxy.ports.requests).await;
        let requests = (0..100).map(|_| {
            let mut client = client.clone();
            async move {
                client.ready().await.expect("open");
                let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
                let request = Request::get("http://h/").body(body).expect("legal");
                client.send_request(request).await.expect("an answer").status().as_u16()
            }
        });
        assert_eq!(futures_util::future::join_all(requests).await, [200; 100]);
    });
}

#[test]
fn an_app_that_ignores_expect_gets_the_body_after_a_second() {
    run(async {
        let port = scripted(|mut stream, _| async move {
            assert_eq!(read_until(&mut stream, "body").await, "body");
            stream.write_all(b"HTTP/1.1 201 x\r\nContent-Length: 0\r\n\r\n").await.expect("open");
        })
        .await;
        let proxy = Proxy::start(port, &[]).await;
        let mut stream = proxy.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
        stream.write_all(head).await.expect("open");
        read_until(&mut stream, "100 Continue\r\n\r\n").await;
        stream.write_all(b"body").await.expect("open");
        assert_eq!(answer(&mut stream).await.status, 201);
    });
}

#[test]
fn an_early_response_reaches_a_client_that_is_still_sending() {
    run(async {
        let app = App::start(|_| Box::pin(async { text(413, "too much") })).await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut stream = proxy.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nsome";
        stream.write_all(head).await.expect("open");
        let answer = read_until(&mut stream, "too much").await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    });
}

/// H29, overturned by L43: full duplex is not a switch.
#[test]
fn h29_a_lock_step_echo_over_one_post_flows() {
    run(async {
        let app = App::start(|request| {
            Box::pin(async move {
                Response::new(request.into_body().map_err(std::io::Error::other).boxed_unsync())
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut stream = proxy.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head).await.expect("open");
        for word in ["ping", "pong", "peng"] {
            stream.write_all(format!("4\r\n{word}\r\n").as_bytes()).await.expect("open");
            read_until(&mut stream, word).await;
        }
    });
}

#[test]
fn a_reused_connection_that_the_app_has_closed_costs_no_request() {
    run(async {
        // Answers once per connection and closes it without having said so.
        let port = scripted(|mut stream, _| async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.expect("open");
        })
        .await;
        let proxy = Proxy::start(port, &[]).await;
        for round in 0..50 {
            tokio::time::sleep(Duration::from_millis(round % 8)).await;
            let posted = ask(proxy.ports.requests, "POST", "/", &[], b"body").await;
            assert_eq!(posted.status, StatusCode::OK, "L23, POST {round}");
            assert_eq!(proxy.get("/", &[]).await.status, StatusCode::OK, "L23, GET {round}");
        }
    });
}

#[test]
fn a_content_length_and_an_empty_body_stay_what_they_are() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let answer = ask(proxy.ports.requests, "POST", "/", &[], b"12345").await;
        assert_eq!((answer.header("content-length"), answer.header("transfer-encoding")), ("5", "-"));
        assert_eq!(
            (app.state.saw("content-length"), app.state.saw("transfer-encoding")),
            ("5".to_owned(), "-".to_owned())
        );
        proxy.get("/", &[]).await;
        assert_eq!(
            (app.state.saw("content-length"), app.state.saw("transfer-encoding")),
            ("-".to_owned(), "-".to_owned())
        );
        let head = ask(proxy.ports.requests, "HEAD", "/", &[], b"").await;
        assert_eq!((head.status, head.header("content-length"), head.body.as_str()), (200, "5", ""));
    });
}
