mod given_up;
mod heads;
mod late_bodies;
mod small_pieces;
mod unread;

use std::cell::Cell;
use std::convert::Infallible;
use std::io::Read;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::*;
use crate::body::BodyError;

/// An app that counts its connections.
struct App {
    address: SocketAddr,
    connections: Rc<Cell<u32>>,
}

async fn app() -> App {
    app_with_streams(200).await
}

/// An app that takes so many streams on an HTTP/2 connection.
async fn app_with_streams(streams: u32) -> App {
    app_that_serves(move |stream| async move {
        let service = service_fn(|_: Request<Incoming>| async {
            // Long enough for others to come meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
        });
        let mut builder = hyper_util::server::conn::auto::Builder::new(LocalExecutor);
        builder.http2().max_concurrent_streams(streams);
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    })
    .await
}

/// An app over HTTP/2 that neither reads nor answers `/stuck`, and answers all other requests so.
async fn app_with_stuck<Answered>(answer: impl Fn(Request<Incoming>) -> Answered + Clone + 'static) -> App
where
    Answered: Future<Output = Bytes> + 'static,
{
    app_that_serves(move |stream| {
        let answer = answer.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = answer.clone();
            async move {
                if request.uri().path() == "/stuck" {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Response::new(Full::new(answer(request).await)))
            }
        });
        let builder = hyper::server::conn::http2::Builder::new(LocalExecutor);
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        async move { drop(serving.await) }
    })
    .await
}

async fn app_that_serves<Served>(serve: impl Fn(TcpStream) -> Served + 'static) -> App
where
    Served: Future<Output = ()> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let connections = Rc::new(Cell::new(0));
    let counted = Rc::clone(&connections);
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.set(counted.get() + 1);
            tokio::task::spawn_local(serve(stream));
        }
    });
    App { address, connections }
}

fn pool(limits: UpstreamLimits) -> Upstreams {
    Upstreams::new(Clock::start(), limits)
}

fn request(protocol: Protocol) -> Request<Body> {
    let uri = match protocol {
        Protocol::Http1 => "/",
        Protocol::Http2 => "http://h/",
    };
    Request::get(uri).header("host", "h").body(Body::empty()).expect("legal")
}

async fn exchange(upstreams: &Upstreams, to: SocketAddr, protocol: Protocol) {
    let response = upstreams.send(to, protocol, request(protocol)).await.expect("an answer");
    assert_eq!(response.into_body().collect().await.expect("whole").to_bytes(), "ok");
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

#[test]
fn a_connection_is_used_again_and_closed_when_it_was_idle_for_too_long() {
    run(async {
        let app = app().await;
        let upstreams =
            pool(UpstreamLimits { idle: Duration::from_millis(200), ..UpstreamLimits::default() });
        for _ in 0..5 {
            exchange(&upstreams, app.address, Protocol::Http1).await;
        }
        assert_eq!((app.connections.get(), upstreams.connections(app.address)), (1, 1));
        while upstreams.connections(app.address) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        exchange(&upstreams, app.address, Protocol::Http1).await;
        assert_eq!(app.connections.get(), 2);
    });
}

#[test]
fn a_request_to_an_app_on_this_machine_has_left_before_anything_else_runs() {
    run(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let upstreams = pool(UpstreamLimits::default());
        let body = "x".repeat(16 * 1024);
        let upload = Request::put("/").header("host", "h").body(Body::full(body.clone())).expect("legal");
        for (request, end) in [(request(Protocol::Http1), "\r\n\r\n"), (upload, &*body)] {
            let sent = upstreams.send(address, Protocol::Http1, request);
            let mut sent = Box::pin(sent);
            let mut context = Context::from_waker(Waker::noop());
            assert!(sent.as_mut().poll(&mut context).is_pending(), "nobody answers");
            listener.set_nonblocking(true).expect("a socket");
            let (mut app, _) = listener.accept().expect("it is connected already");
            drop(sent);
            let mut text = String::new();
            app.read_to_string(&mut text).expect("open");
            assert!(text.ends_with(end), "{} bytes", text.len());
        }
    });
}

#[test]
fn streams_share_one_http2_connection() {
    run(async {
        let app = app().await;
        let upstreams = pool(UpstreamLimits::default());
        let exchanges = (0..50).map(|_| exchange(&upstreams, app.address, Protocol::Http2));
        futures_util::future::join_all(exchanges).await;
        assert_eq!(app.connections.get(), 1);
    });
}

#[test]
fn more_streams_than_one_http2_connection_serves_well_are_spread() {
    run(async {
        // Fewer than the app takes on one connection.
        const STREAMS: u32 = 1000;
        let app = app_with_streams(2 * STREAMS).await;
        for (allowed, needed) in [(usize::MAX, 20), (2, 2)] {
            let limits = UpstreamLimits { connections_per_address: allowed, ..UpstreamLimits::default() };
            let upstreams = pool(limits);
            exchange(&upstreams, app.address, Protocol::Http2).await;
            let wave = || {
                let exchanges = (0..STREAMS).map(|_| exchange(&upstreams, app.address, Protocol::Http2));
                futures_util::future::join_all(exchanges)
            };
            // All of a wave are sent at once: it finds too few connections and has one more opened, for those
            // to come.
            for connections in 1..=needed {
                while upstreams.connections(app.address) < connections {
                    wave().await;
                }
                assert_eq!(upstreams.connections(app.address), connections);
            }
            wave().await;
            assert_eq!(upstreams.connections(app.address), needed);
        }
    });
}

#[test]
fn closing_idle_connections_spares_those_in_use_until_they_are_done() {
    run(async {
        let app = app().await;
        let upstreams = pool(UpstreamLimits::default());
        let two = [Protocol::Http1; 2].map(|protocol| exchange(&upstreams, app.address, protocol));
        futures_util::future::join_all(two).await;
        assert_eq!(upstreams.connections(app.address), 2);
        let in_use = upstreams.send(app.address, Protocol::Http1, request(Protocol::Http1)).await;
        upstreams.close_idle(app.address);
        while upstreams.connections(app.address) > 1 {
            tokio::task::yield_now().await;
        }
        let body = in_use.expect("an answer").into_body().collect().await.expect("whole");
        assert_eq!(body.to_bytes(), "ok");
        while upstreams.connections(app.address) > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(upstreams.connections_in_all(), 0);
    });
}

#[test]
fn a_limit_on_connections_is_kept_and_a_refused_connection_returns_the_request() {
    run(async {
        let app = app().await;
        let upstreams = pool(UpstreamLimits { connections_per_address: 1, ..UpstreamLimits::default() });
        let first = upstreams.send(app.address, Protocol::Http1, request(Protocol::Http1));
        let second = upstreams.send(app.address, Protocol::Http1, request(Protocol::Http1));
        let (first, second) = tokio::join!(first, second);
        assert!(first.is_ok());
        let error = second.expect_err("one is the limit");
        assert_eq!(
            (error.kind, error.started),
            (SendErrorKind::TooManyConnections { limit: 1 }, PeerStart::No)
        );
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let nobody = socket.local_addr().expect("bound");
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let error = upstreams.send(nobody, protocol, request(protocol)).await.expect_err("refused");
            assert_eq!((error.kind, error.started), (SendErrorKind::ConnectRefused, PeerStart::No));
            assert!(error.request.is_some(), "it may go elsewhere");
        }
    });
}

#[test]
fn requests_that_wait_for_one_connection_fail_with_it() {
    run(async {
        // A listener whose queue is full drops what else wants to connect.
        let full = tokio::net::TcpSocket::new_v4().expect("a socket");
        full.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let full = full.listen(1).expect("it listens");
        let address = full.local_addr().expect("bound");
        let connect = Duration::from_millis(200);
        let mut waiting = Vec::new();
        while let Ok(connected) = tokio::time::timeout(connect, TcpStream::connect(address)).await {
            waiting.push(connected.expect("room"));
        }
        tokio::time::pause();
        let upstreams = pool(UpstreamLimits { connect, ..UpstreamLimits::default() });
        let clock = Clock::start();
        let begun_at = clock.now();
        let sends = (0..10).map(|_| upstreams.send(address, Protocol::Http2, request(Protocol::Http2)));
        for failed in futures_util::future::join_all(sends).await {
            let error = failed.expect_err("no connection");
            assert_eq!((error.kind, error.started), (SendErrorKind::ConnectTimedOut, PeerStart::No));
            assert!(error.request.is_some(), "it may go elsewhere");
        }
        // The time is the runtime's: one attempt, not ten.
        let elapsed = clock.now().saturating_since(begun_at);
        assert!(elapsed < 2 * connect, "{elapsed:?}");
    });
}

#[test]
fn a_dropped_exchange_is_closed_at_the_peer() {
    run(async {
        let app = app().await;
        let upstreams = pool(UpstreamLimits::default());
        let send = upstreams.send(app.address, Protocol::Http1, request(Protocol::Http1));
        assert!(tokio::time::timeout(Duration::from_millis(5), send).await.is_err());
        while upstreams.connections(app.address) > 0 {
            tokio::task::yield_now().await;
        }
    });
}

/// An app that dies of `/die`, as far as a connection can tell, and answers everything else; counts how often
/// it was asked to die.
async fn mortal_app() -> (SocketAddr, Rc<Cell<u32>>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let deaths = Rc::new(Cell::new(0));
    let counted = Rc::clone(&deaths);
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let deaths = Rc::clone(&counted);
            tokio::task::spawn_local(async move {
                let mut head = vec![0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut head).await {
                    if head[..length].windows(5).any(|window| window == b" /die") {
                        deaths.set(deaths.get() + 1);
                        return;
                    }
                    let answered = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                    answered.expect("the client reads");
                }
            });
        }
    });
    (address, deaths)
}

#[test]
fn a_lost_request_is_repeated_at_most_once_and_never_said_to_be_unstarted() {
    run(async {
        for (lost_requests, executed) in [(LostRequests::Repeat, 2), (LostRequests::Report, 1)] {
            let (address, deaths) = mortal_app().await;
            let upstreams = pool(UpstreamLimits { lost_requests, ..UpstreamLimits::default() });
            exchange(&upstreams, address, Protocol::Http1).await;
            let mut deadly = request(Protocol::Http1);
            *deadly.uri_mut() = "/die".parse().expect("a path");
            let error = upstreams.send(address, Protocol::Http1, deadly).await.expect_err("no answer");
            assert_eq!((error.kind, error.started), (SendErrorKind::Closed, PeerStart::Perhaps));
            assert!(error.request.is_none(), "nobody may send it again");
            assert_eq!(deaths.get(), executed, "{lost_requests:?}");
        }
    });
}

#[test]
fn a_lost_request_that_had_a_body_is_never_repeated_without_it() {
    run(async {
        let pieces = || {
            let pieces = [Ok(Frame::data(Bytes::from_static(b"abc")))];
            Body::custom(StreamBody::new(futures_util::stream::iter(pieces)))
        };
        for body in [Body::full("abc"), pieces()] {
            let (address, deaths) = mortal_app().await;
            let upstreams =
                pool(UpstreamLimits { lost_requests: LostRequests::Repeat, ..UpstreamLimits::default() });
            exchange(&upstreams, address, Protocol::Http1).await;
            let deadly = Request::put("/die").header("host", "h").body(body).expect("legal");
            let error = upstreams.send(address, Protocol::Http1, deadly).await.expect_err("no answer");
            assert_eq!((error.kind, error.started), (SendErrorKind::Closed, PeerStart::Perhaps));
            assert!(error.request.is_none(), "nobody may send it again");
            assert_eq!(deaths.get(), 1);
        }
    });
}

/// An app that answers the first request of its first connection and closes that, without having said so. Who
/// serves the next ones is up to the caller.
fn forgetful_app() -> (SocketAddr, std::thread::JoinHandle<std::net::TcpListener>) {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert!(stream.read(&mut [0; 4096]).expect("a request") > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("the client reads");
        drop(stream);
        listener
    });
    (address, answering)
}

#[test]
fn a_request_that_cannot_be_repeated_meets_no_connection_that_was_just_closed() {
    run(async {
        let post = |body| Request::post("/").header("host", "h").body(Body::full(body)).expect("legal");
        for body in ["", "body"] {
            let (address, answering) = forgetful_app();
            let upstreams =
                pool(UpstreamLimits { lost_requests: LostRequests::Repeat, ..UpstreamLimits::default() });
            exchange(&upstreams, address, Protocol::Http1).await;
            // The kernel knows that the connection is closed; the runtime, which has no turn until the next
            // request, does not.
            let listener = answering.join().expect("no panic");
            listener.set_nonblocking(true).expect("the kernel can");
            let listener = TcpListener::from_std(listener).expect("a socket");
            tokio::task::spawn_local(async move {
                use tokio::io::{AsyncReadExt, AsyncWriteExt};
                let (mut stream, _) = listener.accept().await.expect("another connection");
                stream.read_exact(&mut [0; 4]).await.expect("the request");
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                stream.write_all(answer).await.expect("the client reads");
            });
            let answer = upstreams.send(address, Protocol::Http1, post(body)).await.expect("an answer");
            assert_eq!(answer.status(), 200, "{body:?}");
        }
    });
}

#[test]
fn a_request_whose_body_breaks_off_is_never_sent_again() {
    run(async {
        let app = app().await;
        let upstreams = pool(UpstreamLimits::default());
        // On a new connection and on one that was used before; before the first byte and after it.
        for pieces in [vec![], vec![Bytes::from_static(b"a")]] {
            for _ in 0..2 {
                let pieces = pieces.clone().into_iter().map(|piece| Ok(Frame::data(piece)));
                let broken = std::iter::once(Err(BodyError::Source("broken off".to_owned())));
                let body = StreamBody::new(futures_util::stream::iter(pieces.chain(broken)));
                let mut request = request(Protocol::Http1);
                *request.body_mut() = Body::custom(body);
                let error =
                    upstreams.send(app.address, Protocol::Http1, request).await.expect_err("no answer");
                assert_eq!((error.kind, error.started), (SendErrorKind::RequestBody, PeerStart::Perhaps));
                assert!(error.request.is_none());
                exchange(&upstreams, app.address, Protocol::Http1).await;
            }
        }
    });
}

/// Runs hyper's tasks on the current thread.
#[derive(Clone, Copy, Debug, Default)]
struct LocalExecutor;

impl<Task: Future<Output = ()> + 'static> hyper::rt::Executor<Task> for LocalExecutor {
    fn execute(&self, task: Task) {
        tokio::task::spawn_local(task);
    }
}
