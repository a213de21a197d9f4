use bytes::BytesMut;
use http::Request;

use super::super::frame::END_HEADERS;
use super::super::stream::StreamError;
use super::*;

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
    encode_request(&Request::post("http://h/").body(()).expect("legal"), &mut fields);
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
        }
    }
}

#[test]
fn who_was_not_read_for_the_longest_time_loses_first_when_memory_is_short() {
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
            SessionEvent::Request(_) | SessionEvent::Farewell { .. } => panic!("there is none"),
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
