//! Heads, pieces of bodies and trailers on their way out of a session.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use super::super::PresentTime;
use super::super::account::Credit;
use super::super::frame::{END_STREAM, ErrorCode, FrameHead, FrameKind, PAYLOAD_BYTES_MAX};
use super::super::head::{waiting_memory, waiting_memory_of_trailers};
use super::super::hpack::{encode_field, encode_response};
use super::super::memory::OverShare;
use super::super::small_pieces::{LADEN_BYTES, is_small, patience};
use super::super::stream::{SendingHalf, Stream, StreamError, Turn};
use super::{Core, HasBody, OUTPUT_BYTES_MAX, Role, Session};
use crate::headers::may_be_trailer;
use crate::message::Response;

impl Session {
    /// Sends the head of a response; `more` writes further fields.
    pub(in crate::http2) fn send_response(
        &self,
        stream: &Stream,
        response: &Response<()>,
        body: HasBody,
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut core = self.0.borrow_mut();
        if !core.may_send(stream) {
            return;
        }
        let memory = waiting_memory(response.fields());
        if core.hold_output(stream, memory).is_err() {
            return;
        }
        let flags = if body == HasBody::No { END_STREAM } else { 0 };
        core.write_head(stream.id, flags, |out| {
            encode_response(response.status(), response.fields(), out);
            more(out);
        });
        core.note_waiting_head(memory);
        core.sent(stream, body == HasBody::No);
    }

    /// How much of `wanted` bytes may be sent on a stream now: at least one, or the task is woken when it may
    /// be. Streams take turns in the order in which they came; the stream whose turn it is goes on as long as
    /// there is room, because each change costs a turn of a task.
    pub(in crate::http2) fn poll_room(
        &self,
        stream: &Rc<Stream>,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, StreamError>> {
        let mut core = self.0.borrow_mut();
        let mut state = stream.state.borrow_mut();
        // The way of a stream that has more to send than there is room for:
        //
        //     None --no room, but its own window is open--> Waits --`call_blocked`--> Called
        //     Called --`poll_room` or `writer_gone`--> None
        //
        // `called` counts those that are Called, and a frame's worth of room is kept for each.
        let was_called = state.sending.turn == Turn::Called;
        core.on_waiter_resumed(&mut state.sending);
        if let Some(error) = state.error {
            return Poll::Ready(Err(error));
        }
        let is_crowded = core.output.len() >= OUTPUT_BYTES_MAX;
        let window = state.sending.window.min(core.send_window).max(0);
        let room = wanted.min(PAYLOAD_BYTES_MAX).min(usize::try_from(window).unwrap_or(usize::MAX));
        let is_nobody_before = core.blocked.is_empty() && core.called == 0;
        // A task that was woken for something else must not overtake those that wait in the queue.
        let is_next = was_called || core.last_sender == stream.id || is_nobody_before;
        if room > 0 && !is_crowded && is_next {
            // Woken for another reason, it may come before it is called.
            state.sending.turn = Turn::None;
            return Poll::Ready(Ok(room));
        }
        state.sending.waiting.register(context);
        // If it is its own window that is empty, there is nothing to wait for in the queue.
        if state.sending.window > 0 && state.sending.turn == Turn::None {
            state.sending.turn = Turn::Waits;
            if was_called {
                // The turn of another stream went on for longer than there was room for both. It goes before
                // those that were not called, and behind those that came back before it: always at the front,
                // the first to come back would be passed by the next one each time, and starve.
                let place = core.came_back.min(core.blocked.len());
                core.blocked.insert(place, Rc::clone(stream));
                core.came_back += 1;
            } else {
                core.blocked.push_back(Rc::clone(stream));
            }
        }
        drop(state);
        core.call_blocked();
        Poll::Pending
    }

    /// How long a piece of so many bytes waits for more of its body, if it has to.
    pub(in crate::http2) fn patience_with(
        &self,
        stream: &Stream,
        bytes: usize,
        now: PresentTime<'_>,
    ) -> Option<Duration> {
        let core = self.0.borrow();
        if core.role == Role::Server || !is_small(bytes) || stream.small_pieces.get().may_send(now()) {
            return None;
        }
        Some(patience(core.streams.small_overhead()))
    }

    /// Whether so many small pieces may wait at the peer that no further stream should come to it here.
    pub fn is_laden(&self) -> bool {
        self.0.borrow().streams.small_overhead() > LADEN_BYTES
    }

    /// Whether the connection's send window is used up (RFC 9113, 6.9), so that no body moves here before the
    /// peer has read some of what it has. All of that may be one stream's, which the peer need not ever read.
    pub fn is_choked(&self) -> bool {
        self.0.borrow().send_window <= 0
    }

    /// A stream for which there was room has nothing to send.
    pub(in crate::http2) fn pass(&self) {
        self.0.borrow_mut().call_blocked();
    }

    /// Sends a piece of a body for which there is room.
    pub(in crate::http2) fn send_data(
        &self,
        stream: &Stream,
        data: Bytes,
        is_end: bool,
        now: PresentTime<'_>,
    ) {
        let mut core = self.0.borrow_mut();
        if !core.may_send(stream) {
            return;
        }
        let length = i64::try_from(data.len()).unwrap_or(i64::MAX);
        core.send_window -= length;
        let is_cut = {
            let mut state = stream.state.borrow_mut();
            state.sending.window -= length;
            !is_end && (state.sending.window <= 0 || core.send_window <= 0)
        };
        core.account.earn(if is_cut { Credit::CutBody(data.len()) } else { Credit::Body(data.len()) });
        core.note_piece(stream, data.len(), is_end, now);
        core.last_sender = stream.id;
        let head = FrameHead {
            length: data.len(),
            kind: FrameKind::Data,
            flags: if is_end { END_STREAM } else { 0 },
            stream: stream.id,
        };
        // Head and data go into the same queue one behind the other; nothing can be written between them.
        core.output.frames().extend_from_slice(&head.bytes());
        core.output.push(data);
        core.sent(stream, is_end);
        core.call_blocked();
    }

    /// Ends a body with trailers, those that may be some.
    pub(in crate::http2) fn send_trailers(
        &self,
        stream: &Stream,
        trailers: &HeaderMap,
        now: PresentTime<'_>,
    ) {
        // A body whose trailers are all forbidden needs no head: an empty DATA frame ends it as well.
        let mut allowed = trailers.iter().filter(|(name, _)| may_be_trailer(name)).peekable();
        if allowed.peek().is_none() {
            return self.send_data(stream, Bytes::new(), true, now);
        }
        let mut core = self.0.borrow_mut();
        if !core.may_send(stream) {
            return;
        }
        let memory = waiting_memory_of_trailers(trailers);
        if core.hold_output(stream, memory).is_err() {
            return;
        }
        core.write_head(stream.id, END_STREAM, |out| {
            for (name, value) in allowed {
                encode_field(name, value, out);
            }
        });
        core.note_waiting_head(memory);
        core.sent(stream, true);
    }

    /// Breaks a stream off, unless it is over.
    pub(in crate::http2) fn reset(&self, stream: &Stream, why: ErrorCode) {
        let mut core = self.0.borrow_mut();
        if core.streams.find(stream.id).is_some() {
            core.reset(stream.id, why);
        }
    }
}

impl Core {
    /// Whether a stream is open in our direction.
    fn may_send(&self, stream: &Stream) -> bool {
        let state = stream.state.borrow();
        state.error.is_none() && !state.sending.is_ended && !self.is_closed
    }

    /// Counts a piece of a body on its way to an app. What a client gets is its own affair: it asked for it
    /// on its own connection.
    fn note_piece(&mut self, stream: &Stream, bytes: usize, is_end: bool, now: PresentTime<'_>) {
        let before = stream.small_pieces.get();
        let is_small = is_small(bytes);
        if self.role == Role::Server || bytes == 0 || !(is_small || before.overhead() > 0) {
            return;
        }
        let sent = before.sent(bytes);
        let small = if is_small && !is_end { sent.paced(now()) } else { sent };
        self.streams.note_small(stream, small);
    }

    /// Takes memory for a head that may have to wait until the peer reads. If there is none, its stream is
    /// broken off: a peer that reads nothing loses its latest responses.
    fn hold_output(&mut self, stream: &Stream, memory: usize) -> Result<(), OverShare> {
        if memory == 0 {
            return Ok(());
        }
        let held = self.memory.settle(self.held() + memory);
        if held.is_err() {
            self.memory.count_refusal();
            self.reset(stream.id, ErrorCode::ENHANCE_YOUR_CALM);
        }
        held
    }

    /// The head that was just written takes so much memory while it waits.
    fn note_waiting_head(&mut self, memory: usize) {
        if memory > 0 {
            self.output.note_head(memory);
        }
    }

    /// Notes that a frame was written on a stream, and wakes the transport.
    fn sent(&mut self, stream: &Stream, is_end: bool) {
        if is_end {
            stream.state.borrow_mut().sending.is_ended = true;
            self.forget_if_over(stream);
        }
        self.wake_transport();
    }
}

impl Core {
    /// Lets as many of the streams that wait go on as there is room for. To wake all of them would cost a
    /// turn of each for every few pieces that go out.
    pub(super) fn call_blocked(&mut self) {
        // As nearly always; this is asked behind each piece of each stream.
        if self.blocked.is_empty() {
            return;
        }
        let output = OUTPUT_BYTES_MAX.saturating_sub(self.output.len());
        let window = usize::try_from(self.send_window).unwrap_or(0);
        // Those that were called before and have not run yet will want theirs first.
        let mut room = window.min(output).saturating_sub(self.called * PAYLOAD_BYTES_MAX);
        while room > 0
            && let Some(stream) = self.blocked.pop_front()
        {
            self.came_back = self.came_back.saturating_sub(1);
            let mut state = stream.state.borrow_mut();
            // The queue may hold streams that have ended since, or had their turn by another way; they are
            // dropped from it here.
            if state.sending.turn == Turn::Waits && state.error.is_none() {
                state.sending.turn = Turn::Called;
                state.sending.waiting.wake();
                self.called += 1;
                room = room.saturating_sub(PAYLOAD_BYTES_MAX);
            }
        }
    }

    /// The task of a stream that was called runs again, or the stream ends: the room kept for it is free.
    pub(super) fn on_waiter_resumed(&mut self, sending: &mut SendingHalf) {
        if sending.turn == Turn::Called {
            sending.turn = Turn::None;
            self.called -= 1;
        }
    }
}
