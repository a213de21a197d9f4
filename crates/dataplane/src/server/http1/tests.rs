mod bodies;
mod large_heads;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Version;
use http_body_util::{BodyExt, StreamBody};
use protocol::Request;
use protocol::http2::{MemoryBudget, MemoryShare};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;

use super::*;
use crate::server::UnservedRequest;

/// A service that is a function.
struct Answers<Call>(Call);

impl<Call, Answer> Service for Answers<Call>
where
    Call: Fn(Request<Body>, Rc<Connection>) -> Answer + 'static,
    Answer: Future<Output = Result<Response<Body>, Abort>> + 'static,
{
    type Body = Body;

    fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> impl Future<Output = Result<Response<Body>, Abort>> + 'static {
        (self.0)(request, connection)
    }
}

/// A server for one test.
struct Server {
    address: SocketAddr,
    drain: Drain,
}

impl Server {
    fn start<Answer>(call: impl Fn(Request<Body>) -> Answer + 'static) -> Self
    where
        Answer: Future<Output = Result<Response<Body>, Abort>> + 'static,
    {
        Self::limited(ServerLimits::default(), call)
    }

    fn limited<Answer>(limits: ServerLimits, call: impl Fn(Request<Body>) -> Answer + 'static) -> Self
    where
        Answer: Future<Output = Result<Response<Body>, Abort>> + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let drain = Drain::new();
        let service = Rc::new(Answers(move |request, _| call(request)));
        tokio::task::spawn_local(crate::serve(listener, service, drain.clone(), limits));
        Self { address, drain }
    }

    async fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.set_nodelay(true).expect("open");
        stream
    }

    /// Everything that is answered to `text`, until the server closes.
    async fn ask(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.expect("open");
        rest(&mut stream).await.expect("it closes in order")
    }
}

/// Goes away so that the server is told: a plain close behind a whole request looks like the end of the
/// sending side, whose client may still read its answer (`server/tests/half_closed.rs`).
fn leave(stream: TcpStream) {
    stream.set_zero_linger().expect("open");
    drop(stream);
}

/// Runs a test on one thread, with an end to its patience.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let patient = async { tokio::time::timeout(Duration::from_secs(60), test).await };
    LocalSet::new().block_on(&runtime, patient).expect("the test hangs");
}

/// What comes until the server closes.
async fn rest(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads until what was read ends with `end`.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        bytes.push(stream.read_u8().await.expect("the server goes on"));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An answer with the target of its request.
async fn echo_target(request: Request<Body>) -> Result<Response<Body>, Abort> {
    Ok(Response::new(Body::full(format!("<{}>", request.uri()))))
}

/// An answer with the body of its request.
async fn echo_body(request: Request<Body>) -> Result<Response<Body>, Abort> {
    let body = request.into_body().collect().await.map_err(|_| Abort)?;
    Ok(Response::new(Body::full(body.to_bytes())))
}

/// Tells when it is dropped.
struct Cancelled(Option<oneshot::Sender<()>>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            let _ = told.send(());
        }
    }
}

/// A body of which nothing comes, and that tells when it is dropped.
fn endless(held: Cancelled) -> Body {
    let frames = futures_util::stream::poll_fn(move |_| {
        let _held = &held;
        Poll::Pending
    });
    Body::custom(StreamBody::new(frames))
}

/// What a test is told of a service's future: that it began, and that it was dropped.
struct Watched {
    began: Rc<Notify>,
    cancelled: oneshot::Receiver<()>,
}

/// A server whose requests hold what `keep` makes of them until they are cancelled.
fn cancellable<Retained: 'static>(keep: impl Fn(Request<Body>) -> Retained + 'static) -> (Server, Watched) {
    let (told, cancelled) = oneshot::channel();
    let (told, began) = (RefCell::new(Some(told)), Rc::new(Notify::new()));
    let begins = Rc::clone(&began);
    let server = Server::start(move |request| {
        let held = (Cancelled(told.take()), keep(request));
        begins.notify_one();
        async move {
            let _held = held;
            std::future::pending().await
        }
    });
    (server, Watched { began, cancelled })
}

#[test]
fn a_thousand_pipelined_requests_are_answered_in_order() {
    run(async {
        let server = Server::start(echo_target);
        let (mut read, mut write) = server.connect().await.into_split();
        let requests: String = (0..1000)
            .map(|number| ["GET /", &number.to_string(), " HTTP/1.1\r\nHost: h\r\n\r\n"].concat())
            .collect();
        let writing = tokio::task::spawn_local(async move {
            write.write_all(requests.as_bytes()).await.expect("open");
            write
        });
        let (mut seen, mut piece) = (String::new(), [0; 4096]);
        while !seen.ends_with("</999>") {
            let length = read.read(&mut piece).await.expect("open");
            assert!(length > 0, "it closed after {} bytes", seen.len());
            seen.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        let bodies: Vec<&str> =
            seen.split('<').skip(1).map(|rest| rest.split('>').next().expect("one")).collect();
        let expected: Vec<String> = (0..1000).map(|number| format!("/{number}")).collect();
        assert_eq!(bodies, expected);
        drop(writing.await);
    });
}

#[test]
fn a_head_in_single_bytes_is_a_head() {
    run(async {
        let server = Server::start(echo_target);
        let mut stream = server.connect().await;
        for byte in b"\r\nGET /slow HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" {
            stream.write_all(&[*byte]).await.expect("open");
            tokio::task::yield_now().await;
        }
        assert!(rest(&mut stream).await.expect("in order").ends_with("</slow>"));
    });
}

#[test]
fn a_head_that_does_not_end_in_time_is_answered_408() {
    run(async {
        let limits = ServerLimits { head_time: Duration::from_millis(20), ..ServerLimits::default() };
        let server = Server::limited(limits, echo_target);
        for begun in ["GET / HTTP/1.1\r\nHost: h\r\n", "P", "PRI * HTTP/2.0\r\n"] {
            let answer = server.ask(begun).await;
            assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
            assert!(answer.contains("\r\nebb-error: bad-request; detail=\""), "{answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        }
        // The time of one head is not that of the next, nor does it begin before its first byte.
        let mut stream = server.connect().await;
        for _ in 0..3 {
            stream.write_all(b"GET /").await.expect("open");
            tokio::task::yield_now().await;
            stream.write_all(b" HTTP/1.1\r\nHost: h\r\n\r\n\r\n").await.expect("open");
            until(&mut stream, "</>").await;
            tokio::time::sleep(limits.head_time * 2).await;
        }
    });
}

#[test]
fn unreadable_requests_are_refused_with_the_reason() {
    run(async {
        let server = Server::start(echo_target);
        let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "a: b\r\n".repeat(101));
        let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(70_000));
        let large = format!("GET / HTTP/1.1\r\nHost: h\r\na: {}", "b".repeat(300_000));
        for (text, status, why) in [
            ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400, "name of a header"),
            ("GET / HTTP/1.1\nHost: h\n\n", 400, "carriage return and line feed"),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 6\r\n\r\nhello", 400, "Content-Length"),
            ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nhello", 400, "transfer encoding"),
            (&many, 431, "more than 100 headers"),
            (&long, 414, "target"),
            (&large, 431, "longer than 131072 bytes"),
        ] {
            let answer = server.ask(text).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{text:.60}: {answer}");
            assert!(answer.contains("\r\nebb-error: bad-request; detail=\""), "{text:.60}: {answer}");
            assert!(answer.contains(why), "{text:.60}: {answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{text:.60}: {answer}");
        }
    });
}

#[test]
fn ambiguous_requests_are_refused_before_any_service_sees_them_and_end_the_connection() {
    run(async {
        let server = Server::start(|_| async { panic!("no service sees it") });
        for (line, headers) in [
            ("POST / HTTP/1.1", "Host: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            ("POST / HTTP/1.1", "Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 44\r\n"),
            ("POST / HTTP/1.1", "Host: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n"),
            ("GET / HTTP/1.1", ""),
            ("GET / HTTP/1.1", "Host: h\r\nHost: h\r\n"),
            ("GET / HTTP/1.1", "Host: h/other\r\n"),
        ] {
            let request = format!("{line}\r\n{headers}\r\n0\r\n\r\n");
            let answer = server.ask(&format!("{request}GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{headers}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{headers}: {answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{headers}: {answer}");
        }
        let answer = server.ask("HEAD / HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("\r\n\r\n"), "{answer}");
        let answer = server.ask("POST / HTTP/1.1\r\nContent-Type: application/grpc\r\n\r\n").await;
        assert!(answer.contains("\r\ngrpc-status: 14\r\n"), "{answer}");
    });
}

#[test]
fn a_service_hears_of_what_it_does_not_see() {
    run(async {
        let service = Rc::new(Bystander::default());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let drain = Drain::new();
        let limits = ServerLimits::default();
        tokio::task::spawn_local(crate::serve(listener, Rc::clone(&service), drain.clone(), limits));
        let server = Server { address, drain };
        server.ask("GET /doubtful HTTP/1.1\r\n\r\n").await;
        server.ask("no request\r\n\r\n").await;
        assert_eq!(*service.heard.borrow(), ["/doubtful: bad-request, 400", "?: bad-request, 400"]);
    });
}

/// Sees nothing and notes what it hears of.
#[derive(Default)]
struct Bystander {
    heard: RefCell<Vec<String>>,
}

impl Service for Bystander {
    type Body = Body;

    async fn call(self: Rc<Self>, _: Request<Body>, _: Rc<Connection>) -> Result<Response<Body>, Abort> {
        panic!("nothing here is for a service")
    }

    fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        let target = unserved.request.map_or("?", |request| request.uri().path());
        let status = unserved.answer.status().as_u16();
        self.heard.borrow_mut().push(format!("{target}: {}, {status}", unserved.reason));
    }
}

#[test]
fn a_client_that_goes_away_cancels_its_request() {
    run(async {
        let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n";
        // The body is not looked at, dropped, or not there.
        let kept: fn(Request<Body>) -> Option<Request<Body>> = Some;
        let dropped: fn(Request<Body>) -> Option<Request<Body>> = |_| None;
        for (head, keep) in [(get, kept), (get, dropped), (post, kept), (post, dropped)] {
            let (server, watched) = cancellable(keep);
            let mut stream = server.connect().await;
            stream.write_all(head.as_bytes()).await.expect("open");
            watched.began.notified().await;
            leave(stream);
            watched.cancelled.await.expect("it is dropped");
            server.drain.finished().await;
        }
    });
}

#[test]
fn a_client_that_goes_away_breaks_off_its_response() {
    run(async {
        let (told, cancelled) = oneshot::channel();
        let told = RefCell::new(Some(told));
        let server = Server::start(move |_| {
            let held = Cancelled(told.take());
            async { Ok(Response::new(endless(held))) }
        });
        let mut stream = server.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        let head = until(&mut stream, "\r\n\r\n").await;
        assert!(head.contains("\r\ntransfer-encoding: chunked\r\n"), "{head}");
        leave(stream);
        cancelled.await.expect("it is dropped");
    });
}

#[test]
fn http_1_0_closes_unless_it_is_asked_not_to() {
    run(async {
        let server = Server::start(|request| async move {
            assert_eq!(request.version(), Version::HTTP_10);
            echo_target(request).await
        });
        let answer = server.ask("GET /1 HTTP/1.0\r\n\r\n").await;
        assert!(
            answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.contains("\r\nconnection: close\r\n"),
            "{answer}"
        );
        let kept = "GET /2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        let answer = server.ask(&format!("{kept}GET /3 HTTP/1.0\r\n\r\n")).await;
        assert!(answer.contains("\r\nconnection: keep-alive\r\n") && answer.ends_with("</3>"), "{answer}");
    });
}

#[test]
fn a_connection_that_switches_takes_what_was_read_of_it_along() {
    run(async {
        let app = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = app.local_addr().expect("bound");
        let server = Server::start(move |mut request| async move {
            let forwarded = crate::ForwardingTerms::prepare(&mut request);
            let upgrade = forwarded.upgrade.expect("it is offered");
            let app = ReadAheadStream::new(
                TcpStream::connect(address).await.expect("open"),
                Bytes::from_static(b"hello"),
            );
            let timers =
                crate::Timers::start(vocabulary::RequestTimeouts::default(), runtime::Clock::start());
            crate::body::upgrade::relay((upgrade, app), timers, (), &Drain::new());
            let answer = http::Response::builder().status(101).header("connection", "Upgrade");
            Ok(answer.body(Body::empty()).expect("legal").into())
        });
        let mut client = server.connect().await;
        let head = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
        client.write_all(format!("{head}early").as_bytes()).await.expect("open");
        let answer = until(&mut client, "hello").await;
        assert!(
            answer.starts_with("HTTP/1.1 101 ") && answer.contains("\r\nconnection: Upgrade\r\n"),
            "{answer}"
        );
        let (mut app, _) = app.accept().await.expect("open");
        assert_eq!(until(&mut app, "early").await, "early");
        server.drain.finished().await;
    });
}

#[test]
fn an_upgrade_beside_a_body_is_not_offered_to_anybody() {
    run(async {
        let server = Server::start(|mut request| async move {
            let forwarded = crate::ForwardingTerms::prepare(&mut request);
            assert!(forwarded.upgrade.is_none() && !request.headers().contains_key("upgrade"));
            echo_body(request).await
        });
        let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade, close\r\nUpgrade: x\r\nContent-Length: 4\r\n\r\n";
        assert!(server.ask(&format!("{head}body")).await.ends_with("\r\n\r\nbody"));
    });
}

#[test]
fn a_service_that_aborts_answers_nothing() {
    run(async {
        let server = Server::start(|_| async { Err(Abort) });
        assert_eq!(server.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await, "");
    });
}

#[test]
fn requests_that_came_before_the_listener_closed_are_answered_even_if_unread() {
    run(async {
        let server = Server::start(echo_target);
        let mut kept = server.connect().await;
        kept.write_all(b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        until(&mut kept, "</1>").await;
        // The runtime hears of none of this before the drain: nothing here waits.
        let mut fresh = std::net::TcpStream::connect(server.address).expect("open");
        std::io::Write::write_all(&mut fresh, b"GET /2 HTTP/1.1\r\nHost: h\r\n\r\n").expect("open");
        assert_eq!(kept.try_write(b"GET /3 HTTP/1.1\r\nHost: h\r\n\r\n").expect("open"), 28);
        server.drain.begin();
        server.drain.stop_accepting();
        server.drain.close_idle();
        server.drain.finished().await;
        fresh.set_nonblocking(true).expect("open");
        let mut fresh = TcpStream::from_std(fresh).expect("a runtime");
        for (stream, expected) in [(&mut fresh, "</2>"), (&mut kept, "</3>")] {
            let answer = rest(stream).await.expect("in order");
            assert!(answer.contains("\r\nconnection: close\r\n") && answer.ends_with(expected), "{answer}");
        }
    });
}

#[test]
fn a_drain_closes_what_is_idle_and_lets_the_rest_finish() {
    run(async {
        let (gate, begun) = (Rc::new(Notify::new()), Rc::new(Notify::new()));
        let (opened, begins) = (Rc::clone(&gate), Rc::clone(&begun));
        let server = Server::start(move |request| {
            let opened = Rc::clone(&opened);
            begins.notify_one();
            async move {
                opened.notified().await;
                echo_target(request).await
            }
        });
        let (mut silent, mut partial, mut busy) =
            (server.connect().await, server.connect().await, server.connect().await);
        partial.write_all(b"GET /never").await.expect("open");
        busy.write_all(b"GET /busy HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        begun.notified().await;
        server.drain.until(|drain| drain.connections() == 3).await;
        server.drain.begin();
        server.drain.stop_accepting();
        server.drain.close_idle();
        assert_eq!(rest(&mut silent).await.expect("in order"), "");
        assert_eq!(rest(&mut partial).await.unwrap_or_default(), "");
        gate.notify_one();
        let answer = rest(&mut busy).await.expect("in order");
        assert!(answer.contains("\r\nconnection: close\r\n") && answer.ends_with("</busy>"), "{answer}");
        server.drain.finished().await;
    });
}
