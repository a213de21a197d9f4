//! The family H: what the app sees of a request, and what the client sees of a failure.

use http::Version;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{App, HOP_KEY, Proxy, answer, ask, run, scripted};

/// What the app sees when a client sends these headers.
async fn seen(headers: &[(&str, &str)]) -> (App, Proxy) {
    let app = App::hello().await;
    let proxy = Proxy::start(app.port, &[]).await;
    let answer = proxy.get("/%2e%2e/x//y?a;b=%zz", headers).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
    (app, proxy)
}

#[test]
fn h1_h2_h12_the_way_is_traced_and_nothing_is_invented() {
    run(async {
        let (app, proxy) = seen(&[]).await;
        assert_eq!(app.state.saw("x-forwarded-for"), "127.0.0.1", "H1");
        assert_eq!(app.state.saw("forwarded"), "-", "H1");
        assert_eq!(app.state.saw("user-agent"), "-", "H12");
        let target = app.state.last.borrow().as_ref().expect("seen").uri.to_string();
        assert_eq!(target, "/%2e%2e/x//y?a;b=%zz");
        drop(proxy);
        let (app, _proxy) = seen(&[
            ("X-Forwarded-For", "1.2.3.4, ::1"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "a.b"),
        ])
        .await;
        assert_eq!(app.state.saw("x-forwarded-for"), "1.2.3.4, ::1, 127.0.0.1", "H2");
        let forwarded = "for=1.2.3.4;host=a.b;proto=https, for=\"[::1]\"";
        assert_eq!(app.state.saw("forwarded"), forwarded, "H2");
    });
}

#[test]
fn h8_h9_h10_the_headers_of_our_own_hops_are_believed_with_a_hop_key_only() {
    run(async {
        let internal = [
            ("K-Original-Host", "orig"),
            ("Knative-Serving-Revision", "r"),
            ("Knative-Serving-Namespace", "n"),
            ("K-Proxy-Request", "activator"),
            ("K-Passthrough-Lb", "true"),
            ("K-Network-Hash", "h"),
            ("Knative-Serving-Tag", "t"),
        ];
        let names = [
            "host",
            "k-original-host",
            "knative-serving-revision",
            "k-proxy-request",
            "k-passthrough-lb",
            "k-network-hash",
            "knative-serving-tag",
            "ebb-hop-key",
        ];
        let seen_with = async |headers: &[(&str, &str)]| {
            let (app, _proxy) = seen(headers).await;
            names.map(|name| app.state.saw(name))
        };
        let trusted: Vec<_> = internal.into_iter().chain([("Ebb-Hop-Key", HOP_KEY)]).collect();
        assert_eq!(seen_with(&trusted).await, ["orig", "-", "-", "activator", "true", "h", "t", "-"]);
        assert_eq!(seen_with(&internal).await, ["h", "-", "-", "-", "-", "-", "-", "-"], "L12");
        let guessed: Vec<_> = internal.into_iter().chain([("Ebb-Hop-Key", "guess")]).collect();
        assert_eq!(seen_with(&guessed).await, ["h", "-", "-", "-", "-", "-", "-", "-"], "L12");
    });
}

/// Addresses of pods are given again, and who sends may look for another workload's pod: the key is not known
/// then.
#[test]
fn a_request_to_another_pod_is_refused_as_not_started_and_never_reaches_the_app() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        for key in [HOP_KEY, "of another workload"] {
            let answer = proxy.get("/", &[("Ebb-Pod", "hello-2"), ("Ebb-Hop-Key", key)]).await;
            assert_eq!((answer.status, answer.header("ebb-not-started")), (404, "1"), "{}", answer.body);
        }
        assert_eq!(app.state.seen.get(), 0);
        for headers in [&[("Ebb-Pod", "hello-1"), ("Ebb-Hop-Key", HOP_KEY)][..], &[("Ebb-Pod", "hello-1")]] {
            let answer = proxy.get("/", headers).await;
            assert_eq!((answer.status, app.state.saw("ebb-pod").as_str()), (200, "-"));
        }
    });
}

#[test]
fn h11_h24_h27_hop_by_hop_headers_end_here_and_the_rest_passes() {
    run(async {
        let (app, proxy) = seen(&[
            ("Connection", "foo"),
            ("Foo", "bar"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Authorization", "secret"),
            ("Te", "trailers"),
            ("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ])
        .await;
        let names = ["foo", "keep-alive", "proxy-authorization", "te", "connection"];
        assert_eq!(names.map(|name| app.state.saw(name)), ["-", "-", "-", "trailers", "-"], "H11");
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(app.state.saw("traceparent"), traceparent, "H27");
        drop(proxy);
        let (app, proxy) = seen(&[("Connection", "Upgrade"), ("Upgrade", "foo")]).await;
        assert_eq!(["connection", "upgrade"].map(|name| app.state.saw(name)), ["Upgrade", "foo"], "H24");
        drop(proxy);
        // H23, overturned by L44: the offer is ignored.
        let (app, _proxy) = seen(&[
            ("Connection", "Upgrade, HTTP2-Settings"),
            ("Upgrade", "h2c"),
            ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
        ])
        .await;
        assert_eq!(
            ["connection", "upgrade", "http2-settings"].map(|name| app.state.saw(name)),
            ["-", "-", "-"]
        );
        assert_eq!(app.state.last.borrow().as_ref().expect("seen").version, Version::HTTP_11);
    });
}

#[test]
fn h15_h16_an_app_that_does_not_answer_is_502_and_says_what_was_seen() {
    run(async {
        let port = scripted(|stream, _| async { drop(stream) }).await;
        let proxy = Proxy::start(port, &[]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.reason()), (502, "upstream-closed"), "H15");
        assert_eq!(answer.body, "the app did not answer: connection closed before an answer\n", "L35");
        assert_eq!(answer.header("ebb-not-started"), "-");
        drop(proxy);
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let proxy = Proxy::start(socket.local_addr().expect("bound").port(), &[]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.reason()), (502, "upstream-closed"), "H16");
        assert_eq!(answer.body, "the app did not answer: connection refused\n", "L35");
        assert_eq!(answer.header("ebb-not-started"), "1");
    });
}

#[test]
fn h17_an_app_that_breaks_its_body_off_breaks_the_clients_too() {
    run(async {
        let port = scripted(|mut stream, _| async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n1234567").await.expect("open");
        })
        .await;
        let proxy = Proxy::start(port, &[]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.body.as_str(), answer.is_whole), (200, "1234567", false));
        drop(proxy);
        let port = scripted(|mut stream, _| async move {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
            stream.write_all(head).await.expect("open");
        })
        .await;
        let proxy = Proxy::start(port, &[]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.body.as_str(), answer.is_whole), (200, "abc", false));
    });
}

#[test]
fn an_app_cannot_speak_in_our_name() {
    run(async {
        let port = scripted(|mut stream, _| async move {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nebb-not-started: 1\r\nebb-error: queue-full\r\n\r\n";
            stream.write_all(head).await.expect("open");
        })
        .await;
        let proxy = Proxy::start(port, &[]).await;
        let answer = proxy.get("/", &[("ebb-hop-key", HOP_KEY)]).await;
        let said = (answer.header("ebb-not-started"), answer.header("ebb-error"));
        assert_eq!((answer.status, said), (200, ("-", "-")));
    });
}

/// Of these bytes a `http::Uri` holds none where it stands.
#[test]
fn a_target_reaches_the_app_byte_by_byte_as_it_came() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (told, mut lines) = tokio::sync::mpsc::channel(1);
        tokio::task::spawn_local(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n")
                    && let Ok(byte) = stream.read_u8().await
                {
                    head.push(byte);
                }
                // A connection without bytes is a readiness probe.
                if let Some(end) = head.iter().position(|byte| *byte == b'\n') {
                    told.send(head[..=end].to_vec()).await.expect("the test waits for it");
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    stream.write_all(answer).await.expect("open");
                }
            }
        });
        let proxy = Proxy::start(port, &[]).await;
        for target in [&b"/<a>`?q=\"<b>\""[..], b"/\xe4\xf6\xfc?\xff\x80", "/ä?\"ö\"".as_bytes()] {
            let line = [b"GET ", target, b" HTTP/1.1\r\n"].concat();
            let mut stream = proxy.connect().await;
            let head = [&line[..], b"Host: h\r\nConnection: close\r\n\r\n"].concat();
            stream.write_all(&head).await.expect("open");
            assert_eq!(answer(&mut stream).await.status, 200, "{}", target.escape_ascii());
            assert_eq!(lines.recv().await, Some(line), "{}", target.escape_ascii());
        }
    });
}

#[test]
fn h25_connect_and_ambiguous_requests_are_refused_and_the_connection_closed() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let connect = ask(proxy.ports.requests, "CONNECT", "example.com:443", &[], b"").await;
        assert_eq!(
            (connect.status, connect.body.as_str()),
            (405, "client sent unsupported CONNECT request\n")
        );
        for headers in [
            &[("Transfer-Encoding", "gzip, chunked")][..],
            &[("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
            &[("Host", "another")],
            &[("Content-Length", "3"), ("Content-Length", "4")],
        ] {
            let answer = ask(proxy.ports.requests, "POST", "/", headers, b"").await;
            assert_eq!(answer.status, 400, "{headers:?}");
        }
        assert_eq!(app.state.seen.get(), 0);
    });
}
