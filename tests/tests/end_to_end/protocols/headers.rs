//! What an app sees of a request, to the letter.

use std::collections::BTreeMap;

use crate::protocols::client::RawClient;
use crate::protocols::world::{ROUTINGS, Routing, warm};

/// What the app saw of a request.
struct Seen {
    line: String,
    /// By lower-case name; the values of repeated ones are joined.
    headers: BTreeMap<String, String>,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Sends a head, and reads it back as the app got it.
async fn seen(ebb: &tests::Ebb, head: &str) -> Seen {
    let mut client = RawClient::connect(ebb).await;
    client.write(head).await;
    let answer = client.read_head().await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let echoed = client.read_head().await;
    let mut lines = echoed.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let mut headers = BTreeMap::<String, String>::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let values = headers.entry(name.to_ascii_lowercase()).or_default();
        if !values.is_empty() {
            values.push('|');
        }
        values.push_str(value.trim());
    }
    Seen { line, headers }
}

#[tokio::test]
async fn path_query_and_host_are_the_clients_to_the_letter() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        let host = routing.host();
        let path = "/%2e%2e/x//y?a=%zz;b";
        let seen =
            seen(&ebb, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Mine: a, b\r\nX-Mine: c\r\n\r\n"))
                .await;
        assert_eq!(seen.line, format!("GET {path} HTTP/1.1"), "{routing:?}");
        assert_eq!(seen.header("host"), Some(host.as_str()), "{routing:?}");
        assert_eq!(seen.header("x-mine"), Some("a, b|c"), "{routing:?}");
        // Nothing is invented.
        assert_eq!((seen.header("user-agent"), seen.header("accept-encoding")), (None, None), "{routing:?}");
        assert_eq!((seen.header("via"), seen.header("expect")), (None, None), "{routing:?}");
    }
}

/// Vectors H1, H2 and H7. In both routings `ebb up` has two hops, activator and queue-proxy, and each adds
/// whom it got the request from; `Forwarded` is built by the first that finds something to build it from,
/// before it adds anything.
#[tokio::test]
async fn the_way_of_a_request_is_told_to_the_app() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        let head = format!("GET / HTTP/1.1\r\nHost: {}\r\n", routing.host());
        let plain = seen(&ebb, &format!("{head}\r\n")).await;
        assert_eq!(plain.header("x-forwarded-for"), Some("127.0.0.1, 127.0.0.1"), "{routing:?}");
        assert_eq!(plain.header("forwarded"), Some("for=127.0.0.1"), "{routing:?}");
        let way = "X-Forwarded-For: 1.2.3.4, ::1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.b\r\n";
        let told = seen(&ebb, &format!("{head}{way}\r\n")).await;
        for (name, value) in [
            ("x-forwarded-for", "1.2.3.4, ::1, 127.0.0.1, 127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "a.b"),
            ("forwarded", "for=1.2.3.4;host=a.b;proto=https, for=\"[::1]\""),
        ] {
            assert_eq!(told.header(name), Some(value), "{routing:?}: {name}");
        }
        let own = seen(&ebb, &format!("{head}Forwarded: for=me\r\n\r\n")).await;
        assert_eq!(own.header("forwarded"), Some("for=me"), "{routing:?}");
    }
}

#[tokio::test]
async fn a_client_cannot_pose_as_one_of_our_hops() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        let host = routing.host();
        let seen = seen(
            &ebb,
            &format!(
                "GET / HTTP/1.1\r\nHost: {host}\r\nK-Proxy-Request: spoofed\r\nK-Original-Host: spoofed\r\n\
                 K-Kubelet-Probe: spoofed\r\nK-Network-Probe: spoofed\r\nK-Network-Hash: spoofed\r\n\
                 Knative-Serving-Revision: spoofed\r\nKnative-Serving-Namespace: spoofed\r\n\
                 Knative-Serving-Tag: spoofed\r\nebb-hop-key: spoofed\r\nebb-no-queue: spoofed\r\n\
                 ebb-expect: spoofed\r\nebb-not-started: spoofed\r\nConnection: ebb-hop-key, k-proxy-request\r\n\r\n"
            ),
        )
        .await;
        assert_eq!(seen.header("host"), Some(host.as_str()), "{routing:?}");
        for (name, value) in &seen.headers {
            assert!(!value.contains("spoofed"), "{routing:?}: the app sees {name}: {value}");
            assert!(!name.starts_with("ebb-"), "{routing:?}: the app sees {name}: {value}");
        }
        let ours = (routing == Routing::ThroughActivator).then_some("activator");
        assert_eq!(seen.header("k-proxy-request"), ours, "{routing:?}");
    }
}

/// Vector H11 of the data-plane specification.
#[tokio::test]
async fn headers_of_one_hop_end_there() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        let host = routing.host();
        let seen = seen(
            &ebb,
            &format!(
                "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: foo, TE\r\nfoo: bar\r\nKeep-Alive: timeout=5\r\n\
                 Proxy-Connection: keep-alive\r\nProxy-Authorization: secret\r\nTE: trailers, deflate\r\n\r\n"
            ),
        )
        .await;
        for name in ["connection", "foo", "keep-alive", "proxy-connection", "proxy-authorization"] {
            assert_eq!(seen.header(name), None, "{routing:?}: {name}");
        }
        assert_eq!(seen.header("te"), Some("trailers"), "{routing:?}");
    }
}

/// Vectors H24 and, for `h2c`, L44: no end switches that was not asked to, or cannot.
#[tokio::test]
async fn an_upgrade_that_the_app_does_not_take_is_an_ordinary_request() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        let host = routing.host();
        let upgrade = |token: &str| {
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: {token}\r\n\r\n")
        };
        let foo = seen(&ebb, &upgrade("foo")).await;
        assert_eq!(
            (foo.header("connection"), foo.header("upgrade")),
            (Some("Upgrade"), Some("foo")),
            "{routing:?}"
        );
        let h2c = seen(&ebb, &upgrade("h2c")).await;
        assert_eq!(h2c.header("upgrade"), None, "{routing:?}");
    }
}
