//! Frames of a peer, one after the other. Each either brings something or is charged for (see
//! [`super::super::account`]).

use bytes::{Buf, BytesMut};

use super::super::PresentTime;
use super::super::account::{Cost, Credit};
use super::super::frame::{ACK, ErrorCode, Fault, FrameHead, FrameKind, WINDOW_MAX, write_frame};
use super::super::input::{DataPiece, InputPiece};
use super::super::small_pieces::SmallPieces;
use super::super::stream::{HeadProgress, Stream, StreamError};
use super::ending::LEAVING_PING;
use super::resets::RESETS_PING;
use super::{Core, LeavingProgress, Role, SessionEvent};

mod heads;

/// Room for fewer bytes, where there was none, is for a piece that is hardly longer than its frame.
const DRIBBLE_BYTES: i64 = 1024;

/// How many bytes of the text of a GOAWAY are shown.
const GOAWAY_TEXT_BYTES_MAX: usize = 200;

/// Credit on the connection's flow-control window for the bytes of one DATA frame that no reader will return.
/// Dropping it returns the credit: an exit that returned none would stop all streams after a gigabyte.
struct FlowCredit<'a> {
    core: &'a mut Core,
    bytes: usize,
}

impl Drop for FlowCredit<'_> {
    fn drop(&mut self) {
        self.core.credit(self.bytes);
    }
}

impl Core {
    pub(super) fn receive(
        &mut self,
        read: &mut BytesMut,
        now: PresentTime<'_>,
    ) -> Result<SessionEvent, (ErrorCode, &'static str)> {
        while self.pieces_left > 0 {
            if let Err(Fault::Connection(code, what)) = self.oversize.check() {
                return Err((code, what));
            }
            if self.oversize.wants_pause() {
                return Ok(SessionEvent::Paused);
            }
            // Taken before the piece is looked at, so that a piece that only fails counts as well.
            self.pieces_left -= 1;
            let taken = match self.shortage.take_held_back() {
                Some(block) => self.whole_block(block, now).map(|arrived| arrived.map(SessionEvent::Request)),
                None => match self.input.next(read) {
                    Ok(Some(piece)) => self.take(piece, now),
                    Ok(None) => return Ok(SessionEvent::All),
                    Err(fault) => Err(fault),
                },
            };
            let fault = match taken {
                Ok(None) if self.shortage.wants_pause() => return Ok(SessionEvent::Paused),
                Ok(None) => continue,
                Ok(Some(received)) => return Ok(received),
                Err(Fault::Stream(id, code)) => {
                    // Every one of them makes us write an answer, and stop what we had begun.
                    let is_open = self.streams.find(id).is_some();
                    self.reset(id, code);
                    self.charge(if is_open { Cost::BrokenOff } else { Cost::Refused }, now).err()
                }
                Err(fault @ Fault::Connection(..)) => Some(fault),
            };
            if let Some(Fault::Connection(code, what)) = fault {
                return Err((code, what));
            }
        }
        Ok(SessionEvent::TurnOver)
    }

    fn take(&mut self, piece: InputPiece, now: PresentTime<'_>) -> Result<Option<SessionEvent>, Fault> {
        let (head, mut payload) = match piece {
            InputPiece::Frame(head, payload) => (head, payload),
            InputPiece::Data(data) => {
                self.expect(FrameKind::Data, data.stream)?;
                return self.data(data, now).map(|()| None);
            }
        };
        self.expect(head.kind, head.stream)?;
        if self.block.is_none() {
            self.frames = self.frames.wrapping_add(1);
        }
        match head.kind {
            FrameKind::Headers => return Ok(self.headers(head, payload, now)?.map(SessionEvent::Request)),
            FrameKind::Continuation => {
                return Ok(self.continuation(head, &payload, now)?.map(SessionEvent::Request));
            }
            FrameKind::Priority => self.priority(head, &payload, now)?,
            FrameKind::Reset => self.reset_by_peer(head, &payload, now)?,
            FrameKind::Settings => self.settings(head, &payload, now)?,
            FrameKind::Ping => self.ping_by_peer(head, &payload, now)?,
            FrameKind::GoAway => return self.go_away(head, &mut payload, now),
            FrameKind::WindowUpdate => self.window_update(head, &payload, now)?,
            FrameKind::PushPromise => return Err(Fault::protocol("PUSH_PROMISE that no peer may send")),
            FrameKind::Data | FrameKind::Unknown => self.charge(Cost::Frame(head.length), now)?,
        }
        Ok(None)
    }

    /// The first frame is SETTINGS, and nothing comes between the parts of a head.
    fn expect(&self, kind: FrameKind, stream: u32) -> Result<(), Fault> {
        if !self.has_settings && kind != FrameKind::Settings {
            return Err(Fault::protocol("the first frame is not SETTINGS"));
        }
        match &self.block {
            Some(block) if kind != FrameKind::Continuation || stream != block.stream => {
                Err(Fault::protocol("a frame between the parts of a head"))
            }
            None if kind == FrameKind::Continuation => Err(Fault::protocol("CONTINUATION of nothing")),
            Some(_) | None => Ok(()),
        }
    }

    fn data(&mut self, piece: DataPiece, now: PresentTime<'_>) -> Result<(), Fault> {
        let DataPiece { stream: id, bytes, counts_for, is_end } = piece;
        let counts = i64::try_from(counts_for).unwrap_or(i64::MAX);
        self.take_from_window(counts)?;
        let mut credit = FlowCredit { core: self, bytes: counts_for };
        let Some(stream) = credit.core.streams.find(id).cloned() else {
            credit.core.charge(Cost::LatePiece, now)?;
            return credit.core.frame_without_stream(id);
        };
        let mut state = stream.state.borrow_mut();
        if state.receiving.is_ended || state.receiving.head < HeadProgress::Here {
            let code = if state.receiving.head == HeadProgress::Here {
                ErrorCode::STREAM_CLOSED
            } else {
                ErrorCode::PROTOCOL_ERROR
            };
            return Err(Fault::Stream(id, code));
        }
        state.receiving.window -= counts;
        if state.receiving.window < 0 {
            return Err(Fault::Stream(id, ErrorCode::FLOW_CONTROL_ERROR));
        }
        let length = bytes.len();
        if length > 0 && state.is_bodiless {
            return Err(Fault::Stream(id, ErrorCode::PROTOCOL_ERROR));
        }
        let is_gone = state.receiving.is_gone;
        // Only a reader that is there returns the credit for the bytes of the body. Padding has no reader.
        if !is_gone {
            credit.bytes -= length;
        }
        // The credit for padding goes back with the next bytes that the reader takes: a frame for padding
        // alone would be wasted.
        state.receiving.unreturned += u32::try_from(counts_for - length).unwrap_or_default();
        let is_length_wrong = state.receiving.length_left.as_mut().is_some_and(|left| {
            let rest = left.checked_sub(length as u64);
            *left = rest.unwrap_or_default();
            rest.is_none() || (is_end && *left > 0)
        });
        // Woken before it is said whether the end has come: the reader runs after us on this thread, and sees
        // all of it.
        state.receiving.waiting.wake();
        // Otherwise a reader would find a clean end of a body that is shorter than it says, or longer; the
        // error below comes after it has been woken, but before it runs.
        if is_end && !is_length_wrong {
            state.receiving.is_ended = true;
        }
        drop(state);
        drop(credit);
        if length > 0 {
            self.note_peer_progress(&stream);
        }
        if length > 0 && !is_gone {
            self.keep_unread(&stream, bytes);
        }
        match (length, is_gone) {
            (0, _) if is_end => {}
            (0, _) => self.charge(Cost::Frame(counts_for), now)?,
            (_, true) => self.charge(Cost::LatePiece, now)?,
            (_, false) => self.account.earn(Credit::Body(length)),
        }
        if is_length_wrong {
            return Err(Fault::Stream(id, ErrorCode::PROTOCOL_ERROR));
        }
        self.forget_if_over(&stream);
        Ok(())
    }

    /// The connection's window counts every byte of DATA, be its stream open, gone or never there.
    fn take_from_window(&mut self, counts: i64) -> Result<(), Fault> {
        self.receive_window -= counts;
        if self.receive_window < 0 {
            let what = "more DATA than the connection's window";
            return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR, what));
        }
        Ok(())
    }

    /// A frame for a stream that is not open: too early, or too late.
    fn frame_without_stream(&self, id: u32) -> Result<(), Fault> {
        if self.is_idle(id) {
            return Err(Fault::protocol("a frame on a stream that was never opened"));
        }
        // What we broke off ourselves, or left behind, its peer may not have known.
        let is_known_to_us = self.broken.contains(id) || id > self.last_stream;
        if is_known_to_us { Ok(()) } else { Err(Fault::Stream(id, ErrorCode::STREAM_CLOSED)) }
    }

    /// Whether a stream was never opened. Streams with even numbers never are: both ends of ours push
    /// nothing.
    fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || (id > self.last_stream && self.leaving != LeavingProgress::Final)
    }

    /// Priorities are gone from HTTP/2 (RFC 9113 §5.3); only their form is looked at.
    fn priority(&mut self, head: FrameHead, payload: &[u8], now: PresentTime<'_>) -> Result<(), Fault> {
        self.charge(Cost::Frame(payload.len()), now)?;
        if head.stream == 0 {
            return Err(Fault::protocol("PRIORITY on no stream"));
        }
        // It may come before its stream does, which then cannot be broken off (§6.4).
        let fault = |code, what| {
            if self.is_idle(head.stream) {
                Fault::Connection(code, what)
            } else {
                Fault::Stream(head.stream, code)
            }
        };
        let payload: [u8; 5] = payload
            .try_into()
            .map_err(|_| fault(ErrorCode::FRAME_SIZE_ERROR, "PRIORITY of another size than five"))?;
        let [a, b, c, d, _weight] = payload;
        if u32::from_be_bytes([a, b, c, d]) & STREAM_BITS == head.stream {
            return Err(fault(ErrorCode::PROTOCOL_ERROR, "a stream that depends on itself"));
        }
        Ok(())
    }

    fn reset_by_peer(&mut self, head: FrameHead, payload: &[u8], now: PresentTime<'_>) -> Result<(), Fault> {
        let code: [u8; 4] =
            payload.try_into().map_err(|_| Fault::size("RST_STREAM of another size than four"))?;
        if head.stream == 0 || self.is_idle(head.stream) {
            return Err(Fault::protocol("RST_STREAM of a stream that was never opened"));
        }
        let Some(stream) = self.streams.find(head.stream).cloned() else {
            return self.charge(Cost::Frame(payload.len()), now);
        };
        // Out of the list before its tasks are woken: dropping their handles must find nothing that is still
        // to be broken off.
        self.streams.remove(head.stream);
        let code = ErrorCode(u32::from_be_bytes(code));
        let mut state = stream.state.borrow_mut();
        // Only before the first head of an answer is a refusal a promise that nothing was done. After that
        // the peer has begun, and a client that believed the refusal would send its request twice.
        let is_refusal = self.role == Role::Client && code == ErrorCode::REFUSED_STREAM;
        let error = if is_refusal && state.receiving.head == HeadProgress::Awaited {
            StreamError::Refused
        } else {
            StreamError::Reset(code)
        };
        state.fail(error);
        // Opening streams only to break them off costs the peer nothing and us a request each.
        self.charge(Cost::Cancelled, now)
    }

    fn settings(&mut self, head: FrameHead, payload: &[u8], now: PresentTime<'_>) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("SETTINGS on a stream"));
        }
        self.charge(Cost::Frame(payload.len()), now)?;
        if head.has(ACK) {
            let is_legal = payload.is_empty() && self.has_settings;
            return if is_legal { Ok(()) } else { Err(Fault::size("an acknowledgement that says more")) };
        }
        let before = i64::from(self.peer.stream_window);
        self.peer.apply(payload)?;
        if !std::mem::replace(&mut self.has_settings, true) {
            self.greeting.wake();
        }
        let change = i64::from(self.peer.stream_window) - before;
        if change != 0 {
            self.charge(Cost::Streams(self.streams.len()), now)?;
            for stream in self.streams.iter() {
                let mut state = stream.state.borrow_mut();
                // A window may become negative by this (RFC 9113 §6.9.2): the peer takes back what it had
                // allowed and we had not used.
                state.sending.window += change;
                if state.sending.window > WINDOW_MAX {
                    let what = "INITIAL_WINDOW_SIZE makes a window too large";
                    return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR, what));
                }
                state.sending.waiting.wake();
            }
        }
        write_frame(FrameKind::Settings, ACK, 0, &[], self.output.frames());
        self.wake_transport();
        Ok(())
    }

    fn ping_by_peer(&mut self, head: FrameHead, payload: &[u8], now: PresentTime<'_>) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("PING on a stream"));
        }
        let payload: [u8; 8] =
            payload.try_into().map_err(|_| Fault::size("PING of another size than eight"))?;
        self.charge(Cost::Frame(payload.len()), now)?;
        if head.has(ACK) {
            match payload {
                // The ping was written behind the announcement. Its answer shows that the peer has read both,
                // so every stream that it will ever open on this connection has been seen.
                LEAVING_PING if self.leaving == LeavingProgress::Told => self.leave_now(),
                RESETS_PING => self.on_resets_acknowledged(),
                // That it was heard is all there is to know.
                _ => {}
            }
            return Ok(());
        }
        write_frame(FrameKind::Ping, ACK, 0, &payload, self.output.frames());
        self.wake_transport();
        Ok(())
    }

    fn go_away(
        &mut self,
        head: FrameHead,
        payload: &mut BytesMut,
        now: PresentTime<'_>,
    ) -> Result<Option<SessionEvent>, Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("GOAWAY on a stream"));
        }
        self.charge(Cost::Frame(payload.len()), now)?;
        let last = payload.try_get_u32().map_err(|_| Fault::size("GOAWAY that is too short"))? & STREAM_BITS;
        let code = payload.try_get_u32().map_err(|_| Fault::size("GOAWAY that is too short"))?;
        self.is_peer_leaving = true;
        if self.role == Role::Client {
            // Out of the list, so that the connection may end without them; their tasks find the error.
            for stream in self.streams.take_above(last) {
                let mut state = stream.state.borrow_mut();
                let is_begun = state.receiving.head > HeadProgress::Awaited;
                // A peer that has begun to answer a stream cannot take that back.
                state.fail(if is_begun { StreamError::Closed } else { StreamError::Refused });
            }
        }
        let why =
            || String::from_utf8_lossy(&payload[..payload.len().min(GOAWAY_TEXT_BYTES_MAX)]).into_owned();
        Ok((code != 0).then(|| SessionEvent::Farewell { code: ErrorCode(code), why: why() }))
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8], now: PresentTime<'_>) -> Result<(), Fault> {
        let more: [u8; 4] =
            payload.try_into().map_err(|_| Fault::size("WINDOW_UPDATE of another size than four"))?;
        let more = i64::from(u32::from_be_bytes(more) & STREAM_BITS);
        if head.stream == 0 {
            // Counted before it is checked and added: how much there was decides what the frame costs.
            self.charge(cost_of_window_update(self.send_window, more), now)?;
            self.send_window += more;
            if more == 0 {
                return Err(Fault::protocol("WINDOW_UPDATE of nothing"));
            }
            if self.send_window > WINDOW_MAX {
                let what = "a connection's window beyond 2^31 - 1";
                return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR, what));
            }
            self.call_blocked();
            return Ok(());
        }
        let Some(stream) = self.streams.find(head.stream).cloned() else {
            self.charge(Cost::Frame(payload.len()), now)?;
            let is_idle = self.is_idle(head.stream);
            return if is_idle {
                Err(Fault::protocol("WINDOW_UPDATE of a stream that was never opened"))
            } else {
                Ok(())
            };
        };
        let mut state = stream.state.borrow_mut();
        self.charge(cost_of_window_update(state.sending.window, more), now)?;
        state.sending.window += more;
        if more == 0 {
            return Err(Fault::Stream(head.stream, ErrorCode::PROTOCOL_ERROR));
        }
        if state.sending.window > WINDOW_MAX {
            return Err(Fault::Stream(head.stream, ErrorCode::FLOW_CONTROL_ERROR));
        }
        state.sending.waiting.wake();
        drop(state);
        self.note_peer_progress(&stream);
        Ok(())
    }

    /// The peer goes on with a stream, so it has most probably read what it got of it.
    fn note_peer_progress(&mut self, stream: &Stream) {
        if stream.small_pieces.get() != SmallPieces::default() {
            self.streams.note_small(stream, SmallPieces::default());
        }
    }
}

/// The cost of a `WINDOW_UPDATE` of `more` bytes, for a window of `before` bytes.
fn cost_of_window_update(before: i64, more: i64) -> Cost {
    if before <= 0 && more < DRIBBLE_BYTES { Cost::Dribble } else { Cost::Frame(size_of::<u32>()) }
}

/// Where a number is that of a stream; the highest bit is reserved.
const STREAM_BITS: u32 = u32::MAX >> 1;
