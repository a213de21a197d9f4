//! A session that asks, whatever its server answers: it writes whole frames, and gives back what it held.
#![no_main]

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use ebb_fuzz::{MEMORY, check_frames, session_pieces, take_output};
use http::Request;
use http_body::Body;
use libfuzzer_sys::fuzz_target;
use protocol::http2::{HasBody, PREFACE, SessionEvent, Role, Session, SessionLimits};
use vocabulary::Timestamp;

fuzz_target!(|input: &[u8]| {
    let memory = *MEMORY;
    let limits = SessionLimits {
        streams: 0,
        stream_window: 4 * 1024,
        proven_window: 16 * 1024,
        read_window: 64 * 1024,
        head_bytes: 64 * 1024,
        headers: 100,
        memory,
    };
    let session = Rc::new(Session::new(Role::Client, limits, Timestamp::ZERO));
    let mut context = Context::from_waker(Waker::noop());
    let mut open = Vec::new();
    let mut out = Vec::new();
    'pieces: for piece in session_pieces(input) {
        if session.has_room() && !session.is_closed() && open.len() < 8 {
            let request = Request::post("http://h/path").header("a", "b").body(()).expect("legal");
            let request = protocol::Request::from(request);
            open.push(session.open(&request, if open.len() % 2 == 0 { HasBody::No } else { HasBody::Yes }));
        }
        let mut read = BytesMut::from(&piece[..]);
        session.begin_turn(&context);
        loop {
            match session.receive(&mut read, &|| Timestamp::ZERO) {
                Ok(SessionEvent::Request(_)) => panic!("nobody sends us requests"),
                Ok(SessionEvent::Farewell { .. }) => {}
                Ok(SessionEvent::All) => break,
                Ok(SessionEvent::TurnOver) => session.begin_turn(&context),
                Ok(SessionEvent::Paused) => session.resume(),
                Err((code, _)) => {
                    session.refuse(code);
                    break 'pieces;
                }
            }
        }
        for (at, (sender, receiver)) in open.iter_mut().enumerate() {
            if let Poll::Ready(Ok(response)) = receiver.poll_response(&context) {
                assert!(!response.status().is_informational() && response.headers().len() <= 100);
            }
            if at % 3 > 0 {
                while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut *receiver).poll_frame(&mut context) {}
            }
            if at % 2 == 1
                && let Poll::Ready(Ok(room)) = sender.poll_room(100, &mut context)
            {
                sender.data(Bytes::from(vec![b'x'; room]), false, &|| Timestamp::ZERO);
            }
        }
        // Every fourth stream is dropped, as clients do.
        if open.len() % 4 == 3 {
            open.remove(0);
        }
        take_output(&session, &mut out);
        assert!(memory.held() <= 1 << 19, "{}", memory.held());
    }
    take_output(&session, &mut out);
    if let Some(frames) = out.strip_prefix(&PREFACE[..]) {
        check_frames(frames);
    } else {
        assert!(out.is_empty(), "the preface comes first");
    }
    drop(open);
    drop(session);
    assert_eq!(memory.held(), 0);
});
