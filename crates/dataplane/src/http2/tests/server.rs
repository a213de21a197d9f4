//! Tests of a connection's server end, with a client that is written by hand.

use runtime::Clock;

use super::*;
use crate::connection::drain::Drain;
use crate::refusal::{Refusal, RefusalReason, RequestKind};
use crate::server::{ServerLimits, serve};

/// Answers with the body of the request and its trailers; by path with something else.
#[derive(Default)]
pub(super) struct Echo {
    /// How many requests are being answered.
    pub(super) running: Rc<Cell<u32>>,
    pub(super) seen: Rc<RefCell<Vec<String>>>,
}

struct Running(Rc<Cell<u32>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Service for Echo {
    type Body = Body;

    async fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> Result<Response<Body>, Abort> {
        self.running.set(self.running.get() + 1);
        let _running = Running(Rc::clone(&self.running));
        let path = request.uri().path().to_owned();
        self.seen.borrow_mut().push(path.clone());
        match path.as_str() {
            "/never" => std::future::pending().await,
            "/hop" => {
                connection.mark_as_hop();
                Ok(Response::new(request.into_body()))
            }
            "/abort" => Err(Abort),
            "/fail" => {
                let frames = [
                    Ok(http_body::Frame::data(Bytes::from_static(b"begun"))),
                    Err(BodyError::Source("on purpose".to_owned())),
                ];
                let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
                Ok(Response::new(Body::custom(body)))
            }
            "/stalled" => Ok(Response::new(Body::custom(Stalled))),
            "/unavailable" => {
                Ok(Refusal::new(RefusalReason::QueueFull, "on purpose").into_response(RequestKind::Plain))
            }
            "/large" => Ok(Response::new(Body::full(vec![b'x'; 100_000]))),
            "/late" => {
                let body = request.into_body().collect().await.map(|whole| whole.to_bytes().len());
                Ok(Response::new(Body::full(format!("{body:?}"))))
            }
            _ => Ok(Response::new(request.into_body())),
        }
    }
}

/// A body of a known length that does not come.
struct Stalled;

impl http_body::Body for Stalled {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        std::task::Poll::Pending
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(10)
    }
}

/// A server and a client of it that has said the first words.
pub(super) struct World {
    pub(super) peer: PeerRole,
    pub(super) drain: Drain,
    pub(super) running: Rc<Cell<u32>>,
    pub(super) seen: Rc<RefCell<Vec<String>>>,
}

impl World {
    pub(super) async fn start() -> Self {
        let mut world = Self::unsettled().await;
        world.peer.write(PREFACE).await;
        world.peer.frame(FrameKind::Settings, 0, 0, &[]).await;
        world
    }

    pub(super) async fn unsettled() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let (service, drain) = (Echo::default(), Drain::new());
        let (running, seen) = (Rc::clone(&service.running), Rc::clone(&service.seen));
        let head = protocol::http1::HeadLimits { bytes: 20_000, ..protocol::http1::HeadLimits::OUTER };
        let limits = ServerLimits { streams_per_connection: 10, head, ..ServerLimits::default() };
        let serving = serve(listener, Rc::new(service), drain.clone(), limits);
        tokio::task::spawn_local(async move { serving.await.expect("a listener") });
        Self { peer: PeerRole::new(TcpStream::connect(address).await.expect("open")), drain, running, seen }
    }

    /// Sends a request without a body.
    pub(super) async fn get(&mut self, stream: u32, path: &str) {
        let mut lines = REQUEST;
        lines[3].1 = path;
        self.peer.frame(FrameKind::Headers, END_HEADERS | END_STREAM, stream, &block(&lines)).await;
    }
}

fn data(stream: u32, data: impl Into<Bytes>, is_end: bool) -> ReceivedFrame {
    ReceivedFrame::Data { stream, data: data.into(), is_end }
}

#[test]
fn ambiguous_requests_are_refused_before_any_service_sees_them() {
    run(async {
        for (more, status) in [
            (&[("content-length", "0"), ("content-length", "0")][..], "400"),
            (&[("host", "h"), ("host", "h")], "400"),
            (&[("host", "h/other")], "400"),
        ] {
            let World { mut peer, seen, .. } = World::start().await;
            peer.write(&request(1, END_STREAM, more)).await;
            let (mut answer, mut is_last) = (None, false);
            while answer.is_none() || !is_last {
                let got = peer.next_of_note().await;
                assert_ne!(got, ReceivedFrame::Closed, "{more:?}: it ends without an answer");
                is_last |= matches!(got, ReceivedFrame::GoAway { .. });
                if let ReceivedFrame::Head { lines, .. } = got {
                    answer = lines.into_iter().next();
                }
            }
            assert_eq!(answer, Some(format!(":status: {status}")), "{more:?}");
            assert!(seen.borrow().is_empty(), "{more:?}: a service saw it");
        }
    });
}

#[test]
fn a_body_and_its_trailers_are_answered_in_pieces_and_at_once() {
    run(async {
        let World { mut peer, .. } = World::start().await;
        peer.write(&request(1, 0, &[("x", "y")])).await;
        peer.frame(FrameKind::Data, 0, 1, b"hello").await;
        let ReceivedFrame::Head { stream: 1, lines, is_end: false } = peer.next_of_note().await else {
            panic!("a head")
        };
        assert_eq!(lines[0], ":status: 200");
        assert!(lines[1].starts_with("date: "), "{lines:?}");
        assert_eq!(peer.next_of_note().await, data(1, "hello", false));
        peer.frame(FrameKind::Data, 0, 1, b"again").await;
        assert_eq!(peer.next_of_note().await, data(1, "again", false));
        let fields =
            block(&[("grpc-status", "0"), ("k-proxy-request", "activator"), ("content-length", "7")]);
        peer.frame(FrameKind::Headers, END_HEADERS | END_STREAM, 1, &fields).await;
        let end = ReceivedFrame::Head { stream: 1, lines: vec!["grpc-status: 0".to_owned()], is_end: true };
        assert_eq!(peer.next_of_note().await, end);
    });
}

#[test]
fn nothing_is_sent_beyond_either_window() {
    run(async {
        let mut world = World::start().await;
        // Streams have 10 bytes, the connection its 65,535.
        world.peer.write(&setting(4, 10)).await;
        world.get(1, "/large").await;
        let ReceivedFrame::Head { lines, .. } = world.peer.next_of_note().await else { panic!("a head") };
        assert!(lines.contains(&"content-length: 100000".to_owned()), "{lines:?}");
        assert_eq!(world.peer.next_of_note().await, data(1, vec![b'x'; 10], false));
        assert_eq!(world.peer.settle().await, [], "the stream's window is empty");
        world.peer.frame(FrameKind::WindowUpdate, 0, 1, &200_000_u32.to_be_bytes()).await;
        let mut received = 10;
        while received < 65_535 {
            let ReceivedFrame::Data { stream: 1, data, is_end: false } = world.peer.next_of_note().await
            else {
                panic!("data")
            };
            received += data.len();
        }
        assert_eq!(received, 65_535);
        assert_eq!(world.peer.settle().await, [], "the connection's window is empty");
        // An answer without a body needs no window.
        world.get(3, "/").await;
        assert!(matches!(
            world.peer.next_of_note().await,
            ReceivedFrame::Head { stream: 3, is_end: true, .. }
        ));
        // A smaller window takes back what was given: 200,010 - 65,535 + (5 - 10) are left, then 5 - 65,535 +
        // 10 - 100,000.
        world.peer.frame(FrameKind::WindowUpdate, 0, 0, &100_000_u32.to_be_bytes()).await;
        let mut is_over = false;
        while !is_over {
            let ReceivedFrame::Data { stream: 1, data, is_end } = world.peer.next_of_note().await else {
                panic!("data")
            };
            received += data.len();
            is_over = is_end;
        }
        assert_eq!(received, 100_000);
    });
}

#[test]
fn streams_share_the_window_of_their_connection_and_none_is_forgotten() {
    run(async {
        let mut world = World::start().await;
        for stream in [1, 3, 5, 7, 9] {
            world.get(stream, "/large").await;
        }
        let (mut left, mut allowed) = (5, 65_535);
        let mut received = [0; 5];
        while left > 0 {
            let got = world.peer.next_but(comes_beside_data).await;
            let ReceivedFrame::Data { stream, data, is_end } = got else { panic!("{got:?}") };
            allowed -= data.len();
            received[stream as usize / 2] += data.len();
            left -= u32::from(is_end);
            // One gives up in the middle, and all get more room of their own than they can use.
            if stream == 5 && received[2] < 20_000 {
                world.peer.frame(FrameKind::Reset, 0, 5, &8_u32.to_be_bytes()).await;
                left -= 1;
            }
            world.peer.frame(FrameKind::WindowUpdate, 0, stream, &100_000_u32.to_be_bytes()).await;
            if allowed == 0 {
                allowed = 5_000;
                world.peer.frame(FrameKind::WindowUpdate, 0, 0, &5_000_u32.to_be_bytes()).await;
            }
        }
        received[2] = 100_000;
        assert_eq!(received, [100_000; 5]);
    });
}

#[test]
fn a_stream_that_waits_is_not_overtaken() {
    run(async {
        let mut world = World::start().await;
        world.peer.write(&setting(4, 1_000_000)).await;
        world.get(1, "/large").await;
        let mut received = 0;
        while received < 65_535 {
            let got = world.peer.next_but(comes_beside_data).await;
            let ReceivedFrame::Data { stream: 1, data, .. } = got else { panic!("{got:?}") };
            received += data.len();
        }
        // In this order, so that the task that answers the second request is there before the first stream
        // hears of the room.
        let mut lines = REQUEST;
        lines[3].1 = "/large";
        let second = frame(FrameKind::Headers, END_HEADERS | END_STREAM, 3, &block(&lines));
        let room = frame(FrameKind::WindowUpdate, 0, 0, &1000_u32.to_be_bytes());
        world.peer.write(&[second, room].concat()).await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { stream: 3, .. }));
        assert_eq!(world.peer.next_of_note().await, data(1, vec![b'x'; 1000], false));
        assert_eq!(world.peer.settle().await, []);
    });
}

#[test]
fn a_stream_whose_turn_it_is_and_that_has_nothing_to_send_holds_up_no_other() {
    run(async {
        let mut world = World::start().await;
        world.peer.write(&setting(4, 1_000_000)).await;
        world.get(1, "/large").await;
        let is_other = |got: &ReceivedFrame| !matches!(got, ReceivedFrame::Data { .. });
        let mut received = 0;
        while received < 65_535 {
            let got = world.peer.next_but(is_other).await;
            let ReceivedFrame::Data { stream: 1, data, .. } = got else { panic!("{got:?}") };
            received += data.len();
        }
        // Both wait for the connection's window, in this order.
        world.get(3, "/stalled").await;
        world.peer.settle().await;
        world.get(5, "/large").await;
        world.peer.settle().await;
        world.peer.frame(FrameKind::Reset, 0, 1, &8_u32.to_be_bytes()).await;
        world.peer.settle().await;
        world.peer.frame(FrameKind::WindowUpdate, 0, 0, &1_000_u32.to_be_bytes()).await;
        assert_eq!(world.peer.next_but(is_other).await, data(5, vec![b'x'; 1_000], false));
    });
}

#[test]
fn a_window_that_shrinks_below_what_was_sent_must_grow_again_first() {
    run(async {
        let mut world = World::start().await;
        world.peer.write(&setting(4, 100)).await;
        world.get(1, "/large").await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { .. }));
        assert_eq!(world.peer.next_of_note().await, data(1, vec![b'x'; 100], false));
        world.peer.write(&setting(4, 40)).await;
        world.peer.frame(FrameKind::WindowUpdate, 0, 1, &60_u32.to_be_bytes()).await;
        assert_eq!(
            world.peer.settle().await,
            [ReceivedFrame::Settings { is_ack: true }],
            "60 bytes were owed"
        );
        world.peer.frame(FrameKind::WindowUpdate, 0, 1, &7_u32.to_be_bytes()).await;
        assert_eq!(world.peer.next_of_note().await, data(1, vec![b'x'; 7], false));
    });
}

#[test]
fn credit_returns_for_bytes_that_were_read_and_for_no_others() {
    run(async {
        let mut world = World::start().await;
        let mut lines = REQUEST;
        lines[3].1 = "/late";
        world.peer.frame(FrameKind::Headers, END_HEADERS, 1, &block(&lines)).await;
        let piece = vec![0; 16_384];
        let (mut allowed, mut sent, mut returned) = (65_536, 0, 0);
        while sent < 300_000 {
            while allowed >= piece.len() {
                world.peer.frame(FrameKind::Data, 0, 1, &piece).await;
                allowed -= piece.len();
                sent += piece.len();
            }
            let ReceivedFrame::WindowUpdate { stream: 1, more } = world.peer.next_of_note().await else {
                panic!("room")
            };
            allowed += more as usize;
            returned += more as usize;
        }
        assert!(returned <= sent, "no more than was read");
        world.peer.frame(FrameKind::Data, END_STREAM, 1, &[]).await;
        let is_room = |got: &ReceivedFrame| matches!(got, ReceivedFrame::WindowUpdate { .. });
        let head = world.peer.next_but(is_room).await;
        assert!(matches!(head, ReceivedFrame::Head { stream: 1, .. }), "{head:?}");
        assert_eq!(world.peer.next_of_note().await, data(1, format!("Ok({sent})"), true));
        // This one is not read.
        lines[3].1 = "/never";
        world.peer.frame(FrameKind::Headers, END_HEADERS, 3, &block(&lines)).await;
        for _ in 0..5 {
            world.peer.frame(FrameKind::Data, 0, 3, &piece).await;
        }
        let code = ErrorCode::FLOW_CONTROL_ERROR;
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Reset { stream: 3, code });
        assert_eq!(world.running.get(), 0);
    });
}

#[test]
fn a_request_that_its_client_breaks_off_is_not_worked_on() {
    run(async {
        let mut world = World::start().await;
        world.get(1, "/never").await;
        world.peer.settle().await;
        assert_eq!(world.running.get(), 1);
        world.peer.frame(FrameKind::Reset, 0, 1, &8_u32.to_be_bytes()).await;
        world.peer.settle().await;
        assert_eq!(world.running.get(), 0);
        world.get(3, "/never").await;
        world.peer.settle().await;
        drop(world.peer);
        world.drain.begin();
        while world.running.get() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn an_answer_that_breaks_off_is_a_reset_after_what_there_was() {
    run(async {
        let mut world = World::start().await;
        world.get(1, "/fail").await;
        assert!(matches!(
            world.peer.next_of_note().await,
            ReceivedFrame::Head { stream: 1, is_end: false, .. }
        ));
        assert_eq!(world.peer.next_of_note().await, data(1, "begun", false));
        let code = ErrorCode::INTERNAL_ERROR;
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Reset { stream: 1, code });
        world.get(3, "/abort").await;
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Reset { stream: 3, code });
    });
}

#[test]
fn an_answer_to_head_has_no_body_whoever_answers() {
    run(async {
        let mut world = World::start().await;
        for (stream, path, length) in [(1, "/large", "100000"), (3, "/unavailable", "")] {
            let mut lines = REQUEST;
            (lines[0].1, lines[3].1) = ("HEAD", path);
            world.peer.frame(FrameKind::Headers, END_HEADERS | END_STREAM, stream, &block(&lines)).await;
            let got = world.peer.next_of_note().await;
            let ReceivedFrame::Head { stream: answered, lines, is_end: true } = got else {
                panic!("{got:?}")
            };
            assert_eq!(answered, stream);
            let told = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
            assert!(told.is_some_and(|told| length.is_empty() || told == length), "{lines:?}");
        }
        assert_eq!(world.peer.settle().await, []);
    });
}

#[test]
fn a_request_that_is_answered_before_it_was_read_is_told_to_stop() {
    run(async {
        let mut world = World::start().await;
        let mut lines = REQUEST;
        lines[3].1 = "/large";
        world.peer.write(&setting(4, 1_000_000)).await;
        world.peer.frame(FrameKind::WindowUpdate, 0, 0, &1_000_000_u32.to_be_bytes()).await;
        world.peer.frame(FrameKind::Headers, END_HEADERS, 1, &block(&lines)).await;
        let is_begun = |got: &ReceivedFrame| {
            matches!(
                got,
                ReceivedFrame::Head { .. }
                    | ReceivedFrame::Data { is_end: false, .. }
                    | ReceivedFrame::Settings { .. }
                    | ReceivedFrame::WindowUpdate { .. }
            )
        };
        let end = world.peer.next_but(is_begun).await;
        assert!(matches!(end, ReceivedFrame::Data { is_end: true, .. }), "{end:?}");
        let code = ErrorCode::NO_ERROR;
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Reset { stream: 1, code });
        // What was on its way does no harm.
        world.peer.frame(FrameKind::Data, END_STREAM, 1, b"late").await;
        assert_eq!(world.peer.settle().await, []);
    });
}

#[test]
fn a_head_beyond_the_limit_is_refused_with_a_reason_and_the_connection_goes_on() {
    run(async {
        let mut world = World::start().await;
        let long = "x".repeat(120);
        let many = vec![("a", &long[..]); 140];
        let fields = block(&[&REQUEST[..], &many].concat());
        let (first, rest) = fields.split_at(10_000);
        world.peer.frame(FrameKind::Headers, END_STREAM, 1, first).await;
        world.peer.frame(FrameKind::Continuation, END_HEADERS, 1, rest).await;
        let ReceivedFrame::Head { stream: 1, lines, is_end: false } = world.peer.next_of_note().await else {
            panic!("a head")
        };
        assert_eq!(lines[0], ":status: 431");
        assert!(lines.iter().any(|line| line.starts_with("ebb-error: bad-request; detail=")), "{lines:?}");
        assert!(matches!(
            world.peer.next_of_note().await,
            ReceivedFrame::Data { stream: 1, is_end: true, .. }
        ));
        assert_eq!(*world.seen.borrow(), Vec::<String>::new());
        world.get(3, "/").await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { stream: 3, .. }));
    });
}

#[test]
fn a_drain_serves_what_came_before_the_client_knew_and_then_closes() {
    run(async {
        let mut world = World::start().await;
        world.peer.write(&request(1, 0, &[])).await;
        world.peer.settle().await;
        world.drain.begin();
        let last = u32::MAX >> 1;
        let code = ErrorCode::NO_ERROR;
        // The head of the first answer may come before.
        let is_answer = |got: &ReceivedFrame| matches!(got, ReceivedFrame::Head { stream: 1, .. });
        assert_eq!(world.peer.next_but(is_answer).await, ReceivedFrame::GoAway { last, code });
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Ping { is_ack: false });
        world.get(3, "/").await;
        world.peer.frame(FrameKind::Ping, ACK, 0, b"leaving?").await;
        world.get(5, "/").await;
        // The answer and the goodbye come in either order.
        let mut two = [world.peer.next_of_note().await, world.peer.next_of_note().await];
        two.sort_by_key(|got| matches!(got, ReceivedFrame::GoAway { .. }));
        assert!(matches!(two[0], ReceivedFrame::Head { stream: 3, is_end: true, .. }), "{two:?}");
        assert_eq!(two[1], ReceivedFrame::GoAway { last: 3, code });
        world.peer.frame(FrameKind::Data, END_STREAM, 1, b"end").await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Data { stream: 1, .. }));
        assert!(matches!(
            world.peer.next_of_note().await,
            ReceivedFrame::Data { stream: 1, is_end: true, .. } | ReceivedFrame::Closed
        ));
        drop(world.peer);
        world.drain.stop_accepting();
        world.drain.finished().await;
        assert_eq!(world.seen.borrow().len(), 2, "the one after the goodbye was not served");
    });
}

#[test]
fn a_connection_that_holds_nothing_is_closed_at_the_end_of_a_drain() {
    run(async {
        let mut world = World::start().await;
        world.get(1, "/").await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { stream: 1, .. }));
        world.drain.begin();
        world.drain.stop_accepting();
        world.drain.close_idle();
        while world.peer.next().await != ReceivedFrame::Closed {}
        drop(world.peer);
        world.drain.finished().await;
    });
}

/// The client's request is stopped, and its connection closed; one that answers is waited for.
#[test]
fn a_silent_client_is_asked_and_given_up_when_it_does_not_answer() {
    run_paused(async {
        let mut world = World::start().await;
        let clock = Clock::start();
        let begun = clock.now();
        world.get(1, "/never").await;
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Ping { is_ack: false });
        assert_eq!(world.running.get(), 1);
        world.peer.frame(FrameKind::Ping, ACK, 0, b"alive?\0\0").await;
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Ping { is_ack: false });
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Closed);
        let seconds = clock.now().saturating_since(begun).as_secs();
        assert!(
            (89..=91).contains(&seconds),
            "30 s, an answer, 30 s, and 30 s for the second one: {seconds}"
        );
        assert_eq!(world.running.get(), 0);
    });
}

/// Heads of responses, settings and window updates come between the pieces of a body.
fn comes_beside_data(got: &ReceivedFrame) -> bool {
    matches!(
        got,
        ReceivedFrame::Head { .. } | ReceivedFrame::Settings { .. } | ReceivedFrame::WindowUpdate { .. }
    )
}

/// It forbids a server to open streams, which opens none (RFC 9113 §6.8), and takes nothing back.
#[test]
fn a_clients_goaway_leaves_its_requests_alone_and_ends_the_connection_behind_them() {
    run(async {
        for code in [ErrorCode::NO_ERROR, ErrorCode::CANCEL] {
            let mut world = World::start().await;
            world.peer.write(&request(1, 0, &[])).await;
            world.get(3, "/never").await;
            world.peer.settle().await;
            let farewell = [0_u32.to_be_bytes(), code.0.to_be_bytes()].concat();
            world.peer.frame(FrameKind::GoAway, 0, 0, &farewell).await;
            let answered = world.peer.settle().await;
            let is_end = |got: &ReceivedFrame| {
                matches!(got, ReceivedFrame::Reset { .. } | ReceivedFrame::GoAway { .. })
            };
            assert!(!answered.iter().any(is_end), "{code}: {answered:?}");
            assert_eq!(world.running.get(), 1, "{code}: the app goes on with the request");
            // A client that waits no more for an answer says so of its stream.
            world.peer.frame(FrameKind::Reset, 0, 3, &ErrorCode::CANCEL.0.to_be_bytes()).await;
            world.peer.settle().await;
            assert_eq!(world.running.get(), 0, "{code}");
            world.peer.frame(FrameKind::Data, END_STREAM, 1, b"late").await;
            let mut echoed = Vec::new();
            loop {
                let frame = world.peer.next_of_note().await;
                if let ReceivedFrame::Data { stream: 1, data, .. } = &frame {
                    echoed.extend_from_slice(data);
                } else if frame == ReceivedFrame::Closed {
                    break;
                } else {
                    let is_expected = matches!(
                        frame,
                        ReceivedFrame::Head { stream: 1, .. } | ReceivedFrame::WindowUpdate { stream: 1, .. }
                    );
                    assert!(is_expected, "{code}: {frame:?}");
                }
            }
            assert_eq!(echoed, b"late", "{code}: the answer came whole, and then the end");
        }
    });
}
