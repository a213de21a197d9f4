//! Bodies of requests and responses, over real sockets.

use std::cell::Cell;

use http::HeaderMap;
use http_body::Frame;

use super::*;
use crate::body::BodyError;

#[test]
fn an_upload_that_is_refused_in_full_flow_gets_its_answer() {
    run(async {
        let server = Server::start(|_| async {
            let mut response = Response::new(Body::full("too large"));
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            Ok(response)
        });
        for framing in ["Content-Length: 100000000", "Transfer-Encoding: chunked"] {
            let (mut read, mut write) = server.connect().await.into_split();
            let head = format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n");
            write.write_all(head.as_bytes()).await.expect("open");
            let piece = [b"1000\r\n", &[b'x'; 0x1000][..], b"\r\n"].concat();
            let flood =
                tokio::task::spawn_local(async move { while write.write_all(&piece).await.is_ok() {} });
            let mut answer = String::new();
            read.read_to_string(&mut answer).await.expect("it closes in order");
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
            assert!(
                answer.contains("\r\nconnection: close\r\n") && answer.ends_with("too large"),
                "{answer}"
            );
            flood.abort();
        }
    });
}

#[test]
fn a_small_body_that_nobody_reads_costs_no_connection() {
    run(async {
        let server = Server::start(echo_target);
        let mut stream = server.connect().await;
        for framing in
            ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
        {
            let request = format!("POST /x HTTP/1.1\r\nHost: h\r\n{framing}");
            stream.write_all(request.as_bytes()).await.expect("open");
            let answer = until(&mut stream, "</x>").await;
            assert!(!answer.contains("connection: close"), "{answer}");
        }
    });
}

#[test]
fn chunks_and_trailers_reach_the_service() {
    run(async {
        let server = Server::start(|request| async move {
            let body = request.into_body().collect().await.map_err(|_| Abort)?;
            let sum = body.trailers().and_then(|trailers| trailers.get("x-sum")).cloned();
            let mut response = Response::new(Body::full(body.to_bytes()));
            response.headers_mut().extend(sum.map(|sum| (http::HeaderName::from_static("x-seen"), sum)));
            Ok(response)
        });
        let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answer = server.ask(&format!("{head}3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n")).await;
        assert!(answer.contains("\r\nx-seen: 5\r\n") && answer.ends_with("\r\n\r\nabcde"), "{answer}");
    });
}

#[test]
fn a_body_is_asked_for_when_somebody_wants_it_and_not_before() {
    run(async {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        let reading = Server::start(echo_body);
        let mut stream = reading.connect().await;
        stream.write_all(head.as_bytes()).await.expect("open");
        assert_eq!(until(&mut stream, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"hello").await.expect("open");
        assert!(until(&mut stream, "hello").await.starts_with("HTTP/1.1 200 "));
        // The answer comes first: what was not asked for will perhaps not come, so nothing can follow.
        let answer = Server::start(echo_target).ask(head).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.contains("\r\nconnection: close\r\n"),
            "{answer}"
        );
        // Who does not wait for it is not told.
        stream.write_all(format!("{head}hello").as_bytes()).await.expect("open");
        assert!(until(&mut stream, "hello").await.starts_with("HTTP/1.1 200 "));
    });
}

#[test]
fn an_upload_outlasts_its_response_and_the_next_request_follows_it() {
    run(async {
        let read = Rc::new(Cell::new(0));
        let counted = Rc::clone(&read);
        let server = Server::start(move |mut request| {
            let counted = Rc::clone(&counted);
            let body = std::mem::take(request.body_mut());
            tokio::task::spawn_local(async move {
                let length = body.collect().await.expect("whole").to_bytes().len();
                counted.set(counted.get() + length);
            });
            echo_target(request)
        });
        let mut stream = server.connect().await;
        stream
            .write_all(b"POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
            .await
            .expect("open");
        until(&mut stream, "</1>").await;
        stream.write_all(b"worldGET /2 HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        until(&mut stream, "</2>").await;
        assert_eq!(read.get(), 10);
    });
}

#[test]
fn a_body_that_is_held_for_too_long_has_no_say_in_the_next() {
    run(async {
        let bodies = Rc::new(RefCell::new(Vec::<Body>::new()));
        let kept = Rc::clone(&bodies);
        let server = Server::start(move |mut request| {
            let kept = Rc::clone(&kept);
            async move {
                let mut body = std::mem::take(request.body_mut());
                let mut read = Vec::new();
                while let Some(frame) = body.frame().await {
                    read.extend_from_slice(&frame.expect("whole").into_data().expect("data"));
                }
                kept.borrow_mut().push(body);
                Ok(Response::new(Body::full(read)))
            }
        });
        let mut stream = server.connect().await;
        let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n";
        for round in 0..3 {
            stream.write_all(head.as_bytes()).await.expect("open");
            until(&mut stream, "100 Continue\r\n\r\n").await;
            stream.write_all(b"abc").await.expect("open");
            tokio::task::yield_now().await;
            // The one of the request before is asked for more, and dropped, in the middle of this one.
            if let Some(mut stale) = bodies.take().pop() {
                assert!(stale.is_empty() && stale.frame().await.is_none(), "{round}");
            }
            stream.write_all(b"def").await.expect("open");
            until(&mut stream, "\r\n\r\nabcdef").await;
        }
    });
}

#[test]
fn a_client_that_goes_away_is_noticed_also_when_its_upload_is_at_rest() {
    run(async {
        let (told, cancelled) = oneshot::channel();
        let told = RefCell::new(Some(told));
        let server = Server::start(move |mut request| {
            let mut body = std::mem::take(request.body_mut());
            tokio::task::spawn_local(async move {
                let _ = body.frame().await;
                // It has no use for more at the moment.
                std::future::pending::<()>().await;
                drop(body);
            });
            let held = Cancelled(told.take());
            async { Ok(Response::new(endless(held))) }
        });
        let mut stream = server.connect().await;
        stream.write_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n").await.expect("open");
        until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"hello").await.expect("open");
        drop(stream);
        cancelled.await.expect("it is dropped");
    });
}

#[test]
fn a_body_that_breaks_off_never_looks_whole() {
    run(async {
        let server = Server::start(|_| async { Ok(Response::new(broken(&["begun"]))) });
        let answer = server.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert!(answer.ends_with("\r\n\r\n5\r\nbegun\r\n"), "{answer}");
        // What ends with its connection needs a reset.
        let mut stream = server.connect().await;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("open");
        let error = rest(&mut stream).await.expect_err("it is reset");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_length_that_is_not_kept_breaks_the_connection() {
    run(async {
        for (body, seen) in [("12", "12"), ("1234", "")] {
            let server = Server::start(move |_| async move {
                let body = StreamBody::new(futures_util::stream::iter([Ok(Frame::data(Bytes::from(body)))]));
                let answer = http::Response::builder().header("content-length", "3");
                Ok(answer.body(Body::custom(body)).expect("legal").into())
            });
            let answer = server.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
            assert!(answer.ends_with(&format!("\r\n\r\n{seen}")), "{answer}");
        }
    });
}

#[test]
fn trailers_of_a_response_follow_it() {
    run(async {
        let server = Server::start(|_| async {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "1".parse().expect("legal"));
            let frames = [Ok(Frame::data(Bytes::from_static(b"a"))), Ok(Frame::trailers(trailers))];
            Ok(Response::new(Body::custom(StreamBody::new(futures_util::stream::iter(frames)))))
        });
        let answer = server.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
        assert!(answer.ends_with("\r\n\r\n1\r\na\r\n0\r\nx-sum: 1\r\n\r\n"), "{answer}");
    });
}

/// A body with these pieces, which then breaks off.
fn broken(pieces: &[&'static str]) -> Body {
    let frames: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))))
        .chain([Err(BodyError::Source("a test".to_owned()))])
        .collect();
    Body::custom(StreamBody::new(futures_util::stream::iter(frames)))
}

/// Who takes an upload piece by piece, and what there was of it: the largest piece, and how many bytes.
fn pieces_of(limits: ServerLimits, gate: &Rc<Notify>, seen: &Rc<Cell<(usize, usize)>>) -> Server {
    let (gate, seen) = (Rc::clone(gate), Rc::clone(seen));
    Server::limited(limits, move |mut request| {
        let (gate, seen) = (Rc::clone(&gate), Rc::clone(&seen));
        async move {
            while let Some(frame) = request.body_mut().frame().await {
                let piece = frame.map_err(|_| Abort)?.into_data().expect("there are no trailers");
                let (largest, bytes) = seen.get();
                seen.set((largest.max(piece.len()), bytes + piece.len()));
                // An app that does not read for a while: the piece is still here.
                if largest <= 32 * 1024 && piece.len() > 32 * 1024 {
                    gate.notified().await;
                }
            }
            Ok(Response::new(Body::full("taken")))
        }
    })
}

const UPLOAD_BYTES: usize = 8 << 20;

async fn upload(server: &Server) -> tokio::task::JoinHandle<String> {
    let mut stream = server.connect().await;
    tokio::task::spawn_local(async move {
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {UPLOAD_BYTES}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("open");
        stream.write_all(&vec![b'x'; UPLOAD_BYTES]).await.expect("open");
        until(&mut stream, "taken").await
    })
}

#[test]
fn unread_bytes_of_an_upload_are_counted_until_the_app_reads_them() {
    run(async {
        let memory = MemoryBudget::of_process(None);
        let (gate, seen) = (Rc::default(), Rc::default());
        let server = pieces_of(ServerLimits { memory, ..ServerLimits::default() }, &gate, &seen);
        let upload = upload(&server).await;
        while seen.get().0 <= 32 * 1024 {
            tokio::task::yield_now().await;
        }
        assert!(memory.held() > 0, "a piece of {} bytes is not read", seen.get().0);
        gate.notify_one();
        upload.await.expect("an answer");
        assert_eq!((seen.get().1, memory.held()), (UPLOAD_BYTES, 0));
    });
}

/// However many upload at once: what is scarce is divided into small pieces, and the rest waits with the
/// clients.
#[test]
fn while_memory_is_scarce_uploads_go_on_in_small_pieces() {
    run(async {
        let memory = MemoryBudget::of_process(None);
        let mut others = MemoryShare::new(memory);
        others.settle(20 << 20).expect("that much one connection may hold");
        let held = memory.held();
        let (gate, seen) = (Rc::default(), Rc::default());
        let server = pieces_of(ServerLimits { memory, ..ServerLimits::default() }, &gate, &seen);
        upload(&server).await.await.expect("an answer");
        let (largest, bytes) = seen.get();
        assert!(largest <= 8 * 1024 && bytes == UPLOAD_BYTES, "pieces of {largest}");
        assert_eq!(memory.held(), held, "small pieces need no account");
    });
}
