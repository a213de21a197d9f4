//! What a peer must not do, and what it gets for it. The numbers are sections of RFC 9113.

use protocol::http2::frame::{PADDED, PRIORITY};

use super::server::World;
use super::*;

/// The part that ends when a rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedPart {
    Connection(ErrorCode),
    Stream(ErrorCode),
    Nothing,
}

const NOTHING: EndedPart = EndedPart::Nothing;
const PROTOCOL: EndedPart = EndedPart::Connection(ErrorCode::PROTOCOL_ERROR);
const SIZE: EndedPart = EndedPart::Connection(ErrorCode::FRAME_SIZE_ERROR);
const FLOW: EndedPart = EndedPart::Connection(ErrorCode::FLOW_CONTROL_ERROR);
const COMPRESSION: EndedPart = EndedPart::Connection(ErrorCode::COMPRESSION_ERROR);
const STREAM_PROTOCOL: EndedPart = EndedPart::Stream(ErrorCode::PROTOCOL_ERROR);
const STREAM_CLOSED: EndedPart = EndedPart::Stream(ErrorCode::STREAM_CLOSED);

/// What follows when a client that has settled writes these frames.
pub(super) async fn outcome(frames: &[Vec<u8>]) -> EndedPart {
    let mut world = World::start().await;
    world.peer.settle().await;
    world.peer.write(&frames.concat()).await;
    world.peer.frame(FrameKind::Ping, 0, 0, SETTLED).await;
    let mut ends = EndedPart::Nothing;
    loop {
        match world.peer.next().await {
            ReceivedFrame::GoAway { code, .. } => return EndedPart::Connection(code),
            ReceivedFrame::Reset { code, .. } => ends = EndedPart::Stream(code),
            ReceivedFrame::Settled => return ends,
            ReceivedFrame::Closed => panic!("closed without a reason"),
            ReceivedFrame::Head { .. }
            | ReceivedFrame::Data { .. }
            | ReceivedFrame::WindowUpdate { .. }
            | ReceivedFrame::Ping { .. }
            | ReceivedFrame::Settings { .. } => {}
        }
    }
}

async fn check(cases: &[(&str, &[Vec<u8>], EndedPart)]) {
    for (what, frames, expected) in cases {
        assert_eq!(outcome(frames).await, *expected, "{what}");
    }
}

pub(super) fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(FrameKind::WindowUpdate, 0, stream, &more.to_be_bytes())
}

pub(super) fn reset(stream: u32) -> Vec<u8> {
    frame(FrameKind::Reset, 0, stream, &8_u32.to_be_bytes())
}

#[test]
fn frames_that_belong_to_the_connection() {
    run(check(&[
        ("5.5: a kind that nobody knows", &[frame(FrameKind::Unknown, 0xff, 0, b"whatever")], NOTHING),
        ("6.5: SETTINGS on a stream", &[frame(FrameKind::Settings, 0, 1, &[])], PROTOCOL),
        ("6.5: an acknowledgement with settings", &[frame(FrameKind::Settings, ACK, 0, &[0; 6])], SIZE),
        ("6.5: half a setting", &[frame(FrameKind::Settings, 0, 0, &[0; 5])], SIZE),
        ("6.5.2: ENABLE_PUSH 2", &[setting(2, 2)], PROTOCOL),
        ("6.5.2: INITIAL_WINDOW_SIZE 2^31", &[setting(4, 1 << 31)], FLOW),
        ("6.5.2: MAX_FRAME_SIZE too small", &[setting(5, 16_383)], PROTOCOL),
        ("6.5.2: MAX_FRAME_SIZE too large", &[setting(5, 1 << 24)], PROTOCOL),
        ("6.5.2: a setting that nobody knows", &[setting(0xff, 1)], NOTHING),
        ("6.7: PING on a stream", &[frame(FrameKind::Ping, 0, 1, &[0; 8])], PROTOCOL),
        ("6.7: a short PING", &[frame(FrameKind::Ping, 0, 0, &[0; 6])], SIZE),
        ("6.8: GOAWAY on a stream", &[frame(FrameKind::GoAway, 0, 1, &[0; 8])], PROTOCOL),
        ("6.8: a short GOAWAY", &[frame(FrameKind::GoAway, 0, 0, &[0; 7])], SIZE),
        ("6.9: WINDOW_UPDATE of nothing", &[window(0, 0)], PROTOCOL),
        ("6.9.1: a window beyond 2^31 - 1", &[window(0, u32::MAX >> 1)], FLOW),
        ("6.9: a short WINDOW_UPDATE", &[frame(FrameKind::WindowUpdate, 0, 0, &[0; 3])], SIZE),
        ("4.2: a frame that is too long", &[frame(FrameKind::Unknown, 0, 0, &vec![0; 16_385])], SIZE),
        ("8.4: PUSH_PROMISE by a client", &[frame(FrameKind::PushPromise, 4, 1, &[0; 8])], PROTOCOL),
    ]));
}

#[test]
fn frames_on_the_wrong_stream() {
    let body = |flags, stream| frame(FrameKind::Data, flags, stream, b"x");
    run(async {
        check(&[
            ("6.1: DATA on no stream", &[body(0, 0)], PROTOCOL),
            ("6.2: HEADERS on no stream", &[request(0, END_STREAM, &[])], PROTOCOL),
            ("6.3: PRIORITY on no stream", &[frame(FrameKind::Priority, 0, 0, &[0; 5])], PROTOCOL),
            ("6.4: RST_STREAM of no stream", &[reset(0)], PROTOCOL),
            ("5.1: DATA on an idle stream", &[body(0, 1)], PROTOCOL),
            ("5.1: RST_STREAM of an idle stream", &[reset(1)], PROTOCOL),
            ("5.1: WINDOW_UPDATE of an idle stream", &[window(1, 1)], PROTOCOL),
            ("5.1: PRIORITY of an idle stream", &[frame(FrameKind::Priority, 0, 1, &[0; 5])], NOTHING),
            ("5.1.1: a request on an even stream", &[request(2, END_STREAM, &[])], PROTOCOL),
            (
                "5.1.1: a request on a lower stream",
                &[request(5, END_STREAM, &[]), request(3, END_STREAM, &[])],
                EndedPart::Connection(ErrorCode::STREAM_CLOSED),
            ),
            (
                "5.1: DATA on a half closed stream",
                &[path_request("/never", END_STREAM), body(0, 1)],
                STREAM_CLOSED,
            ),
            (
                "5.1: HEADERS on a half closed stream",
                &[path_request("/never", END_STREAM), request(1, END_STREAM, &[])],
                STREAM_CLOSED,
            ),
            ("5.1: DATA on a closed stream", &[request(1, 0, &[]), reset(1), body(0, 1)], STREAM_CLOSED),
            (
                "5.1: HEADERS on a closed stream",
                &[request(1, 0, &[]), reset(1), request(1, 0, &[])],
                EndedPart::Connection(ErrorCode::STREAM_CLOSED),
            ),
            ("5.1: WINDOW_UPDATE of a closed stream", &[request(1, 0, &[]), reset(1), window(1, 1)], NOTHING),
            ("5.1: RST_STREAM of a closed stream", &[request(1, 0, &[]), reset(1), reset(1)], NOTHING),
            (
                "6.9: WINDOW_UPDATE of nothing on a stream",
                &[path_request("/never", 0), window(1, 0)],
                STREAM_PROTOCOL,
            ),
            (
                "6.9.1: a stream's window beyond 2^31 - 1",
                &[path_request("/never", 0), window(1, u32::MAX >> 1)],
                EndedPart::Stream(ErrorCode::FLOW_CONTROL_ERROR),
            ),
            ("6.4: a short RST_STREAM", &[request(1, 0, &[]), frame(FrameKind::Reset, 0, 1, &[0; 3])], SIZE),
            (
                "6.3: a short PRIORITY",
                &[request(1, 0, &[]), frame(FrameKind::Priority, 0, 1, &[0; 4])],
                EndedPart::Stream(ErrorCode::FRAME_SIZE_ERROR),
            ),
            (
                "5.3.1: a stream that depends on itself",
                &[frame(FrameKind::Priority, 0, 1, &[0, 0, 0, 1, 0])],
                PROTOCOL,
            ),
        ])
        .await;
    });
}

fn path_request(path: &str, flags: u8) -> Vec<u8> {
    let mut lines = REQUEST;
    lines[3].1 = path;
    frame(FrameKind::Headers, END_HEADERS | flags, 1, &block(&lines))
}

#[test]
fn heads_and_their_parts() {
    let whole = block(&REQUEST);
    let begun = frame(FrameKind::Headers, END_STREAM, 1, &whole);
    let end = frame(FrameKind::Continuation, END_HEADERS, 1, &[]);
    let circular = [&[0, 0, 0, 1, 0][..], &whole].concat();
    let padded = [&[3][..], &whole, &[0; 3]].concat();
    let flood = vec![frame(FrameKind::Continuation, 0, 1, &[]); 100].concat();
    let calm = EndedPart::Connection(ErrorCode::ENHANCE_YOUR_CALM);
    run(check(&[
        ("6.10: two parts", &[begun.clone(), end.clone()], NOTHING),
        (
            "6.10: a frame in between",
            &[begun.clone(), frame(FrameKind::Ping, 0, 0, &[0; 8]), end.clone()],
            PROTOCOL,
        ),
        (
            "6.10: an unknown frame in between",
            &[begun.clone(), frame(FrameKind::Unknown, 0, 0, &[])],
            PROTOCOL,
        ),
        (
            "6.10: a part of another head",
            &[begun.clone(), frame(FrameKind::Continuation, 4, 3, &[])],
            PROTOCOL,
        ),
        ("6.10: a part of nothing", &[end], PROTOCOL),
        ("10.5.1: parts without end", &[begun, flood], calm),
        ("4.3: a head that cannot be read", &[frame(FrameKind::Headers, 5, 1, &[0x80])], COMPRESSION),
        ("6.2: padding", &[frame(FrameKind::Headers, 5 | PADDED, 1, &padded)], NOTHING),
        (
            "6.2: padding longer than its frame",
            &[frame(FrameKind::Headers, 5 | PADDED, 1, &[9, 0x82])],
            PROTOCOL,
        ),
        ("6.2: padding without a length", &[frame(FrameKind::Headers, 5 | PADDED, 1, &[])], SIZE),
        ("6.2: half a priority", &[frame(FrameKind::Headers, 5 | PRIORITY, 1, &[0; 3])], SIZE),
        (
            "5.3.1: it depends on itself",
            &[frame(FrameKind::Headers, 5 | PRIORITY, 1, &circular)],
            STREAM_PROTOCOL,
        ),
    ]));
}

#[test]
fn messages_that_are_malformed() {
    let body = |flags, text: &[u8]| frame(FrameKind::Data, flags, 1, text);
    let length = |flags, value: &'static str| request(1, flags, &[("content-length", value)]);
    run(async {
        check(&[
            ("8.2.1: a large letter", &[request(1, END_STREAM, &[("X", "y")])], STREAM_PROTOCOL),
            (
                "8.2.1: a value with a blank at its end",
                &[request(1, END_STREAM, &[("x", "y ")])],
                STREAM_PROTOCOL,
            ),
            (
                "8.2.1: a value with a line break",
                &[request(1, END_STREAM, &[("x", "y\r\n")])],
                STREAM_PROTOCOL,
            ),
            ("8.2.2: Connection", &[request(1, END_STREAM, &[("connection", "close")])], STREAM_PROTOCOL),
            (
                "8.3: a pseudo-header of responses",
                &[request(1, END_STREAM, &[(":status", "200")])],
                STREAM_PROTOCOL,
            ),
            (
                "8.1.1: a length that is too small",
                &[length(0, "1"), body(END_STREAM, b"xy")],
                STREAM_PROTOCOL,
            ),
            (
                "8.1.1: a length that is too large",
                &[length(0, "3"), body(END_STREAM, b"xy")],
                STREAM_PROTOCOL,
            ),
            ("8.1.1: a length without a body", &[length(END_STREAM, "3")], STREAM_PROTOCOL),
            (
                "8.1.1: a length beyond what came before the trailers",
                &[length(0, "3"), body(0, b"xy"), trailers(1, "a", "b")],
                STREAM_PROTOCOL,
            ),
            ("8.1.1: a length that is none", &[length(0, "x")], STREAM_PROTOCOL),
            ("8.1: trailers that do not end", &[request(1, 0, &[]), request(1, 0, &[])], STREAM_PROTOCOL),
            (
                "8.1: a pseudo-header in trailers",
                &[request(1, 0, &[]), request(1, END_STREAM, &[])],
                STREAM_PROTOCOL,
            ),
            (
                "8.2.2: what concerns one connection, in trailers",
                &[request(1, 0, &[]), trailers(1, "connection", "close")],
                STREAM_PROTOCOL,
            ),
            ("8.1.1: the right length", &[length(0, "2"), body(END_STREAM, b"xy")], NOTHING),
        ])
        .await;
    });
}

#[test]
fn more_streams_than_allowed_are_refused_and_may_be_sent_again() {
    run(async {
        let mut world = World::start().await;
        for stream in 0..11 {
            world.get(1 + 2 * stream, "/never").await;
        }
        let refused = ReceivedFrame::Reset { stream: 21, code: ErrorCode::REFUSED_STREAM };
        assert_eq!(world.peer.next_of_note().await, refused);
        world.peer.settle().await;
        assert_eq!(world.running.get(), 10);
    });
}

#[test]
fn a_client_begins_with_settings() {
    run(async {
        let mut world = World::unsettled().await;
        world.peer.write(PREFACE).await;
        world.peer.frame(FrameKind::Ping, 0, 0, &[0; 8]).await;
        let code = ErrorCode::PROTOCOL_ERROR;
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::GoAway { last: 0, code });
        assert_eq!(world.peer.next_of_note().await, ReceivedFrame::Closed);
    });
}
