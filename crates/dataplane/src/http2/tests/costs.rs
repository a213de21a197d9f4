//! What peers make us do: what is done in earnest goes on for ever and as fast as it likes, what brings
//! nothing ends.

use futures_util::StreamExt;
use runtime::Clock;

use super::rules::{EndedPart, outcome, reset, window};
use super::server::World;
use super::*;
use crate::upstream::{PriorKnowledge, Protocol, UpstreamLimits, Upstreams};
use protocol::http2::frame::PADDED;

const CALM: EndedPart = EndedPart::Connection(ErrorCode::ENHANCE_YOUR_CALM);

fn ping() -> Vec<u8> {
    frame(FrameKind::Ping, 0, 0, b"measured")
}

/// What gRPC's ends send for a piece of a body when they measure the bandwidth: a ping, and room for what
/// they got.
fn measuring(stream: u32, bytes: u32) -> Vec<u8> {
    [ping(), window(0, bytes), window(stream, bytes)].concat()
}

/// Takes what comes until so many bytes and answers to pings are there.
async fn take(peer: &mut PeerRole, mut bytes: usize, mut answers: usize) {
    while bytes + answers > 0 {
        match peer.next().await {
            ReceivedFrame::Data { data, .. } => bytes -= data.len(),
            ReceivedFrame::Ping { is_ack: true } => answers -= 1,
            ReceivedFrame::Head { .. }
            | ReceivedFrame::Settings { .. }
            | ReceivedFrame::WindowUpdate { .. } => {}
            got @ (ReceivedFrame::Reset { .. }
            | ReceivedFrame::GoAway { .. }
            | ReceivedFrame::Closed
            | ReceivedFrame::Settled
            | ReceivedFrame::Ping { is_ack: false }) => {
                panic!("{got:?} while {bytes} and {answers} are to come")
            }
        }
    }
}

/// Both directions at once: each piece is answered with a piece, and for each one that comes its reader
/// measures.
#[test]
fn a_client_may_measure_the_bandwidth_with_every_piece() {
    run(async {
        let mut world = World::start().await;
        world.peer.write(&request(1, 0, &[])).await;
        let piece = [frame(FrameKind::Data, 0, 1, b"a message"), measuring(1, 9)].concat();
        for _ in 0..400 {
            world.peer.write(&piece.repeat(100)).await;
            take(&mut world.peer, 900, 100).await;
        }
        world.peer.frame(FrameKind::Data, END_STREAM, 1, &[]).await;
        assert!(matches!(
            world.peer.next_of_note().await,
            ReceivedFrame::Data { stream: 1, is_end: true, .. }
        ));
    });
}

/// The same at our other end: an app that measures while it receives, and while it answers.
#[test]
fn an_app_may_measure_the_bandwidth_with_every_piece() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let to = listener.local_addr().expect("bound");
        let prior_knowledge = PriorKnowledge::Certain;
        let limits = UpstreamLimits { prior_knowledge, ..UpstreamLimits::default() };
        let upstreams = Upstreams::new(Clock::start(), limits);
        let frames = futures_util::stream::iter(std::iter::repeat_n((), 20_000))
            .map(|()| Ok(http_body::Frame::data(Bytes::from_static(b"a message"))));
        let body = Body::custom(http_body_util::StreamBody::new(frames));
        let sending = tokio::task::spawn_local(async move {
            let request = http::Request::post("http://h/").body(body).expect("legal");
            let response = upstreams.send(to, Protocol::Http2, request).await.expect("an answer");
            response.into_body().collect().await.map(|whole| whole.to_bytes().len())
        });
        let mut peer = PeerRole::new(listener.accept().await.expect("open").0);
        let mut preface = [0; PREFACE.len()];
        peer.socket.read_exact(&mut preface).await.expect("open");
        let words = [frame(FrameKind::Settings, 0, 0, &[]), response(1, 0, 200, &[])].concat();
        let (mut is_answered, mut answers) = (false, 0);
        loop {
            match peer.next().await {
                ReceivedFrame::Head { .. } if !is_answered => {
                    peer.write(&words).await;
                    is_answered = true;
                }
                ReceivedFrame::Data { data, is_end, .. } => {
                    let length = u32::try_from(data.len()).expect("short");
                    let flags = if is_end { END_STREAM } else { 0 };
                    if !is_end {
                        peer.write(&measuring(1, length)).await;
                    }
                    peer.frame(FrameKind::Data, flags, 1, b"y").await;
                    answers += 1;
                    if is_end {
                        break;
                    }
                }
                got
                @ (ReceivedFrame::GoAway { .. } | ReceivedFrame::Reset { .. } | ReceivedFrame::Closed) => {
                    panic!("{got:?}")
                }
                ReceivedFrame::Head { .. }
                | ReceivedFrame::Settings { .. }
                | ReceivedFrame::WindowUpdate { .. }
                | ReceivedFrame::Ping { .. }
                | ReceivedFrame::Settled => {}
            }
        }
        let received = sending.await.expect("no panic").expect("whole");
        assert_eq!(received, answers);
    });
}

/// Each more often than an honest client would, and seldom enough that one might.
#[test]
fn a_peer_that_makes_work_without_end_is_sent_away_and_one_that_does_so_at_times_is_not() {
    let post = request(1, 0, &[]);
    let unanswered = frame(FrameKind::Headers, END_HEADERS | END_STREAM, 1, &block(&never()));
    let cancelled: Vec<Vec<u8>> = (0..2_000)
        .flat_map(|stream| [request(1 + 2 * stream, END_STREAM, &[]), reset(1 + 2 * stream)])
        .collect();
    let refused: Vec<Vec<u8>> = (0..2_000)
        .map(|stream| frame(FrameKind::Headers, END_HEADERS | END_STREAM, 1 + 2 * stream, &block(&never())))
        .collect();
    run(async {
        for (what, before, frames) in [
            ("PING", vec![], vec![ping(); 20_000]),
            ("answers to pings", vec![], vec![frame(FrameKind::Ping, ACK, 0, b"whatever"); 20_000]),
            ("SETTINGS", vec![], vec![frame(FrameKind::Settings, 0, 0, &[]); 20_000]),
            ("answers to settings", vec![], vec![frame(FrameKind::Settings, ACK, 0, &[]); 20_000]),
            ("PRIORITY", vec![], vec![frame(FrameKind::Priority, 0, 1, &[0; 5]); 20_000]),
            ("unknown", vec![], vec![frame(FrameKind::Unknown, 0, 0, b"x"); 20_000]),
            ("long unknown ones", vec![], vec![frame(FrameKind::Unknown, 0, 0, &[0; 16_384]); 2_000]),
            ("room in the connection", vec![], vec![window(0, 1); 20_000]),
            ("room in a stream", vec![unanswered.clone()], vec![window(1, 1); 20_000]),
            ("room in a stream that is gone", vec![post.clone(), reset(1)], vec![window(1, 1); 20_000]),
            ("empty DATA", vec![post.clone()], vec![frame(FrameKind::Data, 0, 1, &[]); 20_000]),
            ("padding", vec![post.clone()], vec![frame(FrameKind::Data, PADDED, 1, b"\x01\0"); 20_000]),
            (
                "DATA on a stream that is gone",
                vec![post.clone(), reset(1)],
                vec![frame(FrameKind::Data, 0, 1, b"x"); 20_000],
            ),
            ("cancelled requests", vec![], cancelled),
            ("more streams than allowed", vec![], refused),
        ] {
            let all = [&before[..], &frames[..]].concat();
            assert_eq!(outcome(&all).await, CALM, "{what}");
            let few = [&before[..], &frames[..400]].concat();
            assert_ne!(outcome(&few).await, CALM, "{what}");
        }
    });
}

fn never() -> [(&'static str, &'static str); 4] {
    let mut lines = REQUEST;
    lines[3].1 = "/never";
    lines
}

/// A hop passes on what its clients break off: one of them must not end the requests of others.
#[test]
fn a_hop_may_break_off_any_number_of_requests() {
    run(async {
        let mut world = World::start().await;
        let mut lines = REQUEST;
        lines[3].1 = "/hop";
        world.peer.frame(FrameKind::Headers, END_HEADERS, 1, &block(&lines)).await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { stream: 1, .. }));
        for stream in (3..20_000).step_by(2) {
            world.peer.write(&[request(stream, END_STREAM, &[]), reset(stream)].concat()).await;
        }
        world.peer.frame(FrameKind::Data, END_STREAM, 1, b"still here").await;
        let is_other = |got: &ReceivedFrame| {
            !matches!(
                got,
                ReceivedFrame::Data { stream: 1, .. } | ReceivedFrame::GoAway { .. } | ReceivedFrame::Closed
            )
        };
        let got = world.peer.next_but(is_other).await;
        assert!(matches!(&got, ReceivedFrame::Data { data, .. } if data == "still here"), "{got:?}");
    });
}

/// Each is a byte on the wire and a header of 50 bytes here.
#[test]
fn a_head_of_thousands_of_references_is_refused_and_the_connection_goes_on() {
    run(async {
        let mut world = World::start().await;
        let references = [&block(&REQUEST)[..], &[0x90; 7_900]].concat();
        world.peer.frame(FrameKind::Headers, END_HEADERS | END_STREAM, 1, &references).await;
        let ReceivedFrame::Head { stream: 1, lines, .. } = world.peer.next_of_note().await else {
            panic!("a head")
        };
        assert_eq!(lines[0], ":status: 431");
        let few = [&block(&REQUEST)[..], &[0x90; 100]].concat();
        world.peer.frame(FrameKind::Headers, END_HEADERS | END_STREAM, 3, &few).await;
        let is_rest = |got: &ReceivedFrame| {
            !matches!(got, ReceivedFrame::Head { stream: 3, .. } | ReceivedFrame::GoAway { .. })
        };
        let got = world.peer.next_but(is_rest).await;
        assert!(matches!(&got, ReceivedFrame::Head { lines, .. } if lines[0] == ":status: 200"), "{got:?}");
    });
}

/// They cost more than their sender has credit for, so the connection pauses behind some of them.
#[test]
fn heads_that_are_too_large_are_answered_on_one_connection_which_goes_on() {
    run(async {
        let mut world = World::start().await;
        let cookie = HeaderValue::from_bytes(&vec![b'c'; 250_000]).expect("legal");
        let mut fields = block(&REQUEST);
        encode_field(&http::header::COOKIE, &cookie, &mut fields);
        let parts: Vec<&[u8]> = fields.chunks(16_384).collect();
        let (first, more) = parts.split_first().expect("it has fields");
        let (last, between) = more.split_last().expect("they are long");
        let is_skipped = |got: &ReceivedFrame| {
            !matches!(got, ReceivedFrame::Head { .. } | ReceivedFrame::GoAway { .. } | ReceivedFrame::Closed)
        };
        for stream in [1, 3, 5, 7, 9, 11, 13, 15] {
            world.peer.frame(FrameKind::Headers, END_STREAM, stream, first).await;
            for part in between {
                world.peer.frame(FrameKind::Continuation, 0, stream, part).await;
            }
            world.peer.frame(FrameKind::Continuation, END_HEADERS, stream, last).await;
            let got = world.peer.next_but(is_skipped).await;
            let ReceivedFrame::Head { stream: answered, lines, .. } = &got else {
                panic!("{stream}: {got:?}")
            };
            assert_eq!((*answered, lines[0].as_str()), (stream, ":status: 431"));
        }
        world.get(17, "/").await;
        let got = world.peer.next_but(is_skipped).await;
        let is_served =
            matches!(&got, ReceivedFrame::Head { stream: 17, lines, .. } if lines[0] == ":status: 200");
        assert!(is_served, "{got:?}");
    });
}

/// What a client does not take stays with its sender, here the client itself.
#[test]
fn an_answer_is_taken_from_its_source_only_while_its_client_takes_it() {
    run(async {
        let mut world = World::start().await;
        let settled = [setting(4, 0), request(1, 0, &[])].concat();
        world.peer.write(&settled).await;
        assert!(matches!(world.peer.next_of_note().await, ReceivedFrame::Head { stream: 1, .. }));
        for _ in 0..4 {
            world.peer.frame(FrameKind::Data, 0, 1, &[0; 16_000]).await;
        }
        assert_eq!(world.peer.settle().await, [], "no room is given back");
        world.peer.write(&window(1, 64_000)).await;
        let is_data = |got: &ReceivedFrame| matches!(got, ReceivedFrame::Data { stream: 1, .. });
        let got = world.peer.next_but(is_data).await;
        assert!(matches!(got, ReceivedFrame::WindowUpdate { stream: 1, .. }), "{got:?}");
    });
}
