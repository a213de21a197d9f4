//! A session that answers, whatever its client says: it writes whole frames, holds no more than it may, and
//! gives back what it held.
#![no_main]

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use ebb_fuzz::{MEMORY, check_frames, session_pieces, take_output};
use http_body::Body;
use libfuzzer_sys::fuzz_target;
use protocol::Response;
use protocol::http2::{HasBody, SessionEvent, Receiver, Role, Sender, Session, SessionLimits};
use vocabulary::Timestamp;

fuzz_target!(|input: &[u8]| {
    let memory = *MEMORY;
    let limits = SessionLimits {
        streams: 10,
        stream_window: 65_535,
        proven_window: 65_535,
        read_window: 65_535,
        head_bytes: 64 * 1024,
        headers: 100,
        memory,
    };
    let session = Rc::new(Session::new(Role::Server, limits, Timestamp::ZERO));
    let mut context = Context::from_waker(Waker::noop());
    let mut open: Vec<(Sender, Receiver)> = Vec::new();
    let mut out = Vec::new();
    'pieces: for piece in session_pieces(input) {
        let mut read = BytesMut::from(&piece[..]);
        session.begin_turn(&context);
        loop {
            match session.receive(&mut read, &|| Timestamp::ZERO) {
                Ok(SessionEvent::Request(arrived)) => {
                    let sender = Sender::new(Rc::clone(&session), Rc::clone(&arrived.stream));
                    let receiver = Receiver::new(Rc::clone(&session), arrived.stream);
                    if let Ok(request) = arrived.request {
                        assert!(request.headers().len() <= 100);
                        let body = if request.uri().path() == "/" { HasBody::No } else { HasBody::Yes };
                        sender.respond(&Response::new(()), body, |_| {});
                        open.push((sender, receiver));
                    }
                }
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
        // Every other stream is read; to all there is written what there is room for.
        for (at, (sender, receiver)) in open.iter_mut().enumerate() {
            if at % 2 == 0 {
                while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut *receiver).poll_frame(&mut context) {}
            }
            if let Poll::Ready(Ok(room)) = sender.poll_room(3_000, &mut context) {
                sender.data(Bytes::from(vec![b'x'; room]), false, &|| Timestamp::ZERO);
            }
        }
        take_output(&session, &mut out);
        assert!(memory.held() <= 1 << 19, "{}", memory.held());
        assert!(session.streams() <= 10, "{}", session.streams());
    }
    take_output(&session, &mut out);
    check_frames(&out);
    drop(open);
    drop(session);
    assert_eq!(memory.held(), 0);
});
