//! What two readers could read differently: it is refused or mended, in both directions.

use std::cell::Cell;
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{Answer, App, HOP_KEY, Proxy, answer, parse, read_until, run, scripted};

/// What these bytes get from the request port, read to the end of the connection.
async fn raw(proxy: &Proxy, bytes: &str) -> Answer {
    let mut stream = proxy.connect().await;
    stream.write_all(bytes.as_bytes()).await.expect("open");
    answer(&mut stream).await
}

fn assert_refused(answer: &Answer, detail: &str, what: &str) {
    assert_eq!(answer.status, 400, "{what}: {answer:?}");
    let expected = format!("bad-request; detail=\"{detail}");
    assert!(answer.header("ebb-error").starts_with(&expected), "{what}: {answer:?}");
}

#[test]
fn targets_that_name_no_resource_or_a_user_are_refused() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        for target in ["h", "h:80", "http://user@h/", "http://user:word@h/", "?x", "*", "h/x"] {
            let answer = raw(&proxy, &format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")).await;
            assert_refused(&answer, "the target of the request is none that its method can have", target);
        }
        let answer = raw(&proxy, "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert_refused(&answer, "'#' stands at place 3 of the target of the request", "a fragment");
        for host in ["user@h", "h/x", "h?x", "h,i", "h i", "h\\i"] {
            let answer = raw(&proxy, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_refused(&answer, "a Host that is not the name of a host", host);
        }
        assert_eq!(app.state.seen.get(), 0);
    });
}

#[test]
fn a_target_whose_query_follows_the_host_gets_its_slash() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let request = "GET http://there?a=b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        assert_eq!(raw(&proxy, request).await.status, 200);
        assert_eq!(app.state.last.borrow().as_ref().expect("seen").uri.to_string(), "/?a=b");
        assert_eq!(app.state.saw("host"), "there");
    });
}

#[test]
fn a_body_that_is_not_divided_as_it_must_be_is_a_bad_request() {
    run(async {
        let app = App::start(|request| {
            Box::pin(async move {
                use http_body_util::BodyExt;
                let _ = request.into_body().collect().await;
                crate::world::text(200, "it looked whole")
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[]).await;
        let chunks = "the request's body is malformed: its chunks are not divided as HTTP/1.1 says";
        let trailers = "the request's body is malformed: its trailers are not header lines of HTTP/1.1";
        for (body, detail) in [
            ("1 junk\r\nx\r\n0\r\n\r\n", chunks),
            ("1;\r\nx\r\n0\r\n\r\n", chunks),
            ("1\r\nx\n0\r\n\r\n", chunks),
            ("0x1\r\nx\r\n0\r\n\r\n", chunks),
            ("1\r\nx\r\n0\r\na: b\n\r\n\r\n", trailers),
            ("1\r\nx\r\n0\r\n\n", trailers),
            ("0\r\na : b\r\n\r\n", trailers),
        ] {
            let request = format!(
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}GET /next HTTP/1.1\r\nHost: h\r\n\r\n"
            );
            let answer = raw(&proxy, &request).await;
            assert_refused(&answer, detail, body);
            assert!(answer.is_whole, "nothing is read behind it: {answer:?}");
        }
    });
}

#[test]
fn a_transfer_coding_that_nobody_undoes_is_no_answer() {
    run(async {
        for coding in ["gzip", "gzip, chunked", "identity", "chunked, chunked"] {
            let port = scripted(move |mut stream, _| async move {
                let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n");
                stream.write_all(head.as_bytes()).await.expect("open");
            })
            .await;
            let proxy = Proxy::start(port, &[]).await;
            let answer = proxy.get("/", &[]).await;
            assert_eq!((answer.status, answer.reason()), (502, "upstream-reset"), "{coding}");
            assert!(answer.body.contains("its transfer encoding is not \"chunked\", once"), "{answer:?}");
        }
    });
}

#[test]
fn interim_answers_without_end_are_a_refusal_that_says_so() {
    run(async {
        let port = scripted(|mut stream, _| async move {
            // Until the connection is closed.
            while stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.is_ok() {}
        })
        .await;
        let proxy = Proxy::start(port, &[]).await;
        let answer = proxy.get("/", &[]).await;
        assert_eq!((answer.status, answer.reason()), (502, "upstream-reset"));
        assert!(answer.body.contains("more than 1000 interim responses (1xx)"), "{answer:?}");
    });
}

#[test]
fn http2_is_left_out_of_what_a_client_would_rather_speak() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        for (offered, passed) in
            [("h2c, websocket", "websocket"), ("websocket,H2C", "websocket"), ("h2c, h2c", "-")]
        {
            proxy.get("/", &[("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", offered)]).await;
            assert_eq!(app.state.saw("upgrade"), passed, "{offered}");
        }
    });
}

#[test]
fn a_switch_to_what_was_not_asked_for_is_a_refusal() {
    run(async {
        for (said, status) in [
            ("Upgrade: websocket\r\n", 101),
            ("Upgrade: WebSocket\r\n", 101),
            ("Upgrade: h2c\r\n", 502),
            ("Upgrade: websocket, other\r\n", 502),
            ("", 502),
        ] {
            let port = scripted(move |mut stream, _| async move {
                let head = format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{said}\r\n");
                stream.write_all(head.as_bytes()).await.expect("open");
                // It speaks whatever it likes until it is closed.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            })
            .await;
            let proxy = Proxy::start(port, &[]).await;
            let mut stream = proxy.connect().await;
            let request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
            stream.write_all(request).await.expect("open");
            let head = parse(read_until(&mut stream, "\r\n\r\n").await.as_bytes(), true);
            assert_eq!(head.status, status, "{said:?}");
            if status == 502 {
                assert_eq!(head.reason(), "upstream-reset");
                assert!(head.header("ebb-error").contains("another protocol than was asked for"), "{head:?}");
            }
        }
    });
}

#[test]
fn headers_that_shadow_ours_reach_the_app_only_if_it_wants_them() {
    run(async {
        let shadowing = [
            ("X_Forwarded_For", "1.1.1.1"),
            ("K_Original_Host", "x"),
            ("Ebb_Hop_Key", "x"),
            ("Knative_Serving-Revision", "x"),
        ];
        let harmless = ("X_Request_Id", "1");
        for (changes, shown) in [
            (&[][..], "-"),
            (&[("EBB_SHADOWING_HEADERS", "drop")], "-"),
            (&[("EBB_SHADOWING_HEADERS", "keep")], "kept"),
        ] {
            let app = App::hello().await;
            let proxy = Proxy::start(app.port, changes).await;
            // Our own hops pass on what their clients said.
            for key in ["none", HOP_KEY] {
                let sent: Vec<_> = shadowing.into_iter().chain([harmless, ("ebb-hop-key", key)]).collect();
                proxy.get("/", &sent).await;
                for (name, value) in shadowing {
                    let expected = if shown == "kept" { value } else { "-" };
                    assert_eq!(app.state.saw(&name.to_ascii_lowercase()), expected, "{changes:?} {name}");
                }
                assert_eq!(app.state.saw("x_request_id"), "1");
                assert_eq!(app.state.saw("x-forwarded-for"), "127.0.0.1");
            }
        }
    });
}

#[test]
fn trailers_carry_nothing_that_a_head_would_not() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let seen = Rc::new(Cell::new(None));
        let told = Rc::clone(&seen);
        tokio::task::spawn_local(async move {
            let (mut stream, _) = listener.accept().await.expect("open");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") || !request.windows(4).any(|part| part == b"x-ok") {
                assert!(stream.read_buf(&mut request).await.expect("open") > 0, "all of the request comes");
            }
            told.set(Some(String::from_utf8(request).expect("ASCII")));
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
            let trailers =
                "0\r\nebb-error: queue-full\r\nebb-not-started: 1\r\nContent-Length: 7\r\nx-ok: 2\r\n\r\n";
            stream.write_all([head, trailers].concat().as_bytes()).await.expect("open");
        });
        let proxy = Proxy::start(port, &[]).await;
        let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        let trailers = "1\r\nx\r\n0\r\nK-Original-Host: x\r\nX-Forwarded-For: 9.9.9.9\r\nX_Forwarded_For: 9.9.9.9\r\n\
                        ebb-hop-key: x\r\nHost: x\r\nUpgrade: x\r\nx-ok: 1\r\n\r\n";
        let answer = raw(&proxy, &[head, trailers].concat()).await;
        let request = seen.take().expect("the app saw a request");
        let (_, behind) = request.split_once("1\r\nx\r\n0\r\n").expect("a chunk and no more");
        assert_eq!(behind, "x-ok: 1\r\n\r\n");
        assert_eq!((answer.status, answer.trailers.len()), (200, 1), "{answer:?}");
        assert_eq!(answer.trailers["x-ok"], "2");
    });
}
