use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::LocalSet;

use super::*;

/// An app that answers HTTP/1.1 as `answer` says.
async fn app(answer: fn(&Request<Incoming>) -> Response<Full<Bytes>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(move |request| async move { Ok::<_, Infallible>(answer(&request)) });
            let serving =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::task::spawn_local(serving);
        }
    });
    port
}

fn status(code: u16) -> Response<Full<Bytes>> {
    Response::builder().status(code).body(Full::default()).expect("legal")
}

fn http(port: u16, path: &str, headers: &[(&str, &str)]) -> Probe {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Probe {
        check: Check::Http(HttpCheck { port, path: path.to_owned(), headers, protocol: Protocol::Http1 }),
        ..Probe::none()
    }
}

#[tokio::test(flavor = "current_thread")]
async fn http_asks_for_a_status_below_400_and_follows_redirects_within_the_app() {
    let asking = async {
        let port = app(|request| match request.uri().path() {
            "/ok" => status(200),
            "/found" => Response::builder()
                .status(302)
                .header("location", "/broken")
                .body(Full::default())
                .expect("legal"),
            "/away" => Response::builder()
                .status(302)
                .header("location", "http://example.com/")
                .body(Full::default())
                .expect("legal"),
            "/loop" => Response::builder()
                .status(302)
                .header("location", "/loop")
                .body(Full::default())
                .expect("legal"),
            _ => status(500),
        })
        .await;
        for (id, path, expected) in [
            ("", "/ok", Ok(())),
            ("R5", "/broken", Err("GET /broken: status 500")),
            ("R6", "/found", Err("GET /broken: status 500")),
            ("L41", "/away", Ok(())),
            ("", "/loop", Err("GET /loop: more than 10 redirects")),
        ] {
            let answer = http(port, path, &[]).ask(Clock::start()).await;
            assert_eq!(answer, expected.map_err(|text| ProbeFailure(text.to_owned())), "{id} {path}");
        }
    };
    LocalSet::new().run_until(asking).await;
}

/// R7, overturned by L41: the kubelet honours a `Host` header, so we do.
#[tokio::test(flavor = "current_thread")]
async fn r7_the_host_header_of_a_probe_reaches_the_app() {
    let asking = async {
        let port = app(|request| {
            let host = request.headers()["host"].to_str().expect("ASCII");
            let agent = request.headers()["user-agent"].to_str().expect("ASCII");
            status(if host == "h.example.com" && agent.starts_with("kube-probe/") { 200 } else { 500 })
        })
        .await;
        assert_eq!(http(port, "/", &[("Host", "h.example.com")]).ask(Clock::start()).await, Ok(()));
        assert!(http(port, "/", &[]).ask(Clock::start()).await.is_err());
    };
    LocalSet::new().run_until(asking).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_port_must_accept_a_connection_on_either_loopback() {
    let asking = async {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let closed = socket.local_addr().expect("bound").port();
        let probe = |port| Probe { check: Check::Tcp { port }, ..Probe::none() };
        let refused = probe(closed).ask(Clock::start()).await.expect_err("nobody listens");
        assert_eq!(refused.to_string(), format!("port {closed}: connection refused"));
        // L47; without IPv6 on this machine there is nothing to prove.
        if let Ok(listener) = TcpListener::bind("[::1]:0").await {
            let port = listener.local_addr().expect("bound").port();
            assert_eq!(probe(port).ask(Clock::start()).await, Ok(()));
        }
    };
    LocalSet::new().run_until(asking).await;
}

/// A forwarder accepts whatever becomes of the connection behind it.
#[tokio::test(flavor = "current_thread")]
async fn a_forwarded_port_must_keep_a_connection_open() {
    let asking = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let written = Probe { check: Check::Tcp { port }, ..Probe::none() };
        let probe = written.clone().in_network(port, ContainerNetwork::Bridge);
        assert_eq!(probe.check, Check::ForwardedTcp { port });
        assert_eq!(written.clone().in_network(port, ContainerNetwork::Host).check, written.check);
        assert_eq!(written.clone().in_network(1, ContainerNetwork::Bridge).check, written.check);
        let closing = tokio::task::spawn_local(async move {
            drop(listener.accept().await.expect("a connection"));
            let kept = listener.accept().await.expect("another");
            (listener, kept)
        });
        let closed = probe.ask(Clock::start()).await.expect_err("it is closed at once");
        assert!(closed.to_string().contains("nothing listens in the container"), "{closed}");
        assert_eq!(probe.ask(Clock::start()).await, Ok(()));
        drop(closing.await.expect("two connections"));
        // Bound, so that no other test listens there.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let unheard = socket.local_addr().expect("bound").port();
        let probe = Probe { check: Check::ForwardedTcp { port: unheard }, ..Probe::none() };
        let refused = probe.ask(Clock::start()).await.expect_err("no forwarder listens");
        assert_eq!(refused.to_string(), format!("port {unheard}: connection refused"));
    };
    LocalSet::new().run_until(asking).await;
}

#[tokio::test(flavor = "current_thread")]
async fn r12_a_grpc_probe_of_something_else_fails() {
    let asking = async {
        let port = app(|_| status(200)).await;
        let check = Check::Grpc { port, service: String::new() };
        assert!(Probe { check, ..Probe::none() }.ask(Clock::start()).await.is_err());
    };
    LocalSet::new().run_until(asking).await;
}

async fn answer_of_http2(
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let is_health = request.uri().path() == "/grpc.health.v1.Health/Check";
    let asked = request.into_body().collect().await.expect("a whole question").to_bytes();
    let verdict = if asked.ends_with(b"well") || asked.len() == 5 { 1 } else { 2 };
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    let frames =
        [Frame::data(Bytes::copy_from_slice(&[0, 0, 0, 0, 2, 0x08, verdict])), Frame::trailers(trailers)];
    let body = StreamBody::new(futures_util::stream::iter(frames.map(Ok::<_, Infallible>)));
    let status = if is_health { 200 } else { 204 };
    Ok(Response::builder().status(status).body(UnsyncBoxBody::new(body)).expect("legal"))
}

/// An app that speaks HTTP/2: its health service says `serving` of each service whose name ends so, and `/`
/// is there.
async fn app_of_http2() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::task::spawn_local(
                builder.serve_connection(TokioIo::new(stream), service_fn(answer_of_http2)),
            );
        }
    });
    port
}

#[tokio::test(flavor = "current_thread")]
async fn a_grpc_probe_passes_if_the_service_says_that_it_serves() {
    let asking = async {
        let port = app_of_http2().await;
        for (service, expected) in [("", Ok(())), ("well", Ok(())), ("ill", Err("gRPC health: not serving"))]
        {
            let check = Check::Grpc { port, service: service.to_owned() };
            let answer = Probe { check, ..Probe::none() }.ask(Clock::start()).await;
            assert_eq!(answer, expected.map_err(|text| ProbeFailure(text.to_owned())), "{service}");
        }
    };
    LocalSet::new().run_until(asking).await;
}

#[tokio::test(flavor = "current_thread")]
async fn an_app_of_http2_is_asked_over_http2() {
    let asking = async {
        let probe = |port| http(port, "/", &[("Host", "h.example.com")]).of_app(port, AppProtocol::H2c);
        assert_eq!(probe(app_of_http2().await).ask(Clock::start()).await, Ok(()));
        let failed = probe(app(|_| status(200)).await).ask(Clock::start()).await.expect_err("HTTP/1.1");
        assert!(failed.0.contains("h2c"), "{failed}");
    };
    LocalSet::new().run_until(asking).await;
}

#[tokio::test(flavor = "current_thread")]
async fn each_question_has_a_connection_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let asking = async {
        let app = tokio::task::spawn_local(async move {
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut head = [0; 1024];
                let length = stream.read(&mut head).await.expect("a question");
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                assert!(
                    head.starts_with("GET /ok HTTP/1.1\r\n") && head.contains("connection: close"),
                    "{head}"
                );
                // It would keep the connection.
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("written");
                assert_eq!(stream.read(&mut [0; 1]).await.expect("the end"), 0);
            }
        });
        for _ in 0..3 {
            assert_eq!(http(port, "/ok", &[]).ask(Clock::start()).await, Ok(()));
        }
        app.await.expect("three connections");
    };
    LocalSet::new().run_until(asking).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_passes_with_status_0_within_its_time() {
    let asking = async {
        let probe = |command: &[&str]| Probe {
            check: Check::Exec { command: command.iter().map(|word| (*word).to_owned()).collect() },
            timeout: Duration::from_millis(300),
            ..Probe::none()
        };
        assert_eq!(probe(&["true"]).ask(Clock::start()).await, Ok(()));
        let failed = probe(&["sh", "-c", "exit 3"]).ask(Clock::start()).await.expect_err("status 3");
        assert_eq!(failed.to_string(), "\"sh\" ended with exit status: 3");
        assert_eq!(
            probe(&["sleep", "60"]).ask(Clock::start()).await.expect_err("slow").to_string(),
            "no answer within 300ms"
        );
        assert!(
            probe(&["/nowhere"])
                .ask(Clock::start())
                .await
                .expect_err("missing")
                .to_string()
                .contains("cannot run")
        );
    };
    LocalSet::new().run_until(asking).await;
}
