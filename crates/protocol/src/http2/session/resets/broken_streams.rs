//! Which streams were broken off, and which of them the peer does not yet know of.

use std::collections::VecDeque;

use super::super::super::frame::ErrorCode;

/// How many streams that we broke off are remembered: their peers may have sent more before they knew.
const RESETS_REMEMBERED: usize = 256;

/// The streams that were broken off.
#[derive(Debug, Default)]
pub(in crate::http2::session) struct BrokenStreams {
    /// The last streams that were broken off: the peer may have sent more on them before it knew.
    remembered: VecDeque<u32>,
    /// The streams whose reset is still to be sent, in order.
    pub(super) held: VecDeque<(u32, ErrorCode)>,
    /// How many resets were sent and are not yet acknowledged.
    pub(super) unacknowledged: u32,
    /// How many of these stand before the PING that is under way.
    pub(super) asked: u32,
}

impl BrokenStreams {
    /// Whether a stream is one of the last that were broken off.
    pub(in crate::http2::session) fn contains(&self, id: u32) -> bool {
        self.remembered.contains(&id)
    }

    /// How many streams the peer holds for open that we have broken off.
    pub(in crate::http2::session) fn held(&self) -> usize {
        self.held.len()
    }

    pub(super) fn remember(&mut self, id: u32) {
        if self.remembered.len() == RESETS_REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(id);
    }
}
