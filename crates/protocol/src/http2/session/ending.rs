//! How a connection ends: it is left politely, refused for a fault, or gone.

use super::super::frame::{ErrorCode, FrameKind, write_frame};
use super::super::stream::StreamError;
use super::{Core, LeavingProgress, Role, STREAM_MAX, Session};

/// The payload of the PING whose answer shows that the peer has read our GOAWAY.
pub(super) const LEAVING_PING: [u8; 8] = *b"leaving?";

impl Session {
    /// Tells the peer that we leave: it is to open no further stream, but those that it opened before it knew
    /// are served.
    pub fn leave(&self) {
        let mut core = self.0.borrow_mut();
        if core.leaving == LeavingProgress::No {
            core.leaving = LeavingProgress::Told;
            // With the highest number there is, this refuses nothing yet: requests that are on their way to
            // us now are served. The real last number follows when the ping has come back (RFC 9113 §6.8).
            core.write_go_away(STREAM_MAX, ErrorCode::NO_ERROR);
            write_frame(FrameKind::Ping, 0, 0, &LEAVING_PING, core.output.frames());
        }
    }

    /// Opens and serves no stream but those that exist; the connection ends with the last of them.
    pub fn leave_now(&self) {
        self.0.borrow_mut().leave_now();
    }

    /// Whether there is anything to do, be it for a head that has only begun.
    pub fn has_streams(&self) -> bool {
        let core = self.0.borrow();
        !core.streams.is_empty() || core.block.is_some() || core.shortage.holds_back()
    }

    /// Whether one end has left and no stream is left.
    pub fn is_finished(&self) -> bool {
        let core = self.0.borrow();
        // The output counts as well: the last frame of the last stream is still to be written.
        let is_left = core.leaving == LeavingProgress::Final || core.is_peer_leaving;
        core.streams.is_empty() && is_left && core.output.len() == 0
    }

    /// The connection is gone; so are its streams. What was never written was certainly not begun.
    pub fn close(&self) {
        let mut core = self.0.borrow_mut();
        core.is_closed = true;
        core.greeting.wake();
        let last_written = core.last_written;
        for stream in core.streams.take_above(0) {
            // The head of a stream above the last written one is in our own buffer to its last byte, so it
            // may be sent elsewhere.
            let is_unsent = core.role == Role::Client && stream.id > last_written;
            let error = if is_unsent { StreamError::Unsent } else { StreamError::Closed };
            stream.state.borrow_mut().fail(error);
        }
        // The queue would keep the streams for as long as a handle holds the session.
        core.blocked.clear();
        core.output.clear();
    }

    /// Ends a connection whose peer broke the protocol, and tells it why.
    pub fn refuse(&self, why: ErrorCode) {
        let mut core = self.0.borrow_mut();
        core.is_closed = true;
        core.greeting.wake();
        for stream in core.streams.take_above(0) {
            stream.state.borrow_mut().fail(StreamError::Closed);
        }
        let last = core.last_of_peer();
        core.write_go_away(last, why);
    }
}

impl Core {
    pub(super) fn leave_now(&mut self) {
        if self.leaving != LeavingProgress::Final {
            self.leaving = LeavingProgress::Final;
            self.write_go_away(self.last_of_peer(), ErrorCode::NO_ERROR);
        }
    }

    /// The last stream that the peer opened.
    fn last_of_peer(&self) -> u32 {
        match self.role {
            Role::Server => self.last_stream,
            Role::Client => 0,
        }
    }

    fn write_go_away(&mut self, last_stream: u32, code: ErrorCode) {
        let payload = (u64::from(last_stream) << 32 | u64::from(code.0)).to_be_bytes();
        write_frame(FrameKind::GoAway, 0, 0, &payload, self.output.frames());
        self.wake_transport();
    }
}
