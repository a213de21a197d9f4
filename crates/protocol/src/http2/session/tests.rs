mod turns;

use std::time::Duration;

use bytes::BytesMut;

use super::super::frame::{END_HEADERS, FRAME_HEAD_BYTES, FrameHead};
use super::super::handle::Receiver;
use super::super::hpack::encode_text;
use super::super::memory::MEMORY_PAUSE;
use super::super::stream::StreamError;
use super::*;
use crate::message::Response;

fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(kind, flags, stream, payload, &mut out);
    out
}

fn ping() -> Vec<u8> {
    frame(FrameKind::Ping, 0, 0, b"whatever")
}

/// A request whose body is to follow.
fn request(stream: u32) -> Vec<u8> {
    let mut fields = Vec::new();
    let request = http::Request::post("http://h/").body(()).expect("legal");
    encode_request(&Request::from(request), &mut fields);
    frame(FrameKind::Headers, END_HEADERS, stream, &fields)
}

/// What a server's session makes of these frames: its streams.
fn received(session: &Session, frames: &[Vec<u8>]) -> Vec<Rc<Stream>> {
    let mut read = BytesMut::from(&frames.concat()[..]);
    let mut streams = Vec::new();
    loop {
        match session.receive(&mut read, &|| Timestamp::ZERO).expect("legal") {
            SessionEvent::Request(arrived) => streams.push(arrived.stream),
            SessionEvent::Farewell { .. } => panic!("nobody goes away"),
            SessionEvent::All => return streams,
            SessionEvent::TurnOver => {
                session.begin_turn(&std::task::Context::from_waker(std::task::Waker::noop()));
            }
            // A while passes.
            SessionEvent::Paused => session.resume(),
        }
    }
}

#[test]
fn the_least_recently_read_stream_is_reset_first_when_memory_is_short() {
    // 2 MiB, of which one connection may hold a fifth: a quarter of what it leaves.
    let memory = MemoryBudget::of_process(Some(4 << 20));
    let limits = SessionLimits {
        streams: 10,
        stream_window: 1 << 20,
        proven_window: 1 << 20,
        read_window: 1 << 20,
        head_bytes: 65_535,
        headers: 100,
        memory,
    };
    let session = Session::new(Role::Server, limits, Timestamp::ZERO);
    let requests = [frame(FrameKind::Settings, 0, 0, &[]), request(1), request(3), request(5)];
    let streams = received(&session, &requests);
    let much = |stream| vec![frame(FrameKind::Data, 0, stream, &[0; 16_000]); 7];
    for stream in [1, 3, 5] {
        received(&session, &much(stream));
    }
    let held = memory.held();
    assert!((300_000..400_000).contains(&held), "{held}");
    let read = streams[0].state.borrow_mut().receiving.data.pop().expect("there is much");
    session.read(&streams[0], read.len());
    received(&session, &much(5));
    let errors: Vec<_> = streams.iter().map(|stream| stream.state.borrow().error).collect();
    let broken_off = Some(StreamError::Aborted(ErrorCode::ENHANCE_YOUR_CALM));
    assert_eq!(errors, [None, broken_off, None], "the first was read, and the third came later");
    assert!(!streams[1].state.borrow().receiving.is_ended, "and nobody takes it for whole");
    assert_eq!(memory.take_refusals(), 1);
    drop(session);
    assert_eq!(memory.held(), 0);
}

#[test]
fn others_get_their_turn_however_much_a_peer_says() {
    let limits = SessionLimits {
        streams: 10,
        stream_window: 65_535,
        proven_window: 65_535,
        read_window: 65_535,
        head_bytes: 65_535,
        headers: 100,
        memory: <&MemoryBudget>::default(),
    };
    let session = Session::new(Role::Server, limits, Timestamp::ZERO);
    let frames = [frame(FrameKind::Settings, 0, 0, &[]), ping().repeat(5_000)].concat();
    let mut read = BytesMut::from(&frames[..]);
    let context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut turns = 1;
    loop {
        let before = read.len();
        match session.receive(&mut read, &|| Timestamp::ZERO).expect("legal") {
            SessionEvent::Request(_) | SessionEvent::Farewell { .. } | SessionEvent::Paused => {
                panic!("there is none")
            }
            SessionEvent::All => break,
            SessionEvent::TurnOver => {
                assert!(before - read.len() <= 10_000, "a turn took {} bytes", before - read.len());
                session.begin_turn(&context);
                turns += 1;
            }
        }
    }
    assert_eq!(turns, 10);
}

/// So many bytes in frames of a head for this stream, whose fields are these.
fn head_frames(stream: u32, fields: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let parts: Vec<&[u8]> = fields.chunks(16_384).collect();
    for (number, part) in parts.iter().enumerate() {
        let kind = if number == 0 { FrameKind::Headers } else { FrameKind::Continuation };
        let begin = if number == 0 { END_STREAM } else { 0 };
        let end = if number + 1 == parts.len() { END_HEADERS } else { 0 };
        write_frame(kind, begin | end, stream, part, &mut out);
    }
    out
}

/// The fields of a request with one header of so many letters.
fn large_fields(letters: usize) -> Vec<u8> {
    let mut fields = Vec::new();
    let request = http::Request::get("http://h/").body(()).expect("legal");
    encode_request(&Request::from(request), &mut fields);
    encode_text(&http::header::COOKIE, &vec![b'x'; letters], &mut fields);
    fields
}

fn limits_with(memory: &'static MemoryBudget) -> SessionLimits {
    SessionLimits {
        streams: 10_000,
        stream_window: 65_535,
        proven_window: 65_535,
        read_window: 65_535,
        head_bytes: 128 << 10,
        headers: 100,
        memory,
    }
}

fn session_with(memory: &'static MemoryBudget) -> Session {
    let session = Session::new(Role::Server, limits_with(memory), Timestamp::ZERO);
    assert!(received(&session, &[frame(FrameKind::Settings, 0, 0, &[])]).is_empty());
    written(&session);
    session
}

/// Everything that is to be written: kind, stream and payload of each frame.
fn written(session: &Session) -> Vec<(FrameKind, u32, Vec<u8>)> {
    let mut bytes = Vec::new();
    let ended = session.end_turn(|pieces| {
        let before = bytes.len();
        for piece in pieces {
            bytes.extend_from_slice(piece);
        }
        Poll::Ready(Ok(bytes.len() - before))
    });
    assert!(matches!(ended, Poll::Ready(Ok(()))));
    let mut frames = Vec::new();
    let mut rest = &bytes[..];
    while let Some((head, behind)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() {
        let head = FrameHead::read(*head);
        let (payload, behind) = behind.split_at(head.length);
        frames.push((head.kind, head.stream, payload.to_vec()));
        rest = behind;
    }
    frames
}

fn refused_streams(frames: &[(FrameKind, u32, Vec<u8>)]) -> Vec<u32> {
    let code = ErrorCode::REFUSED_STREAM.0.to_be_bytes();
    let is_refusal = |(kind, _, payload): &&(FrameKind, u32, Vec<u8>)| {
        *kind == FrameKind::Reset && payload[..] == code[..]
    };
    frames.iter().filter(is_refusal).map(|(_, stream, _)| *stream).collect()
}

#[test]
fn heads_beyond_a_connections_part_are_refused_and_the_connection_lives() {
    // 8 MiB, of which one connection may hold a fifth.
    let memory = MemoryBudget::of_process(Some(16 << 20));
    let session = session_with(memory);
    let fields = large_fields(100_000);
    let mut streams = Vec::new();
    for number in 0..20 {
        streams.extend(received(&session, &[head_frames(2 * number + 1, &fields)]));
    }
    // 200 KB each, for two copies.
    assert_eq!(streams.len(), 8, "{} bytes are held", memory.held());
    assert!(memory.held() > 1_500_000, "{}", memory.held());
    let refused: Vec<u32> = (8..20).map(|number| 2 * number + 1).collect();
    assert_eq!(refused_streams(&written(&session)), refused);
    assert_eq!(memory.take_refusals(), 12);
    // What needs no memory is served all the same, and so is a large head when there is room again.
    assert_eq!(received(&session, &[request(41)]).len(), 1);
    for stream in &streams {
        session.reset(stream, ErrorCode::CANCEL);
    }
    assert_eq!(received(&session, &[head_frames(43, &fields)]).len(), 1);
    drop(session);
    assert_eq!(memory.held(), 0);
}

/// A connection that goes idle afterwards takes no memory from others, whichever end of the stream goes last.
#[test]
fn heads_of_requests_that_are_over_count_no_more() {
    let memory = MemoryBudget::of_process(Some(16 << 20));
    let session = Rc::new(session_with(memory));
    for (stream, is_reader_last) in [(1, false), (3, true)] {
        let streams = received(&session, &[head_frames(stream, &large_fields(100_000))]);
        assert!(memory.held() > 100_000, "{}", memory.held());
        let reader = Receiver::new(Rc::clone(&session), Rc::clone(&streams[0]));
        if is_reader_last {
            session.send_response(&streams[0], &Response::new(()), HasBody::No, |_| {});
            drop(reader);
        } else {
            drop(reader);
            session.send_response(&streams[0], &Response::new(()), HasBody::No, |_| {});
        }
        assert_eq!(memory.held(), 0, "the reader goes last: {is_reader_last}");
    }
    // It becomes too large with its last frame, before which all of it was kept.
    let refused = received(&session, &[head_frames(5, &large_fields(131_060))]);
    drop(Receiver::new(Rc::clone(&session), Rc::clone(&refused[0])));
    assert_eq!(memory.held(), 0);
}

#[test]
fn large_heads_of_many_connections_take_a_small_part_of_the_budget_and_smaller_heads_go_on() {
    let memory = MemoryBudget::of_process(None);
    let fields = large_fields(100_000);
    let sessions: Vec<Session> = (0..40).map(|_| session_with(memory)).collect();
    let mut streams = Vec::new();
    for session in &sessions {
        for number in 0..20 {
            streams.push(received(session, &[head_frames(2 * number + 1, &fields)]));
        }
    }
    let held = memory.held();
    assert!((20 << 20..=24 << 20).contains(&held), "{held} bytes are held of {} heads", streams.len());
    let last = sessions.last().expect("there are 40");
    assert_eq!(received(last, &[head_frames(101, &large_fields(12_000))]).len(), 1, "it is not large");
    assert_eq!(received(last, &[head_frames(103, &fields)]).len(), 0);
    // What the other connections held is free again.
    drop(streams);
    drop(sessions);
    assert_eq!(memory.held(), 0);
    let session = session_with(memory);
    assert_eq!(received(&session, &[head_frames(1, &fields)]).len(), 1);
}

/// Reading stops before the head that finds no room is read, and goes on with that head.
#[test]
fn a_connection_pauses_once_before_a_head_is_refused() {
    let memory = MemoryBudget::of_process(Some(2 << 20));
    let session = session_with(memory);
    let fields = large_fields(100_000);
    let first = received(&session, &[head_frames(1, &fields)]);
    assert_eq!(first.len(), 1);
    let frames = [head_frames(3, &fields), head_frames(5, &fields), request(7)].concat();
    let mut read = BytesMut::from(&frames[..]);
    let mut next = || session.receive(&mut read, &|| Timestamp::ZERO).expect("legal");
    assert!(matches!(next(), SessionEvent::Paused));
    assert!(!session.has_memory_again());
    session.reset(&first[0], ErrorCode::CANCEL);
    assert!(session.has_memory_again());
    session.resume();
    let SessionEvent::Request(third) = next() else { panic!("there is room again") };
    assert!(third.request.is_ok());
    assert!(matches!(next(), SessionEvent::Paused), "it was relieved, so it waits again");
    session.resume();
    let SessionEvent::Request(seventh) = next() else { panic!("the fifth is refused") };
    assert_eq!(seventh.stream.id, 7);
    assert_eq!(refused_streams(&written(&session)), [5]);
}

/// A server's session that has taken one head with these fields, and has no memory for another.
fn session_full_of(fields: &[u8]) -> Session {
    let session = session_with(MemoryBudget::of_process(Some(2 << 20)));
    assert_eq!(received(&session, &[head_frames(1, fields)]).len(), 1);
    session
}

#[test]
fn a_connection_pauses_again_after_each_sixteen_refused_heads() {
    let fields = large_fields(60_000);
    let session = session_full_of(&fields);
    let has_paused = |number: &u32| {
        session.begin_turn(&Context::from_waker(std::task::Waker::noop()));
        let mut read = BytesMut::from(&head_frames(2 * number + 1, &fields)[..]);
        let mut next = || session.receive(&mut read, &|| Timestamp::ZERO).expect("the connection lives");
        let first = next();
        if matches!(first, SessionEvent::Paused) {
            session.resume();
            assert!(matches!(next(), SessionEvent::All), "the {number}th is refused after the pause");
        }
        matches!(first, SessionEvent::Paused)
    };
    assert_eq!((1..=40).filter(has_paused).collect::<Vec<u32>>(), [1, 17, 33]);
}

#[test]
fn a_connection_that_goes_on_for_a_thousand_refused_heads_ends() {
    let fields = large_fields(60_000);
    let session = session_full_of(&fields);
    for number in 1..1_000 {
        let arrived = received(&session, &[head_frames(2 * number + 1, &fields)]);
        assert!(arrived.is_empty(), "the {number}th");
    }
    session.begin_turn(&Context::from_waker(std::task::Waker::noop()));
    let mut read = BytesMut::from(&head_frames(2_001, &fields)[..]);
    let ended = session.receive(&mut read, &|| Timestamp::ZERO).expect_err("enough");
    assert_eq!(ended.0, ErrorCode::ENHANCE_YOUR_CALM);
}

/// What became of one request after another with a head that is larger than it may be.
#[derive(Debug, Default, PartialEq, Eq)]
struct OversizeTally {
    refused: u32,
    pauses: u32,
    /// The code with which the connection ended.
    code: Option<ErrorCode>,
}

/// Sends so many requests with fields of so many bytes each, at intervals on the session's clock, which goes
/// on during pauses; a service finds those too large that the session takes.
fn send_oversize(session: &Session, heads: u32, bytes: usize, apart: Duration) -> OversizeTally {
    let fields = large_fields(bytes);
    let mut tally = OversizeTally::default();
    for number in 0..heads {
        session.begin_turn(&Context::from_waker(std::task::Waker::noop()));
        let mut read = BytesMut::from(&head_frames(2 * number + 1, &fields)[..]);
        loop {
            let now = Timestamp::ZERO + apart * number + MEMORY_PAUSE * tally.pauses;
            match session.receive(&mut read, &|| now) {
                Ok(SessionEvent::All) => break,
                Ok(SessionEvent::Paused) => {
                    assert!(!session.has_memory_again(), "it takes its time");
                    tally.pauses += 1;
                    session.resume();
                }
                Ok(SessionEvent::Request(arrived)) => {
                    tally.refused += 1;
                    match &arrived.request {
                        Ok(_) => session.note_oversize_head(bytes, &|| now),
                        Err(refused) => assert_eq!(*refused, RefusedHead::TooLarge),
                    }
                    session.reset(&arrived.stream, ErrorCode::NO_ERROR);
                }
                Ok(event) => panic!("{event:?}"),
                Err((code, _)) => {
                    tally.code = Some(code);
                    return tally;
                }
            }
        }
        written(session);
    }
    tally
}

/// A head may be smaller than any limit of the session and larger than its sender's, or larger than both.
#[test]
fn heads_that_are_too_large_pause_a_connection_and_a_thousand_in_a_row_end_it() {
    for (bytes, pauses) in [(60_000, 130..180), (250_000, 240..250)] {
        let session = session_with(<&MemoryBudget>::default());
        let tally = send_oversize(&session, 2_000, bytes, Duration::ZERO);
        let code = Some(ErrorCode::ENHANCE_YOUR_CALM);
        assert_eq!((tally.refused, tally.code), (1_000, code), "{bytes} bytes");
        assert!(pauses.contains(&tally.pauses), "{bytes} bytes: {tally:?}");
        // Time pays for some of them.
        let session = session_with(<&MemoryBudget>::default());
        let tally = send_oversize(&session, 100, bytes, Duration::from_secs(1));
        assert_eq!(tally, OversizeTally { refused: 100, pauses: 0, code: None }, "{bytes} bytes");
        // A connection that many share neither pauses nor ends.
        let session = session_with(<&MemoryBudget>::default());
        session.share();
        let tally = send_oversize(&session, 2_000, bytes, Duration::from_millis(10));
        assert_eq!(tally, OversizeTally { refused: 2_000, pauses: 0, code: None }, "{bytes} bytes");
    }
}

#[test]
fn a_request_that_is_served_ends_a_row_of_heads_that_are_too_large() {
    let session = session_with(<&MemoryBudget>::default());
    let fields = large_fields(60_000);
    for number in 0..3_000_u32 {
        let now = Timestamp::ZERO + MEMORY_PAUSE * number;
        session.begin_turn(&Context::from_waker(std::task::Waker::noop()));
        let stream = 4 * number + 1;
        let small = if number % 900 == 899 { request(stream + 2) } else { Vec::new() };
        let mut read = BytesMut::from(&[head_frames(stream, &fields), small].concat()[..]);
        loop {
            match session.receive(&mut read, &|| now).expect("the connection lives") {
                SessionEvent::All => break,
                SessionEvent::Paused => session.resume(),
                SessionEvent::Request(arrived) => {
                    if arrived.stream.id == stream {
                        session.note_oversize_head(60_000, &|| now);
                    }
                    session.reset(&arrived.stream, ErrorCode::NO_ERROR);
                }
                event @ (SessionEvent::Farewell { .. } | SessionEvent::TurnOver) => panic!("{event:?}"),
            }
        }
        written(&session);
    }
}

#[test]
fn a_connection_that_many_share_neither_pauses_nor_ends_for_heads_without_memory() {
    let fields = large_fields(60_000);
    let session = session_full_of(&fields);
    session.share();
    for number in 1..=1_100 {
        session.begin_turn(&Context::from_waker(std::task::Waker::noop()));
        let stream = 4 * number + 1;
        let mut read = BytesMut::from(&[head_frames(stream, &fields), request(stream + 2)].concat()[..]);
        let mut next = || {
            let next = session.receive(&mut read, &|| Timestamp::ZERO).expect("the connection lives");
            let SessionEvent::Request(arrived) = next else { panic!("the {number}th makes others wait") };
            arrived
        };
        let (large, small) = (next(), next());
        assert!(matches!(large.request, Err(RefusedHead::NoMemory)), "it gets an answer");
        assert_eq!((large.stream.id, small.stream.id, small.request.is_ok()), (stream, stream + 2, true));
        for arrived in [large, small] {
            session.reset(&arrived.stream, ErrorCode::CANCEL);
        }
        written(&session);
    }
}

/// Half heads of many connections: what is kept of each one is little once memory is short, and none of them
/// ends its connection.
#[test]
fn half_heads_that_find_no_room_are_not_kept() {
    let memory = MemoryBudget::of_process(Some(4 << 20));
    let fields = large_fields(120_000);
    let whole = head_frames(1, &fields);
    let half = whole[..whole.len() - 10_000].to_vec();
    let sessions: Vec<Session> = (0..200).map(|_| session_with(memory)).collect();
    for session in &sessions {
        assert!(received(session, std::slice::from_ref(&half)).is_empty());
    }
    assert!(memory.held() <= 2 << 20, "{}", memory.held());
    let kept: usize = sessions.iter().map(|session| session.0.borrow().held()).sum();
    assert!(kept < 6 << 20, "{kept} bytes are kept of {}", 200 * half.len());
    // The last one comes to its end, and the connection goes on.
    let last = sessions.last().expect("there are 200");
    assert!(received(last, &[whole[half.len()..].to_vec()]).is_empty());
    assert_eq!(refused_streams(&written(last)), [1]);
    assert_eq!(received(last, &[request(3)]).len(), 1);
}

#[test]
fn a_head_that_is_too_large_in_many_frames_costs_its_stream_alone() {
    let session = session_with(<&MemoryBudget>::default());
    let mut read = BytesMut::from(&head_frames(1, &large_fields(250_000))[..]);
    let event = session.receive(&mut read, &|| Timestamp::ZERO).expect("the connection lives");
    let SessionEvent::Request(arrived) = event else { panic!("it is answered") };
    assert_eq!(arrived.request.expect_err("too large"), RefusedHead::TooLarge);
    drop(arrived.stream);
    assert_eq!(received(&session, &[request(3)]).len(), 1);
}

/// Makes us break a stream off.
type WrongFrame = fn(u32) -> Vec<u8>;

/// Requests that their client has us break off (CVE-2025-8671) are as dear as those that it cancels.
#[test]
fn a_client_that_has_its_requests_broken_off_loses_the_connection() {
    let wrong_ways: [(&str, WrongFrame); 3] = [
        ("no room", |stream| frame(FrameKind::WindowUpdate, 0, stream, &[0; 4])),
        ("a window too large", |stream| frame(FrameKind::WindowUpdate, 0, stream, &[0x7f, 0xff, 0xff, 0xff])),
        ("a priority of four bytes", |stream| frame(FrameKind::Priority, 0, stream, &[0; 4])),
    ];
    for (way, wrong) in wrong_ways {
        let session = session_with(<&MemoryBudget>::default());
        let ended = (0..10_000_u32).find(|number| {
            let frames = [request(2 * number + 1), wrong(2 * number + 1)].concat();
            let mut read = BytesMut::from(&frames[..]);
            session.begin_turn(&Context::from_waker(std::task::Waker::noop()));
            loop {
                match session.receive(&mut read, &|| Timestamp::ZERO) {
                    Ok(SessionEvent::All) => return false,
                    Ok(_) => {}
                    Err((code, _)) => {
                        assert_eq!(code, ErrorCode::ENHANCE_YOUR_CALM);
                        return true;
                    }
                }
            }
        });
        assert!(ended.is_some_and(|requests| requests <= 1_000), "{way}: {ended:?}");
    }
}

#[test]
fn input_that_stands_half_is_told_from_the_next_one() {
    let session = session_with(<&MemoryBudget>::default());
    let take = |bytes: &[u8]| {
        received(&session, &[bytes.to_vec()]);
        session.unfinished()
    };
    assert_eq!(session.unfinished(), None);
    let head = head_frames(1, &large_fields(20_000));
    let Some(UnfinishedInput::Head(first)) = take(&head[..100]) else { panic!("half a frame") };
    let Some(UnfinishedInput::Head(block)) = take(&head[100..16_500]) else { panic!("half a head") };
    assert_eq!(block, first + 1, "a frame has come to its end, and its head has not");
    assert_eq!(take(&head[16_500..16_600]), Some(UnfinishedInput::Head(block)));
    assert_eq!(take(&head[16_600..]), None);
    received(&session, &[request(3)]);
    let data = frame(FrameKind::Data, 0, 3, &[0; 100]);
    assert_eq!(take(&data[..50]), Some(UnfinishedInput::Data));
    assert_eq!(take(&data[50..]), None);
    assert!(matches!(take(&ping()[..9]), Some(UnfinishedInput::Head(_))));
}

#[test]
fn a_new_limit_of_heads_counts_at_once_and_is_told_to_the_peer() {
    let session = session_with(<&MemoryBudget>::default());
    session.limit_heads(128 << 10, 100);
    assert!(written(&session).is_empty(), "the peer knows it");
    session.limit_heads(1_000, 100);
    let told = [&SETTING_HEAD_BYTES.to_be_bytes()[..], &1_000_u32.to_be_bytes()].concat();
    assert_eq!(written(&session), [(FrameKind::Settings, 0, told)]);
    let is_served = |stream, letters| {
        let mut read = BytesMut::from(&head_frames(stream, &large_fields(letters))[..]);
        let event = session.receive(&mut read, &|| Timestamp::ZERO).expect("legal");
        let SessionEvent::Request(arrived) = event else { panic!("it is answered") };
        arrived.request.is_ok()
    };
    assert!(!is_served(1, 1_000));
    session.limit_heads(200 << 10, 100);
    assert!(is_served(3, 150_000));
}

/// The head of a response with one header of so many letters.
fn large_response(letters: usize) -> Response<()> {
    http::Response::builder().header("a", "x".repeat(letters)).body(()).expect("legal").into()
}

/// A client opens streams and reads nothing: the heads that are written for it take its part of the memory
/// and no more, and a head that finds no room costs a stream.
#[test]
fn unread_response_heads_take_a_connections_part_and_no_more() {
    // 8 MiB, of which one connection may hold a fifth.
    let memory = MemoryBudget::of_process(Some(16 << 20));
    let session = session_with(memory);
    let requests: Vec<Vec<u8>> = (0..100).map(|number| request(2 * number + 1)).collect();
    let streams = received(&session, &requests);
    let response = large_response(100_000);
    for stream in &streams {
        session.send_response(stream, &response, HasBody::Yes, |_| {});
    }
    let waiting = session.output_bytes();
    assert!((700_000..1_000_000).contains(&waiting), "{waiting} bytes wait");
    assert!((1_400_000..2_000_000).contains(&memory.held()), "{} are held", memory.held());
    assert_eq!(memory.take_refusals(), 92);
    let errors = streams.iter().map(|stream| stream.state.borrow().error);
    let broken_off = Some(StreamError::Aborted(ErrorCode::ENHANCE_YOUR_CALM));
    assert_eq!(errors.filter(|error| *error == broken_off).count(), 92);
    // Once the client reads, nothing is held, and the next large response finds room.
    written(&session);
    assert_eq!(memory.held(), 0);
    let last = received(&session, &[request(201)]);
    session.send_response(&last[0], &response, HasBody::No, |_| {});
    assert!(session.output_bytes() > 100_000);
    assert_eq!(memory.take_refusals(), 0);
    session.forget_output();
    assert_eq!(memory.held(), 0);
}

#[test]
fn trailers_that_a_client_does_not_read_take_its_part_too() {
    let memory = MemoryBudget::of_process(Some(16 << 20));
    let session = session_with(memory);
    let requests: Vec<Vec<u8>> = (0..100).map(|number| request(2 * number + 1)).collect();
    let trailers = large_response(100_000).into_parts().0.fields.into_map();
    for stream in received(&session, &requests) {
        session.send_response(&stream, &Response::new(()), HasBody::Yes, |_| {});
        session.send_trailers(&stream, &trailers, &|| Timestamp::ZERO);
    }
    assert_eq!(memory.take_refusals(), 92);
    assert!(session.output_bytes() < 1_000_000);
}

/// The other end: responses and trailers count until their readers take them.
#[test]
fn heads_of_an_upstream_count_until_they_are_taken() {
    // 4 MiB, of which one connection may hold a fifth.
    let memory = MemoryBudget::of_process(Some(8 << 20));
    let limits = SessionLimits { streams: 0, ..limits_with(memory) };
    let session = Rc::new(Session::new(Role::Client, limits, Timestamp::ZERO));
    received(&session, &[frame(FrameKind::Settings, 0, 0, &[])]);
    let asked = Request::from(http::Request::get("http://h/").body(()).expect("legal"));
    let receivers: Vec<_> = (0..20).map(|_| session.open(&asked, HasBody::No).1).collect();
    let fields = |with_status: bool| {
        let mut fields = if with_status { vec![0x88] } else { Vec::new() };
        encode_text(&http::header::SERVER, &vec![b'x'; 50_000], &mut fields);
        fields
    };
    for number in 0..20 {
        let head = head_frames(2 * number + 1, &fields(true));
        // Without END_STREAM: a body is to follow.
        let mut response = head.clone();
        response[4] &= !END_STREAM;
        received(&session, &[response, head_frames(2 * number + 1, &fields(false))]);
    }
    let held = memory.held();
    assert!((500_000..1_000_000).contains(&held), "{held}");
    let context = Context::from_waker(std::task::Waker::noop());
    let answers: Vec<_> = receivers.iter().map(|receiver| receiver.poll_response(&context)).collect();
    let answered = answers.iter().filter(|answer| matches!(answer, Poll::Ready(Ok(_)))).count();
    assert!((3..=9).contains(&answered), "{answered} found room");
    assert!(memory.held() < held, "what was taken counts no more");
    drop(receivers);
    assert_eq!(memory.held(), 0);
    assert!(session.0.borrow().streams.is_empty());
}

/// A stream whose reader has gone keeps no trailers, and ends.
#[test]
fn trailers_without_a_reader_are_not_kept() {
    let memory = MemoryBudget::of_process(Some(16 << 20));
    let session = Rc::new(session_with(memory));
    let streams = received(&session, &[request(1)]);
    drop(Receiver::new(Rc::clone(&session), Rc::clone(&streams[0])));
    let mut fields = Vec::new();
    encode_text(&http::header::SERVER, &vec![b'x'; 50_000], &mut fields);
    received(&session, &[head_frames(1, &fields)]);
    assert_eq!(memory.held(), 0);
    session.send_response(&streams[0], &Response::new(()), HasBody::No, |_| {});
    assert!(session.0.borrow().streams.is_empty());
}
