//! Heads: of requests, of responses, and at the end of either. One may take several frames.

use std::rc::Rc;

use bytes::{Buf, BytesMut};
use http::StatusCode;

use super::super::super::PresentTime;
use super::super::super::account::{Cost, Credit};
use super::super::super::frame::{
    END_HEADERS, END_STREAM, ErrorCode, Fault, FrameHead, FrameKind, PADDED, PRIORITY, SETTING_HEAD_BYTES,
    write_frame, write_setting,
};
use super::super::super::head::{Head, HeadBounds, HeadProblem, content_length};
use super::super::super::hpack::{CompressionError, UnwantedHead};
use super::super::super::stream::{HeadProgress, State, Stream, UnreadHead};
use super::super::{ArrivedRequest, Block, Core, LeavingProgress, RefusedHead, Role, Session};
use super::STREAM_BITS;

/// How many frames the fields of one head may take. More would be a way to keep us busy without ever sending
/// a head.
const BLOCK_FRAMES_MAX: u32 = 64;

fn unreadable(error: CompressionError) -> Fault {
    Fault::Connection(ErrorCode::COMPRESSION_ERROR, error.what())
}

impl Session {
    /// Accepts so many bytes of a head from now on, as HTTP/2 counts them, and so many headers. A peer that
    /// was told another size hears of it.
    pub fn limit_heads(&self, bytes: usize, headers: usize) {
        let mut core = self.0.borrow_mut();
        core.limits.headers = headers;
        if std::mem::replace(&mut core.limits.head_bytes, bytes) == bytes {
            return;
        }
        let mut setting = Vec::new();
        write_setting(SETTING_HEAD_BYTES, u32::try_from(bytes).unwrap_or(u32::MAX), &mut setting);
        write_frame(FrameKind::Settings, 0, 0, &setting, core.output.frames());
        core.wake_transport();
    }
}

impl Core {
    pub(super) fn headers(
        &mut self,
        head: FrameHead,
        mut payload: BytesMut,
        now: PresentTime<'_>,
    ) -> Result<Option<ArrivedRequest>, Fault> {
        if head.stream == 0 {
            return Err(Fault::protocol("HEADERS on no stream"));
        }
        // Its length is said first and it stands last, with the priority and the fields between.
        let padding = if head.has(PADDED) {
            usize::from(payload.try_get_u8().map_err(|_| Fault::size("HEADERS without their padding"))?)
        } else {
            0
        };
        let mut is_circular = false;
        if head.has(PRIORITY) {
            let on = payload.try_get_u32().map_err(|_| Fault::size("HEADERS without their priority"))?;
            payload.try_get_u8().map_err(|_| Fault::size("HEADERS without their priority"))?;
            // Noted and not refused at once: the fields have to be decoded first, or the tables of both ends
            // would part.
            is_circular = on & STREAM_BITS == head.stream;
        }
        let length = payload.len().checked_sub(padding);
        payload.truncate(length.ok_or(Fault::protocol("padding longer than its frame"))?);
        let block = Block {
            stream: head.stream,
            is_end: head.has(END_STREAM),
            is_circular,
            bytes: payload.len(),
            fields: payload,
            frames: 1,
            refused: None,
        };
        if head.has(END_HEADERS) {
            return self.whole_block(block, now);
        }
        // Kept for longer than this turn, so it must not hold on to the buffer of all.
        self.keep_part(Block { fields: BytesMut::from(&block.fields[..]), ..block }).map(|()| None)
    }

    pub(super) fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: PresentTime<'_>,
    ) -> Result<Option<ArrivedRequest>, Fault> {
        let Some(mut block) = self.block.take() else { return Ok(None) };
        block.frames += 1;
        self.charge(Cost::Frame(0), now)?;
        if block.frames > BLOCK_FRAMES_MAX {
            return Err(Fault::Connection(ErrorCode::ENHANCE_YOUR_CALM, "a head in too many parts"));
        }
        block.bytes += payload.len();
        block.fields.extend_from_slice(payload);
        if head.has(END_HEADERS) {
            return self.whole_block(block, now);
        }
        self.keep_part(block).map(|()| None)
    }

    /// The beginning of a head, of which more is to come.
    fn keep_part(&mut self, mut block: Block) -> Result<(), Fault> {
        if block.refused.is_none() && block.fields.len() > self.limits.head_bytes {
            block.refused = Some((HeadProblem::TooLarge, UnwantedHead::default()));
        }
        self.await_memory_for_part(&mut block);
        self.step_over_refused(&mut block)?;
        self.block = Some(block);
        // There is room, or nothing can be done about it: what is left of a refused head is little.
        let _ = self.memory.settle_large_heads(self.large_heads_held());
        let _ = self.memory.settle(self.held());
        Ok(())
    }

    /// A head whose last frame has come.
    pub(super) fn whole_block(
        &mut self,
        block: Block,
        now: PresentTime<'_>,
    ) -> Result<Option<ArrivedRequest>, Fault> {
        let is_request = self.role == Role::Server && block.stream > self.last_stream;
        if !is_request {
            return self.fields(block, now);
        }
        match self.await_memory(block) {
            Some(block) => self.fields(block, now),
            None => Ok(None),
        }
    }

    /// Steps over what is here of a head of which nothing is kept.
    fn step_over_refused(&mut self, block: &mut Block) -> Result<(), Fault> {
        if let Some((_, unwanted)) = &mut block.refused {
            let done = self.decoder.step_over_part(unwanted, &block.fields).map_err(unreadable)?;
            // What is left moves to the beginning of a buffer of its size.
            block.fields = BytesMut::from(&block.fields[done..]);
        }
        Ok(())
    }

    /// Reads all fields into a head that has none. Whatever becomes of the head, also on streams that are
    /// closed or refused: the compression has a state that all heads of the connection share.
    fn decode(&mut self, block: &mut Block, head: &mut Head) -> Result<(), Fault> {
        self.step_over_refused(block)?;
        if let Some((problem, unwanted)) = block.refused.take() {
            let is_whole = block.fields.is_empty() && unwanted.is_whole();
            if !is_whole {
                return Err(unreadable(CompressionError::Truncated));
            }
            *head = Head::refused(problem);
            return Ok(());
        }
        let bounds = HeadBounds { bytes: self.limits.head_bytes, headers: self.limits.headers };
        let read = self.decoder.decode(&block.fields, |field, bytes| head.take(field, bytes, bounds));
        read.map_err(unreadable)
    }

    /// Reads a head that has come whole and hands it to its stream, or opens one for a request.
    fn fields(&mut self, mut block: Block, now: PresentTime<'_>) -> Result<Option<ArrivedRequest>, Fault> {
        // Filled in its place: it is large.
        let mut head = Head::default();
        self.decode(&mut block, &mut head)?;
        let block = &block;
        let id = block.stream;
        let is_request = self.role == Role::Server && id > self.last_stream;
        if is_request && head.is_too_large() {
            self.pay_for_oversize_head(Cost::UselessHead(block.bytes), now);
        } else if head.is_useless() {
            self.charge(Cost::UselessHead(block.bytes), now)?;
        }
        if let Some(stream) = self.streams.find(id).cloned() {
            // Until the response has come, each head that a client gets is that or an interim one; the next
            // after it is trailers.
            let is_response =
                self.role == Role::Client && stream.state.borrow().receiving.head < HeadProgress::Here;
            let memory = head.memory();
            let taken = if is_response {
                Self::response(&mut stream.state.borrow_mut(), &mut head, block.is_end)
            } else {
                Self::trailers(&mut stream.state.borrow_mut(), &mut head, block.is_end)
            };
            taken.map_err(|code| Fault::Stream(id, code))?;
            let is_interim = is_response && stream.state.borrow().receiving.head < HeadProgress::Here;
            if memory > 0 && !is_interim {
                let part = if is_response { UnreadHead::Response } else { UnreadHead::Trailers };
                self.keep_head(&stream, part, memory);
            }
            self.forget_if_over(&stream);
            if is_interim {
                // An interim one, of which there may be any number.
                self.charge(Cost::UselessHead(block.bytes), now)?;
            } else {
                self.account.earn(Credit::Head);
            }
            return Ok(None);
        }
        match self.role {
            Role::Server if !id.is_multiple_of(2) && id > self.last_stream => self.request(block, &mut head),
            Role::Server if self.is_idle(id) => {
                Err(Fault::protocol("a request on a stream with an even number"))
            }
            Role::Server if self.broken.contains(id) => {
                self.charge(Cost::UselessHead(block.bytes), now).map(|()| None)
            }
            Role::Server => Err(Fault::Connection(ErrorCode::STREAM_CLOSED, "HEADERS on a closed stream")),
            Role::Client => self.frame_without_stream(id).map(|()| None),
        }
    }

    fn request(&mut self, block: &Block, head: &mut Head) -> Result<Option<ArrivedRequest>, Fault> {
        let id = block.stream;
        if self.leaving == LeavingProgress::Final {
            // The peer was told that it is not served; it sends it elsewhere.
            return Ok(None);
        }
        // Before the stream may be refused: a number that was used is used, and the next one must be higher.
        self.last_stream = id;
        if self.streams.len() >= self.limits.streams as usize {
            return Err(Fault::Stream(id, ErrorCode::REFUSED_STREAM));
        }
        if block.is_circular {
            return Err(Fault::Stream(id, ErrorCode::PROTOCOL_ERROR));
        }
        let malformed = Fault::Stream(id, ErrorCode::PROTOCOL_ERROR);
        let (memory, head_bytes) = (head.memory(), head.bytes());
        let request = match head.take_request() {
            // Counted before there is a stream: what is open goes on, and this one is refused.
            Ok(_) if memory > 0 && self.settle_head(memory).is_err() => {
                self.count_refused_head()?;
                Err(RefusedHead::NoMemory)
            }
            Ok(request) => Ok(request),
            // It gets a stream all the same, because it gets an answer that says what is wrong, and not only
            // a reset.
            Err(HeadProblem::TooLarge) => Err(RefusedHead::TooLarge),
            // An activator would take a reset for a pod that takes nothing, and have other requests wait.
            Err(HeadProblem::NoMemory) if self.account.is_shared() => {
                self.count_refused_head()?;
                Err(RefusedHead::NoMemory)
            }
            Err(HeadProblem::NoMemory) => return self.refuse_for_memory(id).map(|()| None),
            Err(HeadProblem::Target(problem, method)) => Err(RefusedHead::Target { problem, method }),
            Err(HeadProblem::Malformed) => return Err(malformed),
        };
        let stream = Rc::new(Stream::new(id, self.stream_window, self.peer.stream_window));
        stream.head_bytes.set(if request.is_ok() { memory } else { 0 });
        {
            let mut state = stream.state.borrow_mut();
            state.receiving.head = HeadProgress::Here;
            state.receiving.is_ended = block.is_end;
            if let Ok(request) = &request {
                state.receiving.length_left = content_length(request.fields()).map_err(|_| malformed)?;
            }
            // The same rule as for each piece of DATA, for the body that has none.
            if block.is_end && state.receiving.length_left.is_some_and(|left| left > 0) {
                return Err(malformed);
            }
        }
        self.streams.open(Rc::clone(&stream));
        if request.is_ok() {
            self.shortage.note_accepted(memory);
            self.oversize.note_read();
            self.account.earn(Credit::Head);
        }
        Ok(Some(ArrivedRequest { stream, request, head_bytes }))
    }

    fn response(state: &mut State, head: &mut Head, is_end: bool) -> Result<(), ErrorCode> {
        let response = head.take_response().map_err(|_| ErrorCode::PROTOCOL_ERROR)?;
        // Set before the status is looked at: even a response that is refused shows that the peer has begun.
        state.receiving.head = HeadProgress::Interim;
        if response.status().is_informational() {
            // Clients get the interim responses of our server only; a switch of protocols does not exist
            // here.
            let is_legal = !is_end && response.status() != StatusCode::SWITCHING_PROTOCOLS;
            return if is_legal { Ok(()) } else { Err(ErrorCode::PROTOCOL_ERROR) };
        }
        let is_bodiless_status =
            matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        state.is_bodiless |= is_bodiless_status;
        if !state.is_bodiless {
            state.receiving.length_left =
                content_length(response.fields()).map_err(|_| ErrorCode::PROTOCOL_ERROR)?;
            if is_end && state.receiving.length_left.is_some_and(|left| left > 0) {
                return Err(ErrorCode::PROTOCOL_ERROR);
            }
        }
        state.receiving.head = HeadProgress::Here;
        state.response = Some(response);
        state.receiving.is_ended = is_end;
        state.receiving.waiting.wake();
        Ok(())
    }

    fn trailers(state: &mut State, head: &mut Head, is_end: bool) -> Result<(), ErrorCode> {
        if state.receiving.is_ended {
            return Err(ErrorCode::STREAM_CLOSED);
        }
        // Trailers end a stream. A second head in the middle of a body would be a message within a message.
        let is_whole = is_end && state.receiving.length_left.is_none_or(|left| left == 0);
        let trailers = head.take_trailers().ok().filter(|_| is_whole).ok_or(ErrorCode::PROTOCOL_ERROR)?;
        if !trailers.is_empty() {
            state.receiving.trailers = Some(trailers);
        }
        state.receiving.is_ended = true;
        state.receiving.waiting.wake();
        Ok(())
    }
}
