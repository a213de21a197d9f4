//! The reader and the writer of a stream report to its session: that bytes were read, and that one of the two
//! is gone.

use super::super::frame::{ErrorCode, FrameKind, write_frame};
use super::super::stream::{ReadingProgress, Stream};
use super::{Role, Session};

/// How many times as much is accepted of a stream of which half of what was accepted so far was read. Twice
/// as much each time makes a response of 1 MB wait more often than it has to.
const GROWTH: u32 = 4;

impl Session {
    /// The reader of a stream has taken `length` bytes of its data.
    pub(in crate::http2) fn read(&self, stream: &Stream, length: usize) {
        let mut core = self.0.borrow_mut();
        // The connection's window first: it belongs to all streams, and is given back even if this one is
        // gone.
        core.credit(length);
        core.release_unread(length);
        core.reads += 1;
        let mut state = stream.state.borrow_mut();
        state.receiving.unreturned += u32::try_from(length).unwrap_or(u32::MAX);
        state.receiving.read_at = core.reads;
        let accepted = state.receiving.accepted;
        // A stream that was broken off gets no more room: nothing may be sent on it (RFC 9113 §5.1).
        if state.receiving.unreturned >= accepted / 2 && !state.receiving.is_ended && state.error.is_none() {
            // More from the second time on: what a reader takes should not wait for it, and what it takes no
            // more is hardly more than it took. The first time says nothing of a reader: as much as this fits
            // into the window of the next hop, which is of the same size where that is one of ours.
            state.receiving.reading = match state.receiving.reading {
                ReadingProgress::None => ReadingProgress::Once,
                ReadingProgress::Once => {
                    core.readers = core.readers.saturating_add(1);
                    ReadingProgress::Again
                }
                ReadingProgress::Again => ReadingProgress::Again,
            };
            if state.receiving.reading == ReadingProgress::Again {
                state.receiving.accepted =
                    accepted.saturating_mul(GROWTH).min(core.limits.read_window).max(accepted);
            }
            state.receiving.unreturned += state.receiving.accepted - accepted;
            let returned = std::mem::take(&mut state.receiving.unreturned);
            // Our own account of the window changes when the frame is written and not when the peer has it:
            // what it sends before it has it stays within the smaller window anyway.
            state.receiving.window += i64::from(returned);
            write_frame(FrameKind::WindowUpdate, 0, stream.id, &returned.to_be_bytes(), core.output.frames());
            core.wake_transport();
        }
        drop(state);
        core.forget_if_over(stream);
    }

    /// A reader has taken a head that took so much memory; 0 where it did not count.
    pub(in crate::http2) fn head_taken(&self, stream: &Stream, memory: usize) {
        if memory > 0 {
            let mut core = self.0.borrow_mut();
            core.streams.release_head(stream, memory);
            core.settle_memory();
            core.forget_if_over(stream);
        }
    }

    /// The reader of a stream is gone: no more of the stream will be read.
    pub(in crate::http2) fn reader_gone(&self, stream: &Stream) {
        let mut core = self.0.borrow_mut();
        let (unread, heads, is_ended, is_writer_gone) = {
            let mut state = stream.state.borrow_mut();
            state.receiving.is_gone = true;
            let unread = state.receiving.data.clear();
            let heads = state.forget_unread_heads();
            (unread, heads, state.receiving.is_ended, state.sending.is_gone)
        };
        // Most readers have taken all that came.
        if unread > 0 || heads > 0 {
            core.streams.release_head(stream, heads);
            // What is thrown away here counts as read, or the window of the connection would shrink by it for
            // good.
            core.credit(unread);
            core.release_unread(unread);
        }
        core.forget_if_over(stream);
        // Also where the reader leaves nothing: the beginning of a refused head may still be counted.
        core.give_memory_back();
        // A client that wants no answer wants nothing; a server answers without having read everything.
        // One that was forgotten is closed at both ends, and a reset would be for nothing.
        if core.streams.find(stream.id).is_some() && !is_ended {
            match core.role {
                Role::Client => core.reset(stream.id, ErrorCode::CANCEL),
                Role::Server if is_writer_gone => core.reset(stream.id, ErrorCode::NO_ERROR),
                Role::Server => {}
            }
        }
    }

    /// The writer of a stream is gone: no more will be sent on the stream.
    pub(in crate::http2) fn writer_gone(&self, stream: &Stream) {
        let mut core = self.0.borrow_mut();
        let (is_ended, is_reader_gone) = {
            let mut state = stream.state.borrow_mut();
            state.sending.is_gone = true;
            // It may go while it is called, and the room that was kept for it would never be given to
            // another stream.
            core.on_waiter_resumed(&mut state.sending);
            (state.sending.is_ended, state.receiving.is_gone)
        };
        core.call_blocked();
        if core.streams.find(stream.id).is_none() {
            return;
        }
        if !is_ended {
            core.reset(stream.id, ErrorCode::CANCEL);
        } else if is_reader_gone && core.role == Role::Server {
            core.reset(stream.id, ErrorCode::NO_ERROR);
        }
    }
}
