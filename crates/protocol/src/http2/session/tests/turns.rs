//! Streams that have more to send than there is room for take turns.

use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};

use bytes::Bytes;

use super::*;

/// A piece of a body: five of them fill the output.
const PIECE: &[u8] = &[0; 16_000];

/// The task of a stream. It tells its number when it is woken.
struct NumberedTask {
    number: usize,
    woken: mpsc::Sender<usize>,
}

impl Wake for NumberedTask {
    fn wake(self: Arc<Self>) {
        // At the end of the test there is no listener any more.
        let _ = self.woken.send(self.number);
    }
}

/// How many bytes each of so many streams has sent once the kernel has taken so many outputs, if each stream
/// always has more to send.
fn sent_by(count: u32, outputs: u32) -> Vec<usize> {
    let session = Session::new(Role::Server, limits_with(<&MemoryBudget>::default()), Timestamp::ZERO);
    let mut windows = Vec::new();
    write_setting(SETTING_STREAM_WINDOW, 1 << 30, &mut windows);
    let window = (1_u32 << 30).to_be_bytes();
    let mut frames =
        vec![frame(FrameKind::Settings, 0, 0, &windows), frame(FrameKind::WindowUpdate, 0, 0, &window)];
    frames.extend((0..count).map(|number| request(2 * number + 1)));
    let streams = received(&session, &frames);
    let (woken, calls) = mpsc::channel();
    let task = |number| Waker::from(Arc::new(NumberedTask { number, woken: woken.clone() }));
    let wakers: Vec<Waker> = (0..streams.len()).map(task).collect();
    let mut sent = vec![0; streams.len()];
    let mut run = |number: usize| {
        let (stream, mut context) = (&streams[number], Context::from_waker(&wakers[number]));
        while let Poll::Ready(room) = session.poll_room(stream, PIECE.len(), &mut context) {
            let piece = &PIECE[..room.expect("the stream is open")];
            session.send_data(stream, Bytes::from_static(piece), false, &|| Timestamp::ZERO);
            sent[number] += piece.len();
        }
    };
    for number in 0..streams.len() {
        run(number);
    }
    for _ in 0..outputs {
        let taken = session.end_turn(|pieces| Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum())));
        assert!(matches!(taken, Poll::Ready(Ok(()))));
        // Tasks run in the order in which they were woken, those that another one wakes meanwhile included.
        for number in calls.try_iter() {
            run(number);
        }
    }
    sent
}

#[test]
fn no_stream_is_ever_more_than_two_turns_ahead_of_another() {
    for count in [1, 2, 3, 4, 5, 20, 1_000] {
        for outputs in [3 * count, 3 * count + count / 2, 9 * count] {
            let sent = sent_by(count, outputs);
            let (least, most) = (sent.iter().min().expect("some"), sent.iter().max().expect("some"));
            assert!(*least >= 15 * PIECE.len(), "of {count} streams one has sent {least} bytes");
            // The stream that sent last goes on where there is room before another one is called.
            assert!(most - least <= 10 * PIECE.len(), "of {count} streams: {least} to {most} bytes");
        }
    }
}
