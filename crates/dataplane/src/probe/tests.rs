use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
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
            let answer = http(port, path, &[]).ask().await;
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
        assert_eq!(http(port, "/", &[("Host", "h.example.com")]).ask().await, Ok(()));
        assert!(http(port, "/", &[]).ask().await.is_err());
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
        let refused = probe(closed).ask().await.expect_err("nobody listens");
        assert_eq!(refused.to_string(), format!("port {closed}: connection refused"));
        // L47; without IPv6 on this machine there is nothing to prove.
        if let Ok(listener) = TcpListener::bind("[::1]:0").await {
            let port = listener.local_addr().expect("bound").port();
            assert_eq!(probe(port).ask().await, Ok(()));
        }
    };
    LocalSet::new().run_until(asking).await;
}

#[tokio::test(flavor = "current_thread")]
async fn r12_a_grpc_probe_of_something_else_fails() {
    let asking = async {
        let port = app(|_| status(200)).await;
        let check = Check::Grpc { port, service: String::new() };
        assert!(Probe { check, ..Probe::none() }.ask().await.is_err());
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
        assert_eq!(probe(&["true"]).ask().await, Ok(()));
        let failed = probe(&["sh", "-c", "exit 3"]).ask().await.expect_err("status 3");
        assert_eq!(failed.to_string(), "\"sh\" ended with exit status: 3");
        assert_eq!(
            probe(&["sleep", "60"]).ask().await.expect_err("slow").to_string(),
            "no answer within 300ms"
        );
        assert!(probe(&["/nowhere"]).ask().await.expect_err("missing").to_string().contains("cannot run"));
    };
    LocalSet::new().run_until(asking).await;
}
