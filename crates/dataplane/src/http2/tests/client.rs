//! The end that asks, as the pool uses it.

use std::iter::StepBy;
use std::ops::RangeFrom;

use futures_util::StreamExt;
use http_body_util::Collected;
use protocol::http2::{HasBody, MemoryBudget, MemoryShare, Role, Session, SessionLimits};
use runtime::Clock;

use super::super::transport::Transport;
use super::*;
use crate::upstream::{
    LostRequests, PeerStart, PriorKnowledge, Protocol, SendError, SendErrorKind, UpstreamLimits, Upstreams,
};

/// A pool, and a server that answers by hand.
struct World {
    upstreams: Upstreams,
    listener: TcpListener,
}

impl World {
    async fn start() -> Self {
        Self::knowing(PriorKnowledge::Certain).await
    }

    async fn knowing(prior_knowledge: PriorKnowledge) -> Self {
        Self::with(UpstreamLimits { prior_knowledge, ..UpstreamLimits::default() }).await
    }

    async fn with(limits: UpstreamLimits) -> Self {
        let limits = UpstreamLimits { lost_requests: LostRequests::Report, ..limits };
        let upstreams = Upstreams::new(Clock::start(), limits);
        Self { upstreams, listener: TcpListener::bind("127.0.0.1:0").await.expect("a port") }
    }

    /// Sends a request in the background.
    fn send(&self, body: Body) -> tokio::task::JoinHandle<Result<Response<Body>, SendError>> {
        let request = http::Request::post("http://h/path").header("x", "y").body(body).expect("legal");
        let to = self.listener.local_addr().expect("bound");
        let upstreams = self.upstreams.clone();
        tokio::task::spawn_local(async move { upstreams.send(to, Protocol::Http2, request).await })
    }

    /// The server's end of the next connection; it has said the first words.
    async fn accept(&self) -> PeerRole {
        let (mut socket, _) = self.listener.accept().await.expect("open");
        let mut preface = [0; PREFACE.len()];
        socket.read_exact(&mut preface).await.expect("open");
        assert_eq!(&preface, PREFACE);
        let mut peer = PeerRole::new(socket);
        assert_eq!(peer.next().await, ReceivedFrame::Settings { is_ack: false });
        peer.frame(FrameKind::Settings, 0, 0, &[]).await;
        peer
    }
}

async fn whole(response: Result<Response<Body>, SendError>) -> (u16, Result<Bytes, String>) {
    let response = response.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|error| error.to_string());
    (status, body.map(Collected::to_bytes))
}

fn head(stream: u32, is_end: bool) -> ReceivedFrame {
    let lines = [":method: POST", ":scheme: http", ":authority: h", ":path: /path", "x: y"];
    ReceivedFrame::Head { stream, lines: lines.map(str::to_owned).to_vec(), is_end }
}

#[test]
fn a_request_and_its_answer_interim_ones_left_out() {
    run(async {
        let world = World::start().await;
        let sent = world.send(Body::full("hello"));
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, false));
        let body = ReceivedFrame::Data { stream: 1, data: Bytes::from_static(b"hello"), is_end: true };
        assert_eq!(peer.next_of_note().await, body);
        peer.write(&response(1, 0, 103, &[("link", "x")])).await;
        peer.write(&response(1, 0, 201, &[])).await;
        peer.frame(FrameKind::Data, 0, 1, b"wor").await;
        peer.frame(FrameKind::Data, 0, 1, b"ld").await;
        peer.write(&trailers(1, "a", "b")).await;
        assert_eq!(whole(sent.await.expect("no panic")).await, (201, Ok(Bytes::from_static(b"world"))));
    });
}

#[test]
fn a_request_waits_until_an_app_has_spoken_http_2_once() {
    run(async {
        let world = World::knowing(PriorKnowledge::Unconfirmed).await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        // Its acknowledgement goes out before the request, and so before anything that an app of another
        // protocol could take for one.
        while peer.next().await != (ReceivedFrame::Settings { is_ack: true }) {}
        assert_eq!(peer.next_of_note().await, head(1, true));
        peer.write(&response(1, END_STREAM, 200, &[])).await;
        assert_eq!(whole(sent.await.expect("no panic")).await.0, 200);
        // From then on it is known to: a request is among the first words on a new connection.
        peer.frame(FrameKind::GoAway, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]).await;
        while peer.next().await != ReceivedFrame::Closed {}
        let sent = world.send(Body::empty());
        let (mut socket, _) = world.listener.accept().await.expect("open");
        let mut preface = [0; PREFACE.len()];
        socket.read_exact(&mut preface).await.expect("open");
        let mut peer = PeerRole::new(socket);
        assert_eq!(peer.next_of_note().await, head(1, true));
        sent.abort();
    });
}

#[test]
fn an_app_that_does_not_speak_http_2_gets_no_request() {
    for words in ["HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", ""] {
        run(async {
            let world = World::knowing(PriorKnowledge::Unconfirmed).await;
            let sent = world.send(Body::full("hello"));
            for _ in 0..2 {
                let (mut socket, _) = world.listener.accept().await.expect("open");
                socket.write_all(words.as_bytes()).await.expect("open");
                socket.shutdown().await.expect("open");
                let mut heard = Vec::new();
                // A reset counts as an end.
                let _ = socket.read_to_end(&mut heard).await;
                assert!(!heard.windows(5).any(|window| window == b"hello"), "{heard:?}");
            }
            let error = sent.await.expect("no panic").expect_err("no answer");
            assert_eq!((error.kind, error.started), (SendErrorKind::NotHttp2, PeerStart::No), "{words:?}");
            assert!(error.request.is_some_and(|request| !request.body().is_empty()), "it can go elsewhere");
        });
    }
}

/// What stops the reading can be gone at once, and with it every reason to look at the connection again but
/// this one.
#[test]
fn much_that_is_written_at_once_does_not_end_the_reading() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("open");
        let limits = SessionLimits {
            streams: 0,
            stream_window: 65_535,
            proven_window: 65_535,
            read_window: 65_535,
            head_bytes: 65_535,
            headers: 100,
            memory: <&MemoryBudget>::default(),
        };
        let clock = Clock::start();
        let session = Rc::new(Session::new(Role::Client, limits, clock.now()));
        let mut transport = Transport::new(socket, Bytes::new(), Rc::clone(&session), clock);
        let mut turns = 0;
        let mut streams = Vec::new();
        tokio::task::spawn_local(std::future::poll_fn(move |context| {
            turns += 1;
            if turns == 2 {
                // The peer's words have ended the wait for them; now they are not read for all this.
                let request = http::Request::get("http://h/").header("x", "y".repeat(16_000));
                let request = Request::from(request.body(()).expect("legal"));
                streams.extend((0..20).map(|_| session.open(&request, HasBody::No)));
                return std::task::Poll::Pending;
            }
            transport.poll_turn(context, drop, |_| {})
        }));
        let (mut peer, _) = listener.accept().await.expect("open");
        let mut preface = [0; PREFACE.len()];
        peer.read_exact(&mut preface).await.expect("open");
        let mut peer = PeerRole::new(peer);
        while peer.next().await != (ReceivedFrame::Settings { is_ack: false }) {}
        let words = [frame(FrameKind::Settings, 0, 0, &[]), frame(FrameKind::Ping, 0, 0, SETTLED)];
        peer.write(&words.concat()).await;
        // It comes back after all the heads.
        while peer.next_raw().await.expect("the connection goes on").0.kind != FrameKind::Ping {}
    });
}

/// As when the connection of a client that has many requests under way ends.
#[test]
fn streams_that_end_together_are_broken_off_a_few_at_a_time() {
    run(async {
        let world = World::start().await;
        let sent: Vec<_> = (0..40).map(|_| world.send(Body::empty())).collect();
        let mut peer = world.accept().await;
        for number in 0..40 {
            assert_eq!(peer.next_of_note().await, head(number * 2 + 1, true));
        }
        for request in &sent {
            request.abort();
        }
        for request in sent {
            assert!(request.await.is_err_and(|error| error.is_cancelled()));
        }
        let mut reset = std::collections::BTreeSet::new();
        // The first ping stands behind eight of the sixteen, the second behind all that are unheard.
        for heard in [16, 24, 40] {
            let mut pings = 0;
            for got in peer.settle().await {
                if let ReceivedFrame::Reset { stream, .. } = got {
                    assert!(reset.insert(stream), "{stream} twice");
                } else if got == (ReceivedFrame::Ping { is_ack: false }) {
                    pings += 1;
                }
            }
            assert_eq!(
                (reset.len(), pings),
                (heard, 1),
                "a peer that hears of many at once ends the connection"
            );
            peer.frame(FrameKind::Ping, ACK, 0, b"resets?\0").await;
        }
        assert!(peer.settle().await.is_empty());
    });
}

#[test]
fn a_request_that_the_server_did_not_begin_is_sent_again() {
    run(async {
        let world = World::start().await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        peer.frame(FrameKind::Reset, 0, 1, &ErrorCode::REFUSED_STREAM.0.to_be_bytes()).await;
        assert_eq!(peer.next_of_note().await, head(3, true), "on the same connection");
        // 1 was the last one that it looks at.
        peer.frame(FrameKind::GoAway, 0, 0, &(1_u64 << 32).to_be_bytes()).await;
        let mut other = world.accept().await;
        assert_eq!(other.next_of_note().await, head(1, true), "on another one");
        other.write(&response(1, END_STREAM, 200, &[])).await;
        assert_eq!(whole(sent.await.expect("no panic")).await, (200, Ok(Bytes::new())));
        assert_eq!(peer.next_of_note().await, ReceivedFrame::Closed, "nothing is left on the first");
    });
}

#[test]
fn a_request_whose_body_was_begun_is_refused_as_not_started_and_not_repeated() {
    run(async {
        let world = World::start().await;
        let frames = futures_util::stream::iter([Ok(http_body::Frame::data(Bytes::from_static(b"a")))]);
        let body = http_body_util::StreamBody::new(frames.chain(futures_util::stream::pending()));
        let sent = world.send(Body::custom(body));
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, false));
        assert!(matches!(peer.next_of_note().await, ReceivedFrame::Data { stream: 1, .. }));
        peer.frame(FrameKind::Reset, 0, 1, &ErrorCode::REFUSED_STREAM.0.to_be_bytes()).await;
        let error = sent.await.expect("no panic").expect_err("refused");
        assert_eq!((error.kind, error.started), (SendErrorKind::StreamRefused, PeerStart::No));
        assert!(error.request.is_none(), "a part of its body is gone");
    });
}

#[test]
fn a_request_that_the_server_may_have_begun_is_reported() {
    run(async {
        for (answer, expected) in [
            (
                frame(FrameKind::Reset, 0, 1, &ErrorCode::INTERNAL_ERROR.0.to_be_bytes()),
                SendErrorKind::StreamReset("INTERNAL_ERROR".to_owned()),
            ),
            (response(1, 0, 101, &[]), SendErrorKind::Malformed),
            (
                [response(1, 0, 103, &[]), refusal()].concat(),
                SendErrorKind::StreamReset("REFUSED_STREAM".to_owned()),
            ),
            (frame(FrameKind::Headers, END_HEADERS | END_STREAM, 1, &[0x82]), SendErrorKind::Malformed),
            (response(1, END_STREAM, 200, &[("content-length", "5")]), SendErrorKind::Malformed),
            (frame(FrameKind::Data, 0, 1, b"before its head"), SendErrorKind::Malformed),
            (frame(FrameKind::Headers, END_HEADERS, 1, &[0x80]), SendErrorKind::Closed),
            (frame(FrameKind::PushPromise, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]), SendErrorKind::Closed),
        ] {
            let world = World::start().await;
            let sent = world.send(Body::empty());
            let mut peer = world.accept().await;
            assert_eq!(peer.next_of_note().await, head(1, true));
            peer.write(&answer).await;
            let error = sent.await.expect("no panic").expect_err("no answer");
            assert_eq!((error.kind, error.started), (expected, PeerStart::Perhaps));
        }
    });
}

/// The app may send little of an untaken answer, twice as much as was read of one whose reader
/// stops, and much of one that is read.
#[test]
fn an_answer_gets_as_much_room_as_its_reader_takes() {
    run(async {
        let world = World::start().await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        peer.write(&response(1, 0, 200, &[])).await;
        let mut body = sent.await.expect("no panic").expect("an answer").into_body();
        let mut rooms = vec![2 * 1024];
        for _ in 0..12 {
            let room = rooms.last().copied().unwrap_or_default();
            for piece in vec![0; room].chunks(16 * 1024) {
                peer.frame(FrameKind::Data, 0, 1, piece).await;
            }
            assert_eq!(given(&peer.settle().await), 0, "nobody has read");
            let mut read = 0;
            while read < room {
                read += body.frame().await.expect("more").expect("open").into_data().expect("data").len();
            }
            rooms.push(given(&peer.settle().await));
        }
        assert_eq!(rooms[..4], [2, 2, 8, 32].map(|kib| kib * 1024));
        assert!(rooms.iter().all(|room| *room <= 256 * 1024), "{rooms:?}");
        assert!(rooms[8..].iter().all(|room| *room >= 128 * 1024), "{rooms:?}");
    });
}

#[test]
fn streams_get_room_for_a_frame_once_others_have_used_it_and_memory_is_not_scarce() {
    run(async {
        let memory = MemoryBudget::of_process(None);
        let limits = UpstreamLimits { memory, ..UpstreamLimits::default() };
        let world = World::with(UpstreamLimits { prior_knowledge: PriorKnowledge::Certain, ..limits }).await;
        let mut unread = vec![world.send(Body::empty())];
        let mut peer = world.accept().await;
        assert_eq!(room_of_a_response(&mut peer, 1).await, 2 * 1024);
        let mut streams = (3..).step_by(2);
        let read_of_fifty = async |peer: &mut PeerRole, streams: &mut StepBy<RangeFrom<u32>>, pieces: u32| {
            for stream in streams.take(50) {
                let sent = world.send(Body::empty());
                assert_eq!(peer.next_of_note().await, head(stream, true));
                peer.write(&response(stream, 0, 200, &[])).await;
                let mut body = sent.await.expect("no panic").expect("an answer").into_body();
                for piece in 0..pieces {
                    peer.frame(FrameKind::Data, 0, stream, &[0; 2048]).await;
                    body.frame().await.expect("more").expect("open");
                    let rooms = peer.settle().await;
                    let more = if piece == 0 { 2 * 1024 } else { 8 * 1024 };
                    assert!(rooms.contains(&ReceivedFrame::WindowUpdate { stream, more }), "{rooms:?}");
                }
                peer.frame(FrameKind::Data, END_STREAM, stream, &[]).await;
                body.collect().await.expect("it ends");
            }
        };
        read_of_fifty(&mut peer, &mut streams, 1).await;
        unread.push(world.send(Body::empty()));
        let room = room_of_a_response(&mut peer, streams.next().expect("endless")).await;
        assert_eq!(room, 2 * 1024, "that much goes into the room of the next hop, whoever reads there");
        let mut share = MemoryShare::new(memory);
        share.settle(17 << 20).expect("much is free");
        read_of_fifty(&mut peer, &mut streams, 2).await;
        unread.push(world.send(Body::empty()));
        let room = room_of_a_response(&mut peer, streams.next().expect("endless")).await;
        assert_eq!(room, 2 * 1024, "memory is scarce");
        drop(share);
        for stream in streams.take(2) {
            unread.push(world.send(Body::empty()));
            assert_eq!(room_of_a_response(&mut peer, stream).await, 16 * 1024);
        }
    });
}

/// How much of an unread response comes before its stream is broken off.
async fn room_of_a_response(peer: &mut PeerRole, stream: u32) -> usize {
    assert_eq!(peer.next_of_note().await, head(stream, true));
    peer.write(&response(stream, 0, 200, &[])).await;
    let mut sent = 0;
    loop {
        peer.frame(FrameKind::Data, 0, stream, &[0; 1024]).await;
        let reset = ReceivedFrame::Reset { stream, code: ErrorCode::FLOW_CONTROL_ERROR };
        if peer.settle().await.contains(&reset) {
            return sent;
        }
        sent += 1024;
    }
}

/// How much room the first stream was given.
fn given(all: &[ReceivedFrame]) -> usize {
    let rooms = all
        .iter()
        .map(|got| if let ReceivedFrame::WindowUpdate { stream: 1, more } = got { *more } else { 0 });
    rooms.sum::<u32>() as usize
}

fn refusal() -> Vec<u8> {
    frame(FrameKind::Reset, 0, 1, &ErrorCode::REFUSED_STREAM.0.to_be_bytes())
}

/// A proxy that passes the answer on must not tell its client that it is safe to ask again.
#[test]
fn a_refusal_after_the_answer_began_is_not_passed_on_as_one() {
    run(async {
        let goodbye = frame(FrameKind::GoAway, 0, 0, &[0; 8]);
        for end in [refusal(), goodbye] {
            let world = World::start().await;
            let sent = world.send(Body::empty());
            let mut peer = world.accept().await;
            assert_eq!(peer.next_of_note().await, head(1, true));
            peer.write(&[response(1, 0, 200, &[]), end].concat()).await;
            let mut body = sent.await.expect("no panic").expect("an answer").into_body();
            let error = body.frame().await.expect("more").expect_err("it broke off");
            assert_ne!(error.code(), ErrorCode::REFUSED_STREAM, "{error}");
        }
    });
}

#[test]
fn an_answer_without_a_body_has_none() {
    run(async {
        for status in [204, 304] {
            let world = World::start().await;
            let sent = world.send(Body::empty());
            let mut peer = world.accept().await;
            assert_eq!(peer.next_of_note().await, head(1, true));
            let body = frame(FrameKind::Data, END_STREAM, 1, b"a body");
            peer.write(&[response(1, 0, status, &[]), body].concat()).await;
            let code = ErrorCode::PROTOCOL_ERROR;
            assert_eq!(peer.next_of_note().await, ReceivedFrame::Reset { stream: 1, code });
            let (_, body) = whole(sent.await.expect("no panic")).await;
            assert!(body.is_err(), "{status}");
        }
    });
}

#[test]
fn a_connection_that_was_closed_while_it_was_idle_loses_no_request() {
    run(async {
        let world = World::start().await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        peer.write(&response(1, END_STREAM, 200, &[])).await;
        assert_eq!(whole(sent.await.expect("no panic")).await.0, 200);
        // Closed, and the request is on its way before a task had a chance to notice.
        drop(peer);
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        peer.write(&response(1, END_STREAM, 204, &[])).await;
        assert_eq!(whole(sent.await.expect("no panic")).await.0, 204);
    });
}

#[test]
fn an_answer_that_breaks_off_is_told_with_what_came_before() {
    run(async {
        let world = World::start().await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        peer.write(&response(1, 0, 200, &[("content-length", "9")])).await;
        let mut body = sent.await.expect("no panic").expect("an answer").into_body();
        peer.frame(FrameKind::Data, 0, 1, b"part").await;
        drop(peer);
        let frame = body.frame().await.expect("more").expect("data");
        assert_eq!(frame.into_data().expect("data"), "part");
        let error = body.frame().await.expect("more").expect_err("it broke off");
        assert!(error.to_string().contains("the connection ended"), "{error}");
    });
}

#[test]
fn an_answer_that_nobody_wants_any_more_is_cancelled() {
    run(async {
        let world = World::start().await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        sent.abort();
        let cancelled = |stream| ReceivedFrame::Reset { stream, code: ErrorCode::CANCEL };
        assert_eq!(peer.next_of_note().await, cancelled(1));
        let sent = world.send(Body::empty());
        assert_eq!(peer.next_of_note().await, head(3, true));
        peer.write(&response(3, 0, 200, &[])).await;
        drop(sent.await);
        assert_eq!(peer.next_of_note().await, cancelled(3));
    });
}

#[test]
fn as_many_streams_as_the_server_takes_and_a_second_connection_for_the_rest() {
    run(async {
        let world = World::start().await;
        let first = world.send(Body::empty());
        let mut peer = world.accept().await;
        peer.write(&setting(3, 2)).await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        peer.settle().await;
        let second = world.send(Body::empty());
        assert_eq!(peer.next_of_note().await, head(3, true));
        let third = world.send(Body::empty());
        let mut other = world.accept().await;
        assert_eq!(other.next_of_note().await, head(1, true));
        peer.write(&response(1, END_STREAM, 200, &[])).await;
        assert_eq!(whole(first.await.expect("no panic")).await.0, 200);
        let fourth = world.send(Body::empty());
        assert_eq!(peer.next_of_note().await, head(5, true), "there is room again");
        drop((second, third, fourth));
    });
}

#[test]
fn connections_that_are_closed_when_idle_end_with_their_last_stream() {
    run(async {
        let world = World::start().await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        world.upstreams.close_idle(world.listener.local_addr().expect("bound"));
        let code = ErrorCode::NO_ERROR;
        assert_eq!(peer.next_of_note().await, ReceivedFrame::GoAway { last: 0, code });
        peer.write(&response(1, END_STREAM, 200, &[])).await;
        assert_eq!(whole(sent.await.expect("no panic")).await.0, 200);
        assert_eq!(peer.next_of_note().await, ReceivedFrame::Closed);
        drop(peer);
        while world.upstreams.connections_in_all() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

/// L40: a peer that is gone without a word is noticed by a ping that it does not answer; one that answers is
/// waited for.
#[test]
fn a_silent_peer_is_asked_and_given_up_when_it_does_not_answer() {
    run_paused(async {
        let world = World::start().await;
        let clock = Clock::start();
        let begun = clock.now();
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        assert_eq!(peer.next_of_note().await, ReceivedFrame::Ping { is_ack: false });
        peer.frame(FrameKind::Ping, ACK, 0, b"alive?\0\0").await;
        assert_eq!(peer.next_of_note().await, ReceivedFrame::Ping { is_ack: false });
        let error = sent.await.expect("no panic").expect_err("the peer is silent");
        assert_eq!((error.kind, error.started), (SendErrorKind::Closed, PeerStart::Perhaps));
        assert_eq!(
            clock.now().saturating_since(begun).as_secs(),
            30,
            "10 s, an answer, 10 s, and 10 s for the second one"
        );
    });
}

#[test]
fn a_peer_that_owes_an_answer_to_streams_that_have_ended_is_asked_again() {
    run_paused(async {
        let world = World::start().await;
        let sent = world.send(Body::empty());
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, true));
        assert_eq!(peer.next_of_note().await, ReceivedFrame::Ping { is_ack: false });
        sent.abort();
        assert_eq!(peer.next_of_note().await, ReceivedFrame::Reset { stream: 1, code: ErrorCode::CANCEL });
        // Long enough for the watch over the first stream to end.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let sent = world.send(Body::empty());
        assert_eq!(peer.next_of_note().await, head(3, true));
        assert_eq!(peer.next_of_note().await, ReceivedFrame::Ping { is_ack: false });
        peer.write(&response(3, END_STREAM, 200, &[])).await;
        assert_eq!(whole(sent.await.expect("no panic")).await.0, 200);
    });
}

/// The first ones go as they come, and so does what follows an answer; what comes faster is joined, and goes
/// even if nothing more comes.
#[test]
fn small_pieces_that_follow_one_another_closely_are_joined() {
    run(async {
        let world = World::start().await;
        let (pieces, body) = tokio::sync::mpsc::channel::<&'static str>(1_000);
        let frames = futures_util::stream::unfold(body, async |mut body| {
            let piece = body.recv().await?;
            Some((Ok(http_body::Frame::data(Bytes::from_static(piece.as_bytes()))), body))
        });
        let sent = world.send(Body::custom(http_body_util::StreamBody::new(Box::pin(frames))));
        let mut peer = world.accept().await;
        assert_eq!(peer.next_of_note().await, head(1, false));
        let say = |piece: &'static str, times| {
            (0..times).for_each(|_| pieces.try_send(piece).expect("there is room"));
        };
        say("x", 1_000);
        let (mut bytes, mut frames) = (0, 0);
        while bytes < 1_000 {
            let ReceivedFrame::Data { data, is_end: false, .. } = peer.next_of_note().await else {
                panic!("data")
            };
            assert!(frames >= 4 || data == "x", "the first ones as they came");
            (bytes, frames) = (bytes + data.len(), frames + 1);
        }
        // Eight as they come, and three of 256 bytes or more; a few more if the machine has stood still
        // meanwhile.
        assert!(frames < 100, "{frames} frames");
        peer.write(&[response(1, 0, 200, &[]), frame(FrameKind::Data, 0, 1, b"yes")].concat()).await;
        let answered = sent.await.expect("no panic").expect("an answer");
        say("y", 2);
        for _ in 0..2 {
            let piece = ReceivedFrame::Data { stream: 1, data: Bytes::from_static(b"y"), is_end: false };
            assert_eq!(peer.next_of_note().await, piece, "as it came: the app goes on");
        }
        say("z", 1_000);
        drop(pieces);
        let mut rest = 0;
        loop {
            let ReceivedFrame::Data { data, is_end, .. } = peer.next_of_note().await else { panic!("data") };
            rest += data.len();
            if is_end {
                break;
            }
        }
        assert_eq!(rest, 1_000, "to the end");
        drop(answered);
    });
}
