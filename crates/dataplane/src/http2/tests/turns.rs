//! What happens within one turn of a connection, whose task polls its streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};

use protocol::http2::hpack::encode_text;
use protocol::http2::{MemoryBudget, Role, Sender, Session, SessionLimits};
use runtime::Clock;

use super::super::transport::Transport;
use super::server::World;
use super::*;

#[test]
fn streams_without_end_hold_up_neither_others_nor_the_reading() {
    run(async {
        let mut world = World::start().await;
        world.peer.write(&setting(4, 1 << 30)).await;
        world.peer.frame(FrameKind::WindowUpdate, 0, 0, &(1_u32 << 30).to_be_bytes()).await;
        for stream in [1, 3, 5, 7, 9] {
            world.get(stream, "/endless").await;
        }
        for stream in [11, 13, 15, 17] {
            world.get(stream, "/large").await;
        }
        let mut left = 4;
        while left > 0 {
            let got = world.peer.next_of_note().await;
            left -= u32::from(matches!(got, ReceivedFrame::Data { is_end: true, .. }));
        }
        world.peer.settle().await;
    });
}

/// Counts how often the task of a connection is woken.
#[derive(Default)]
struct WakeCount(AtomicU32);

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The head of a request, of which a small budget has room for one.
fn large_head(stream: u32) -> Vec<u8> {
    let mut fields = block(&REQUEST);
    encode_text(&http::header::COOKIE, "x".repeat(60_000).as_bytes(), &mut fields);
    let parts: Vec<&[u8]> = fields.chunks(16_384).collect();
    let mut frames = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let kind = if number == 0 { FrameKind::Headers } else { FrameKind::Continuation };
        let begin = if number == 0 { END_STREAM } else { 0 };
        let end = if number + 1 == parts.len() { END_HEADERS } else { 0 };
        write_frame(kind, begin | end, stream, part, &mut frames);
    }
    frames
}

/// Not only when its pause is over: no other task hears of what its streams do in its turn.
#[test]
fn a_connection_that_waits_for_memory_goes_on_once_its_own_streams_give_some_back() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("open");
        let limits = SessionLimits {
            streams: 10,
            stream_window: 65_535,
            proven_window: 65_535,
            read_window: 65_535,
            head_bytes: 128 << 10,
            headers: 100,
            memory: MemoryBudget::of_process(Some(2 << 20)),
        };
        let clock = Clock::start();
        let session = Rc::new(Session::new(Role::Server, limits, clock.now()));
        let ahead = [frame(FrameKind::Settings, 0, 0, &[]), large_head(1), large_head(3)].concat();
        let mut transport = Transport::new(socket, Bytes::from(ahead), Rc::clone(&session), clock);
        let woken = Arc::new(WakeCount::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut arrived = Vec::new();
        assert!(transport.poll_turn(&mut context, |request| arrived.push(request), |_, _| {}).is_pending());
        let first = arrived.pop().expect("there is room for one").stream;
        assert!(arrived.is_empty() && !session.has_memory_again());
        woken.0.store(0, Ordering::Relaxed);
        let answer = Sender::new(Rc::clone(&session), first);
        let end = |_: &Session, _: &mut Context<'_>| drop(answer);
        assert!(transport.poll_turn(&mut context, |request| arrived.push(request), end).is_pending());
        assert!(arrived.is_empty() && session.has_memory_again());
        assert!(woken.0.load(Ordering::Relaxed) > 0, "the connection's task looks again");
        assert!(transport.poll_turn(&mut context, |request| arrived.push(request), |_, _| {}).is_pending());
        assert_eq!(arrived.len(), 1, "the second is read");
    });
}
