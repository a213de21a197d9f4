//! Connections that hold nothing, and who may stay.

mod half_closed;
mod silent;

use std::cell::RefCell;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use protocol::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::*;
use crate::body::Body;
use crate::connection::budget::ClosedIdleConnections;
use protocol::http2::PREFACE;

/// As few clients as crowd a server.
const ROOM: usize = 16;

/// More than the kernels of both ends keep.
const LARGE: usize = 32 << 20;

/// Answers with the path, on `/held` when it is told to, and on `/large` with more than kernels take; `/hop`
/// is asked by a hop of ours.
#[derive(Default)]
struct Answers {
    gate: Rc<Notify>,
    seen: RefCell<Vec<String>>,
}

impl Service for Answers {
    type Body = Body;

    async fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> Result<Response<Body>, Abort> {
        let path = request.uri().path().to_owned();
        self.seen.borrow_mut().push(path.clone());
        match path.as_str() {
            "/held" => self.gate.notified().await,
            "/hop" => connection.mark_as_hop(),
            "/large" => return Ok(Response::new(Body::full("x".repeat(LARGE)))),
            _ => {}
        }
        Ok(Response::new(Body::full(format!("<{path}>"))))
    }
}

struct Server {
    address: SocketAddr,
    drain: Drain,
    service: Rc<Answers>,
    closed: ClosedIdleConnections,
}

impl Server {
    fn start(room: usize, idle_time: Duration) -> Self {
        Self::with(room, ServerLimits { idle_time, ..ServerLimits::default() })
    }

    fn with(room: usize, limits: ServerLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let closed = ClosedIdleConnections::default();
        let drain = Drain::within(ConnectionBudget::of_connections(room, closed.clone()));
        let service = Rc::new(Answers::default());
        let serving = serve(listener, Rc::clone(&service), drain.clone(), limits);
        tokio::task::spawn_local(async move { serving.await.expect("a listener") });
        Self { address, drain, service, closed }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }

    /// Another one that is open and has been accepted.
    async fn accepted(&self) -> TcpStream {
        let before = self.drain.accepted();
        let stream = self.connect().await;
        until("it is accepted", || self.drain.accepted() > before).await;
        stream
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let patient = async { tokio::time::timeout(Duration::from_secs(60), test).await };
    LocalSet::new().block_on(&runtime, patient).expect("the test hangs");
}

/// Looks again after all tasks had a turn.
async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("waited for {what}");
}

async fn ask(stream: &mut TcpStream, path: &str) -> String {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await.expect("open");
    answer(stream).await
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b">") {
        bytes.push(stream.read_u8().await.expect("it is answered"));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the server has closed it, in order, and what it said before.
fn end_of(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    loop {
        match stream.try_read(&mut bytes[length..]) {
            Ok(0) => {
                bytes.truncate(length);
                return Some(bytes);
            }
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) => panic!("it was reset: {error}"),
        }
    }
}

const FOR_EVER: Duration = Duration::from_secs(3600);

#[test]
fn a_crowd_of_silent_clients_makes_room_for_newcomers_the_oldest_first() {
    run(async {
        let server = Server::start(ROOM, FOR_EVER);
        let mut honest = server.connect().await;
        let mut crowd = Vec::new();
        for number in 0..100 {
            crowd.push(server.accepted().await);
            assert!(server.drain.connections() <= ROOM, "{number}");
            // It asks often enough not to be the oldest.
            assert!(ask(&mut honest, &format!("/{number}")).await.ends_with(&format!("</{number}>")));
        }
        until("who was asked to go has gone", || {
            let open = crowd.iter().filter(|stream| end_of(stream).is_none()).count();
            let all = server.drain.connections();
            all < ROOM && server.drain.resting() == all && open + 1 == all
        })
        .await;
        let open = crowd.iter().filter(|stream| end_of(stream).is_none()).count();
        let first_open = crowd.iter().position(|stream| end_of(stream).is_none()).expect("some are open");
        assert_eq!(open, crowd.len() - first_open, "the newest stayed");
        assert!((ROOM - 3..ROOM).contains(&open), "{open} are open");
        let mut registry = Registry::default();
        server.closed.register(&mut registry, "closed");
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).expect("text");
        assert!(page.contains(&format!("closed_total{{reason=\"crowding\"}} {first_open}\n")), "{page}");
    });
}

#[test]
fn a_waiting_client_gets_room_when_another_connection_begins_to_rest() {
    run(async {
        let server = Server::start(ROOM, FOR_EVER);
        let mut working = Vec::new();
        for _ in 0..ROOM {
            let mut stream = server.accepted().await;
            stream.write_all(b"GET /held HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
            working.push(stream);
        }
        until("all are held", || server.service.seen.borrow().len() == ROOM).await;
        let mut late = server.connect().await;
        late.write_all(b"GET /late HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        // No client is cut off for it.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(server.service.seen.borrow().len(), ROOM);
        server.service.gate.notify_waiters();
        assert!(answer(&mut late).await.ends_with("</late>"));
        for stream in &mut working {
            assert!(answer(stream).await.ends_with("</held>"));
        }
    });
}

#[test]
fn a_request_that_arrived_before_its_connection_was_closed_is_answered() {
    run(async {
        let server = Server::start(ROOM, FOR_EVER);
        let mut stream = server.accepted().await;
        assert!(ask(&mut stream, "/1").await.ends_with("</1>"));
        until("it rests", || server.drain.resting() == 1).await;
        // Both before the connection's task has a turn.
        let sent = stream.try_write(b"GET /2 HTTP/1.1\r\nHost: h\r\n\r\n").expect("there is room");
        server.drain.dismiss_old(Duration::ZERO);
        assert_eq!((sent, server.drain.resting()), (28, 0));
        assert!(answer(&mut stream).await.ends_with("</2>"));
        assert!(ask(&mut stream, "/3").await.ends_with("</3>"), "it stays");
    });
}

#[test]
fn http2_connections_without_streams_are_told_before_they_are_closed() {
    run(async {
        let server = Server::start(ROOM, FOR_EVER);
        let mut stream = server.accepted().await;
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        stream.write_all(&[&PREFACE[..], &settings].concat()).await.expect("open");
        stream.readable().await.expect("open");
        until("it rests", || server.drain.resting() == 1).await;
        server.drain.dismiss_old(Duration::ZERO);
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.expect("a clean end");
        let (mut kinds, mut rest) = (Vec::new(), said.as_slice());
        while let [high, middle, low, kind, _, _, _, _, _, after @ ..] = rest {
            kinds.push(*kind);
            let length = u32::from_be_bytes([0, *high, *middle, *low]);
            rest = &after[usize::try_from(length).expect("short")..];
        }
        assert_eq!(kinds.last(), Some(&7), "GOAWAY is the last of {kinds:?}");
    });
}

#[test]
fn only_what_holds_nothing_grows_too_old() {
    run(async {
        let idle_time = Duration::from_millis(320);
        let server = Server::start(ROOM, idle_time);
        let mut held = server.accepted().await;
        held.write_all(b"GET /held HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        let mut hop = server.accepted().await;
        assert!(ask(&mut hop, "/hop").await.ends_with("</hop>"));
        let mut begun = server.accepted().await;
        begun.write_all(b"GET /begun HTTP/1.1\r\n").await.expect("open");
        let silent = server.accepted().await;
        let mut asked = server.accepted().await;
        assert!(ask(&mut asked, "/asked").await.ends_with("</asked>"));
        until("two have gone", || end_of(&silent).is_some() && end_of(&asked).is_some()).await;
        // The others were there before them.
        assert_eq!(server.drain.connections(), 3);
        server.service.gate.notify_waiters();
        assert!(answer(&mut held).await.ends_with("</held>"));
        assert!(ask(&mut hop, "/hop").await.ends_with("</hop>"));
        begun.write_all(b"Host: h\r\n\r\n").await.expect("open");
        assert!(answer(&mut begun).await.ends_with("</begun>"));
    });
}

#[test]
fn servers_of_one_process_share_their_room() {
    run(async {
        let budget = ConnectionBudget::of_connections(ROOM, ClosedIdleConnections::default());
        let server = |budget: &Arc<ConnectionBudget>| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("bound");
            let drain = Drain::within(Arc::clone(budget));
            let serving =
                serve(listener, Rc::new(Answers::default()), drain.clone(), ServerLimits::default());
            tokio::task::spawn_local(async move { serving.await.expect("a listener") });
            (address, drain)
        };
        let ((first, first_drain), (second, _drain)) = (server(&budget), server(&budget));
        let mut silent = Vec::new();
        for _ in 0..ROOM {
            silent.push(TcpStream::connect(first).await.expect("it listens"));
        }
        until("the first server is full", || first_drain.connections() >= ROOM - 2).await;
        for number in 0..20 {
            let mut stream = TcpStream::connect(second).await.expect("it listens");
            assert!(ask(&mut stream, &format!("/{number}")).await.ends_with('>'));
            silent.push(stream);
        }
        assert!(first_drain.connections() < ROOM - 2, "the first server made room for the second's");
    });
}
