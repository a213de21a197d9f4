//! How many streams may we break off before the peer has heard of it?
//!
//! When a client's connection ends, all its requests are broken off at once, on connections to an app that
//! other clients share. Servers take many resets in a moment for an attack and end the connection, with
//! all clients' streams on it (since 2023 most of them do; hyper from 20 streams on that its service has not
//! seen yet). So only a few are said until a ping behind them has come back, which shows that the peer has
//! looked at them; the rest wait for that. Its streams count as open until then, so a peer that answers no
//! pings gets no more requests on the connection than it has streams.

mod broken_streams;

use super::super::frame::{ErrorCode, FrameKind, write_frame};
use super::{Core, Role};

pub(super) use broken_streams::BrokenStreams;

/// The payload of the PING whose answer shows that the peer has read the resets before it.
pub(super) const RESETS_PING: [u8; 8] = *b"resets?\0";

/// How many resets are sent before a PING asks for an answer: few requests are broken off one by one, and
/// those cost no PING.
const RESETS_PER_PING: u32 = 8;

/// How many resets may be unacknowledged: less than the 20 of hyper, the strictest limit that we know of.
const UNACKNOWLEDGED_MAX: u32 = 16;

impl Core {
    /// Tells the peer that a stream is broken off, now or when it has heard of those before.
    pub(super) fn send_or_hold_reset(&mut self, id: u32, code: ErrorCode) {
        self.broken.remember(id);
        match self.role {
            // Each client has a connection of its own, and its own streams are all that it can lose.
            Role::Server => self.write_reset(id, code),
            Role::Client => {
                self.broken.held.push_back((id, code));
                self.send_held_resets();
            }
        }
    }

    /// The peer has heard of all resets before the ping that came back.
    pub(super) fn on_resets_acknowledged(&mut self) {
        // Those that were said behind the ping are not among them, and stay unacknowledged.
        self.broken.unacknowledged -= std::mem::take(&mut self.broken.asked);
        self.send_held_resets();
    }

    fn send_held_resets(&mut self) {
        while self.broken.unacknowledged < UNACKNOWLEDGED_MAX
            && let Some((id, code)) = self.broken.held.pop_front()
        {
            self.write_reset(id, code);
            self.broken.unacknowledged += 1;
        }
        // One ping at a time: its answer must mean the resets before it and no others.
        if self.broken.unacknowledged >= RESETS_PER_PING && self.broken.asked == 0 {
            self.broken.asked = self.broken.unacknowledged;
            write_frame(FrameKind::Ping, 0, 0, &RESETS_PING, self.output.frames());
            self.wake_transport();
        }
    }

    fn write_reset(&mut self, id: u32, code: ErrorCode) {
        write_frame(FrameKind::Reset, 0, id, &code.0.to_be_bytes(), self.output.frames());
        self.wake_transport();
    }
}
