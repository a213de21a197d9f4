//! The family P: probes on the request port (with a hop key) and on the admin port, and what the small
//! servers answer.

use prost::Message;
use queue_proxy::Stat;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use vocabulary::PodState;

use crate::world::{Answer, App, HOP_KEY, Proxy, answer, ask, eventually, run};

const KUBELET: (&str, &str) = ("User-Agent", "kube-probe/1.30");
const QUEUE: (&str, &str) = ("K-Network-Probe", "queue");
const HOP: (&str, &str) = ("Ebb-Hop-Key", HOP_KEY);

#[test]
fn p1_to_p8_probes_are_answered_to_our_own_hops_and_on_the_admin_port() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        assert_eq!(proxy.hello.state, PodState::Ready);
        let hash = "a probe request must contain a non-empty \"K-Network-Hash\" header\n";
        for (id, headers, expected) in [
            ("P1", &[KUBELET, QUEUE][..], (200, "queue")),
            (
                "P3",
                &[("User-Agent", "Knative-Activator-Probe"), ("K-Network-Probe", "activator")],
                (400, "unexpected probe header value: activator\n"),
            ),
            ("P4", &[("User-Agent", "Knative-Autoscaling-Probe"), QUEUE], (200, "queue")),
            ("P7", &[("K-Network-Probe", "probe")], (400, hash)),
            ("P8", &[("K-Network-Probe", "probe"), ("K-Network-Hash", "abc")], (200, "")),
        ] {
            let admin = ask(proxy.ports.admin, "GET", "/", headers, b"").await;
            assert_eq!((admin.status, admin.body.as_str()), expected, "{id} on the admin port");
            let with_key: Vec<_> = headers.iter().copied().chain([HOP]).collect();
            let hop = proxy.get("/", &with_key).await;
            assert_eq!((hop.status, hop.body.as_str()), expected, "{id} with a hop key");
            let client = proxy.get("/", headers).await;
            assert_eq!((client.status, client.body.as_str()), (200, "hello"), "{id} from anybody: the app's");
        }
        let bare = ask(proxy.ports.admin, "GET", "/", &[KUBELET], b"").await;
        assert_eq!((bare.status, bare.body.as_str()), (400, "unexpected probe header value: \n"), "P2");
        for (path, body) in [("/ready", "ready\n"), ("/healthz", "ok\n")] {
            let page = ask(proxy.ports.admin, "GET", path, &[KUBELET], b"").await;
            assert_eq!((page.status, page.body.as_str()), (200, body), "kubelet asks for a page");
            let probe = ask(proxy.ports.admin, "GET", path, &[KUBELET, QUEUE], b"").await;
            assert_eq!(probe.body, "queue", "Knative's header asks the gate, whatever the path");
        }
        let through_activator = proxy.get("/", &[KUBELET, HOP]).await;
        assert_eq!(
            through_activator.body, "hello",
            "P2 on the request port: the agent alone proves nothing (L12)"
        );
        let echoed = proxy.get("/", &[("K-Network-Probe", "probe"), ("K-Network-Hash", "abc"), HOP]).await;
        assert_eq!(echoed.header("k-network-hash"), "abc", "P8");
        for agent in ["curl", "Knative-Queue-Proxy-Probe"] {
            let ordinary = proxy.get("/", &[("User-Agent", agent), QUEUE, HOP]).await;
            assert_eq!((ordinary.status, ordinary.body.as_str()), (200, "hello"), "P5, P6");
        }
    });
}

#[test]
fn p9_a_rewritten_kubelet_probe_is_no_load_if_a_hop_vouches_for_it() {
    run(async {
        let app = App::start(|_| Box::pin(std::future::pending())).await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1")]).await;
        let probes = (0..6).map(|_| proxy.get("/", &[("K-Kubelet-Probe", "x"), HOP]));
        let spoofed = (0..6).map(|_| proxy.get("/", &[("K-Kubelet-Probe", "x")]));
        let asking = futures_util::future::join_all(probes);
        tokio::select! {
            _ = asking => panic!("the app never answers"),
            () = eventually("six run at once", || app.state.running.get() == 6) => {}
        }
        eventually("their clients left", || app.state.running.get() == 0).await;
        tokio::select! {
            _ = futures_util::future::join_all(spoofed) => panic!("the app never answers"),
            () = eventually("one runs", || app.state.running.get() == 1) => {}
        }
        assert_eq!(app.state.seen.get(), 7, "L12: without proof they wait like everybody");
    });
}

#[test]
fn p12_an_app_that_is_not_ready_is_503() {
    run(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let port = socket.local_addr().expect("bound").port();
        let probe = r#"{"tcpSocket":{"host":"127.0.0.1"},"successThreshold":1}"#;
        let proxy = Proxy::start(port, &[("SERVING_READINESS_PROBE", probe)]).await;
        assert_eq!(proxy.hello.state, PodState::Starting);
        let probed = proxy.get("/", &[KUBELET, QUEUE, HOP]).await;
        assert_eq!((probed.status, probed.body.as_str()), (503, ""));
        let many = (0..20).map(|_| proxy.get("/", &[KUBELET, QUEUE, HOP]));
        let many = futures_util::future::join_all(many).await;
        assert!(many.iter().all(|probed| probed.status == 503), "R17");
        let ready = ask(proxy.ports.admin, "GET", "/ready", &[KUBELET], b"").await;
        assert!(ready.status == 503 && ready.body.starts_with("starting: readiness probe"), "{}", ready.body);
        assert_eq!(ask(proxy.ports.admin, "GET", "/healthz", &[], b"").await.status, 200);
    });
}

/// P13, overturned by L11: who merely waits changes nothing.
#[test]
fn p13_waiting_for_a_drain_that_does_not_come_disturbs_nobody() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let waiting = ask(proxy.ports.admin, "GET", "/wait-for-drain", &[], b"");
        let probing = async {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            proxy.get("/", &[KUBELET, QUEUE, HOP]).await
        };
        tokio::select! {
            waited = waiting => panic!("a drain may still come: {}", waited.status),
            probed = probing => assert_eq!(probed.status, 200),
        }
        assert_eq!(asked_as(proxy.ports.admin, "/nowhere", "localhost", None).await.status, 404);
    });
}

/// A drain begins from TERM or the owner's word. A client of the admin port could otherwise take the pod
/// out of service.
#[test]
fn no_page_begins_a_drain() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        for method in ["POST", "PUT", "GET"] {
            let mut stream = TcpStream::connect(("127.0.0.1", proxy.ports.admin)).await.expect("it listens");
            let request = format!("{method} /drain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("open");
            assert_eq!(answer(&mut stream).await.status, 404, "{method}");
        }
        assert_eq!(ask(proxy.ports.admin, "GET", "/ready", &[], b"").await.status, 200);
        assert_eq!(proxy.get("/", &[]).await.status, 200);
        assert!(!proxy.leaving.is_cancelled() && !proxy.ended.is_finished());
    });
}

/// A page of the admin port, asked under this host and by a page of that origin.
async fn asked_as(admin: u16, path: &str, host: &str, origin: Option<&str>) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", admin)).await.expect("it listens");
    let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("open");
    answer(&mut stream).await
}

#[test]
fn browsers_lent_to_strangers_see_only_what_everybody_may() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[("EBB_TRUSTED_HOSTS", "pod.example.com")]).await;
        let admin = proxy.ports.admin;
        for (host, origin, expected) in [
            ("127.0.0.1:8022", None, 404),
            ("127.0.0.1:8022", Some("http://127.0.0.1:8022"), 404),
            ("[::1]:8022", None, 404),
            ("localhost", None, 404),
            ("pod.example.com", None, 404),
            ("evil.example", None, 403),
            ("127.0.0.1:8022", Some("http://evil.example"), 403),
        ] {
            for path in ["/", "/nowhere"] {
                let answer = asked_as(admin, path, host, origin).await;
                assert_eq!(answer.status, expected, "{host} {origin:?}: {}", answer.body);
            }
            for path in ["/healthz", "/ready"] {
                let answer = asked_as(admin, path, host, origin).await;
                assert_eq!(answer.status, 200, "{host} {origin:?}: {}", answer.body);
            }
        }
        for port in [proxy.ports.metrics, proxy.ports.stat] {
            assert_eq!(asked_as(port, "/metrics", "127.0.0.1", None).await.status, 200);
            assert_eq!(asked_as(port, "/metrics", "pod.example.com", None).await.status, 200);
            assert_eq!(asked_as(port, "/metrics", "evil.example", None).await.status, 403);
        }
        let refused = asked_as(admin, "/nowhere", "evil.example", None).await;
        assert!(refused.body.contains("EBB_TRUSTED_HOSTS"), "{}", refused.body);
    });
}

#[test]
fn the_stat_is_the_last_completed_second_in_knatives_format() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        proxy.get("/", &[]).await;
        proxy.get("/", &[HOP, ("K-Proxy-Request", "activator")]).await;
        let stat = loop {
            let answer =
                ask(proxy.ports.stat, "GET", "/metrics", &[("Accept", "application/protobuf")], b"").await;
            assert_eq!((answer.status, answer.header("content-type")), (200, "application/protobuf"));
            let stat = Stat::decode(answer.bytes.as_slice()).expect("a stat");
            if stat.request_count > 0.0 {
                break stat;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        assert_eq!(
            (stat.pod_name.as_str(), stat.request_count, stat.proxied_request_count),
            ("hello-1", 2.0, 1.0)
        );
        assert_eq!(ask(proxy.ports.stat, "GET", "/", &[], b"").await.status, 404);
    });
}

#[test]
fn prometheus_sees_requests_and_refusals() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        proxy.get("/", &[]).await;
        ask(proxy.ports.requests, "CONNECT", "h:1", &[], b"").await;
        let page = ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await.body;
        for line in [
            "queue_proxy_requests_total{outcome=\"answered\"} 1",
            "queue_proxy_refused_requests_total{reason=\"bad-request\"} 1",
            "queue_proxy_request_duration_seconds_count 1",
            "queue_proxy_in_flight_requests 0",
            "queue_proxy_ready 1",
        ] {
            assert!(page.contains(line), "{line} in\n{page}");
        }
    });
}
