//! What a peer says, frame by frame.

use std::rc::Rc;

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;

use super::super::frame::{
    ACK, END_HEADERS, END_STREAM, ErrorCode, Fault, FrameHead, Kind, PADDED, PRIORITY, WINDOW_MAX,
    write_frame,
};
use super::super::head::{Head, Problem, content_length};
use super::super::input::Piece;
use super::super::stream::{State, Stream, StreamError};
use super::{Arrived, Block, Core, LEAVING_PING, Leaving, Role};

/// How many frames the fields of one head may take. More would be a way to keep us busy without ever sending a head.
const BLOCK_FRAMES_MAX: u32 = 64;

impl Core {
    pub(super) fn receive(
        &mut self,
        read: &mut BytesMut,
    ) -> Result<Option<Arrived>, (ErrorCode, &'static str)> {
        loop {
            let taken = match self.input.next(read) {
                Ok(Some(piece)) => self.take(piece),
                Ok(None) => return Ok(None),
                Err(fault) => Err(fault),
            };
            match taken {
                Ok(None) => {}
                Ok(Some(arrived)) => return Ok(Some(arrived)),
                Err(Fault::Connection(code, what)) => return Err((code, what)),
                Err(Fault::Stream(id, code)) => {
                    self.reset(id, code);
                    // Every one of them makes us write an answer.
                    if let Err(Fault::Connection(code, what)) = self.lose_patience() {
                        return Err((code, what));
                    }
                }
            }
        }
    }

    fn take(&mut self, piece: Piece) -> Result<Option<Arrived>, Fault> {
        let (head, mut payload) = match piece {
            Piece::Frame(head, payload) => (head, payload),
            Piece::Data { stream, bytes, counts_for, is_end } => {
                self.expect(Kind::Data, stream)?;
                return self.data(stream, bytes, counts_for, is_end).map(|()| None);
            }
        };
        self.expect(head.kind, head.stream)?;
        match head.kind {
            Kind::Headers => return self.headers(head, payload),
            Kind::Continuation => return self.continuation(head, &payload),
            Kind::Priority => Self::priority(head, &payload)?,
            Kind::Reset => self.reset_by_peer(head, &payload)?,
            Kind::Settings => self.settings(head, &payload)?,
            Kind::Ping => self.ping_by_peer(head, &payload)?,
            Kind::GoAway => self.go_away(head, &mut payload)?,
            Kind::WindowUpdate => self.window_update(head, &payload)?,
            Kind::PushPromise => return Err(Fault::protocol("PUSH_PROMISE that nobody may send")),
            Kind::Data | Kind::Unknown => {}
        }
        Ok(None)
    }

    /// The first frame is SETTINGS, and nothing comes between the parts of a head.
    fn expect(&self, kind: Kind, stream: u32) -> Result<(), Fault> {
        if !self.has_settings && kind != Kind::Settings {
            return Err(Fault::protocol("the first frame is not SETTINGS"));
        }
        match &self.block {
            Some(block) if kind != Kind::Continuation || stream != block.stream => {
                Err(Fault::protocol("a frame between the parts of a head"))
            }
            None if kind == Kind::Continuation => Err(Fault::protocol("CONTINUATION of nothing")),
            Some(_) | None => Ok(()),
        }
    }

    fn data(&mut self, id: u32, bytes: Bytes, counts_for: usize, is_end: bool) -> Result<(), Fault> {
        let counts = i64::try_from(counts_for).unwrap_or(i64::MAX);
        self.receive_window -= counts;
        if self.receive_window < 0 {
            let what = "more DATA than the connection's window";
            return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR, what));
        }
        if counts_for == 0 && !is_end {
            self.lose_patience()?;
        }
        let Some(stream) = self.streams.find(id).cloned() else {
            self.credit(counts_for);
            return self.on_no_stream(id);
        };
        let mut state = stream.state.borrow_mut();
        if state.receiving.is_ended || !state.receiving.has_head {
            self.credit(counts_for);
            let code =
                if state.receiving.has_head { ErrorCode::STREAM_CLOSED } else { ErrorCode::PROTOCOL_ERROR };
            return Err(Fault::Stream(id, code));
        }
        state.receiving.window -= counts;
        if state.receiving.window < 0 {
            self.credit(counts_for);
            return Err(Fault::Stream(id, ErrorCode::FLOW_CONTROL_ERROR));
        }
        let length = bytes.len();
        // Padding is never read by anybody, and neither is what nobody waits for.
        let unread = if state.receiving.is_gone { counts_for } else { counts_for - length };
        state.receiving.unreturned += u32::try_from(counts_for - length).unwrap_or_default();
        if length > 0 && !state.receiving.is_gone {
            state.receiving.data.push_back(bytes);
        }
        let is_length_wrong = state.receiving.length_left.as_mut().is_some_and(|left| {
            let rest = left.checked_sub(length as u64);
            *left = rest.unwrap_or_default();
            rest.is_none() || (is_end && *left > 0)
        });
        state.receiving.waiting.wake();
        if is_end && !is_length_wrong {
            state.receiving.is_ended = true;
        }
        drop(state);
        self.credit(unread);
        if is_length_wrong {
            return Err(Fault::Stream(id, ErrorCode::PROTOCOL_ERROR));
        }
        self.forget_if_over(&stream);
        Ok(())
    }

    fn forget_if_over(&mut self, stream: &Stream) {
        if stream.state.borrow().is_over() {
            self.streams.remove(stream.id);
        }
    }

    /// A frame for a stream that is not open: too early, or too late.
    fn on_no_stream(&self, id: u32) -> Result<(), Fault> {
        if self.is_idle(id) {
            return Err(Fault::protocol("a frame on a stream that was never opened"));
        }
        // What we broke off ourselves, or left behind, its peer may not have known.
        let is_known_to_us = self.resets.contains(&id) || id > self.last_stream;
        if is_known_to_us { Ok(()) } else { Err(Fault::Stream(id, ErrorCode::STREAM_CLOSED)) }
    }

    /// Whether a stream was never opened. Those with even numbers never are: nobody pushes.
    fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || (id > self.last_stream && self.leaving != Leaving::Final)
    }

    fn headers(&mut self, head: FrameHead, mut payload: BytesMut) -> Result<Option<Arrived>, Fault> {
        if head.stream == 0 {
            return Err(Fault::protocol("HEADERS on no stream"));
        }
        let padding = if head.has(PADDED) {
            usize::from(payload.try_get_u8().map_err(|_| Fault::size("HEADERS without their padding"))?)
        } else {
            0
        };
        let mut is_circular = false;
        if head.has(PRIORITY) {
            let on = payload.try_get_u32().map_err(|_| Fault::size("HEADERS without their priority"))?;
            payload.try_get_u8().map_err(|_| Fault::size("HEADERS without their priority"))?;
            is_circular = on & STREAM_BITS == head.stream;
        }
        let length = payload.len().checked_sub(padding);
        payload.truncate(length.ok_or(Fault::protocol("padding longer than its frame"))?);
        let block = Block {
            stream: head.stream,
            is_end: head.has(END_STREAM),
            is_circular,
            fields: payload,
            frames: 1,
        };
        if head.has(END_HEADERS) {
            return self.fields(&block);
        }
        // Kept for longer than this turn, so it must not hold on to the buffer of all.
        self.block = Some(Block { fields: BytesMut::from(&block.fields[..]), ..block });
        Ok(None)
    }

    fn continuation(&mut self, head: FrameHead, payload: &[u8]) -> Result<Option<Arrived>, Fault> {
        let Some(mut block) = self.block.take() else { return Ok(None) };
        block.frames += 1;
        if block.frames > BLOCK_FRAMES_MAX || block.fields.len() + payload.len() > self.limits.head_bytes {
            return Err(Fault::Connection(
                ErrorCode::ENHANCE_YOUR_CALM,
                "a head in too many or too large parts",
            ));
        }
        block.fields.extend_from_slice(payload);
        if head.has(END_HEADERS) {
            return self.fields(&block);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// A whole head.
    fn fields(&mut self, block: &Block) -> Result<Option<Arrived>, Fault> {
        let mut head = Head::default();
        let bytes_max = self.limits.head_bytes;
        self.decoder.decode(&block.fields, |field, bytes| head.take(field, bytes, bytes_max)).map_err(
            |error| {
                tracing::debug!(%error, "a head that cannot be read");
                Fault::Connection(ErrorCode::COMPRESSION_ERROR, "a head that cannot be read")
            },
        )?;
        let id = block.stream;
        if let Some(stream) = self.streams.find(id).cloned() {
            let is_response = self.role == Role::Client && !stream.state.borrow().receiving.has_head;
            let taken = if is_response {
                Self::response(&mut stream.state.borrow_mut(), head, block.is_end)
            } else {
                Self::trailers(&mut stream.state.borrow_mut(), head, block.is_end)
            };
            taken.map_err(|code| Fault::Stream(id, code))?;
            self.forget_if_over(&stream);
            return Ok(None);
        }
        match self.role {
            Role::Server if !id.is_multiple_of(2) && id > self.last_stream => self.request(block, head),
            Role::Server if self.is_idle(id) => {
                Err(Fault::protocol("a request on a stream with an even number"))
            }
            Role::Server if self.resets.contains(&id) => Ok(None),
            Role::Server => Err(Fault::Connection(ErrorCode::STREAM_CLOSED, "HEADERS on a closed stream")),
            Role::Client => self.on_no_stream(id).map(|()| None),
        }
    }

    fn request(&mut self, block: &Block, head: Head) -> Result<Option<Arrived>, Fault> {
        let id = block.stream;
        if self.leaving == Leaving::Final {
            // The peer was told that it is not served; it sends it elsewhere.
            return Ok(None);
        }
        self.last_stream = id;
        if self.streams.len() >= self.limits.streams as usize {
            return Err(Fault::Stream(id, ErrorCode::REFUSED_STREAM));
        }
        if block.is_circular {
            return Err(Fault::Stream(id, ErrorCode::PROTOCOL_ERROR));
        }
        let malformed = Fault::Stream(id, ErrorCode::PROTOCOL_ERROR);
        let request = match head.into_request() {
            Ok(request) => Some(request),
            Err(Problem::TooLarge) => None,
            Err(Problem::Malformed) => return Err(malformed),
        };
        let stream = Stream::new(id, self.limits.stream_window, self.peer.stream_window);
        {
            let mut state = stream.state.borrow_mut();
            state.receiving.has_head = true;
            state.receiving.is_ended = block.is_end;
            if let Some(request) = &request {
                state.receiving.length_left = content_length(request.headers()).map_err(|_| malformed)?;
            }
            if block.is_end && state.receiving.length_left.is_some_and(|left| left > 0) {
                return Err(malformed);
            }
        }
        let stream = Rc::new(stream);
        self.streams.open(Rc::clone(&stream));
        Ok(Some(Arrived { stream, request }))
    }

    fn response(state: &mut State, head: Head, is_end: bool) -> Result<(), ErrorCode> {
        let response = head.into_response().map_err(|_| ErrorCode::PROTOCOL_ERROR)?;
        if response.status().is_informational() {
            // Clients get the interim responses of our server only; a switch of protocols does not exist here.
            let is_legal = !is_end && response.status() != StatusCode::SWITCHING_PROTOCOLS;
            return if is_legal { Ok(()) } else { Err(ErrorCode::PROTOCOL_ERROR) };
        }
        let has_body = !state.is_bodiless
            && response.status() != StatusCode::NO_CONTENT
            && response.status() != StatusCode::NOT_MODIFIED;
        if has_body {
            state.receiving.length_left =
                content_length(response.headers()).map_err(|_| ErrorCode::PROTOCOL_ERROR)?;
            if is_end && state.receiving.length_left.is_some_and(|left| left > 0) {
                return Err(ErrorCode::PROTOCOL_ERROR);
            }
        }
        state.receiving.has_head = true;
        state.response = Some(response);
        state.receiving.is_ended = is_end;
        state.receiving.waiting.wake();
        Ok(())
    }

    fn trailers(state: &mut State, head: Head, is_end: bool) -> Result<(), ErrorCode> {
        if state.receiving.is_ended {
            return Err(ErrorCode::STREAM_CLOSED);
        }
        let is_whole = is_end && state.receiving.length_left.is_none_or(|left| left == 0);
        let trailers = head.into_trailers().ok().filter(|_| is_whole).ok_or(ErrorCode::PROTOCOL_ERROR)?;
        if !trailers.is_empty() {
            state.receiving.trailers = Some(trailers);
        }
        state.receiving.is_ended = true;
        state.receiving.waiting.wake();
        Ok(())
    }

    /// Priorities are gone from HTTP/2 (RFC 9113 §5.3); only their form is looked at.
    fn priority(head: FrameHead, payload: &[u8]) -> Result<(), Fault> {
        if head.stream == 0 {
            return Err(Fault::protocol("PRIORITY on no stream"));
        }
        let [on @ .., _weight] = payload else {
            return Err(Fault::Stream(head.stream, ErrorCode::FRAME_SIZE_ERROR));
        };
        let on: [u8; 4] =
            on.try_into().map_err(|_| Fault::Stream(head.stream, ErrorCode::FRAME_SIZE_ERROR))?;
        if u32::from_be_bytes(on) & STREAM_BITS == head.stream {
            return Err(Fault::Stream(head.stream, ErrorCode::PROTOCOL_ERROR));
        }
        Ok(())
    }

    fn reset_by_peer(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Fault> {
        let code: [u8; 4] =
            payload.try_into().map_err(|_| Fault::size("RST_STREAM of another size than four"))?;
        if head.stream == 0 || self.is_idle(head.stream) {
            return Err(Fault::protocol("RST_STREAM of a stream that was never opened"));
        }
        // Opening streams only to break them off costs the peer nothing and us a request each.
        if self.role == Role::Server {
            self.lose_patience()?;
        }
        if let Some(stream) = self.streams.find(head.stream).cloned() {
            self.streams.remove(head.stream);
            let code = ErrorCode(u32::from_be_bytes(code));
            let is_refusal = self.role == Role::Client && code == ErrorCode::REFUSED_STREAM;
            let error = if is_refusal { StreamError::Refused } else { StreamError::Reset(code) };
            stream.state.borrow_mut().fail(error);
        }
        Ok(())
    }

    fn settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("SETTINGS on a stream"));
        }
        if head.has(ACK) {
            let is_legal = payload.is_empty() && self.has_settings;
            return if is_legal { Ok(()) } else { Err(Fault::size("an acknowledgement that says more")) };
        }
        let before = i64::from(self.peer.stream_window);
        self.peer.apply(payload)?;
        if self.has_settings {
            self.lose_patience()?;
        }
        self.has_settings = true;
        let change = i64::from(self.peer.stream_window) - before;
        if change != 0 {
            for stream in self.streams.iter() {
                let mut state = stream.state.borrow_mut();
                state.sending.window += change;
                if state.sending.window > WINDOW_MAX {
                    let what = "INITIAL_WINDOW_SIZE makes a window too large";
                    return Err(Fault::Connection(ErrorCode::FLOW_CONTROL_ERROR, what));
                }
                state.sending.waiting.wake();
            }
        }
        write_frame(Kind::Settings, ACK, 0, &[], self.output.frames());
        self.wake_transport();
        Ok(())
    }

    fn ping_by_peer(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("PING on a stream"));
        }
        let payload: [u8; 8] =
            payload.try_into().map_err(|_| Fault::size("PING of another size than eight"))?;
        if head.has(ACK) {
            match payload {
                LEAVING_PING if self.leaving == Leaving::Told => self.leave_now(),
                // That it was heard is all there is to know.
                _ => {}
            }
            return Ok(());
        }
        self.lose_patience()?;
        write_frame(Kind::Ping, ACK, 0, &payload, self.output.frames());
        self.wake_transport();
        Ok(())
    }

    fn go_away(&mut self, head: FrameHead, payload: &mut BytesMut) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(Fault::protocol("GOAWAY on a stream"));
        }
        let last = payload.try_get_u32().map_err(|_| Fault::size("GOAWAY that is too short"))? & STREAM_BITS;
        let code = payload.try_get_u32().map_err(|_| Fault::size("GOAWAY that is too short"))?;
        self.is_peer_leaving = true;
        if code != 0 {
            tracing::debug!(code = %ErrorCode(code), "a peer goes away");
        }
        if self.role == Role::Client {
            for stream in self.streams.take_above(last) {
                stream.state.borrow_mut().fail(StreamError::Refused);
            }
        }
        Ok(())
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Fault> {
        let more: [u8; 4] =
            payload.try_into().map_err(|_| Fault::size("WINDOW_UPDATE of another size than four"))?;
        let more = i64::from(u32::from_be_bytes(more) & STREAM_BITS);
        if head.stream == 0 {
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
        let Some(stream) = self.streams.find(head.stream) else {
            let is_idle = self.is_idle(head.stream);
            return if is_idle {
                Err(Fault::protocol("WINDOW_UPDATE of a stream that was never opened"))
            } else {
                Ok(())
            };
        };
        let mut state = stream.state.borrow_mut();
        state.sending.window += more;
        if more == 0 {
            return Err(Fault::Stream(head.stream, ErrorCode::PROTOCOL_ERROR));
        }
        if state.sending.window > WINDOW_MAX {
            return Err(Fault::Stream(head.stream, ErrorCode::FLOW_CONTROL_ERROR));
        }
        state.sending.waiting.wake();
        Ok(())
    }
}

/// Where a number is that of a stream; the highest bit is reserved.
const STREAM_BITS: u32 = u32::MAX >> 1;
