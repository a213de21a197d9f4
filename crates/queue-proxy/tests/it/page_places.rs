//! Strangers at the pages of a pod: none of them keeps the pod's probes out, nor the hooks of its containers.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{App, Proxy, answer, ask, run};

/// How many may wait for the drain at once.
const WAITERS_MAX: usize = 16;

async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).await.expect("it listens")
}

async fn asked(port: u16, path: &str) -> TcpStream {
    let mut stream = connect(port).await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is open");
    stream
}

/// Whether nothing has come yet.
async fn is_waiting(stream: &mut TcpStream) -> bool {
    tokio::time::timeout(Duration::from_millis(20), stream.peek(&mut [0])).await.is_err()
}

#[test]
fn sixteen_wait_for_the_drain_and_the_others_are_answered_503_at_once() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let admin = proxy.ports.admin;
        let mut strangers = Vec::new();
        for _ in 0..64 {
            strangers.push(asked(admin, "/wait-for-drain").await);
        }
        for page in [("/ready", "ready\n"), ("/healthz", "ok\n")].repeat(5) {
            let answer = ask(admin, "GET", page.0, &[], b"").await;
            assert_eq!(
                (answer.status, answer.body.as_str()),
                (200, page.1),
                "probes have places of their own"
            );
        }
        let (mut waiting, mut refused) = (Vec::new(), 0);
        for mut stranger in strangers {
            if is_waiting(&mut stranger).await {
                waiting.push(stranger);
            } else {
                let answer = answer(&mut stranger).await;
                assert_eq!((answer.status, answer.header("connection")), (503, "close"), "{}", answer.body);
                assert!(answer.body.contains("16 long reads are under way"), "{}", answer.body);
                refused += 1;
            }
        }
        assert_eq!((waiting.len(), refused), (WAITERS_MAX, 64 - WAITERS_MAX));
        proxy.leaving.cancel();
        let answers = waiting.iter_mut().map(answer);
        assert!(join_all(answers).await.iter().all(|answer| answer.status == 200), "the drain is over");
        proxy.ended.await.expect("no panic");
    });
}

/// A connection of HTTP/2 takes as many places as it has requests.
#[test]
fn waits_on_one_connection_count_one_by_one() {
    run(async {
        use http_body_util::BodyExt;

        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let request = || {
            let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
            http::Request::get("http://localhost/wait-for-drain").body(body).expect("legal")
        };
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let sender = crate::world::http2(proxy.ports.admin).await;
            for _ in 0..WAITERS_MAX / 2 {
                let mut sender = sender.clone();
                waiting.push(tokio::task::spawn_local(async move { sender.send_request(request()).await }));
            }
        }
        let refused = loop {
            let mut stream = asked(proxy.ports.admin, "/wait-for-drain").await;
            if !is_waiting(&mut stream).await {
                break answer(&mut stream).await;
            }
        };
        assert_eq!(refused.status, 503);
        assert_eq!(ask(proxy.ports.admin, "GET", "/ready", &[], b"").await.status, 200);
    });
}

#[test]
fn silent_strangers_keep_neither_kubelet_nor_prometheus_out() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut silent = Vec::new();
        for number in 0..300 {
            let port = if number % 2 == 0 { proxy.ports.admin } else { proxy.ports.metrics };
            let mut stream = connect(port).await;
            // Half of a head is as good as none.
            if number % 3 == 0 {
                stream.write_all(b"GET /ready HTTP/1.1\r\nx-").await.expect("it is open");
            }
            silent.push(stream);
        }
        for _ in 0..5 {
            assert_eq!(ask(proxy.ports.admin, "GET", "/ready", &[], b"").await.status, 200);
            assert_eq!(ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await.status, 200);
        }
        let mut open = 0;
        for stream in &mut silent {
            open += usize::from(is_waiting(stream).await);
        }
        assert!(open <= 68, "{open} are still open");
    });
}

#[test]
fn a_head_of_the_pages_has_five_seconds() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let began_at = proxy.clock.now();
        let mut slow = connect(proxy.ports.admin).await;
        slow.write_all(b"GET /ready HTTP/1.1\r\n").await.expect("it is open");
        let mut rest = Vec::new();
        slow.read_to_end(&mut rest).await.expect("it is closed in order");
        let took = proxy.clock.now().saturating_since(began_at).as_secs();
        assert!((4..10).contains(&took), "{took} s, {}", String::from_utf8_lossy(&rest));
    });
}
