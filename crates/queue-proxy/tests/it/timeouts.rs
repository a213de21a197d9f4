//! B11 and the family O: the three timers. Times are those of the vectors; what is asserted is outcome and
//! order.

use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::world::{App, HOP_KEY, Proxy, answer, ask, eventually, http2, read_head, run, streamed, text};

async fn app_with(frames: &'static [(u64, &'static str)]) -> App {
    App::start(move |_| Box::pin(async move { Response::new(streamed(frames)) })).await
}

/// The first byte comes late.
async fn silent_app(milliseconds: u64) -> App {
    App::start(move |_| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            text(200, "late")
        })
    })
    .await
}

const REQUEST_1S: (&str, &str) = ("REVISION_TIMEOUT_SECONDS", "1");
const START_1S: (&str, &str) = ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "1");
const IDLE_1S: (&str, &str) = ("REVISION_IDLE_TIMEOUT_SECONDS", "1");

#[test]
fn o1_o5_o6_a_silent_app_is_504_with_the_name_of_the_timer() {
    run(async {
        for (id, setting, reason, body, field) in [
            ("O1", REQUEST_1S, "request-timeout", "request timeout", "timeoutSeconds"),
            (
                "O5",
                START_1S,
                "response-start-timeout",
                "response start timeout",
                "responseStartTimeoutSeconds",
            ),
            ("O6", IDLE_1S, "idle-timeout", "idle timeout", "idleTimeoutSeconds"),
        ] {
            let app = silent_app(30_000).await;
            let proxy = Proxy::start(app.port, &[setting]).await;
            let answer = proxy.get("/", &[]).await;
            assert_eq!((answer.status, answer.reason(), answer.body.as_str()), (504, reason, body), "{id}");
            let explanation = format!("{reason}; detail=\"{field} of the revision is 1s\"");
            assert_eq!(answer.header("ebb-error"), explanation, "{id}");
            eventually("the app's work is cancelled", || app.state.running.get() == 0).await;
        }
    });
}

#[test]
fn o1_over_http2_and_l3_for_grpc() {
    run(async {
        let app = silent_app(30_000).await;
        let proxy = Proxy::start(app.port, &[REQUEST_1S]).await;
        let mut sender = http2(proxy.ports.requests).await;
        let body = || http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
        let plain = Request::get("http://h/").body(body()).expect("legal");
        let grpc = Request::post("http://h/S/M")
            .header("content-type", "application/grpc")
            .body(body())
            .expect("legal");
        let (plain, grpc) = (sender.send_request(plain), sender.clone().send_request(grpc));
        let (plain, grpc) = tokio::join!(plain, grpc);
        let plain = plain.expect("an answer");
        assert_eq!(
            (plain.status().as_u16(), &plain.headers()["content-length"]),
            (504, &"15".parse().expect("legal"))
        );
        let grpc = grpc.expect("an answer");
        assert_eq!((grpc.status().as_u16(), grpc.headers()["grpc-status"].as_bytes()), (200, &b"4"[..]));
    });
}

/// O2, O3 and O8, overturned by L2: nothing is appended, and the break is visible.
#[test]
fn o2_o3_o8_after_the_start_a_timer_breaks_the_response_and_adds_nothing() {
    run(async {
        let app = app_with(&[(0, "a"), (400, "b"), (400, "c"), (400, "d"), (400, "e")]).await;
        let proxy = Proxy::start(app.port, &[REQUEST_1S]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.body.as_str(), answer.is_whole), (200, "abc", false), "O2");
        drop(proxy);

        let app = App::start(|_| {
            Box::pin(async {
                let frames = &[(0, "a"), (400, "b"), (400, "c"), (400, "d"), (400, "e")];
                Response::builder().header("content-length", "5").body(streamed(frames)).expect("legal")
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[REQUEST_1S]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.body.as_str(), answer.is_whole), (200, "abc", false), "O3");
        drop(proxy);

        let app = app_with(&[(0, "a"), (1500, "b")]).await;
        let proxy = Proxy::start(app.port, &[IDLE_1S]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.body.as_str(), answer.is_whole), (200, "a", false), "O8");
        let mut sender = http2(proxy.ports.requests).await;
        let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
        let response = sender.send_request(Request::get("http://h/").body(body).expect("legal")).await;
        assert!(response.expect("a head").into_body().collect().await.is_err(), "O8 over HTTP/2");
    });
}

#[test]
fn o4_o7_a_response_that_has_begun_and_keeps_moving_completes() {
    run(async {
        for (id, setting) in [("O4", START_1S), ("O7", IDLE_1S)] {
            let app = app_with(&[(0, "a"), (700, "b"), (700, "c")]).await;
            let proxy = Proxy::start(app.port, &[setting]).await;
            let answer = proxy.get("/", &[]).await;
            assert_eq!((answer.body.as_str(), answer.is_whole), ("abc", true), "{id}");
        }
    });
}

#[test]
fn b11_a_request_that_waits_and_one_that_runs_both_time_out() {
    run(async {
        let app = silent_app(700).await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1"), REQUEST_1S]).await;
        let answers = futures_util::future::join_all((0..3).map(|_| proxy.get("/", &[]))).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 504, 504]);
        // The last one gets the slot that the second leaves, if its own time is not up in the same instant.
        assert!(app.state.seen.get() >= 2, "one of the two was running");
    });
}

#[test]
fn a_request_whose_time_is_up_while_it_waits_never_reaches_the_app() {
    run(async {
        let app = app_with(&[(0, "a"), (2500, "b")]).await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1"), START_1S]).await;
        let running = proxy.get("/", &[]);
        let waiting = async {
            eventually("the first one runs", || app.state.seen.get() == 1).await;
            let answer = proxy.get("/", &[]).await;
            assert_eq!((answer.status, app.state.seen.get()), (504, 1));
        };
        let (answer, ()) = tokio::join!(running, waiting);
        assert_eq!((answer.body.as_str(), answer.is_whole, app.state.seen.get()), ("ab", true, 1));
    });
}

/// O10, overturned by the design: 0 is no limit.
#[test]
fn o10_a_timeout_of_0_is_no_limit() {
    run(async {
        let app = silent_app(100).await;
        let proxy = Proxy::start(app.port, &[("REVISION_TIMEOUT_SECONDS", "0")]).await;
        assert_eq!(proxy.get("/", &[]).await.status, 200);
    });
}

/// L5: an upload that moves is not idle.
#[test]
fn bytes_of_a_request_body_feed_the_idle_clock() {
    run(async {
        let app = App::start(|request| {
            Box::pin(async move {
                let length = request.into_body().collect().await.expect("whole").to_bytes().len();
                assert_eq!(length, 4);
                text(200, "thanks")
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[IDLE_1S]).await;
        let mut stream = proxy.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
        stream.write_all(head).await.expect("open");
        for letter in b"slow" {
            tokio::time::sleep(Duration::from_millis(500)).await;
            stream.write_all(&[*letter]).await.expect("open");
        }
        let answer = crate::world::answer(&mut stream).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "thanks"));
    });
}

/// O9, overturned by L4 for the two timers that a busy WebSocket satisfies.
#[test]
fn o9_a_busy_websocket_ends_at_the_request_limit_only() {
    run(async {
        for (setting, survives) in [(START_1S, true), (IDLE_1S, true), (REQUEST_1S, false)] {
            let app = crate::protocols::echo_app().await;
            let proxy = Proxy::start(app.port, &[setting]).await;
            let mut stream = crate::protocols::upgraded(&proxy).await;
            let mut is_alive = true;
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_millis(400)).await;
                let mut byte = [0];
                is_alive = stream.write_all(b"x").await.is_ok()
                    && stream.read(&mut byte).await.is_ok_and(|read| read == 1);
            }
            assert_eq!(is_alive, survives, "{setting:?}");
        }
    });
}

#[test]
fn an_idle_websocket_is_closed_by_the_idle_limit() {
    run(async {
        let app = crate::protocols::echo_app().await;
        let proxy = Proxy::start(app.port, &[IDLE_1S]).await;
        let mut stream = crate::protocols::upgraded(&proxy).await;
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest).await;
        assert!(ended.is_err() || rest.is_empty());
    });
}

/// O11: a client that leaves takes its request with it, and no client gets an answer then.
#[test]
fn o11_who_breaks_off_a_request_body_cancels_the_apps_work() {
    run(async {
        let app = App::start(|request| {
            Box::pin(async move {
                let body = request.into_body().collect().await;
                text(if body.is_err() { 400 } else { 200 }, "")
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut stream = proxy.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nsome";
        stream.write_all(head).await.expect("open");
        eventually("the app works", || app.state.running.get() == 1).await;
        drop(stream);
        eventually("the app stopped", || app.state.running.get() == 0).await;
        let metrics = ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await.body;
        assert!(metrics.contains("queue_proxy_requests_total{outcome=\"cancelled\"} 1"), "{metrics}");
    });
}

/// A client that takes nothing of its response cannot hold a slot beyond the limits either.
#[test]
fn a_client_that_stops_reading_is_cut_off() {
    run(async {
        let app = App::start(|_| {
            let chunks = futures_util::stream::repeat_with(|| {
                Ok(http_body::Frame::data(bytes::Bytes::from(vec![b'x'; 65536])))
            });
            Box::pin(async { Response::new(http_body_util::StreamBody::new(chunks).boxed_unsync()) })
        })
        .await;
        for setting in [REQUEST_1S, IDLE_1S] {
            let proxy = Proxy::start(app.port, &[setting]).await;
            let in_flight = async || {
                let page = ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await.body;
                let level =
                    page.lines().find_map(|line| line.strip_prefix("queue_proxy_in_flight_requests "));
                level.expect("a level").to_owned()
            };
            let mut http1 = proxy.connect().await;
            http1.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
            let mut sender = http2(proxy.ports.requests).await;
            let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
            let stalled = sender.send_request(Request::get("http://h/").body(body).expect("legal")).await;
            assert_eq!(in_flight().await, "2", "{setting:?}");
            while in_flight().await != "0" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            drop((http1, stalled));
        }
    });
}

/// As long as its kernel takes no connection, for want of room or because it has too much to do, an app has
/// not heard of a request: an activator asks another pod, and what a client sent waits.
#[test]
fn an_app_that_takes_no_connection_for_a_while_is_tried_again_with_what_clients_sent() {
    run(async {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let app = socket.listen(0).expect("free");
        let address = app.local_addr().expect("bound");
        let proxy = Proxy::start(address.port(), &[]).await;
        let mut waiting = Vec::new();
        while let Ok(stream) =
            tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(address)).await
        {
            waiting.push(stream.expect("it listens"));
        }
        let mut client = proxy.connect().await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await.expect("open");
        let refused = proxy.get("/", &[("Ebb-Hop-Key", HOP_KEY)]).await;
        assert_eq!((refused.status, refused.header("ebb-not-started")), (502, "1"), "{}", refused.body);
        // What came before it has met the same limit by now.
        let serving = async {
            loop {
                let (mut stream, _) = app.accept().await.expect("it listens");
                tokio::task::spawn_local(async move {
                    if read_head(&mut stream).await.is_some() {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
                    }
                });
            }
        };
        // Cancelling loses nothing: the answer is all that is waited for.
        tokio::select! {
            () = serving => {}
            answered = answer(&mut client) => assert_eq!((answered.status, answered.body.as_str()), (200, "hello")),
        }
    });
}
