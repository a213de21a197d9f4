//! Apps that send a body where there is none, when they come to it.

use http::Method;
use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// What such an app sends behind the head: the answer to another client's request, if it is taken for one.
const LATE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned";

/// How an app sends it.
#[derive(Clone, Copy, Debug)]
struct Lateness {
    /// How long after the head.
    after: Duration,
    /// In pieces of so many bytes, each as late again.
    piece: usize,
}

/// An app that answers `/bodiless` with `head`, and with a body if it is late with it, and everything else
/// with "ok". Counts its connections.
async fn app_with(head: &'static str, lateness: Option<Lateness>) -> App {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let connections = Rc::new(Cell::new(0));
    let counted = Rc::clone(&connections);
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.set(counted.get() + 1);
            stream.set_nodelay(true).expect("open");
            tokio::task::spawn_local(async move {
                let mut request = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    request.push(byte);
                    if !request.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    let is_bodiless = request.windows(10).any(|window| window == b" /bodiless");
                    request.clear();
                    if !is_bodiless {
                        let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                        if stream.write_all(ok).await.is_err() {
                            return;
                        }
                        continue;
                    }
                    let Some(Lateness { after, piece }) = lateness else {
                        stream.write_all(head.as_bytes()).await.expect("the client reads");
                        continue;
                    };
                    if after.is_zero() && piece >= LATE.len() {
                        // With the head, in one write.
                        if stream.write_all(&[head.as_bytes(), LATE].concat()).await.is_err() {
                            return;
                        }
                        continue;
                    }
                    stream.write_all(head.as_bytes()).await.expect("the client reads");
                    for bytes in LATE.chunks(piece) {
                        // The app's own slowness, which is what this is about.
                        tokio::time::sleep(after).await;
                        // A client that does not want it has closed.
                        if stream.write_all(bytes).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    App { address, connections }
}

fn bodiless(method: Method) -> Request<Body> {
    Request::builder().method(method).uri("/bodiless").header("host", "h").body(Body::empty()).expect("legal")
}

async fn ask_for_nothing(upstreams: &Upstreams, to: SocketAddr, method: Method) {
    let response =
        upstreams.send(to, Protocol::Http1, bodiless(method)).await.expect("an answer without a body");
    assert!(response.into_body().collect().await.expect("whole").to_bytes().is_empty());
}

const ANNOUNCING: [(Method, &str); 4] = [
    (Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
    (Method::HEAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    (Method::GET, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
    (Method::GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
];

const SILENT: [(Method, &str); 4] = [
    (Method::HEAD, "HTTP/1.1 200 OK\r\n\r\n"),
    (Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n"),
    (Method::GET, "HTTP/1.1 304 Not Modified\r\n\r\n"),
];

#[test]
fn a_body_that_comes_late_is_never_taken_for_the_next_answer() {
    run(async {
        for (method, head) in ANNOUNCING.into_iter().chain(SILENT) {
            for after in [0, 1, 5, 20].map(Duration::from_millis) {
                for piece in [usize::MAX, LATE.len() / 2 + 1] {
                    let app = app_with(head, Some(Lateness { after, piece })).await;
                    let upstreams = pool(UpstreamLimits::default());
                    for _ in 0..5 {
                        ask_for_nothing(&upstreams, app.address, method.clone()).await;
                        exchange(&upstreams, app.address, Protocol::Http1).await;
                        exchange(&upstreams, app.address, Protocol::Http1).await;
                    }
                }
            }
        }
    });
}

#[test]
fn an_app_that_sends_no_bodies_where_there_are_none_keeps_its_connections() {
    run(async {
        for (method, head) in SILENT {
            let app = app_with(head, None).await;
            let upstreams = pool(UpstreamLimits::default());
            // Until it has proved it.
            while app.connections.get() < 20 {
                ask_for_nothing(&upstreams, app.address, method.clone()).await;
            }
            let proved = async {
                loop {
                    let before = app.connections.get();
                    for _ in 0..10 {
                        ask_for_nothing(&upstreams, app.address, method.clone()).await;
                    }
                    if app.connections.get() == before {
                        break;
                    }
                }
            };
            tokio::time::timeout(Duration::from_secs(20), proved).await.expect("it is trusted soon");
        }
    });
}

#[test]
fn an_app_is_not_trusted_again_after_one_late_body() {
    run(async {
        let head = "HTTP/1.1 204 No Content\r\n\r\n";
        let app = app_with(head, Some(Lateness { after: Duration::ZERO, piece: usize::MAX })).await;
        let upstreams = pool(UpstreamLimits::default());
        for asked in 1..=40 {
            ask_for_nothing(&upstreams, app.address, Method::GET).await;
            assert_eq!(app.connections.get(), asked);
        }
        // The pool remembers although nothing else is left of the app.
        while upstreams.connections(app.address) > 0 {
            tokio::task::yield_now().await;
        }
        ask_for_nothing(&upstreams, app.address, Method::GET).await;
        ask_for_nothing(&upstreams, app.address, Method::GET).await;
        assert_eq!(app.connections.get(), 42);
    });
}

#[test]
fn our_own_hops_are_trusted_from_the_beginning() {
    run(async {
        for (method, head) in ANNOUNCING.into_iter().chain(SILENT) {
            let app = app_with(head, None).await;
            let late_bodies = LateBodies::Impossible;
            let upstreams = pool(UpstreamLimits { late_bodies, ..UpstreamLimits::default() });
            for _ in 0..10 {
                ask_for_nothing(&upstreams, app.address, method.clone()).await;
            }
            assert_eq!(app.connections.get(), 1, "{method} {head}");
        }
    });
}

/// An app whose first answer has this behind it, so much later.
async fn app_with_tail(tail: &'static [u8], after: Duration) -> App {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let has_answered = Rc::new(Cell::new(false));
    app_that_serves(move |mut stream| {
        let has_answered = Rc::clone(&has_answered);
        async move {
            let mut request = Vec::new();
            while let Ok(byte) = stream.read_u8().await {
                request.push(byte);
                if !request.ends_with(b"\r\n\r\n") {
                    continue;
                }
                request.clear();
                let tail = if has_answered.replace(true) { &b""[..] } else { tail };
                let at_once = if after.is_zero() { tail } else { b"" };
                if stream.write_all(&[OK, at_once].concat()).await.is_err() {
                    return;
                }
                if !tail.is_empty() && !after.is_zero() {
                    // The app's own slowness, which is what this is about.
                    tokio::time::sleep(after).await;
                    let _ = stream.write_all(tail).await;
                }
            }
        }
    })
    .await
}

#[test]
fn bytes_behind_an_ordinary_response_cost_an_app_its_kept_connections() {
    run(async {
        for after in [0, 10].map(Duration::from_millis) {
            let app = app_with_tail(LATE, after).await;
            let late_bytes = Counter::default();
            let upstreams =
                Upstreams::counting_late_bytes(Clock::start(), UpstreamLimits::default(), late_bytes.clone());
            exchange(&upstreams, app.address, Protocol::Http1).await;
            // Until they have come.
            tokio::time::sleep(after * 5).await;
            for asked in 2..6 {
                exchange(&upstreams, app.address, Protocol::Http1).await;
                assert_eq!(app.connections.get(), asked, "{after:?}: none is used again");
            }
            assert_eq!(late_bytes.get(), 1);
            let told = upstreams.late_bytes().expect("connections are not used again");
            assert_eq!(told.connections, 1);
            assert!((Duration::from_mins(9)..=Duration::from_mins(10)).contains(&told.reuse_in));
        }
    });
}

#[test]
fn a_line_too_many_behind_a_response_costs_its_connection_alone() {
    run(async {
        let app = app_with_tail(b"\r\n", Duration::ZERO).await;
        let late_bytes = Counter::default();
        let upstreams =
            Upstreams::counting_late_bytes(Clock::start(), UpstreamLimits::default(), late_bytes.clone());
        for _ in 0..5 {
            exchange(&upstreams, app.address, Protocol::Http1).await;
        }
        assert_eq!((app.connections.get(), late_bytes.get()), (2, 0));
        assert_eq!(upstreams.late_bytes(), None);
    });
}
