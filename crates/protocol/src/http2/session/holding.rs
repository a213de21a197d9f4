//! What a connection holds: bodies that were not read, and heads: those that came in part, those of streams
//! that are open, those of responses and trailers that were not taken, and those that wait to be written.
//!
//! When it holds its part of the process's budget ([`super::super::memory`]) and more of a body comes, the
//! stream is broken off that was not read for the longest time: a stream whose reader takes nothing loses
//! first, be it that of a client that never reads its answers or of a request that waits for something that
//! does not come. What becomes of a head for which there is no room, see `shortage`.

use bytes::Bytes;

use super::super::frame::{ErrorCode, FrameKind, SETTING_STREAM_WINDOW, write_frame, write_setting};
use super::super::memory::{OverShare, large_head_memory};
use super::super::stream::{Stream, UnreadHead};
use super::Core;

/// While a connection holds more than this, large pieces are copied: where they lie they would keep what was
/// read with them, up to eight times as much.
const PIECES_IN_PLACE_BYTES: usize = 256 * 1024;

/// After how many streams whose readers wanted more than they had at first the next ones get more: as many as
/// one connection usually has at a time.
const READERS_PROVEN: u32 = 50;

impl Core {
    /// Lets streams have more room from the beginning once those before them have used it. Streams that are
    /// never read come many at a time, before anything is held; so the memory in use says too late that there
    /// is an attack, and where responses are short, no stream needs more. The other way there is no need to
    /// go: a connection has few streams, and the next ones get one of their own.
    pub(super) fn offer_room(&mut self) {
        let more = self.limits.proven_window.saturating_sub(self.stream_window);
        if more == 0 || self.readers < READERS_PROVEN || self.limits.memory.is_scarce() {
            return;
        }
        self.stream_window += more;
        let mut setting = Vec::new();
        write_setting(SETTING_STREAM_WINDOW, self.stream_window, &mut setting);
        write_frame(FrameKind::Settings, 0, 0, &setting, self.output.frames());
        // The setting counts for streams that are open as well (RFC 9113 §6.9.2), from when the peer has read
        // it; it does no harm that we accept more before.
        for stream in self.streams.iter() {
            let receiving = &mut stream.state.borrow_mut().receiving;
            receiving.window += i64::from(more);
            receiving.accepted += more;
        }
    }

    /// Keeps a piece of a body until the reader of its stream takes it.
    pub(super) fn keep_unread(&mut self, stream: &Stream, piece: Bytes) {
        let piece = if self.unread > PIECES_IN_PLACE_BYTES { Bytes::copy_from_slice(&piece) } else { piece };
        self.unread += piece.len();
        stream.state.borrow_mut().receiving.data.push(piece);
        self.settle_memory();
    }

    /// Gives back the memory of so many bytes, which were read or never will be.
    pub(super) fn release_unread(&mut self, bytes: usize) {
        self.unread -= bytes;
        self.settle_memory();
    }

    /// A stream that both sides have ended is open no more. It is forgotten once what came of it was read:
    /// until then it holds something, and can be broken off.
    pub(super) fn forget_if_over(&mut self, stream: &Stream) {
        let (is_over, is_read) = {
            let state = stream.state.borrow();
            (state.is_over(), state.receiving.data.is_empty() && state.unread_heads() == 0)
        };
        match (is_over, is_read) {
            (true, true) => {
                if self.streams.remove(stream.id).is_some() {
                    self.give_memory_back();
                }
            }
            (true, false) => self.streams.note_over(stream.id),
            (false, _) => {}
        }
    }

    /// Keeps the head of a response, or trailers, until their reader takes them. If there is no memory, their
    /// stream is broken off.
    pub(super) fn keep_head(&mut self, stream: &Stream, part: UnreadHead, memory: usize) {
        let is_gone = {
            let mut state = stream.state.borrow_mut();
            match part {
                UnreadHead::Response => state.response_memory = memory,
                UnreadHead::Trailers => state.receiving.trailers_memory = memory,
            }
            state.receiving.is_gone
        };
        if is_gone {
            // No reader will ever take the head, and a stream that holds one is not forgotten.
            stream.state.borrow_mut().forget_unread_heads();
            return self.settle_memory();
        }
        let held = self.memory.settle(self.held() + memory);
        self.streams.hold_head(stream, memory);
        if held.is_err() {
            self.memory.count_refusal();
            self.break_off(stream.id, ErrorCode::ENHANCE_YOUR_CALM);
        }
    }

    /// Tells the process's budget how much this connection holds, and breaks streams off until the budget
    /// allows it.
    pub(super) fn settle_memory(&mut self) {
        // Large heads that are gone give their room back. There are no more of them than were let in, but for
        // the beginning of one, for which room is awaited.
        let _ = self.memory.settle_large_heads(self.large_heads_held());
        // A loop, because the stream that is broken off may hold less than what just came. It ends at the
        // latest when no stream holds anything.
        while self.memory.settle(self.held()).is_err() {
            let Some(id) = self.streams.least_recently_read() else { return };
            self.memory.count_refusal();
            self.break_off(id, ErrorCode::ENHANCE_YOUR_CALM);
        }
    }

    /// Gives back to the budget what is held no more. No stream is broken off for that: nothing more is held
    /// than before.
    pub(super) fn give_memory_back(&mut self) {
        if self.memory.has_taken() {
            // Both fail only while the beginning of a head waits for room, and then change nothing.
            let _ = self.memory.settle_large_heads(self.large_heads_held());
            let _ = self.memory.settle(self.held());
        }
    }

    pub(super) fn held(&self) -> usize {
        self.unread + self.streams.head_bytes() + self.begun_block() + self.output.head_memory()
    }

    pub(super) fn large_heads_held(&self) -> usize {
        self.streams.large_head_bytes() + large_head_memory(self.begun_block())
    }

    fn begun_block(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.fields.capacity())
    }

    /// Counts a head that was read whole. If there is no memory for it, nothing changes.
    pub(super) fn settle_head(&mut self, memory: usize) -> Result<(), OverShare> {
        self.memory.settle_large_heads(self.large_heads_held() + large_head_memory(memory))?;
        self.memory.settle(self.held() + memory).inspect_err(|OverShare| {
            // It is less than was held a moment ago.
            let _ = self.memory.settle_large_heads(self.large_heads_held());
        })
    }
}
