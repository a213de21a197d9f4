//! How many heads in a row were larger than they might be, and does their connection pause?

use super::super::super::account::Payment;
use super::super::super::frame::{ErrorCode, Fault};

/// How many heads in a row that are larger than they may be end their connection.
const HEADS_MAX: u32 = 1_000;

/// How many heads that find too little credit are read until their connection pauses once more: with
/// [`MEMORY_PAUSE`](super::super::super::memory::MEMORY_PAUSE) that makes 16 in a second.
const SHORT_PER_PAUSE: u32 = 4;

/// The heads of one connection that were larger than they might be.
#[derive(Debug, Default)]
pub(in crate::http2::session) struct OversizeHeads {
    /// Those since the last head that was served.
    in_a_row: u32,
    /// The same before the last head that was read as one to serve: a service may still find that too large.
    in_a_row_before: u32,
    /// Those that found too little credit since the last pause.
    short: u32,
}

impl OversizeHeads {
    /// A request is to be served, unless its service finds its head too large.
    pub(in crate::http2::session) fn note_read(&mut self) {
        self.in_a_row_before = std::mem::take(&mut self.in_a_row);
    }

    /// The service has found the last head that was read too large, so that head ends no row.
    pub(super) fn take_back_read(&mut self) {
        self.in_a_row = self.in_a_row_before;
    }

    /// A request was refused for the size of its head, and its sender had so much credit for that.
    pub(super) fn note_refused(&mut self, payment: Payment) {
        self.in_a_row += 1;
        self.short += u32::from(payment == Payment::Partial);
    }

    /// Whether nothing more is to be looked at for now.
    pub(in crate::http2::session) fn wants_pause(&self) -> bool {
        self.short >= SHORT_PER_PAUSE
    }

    /// The pause is over, or there was none.
    pub(in crate::http2::session) fn end_pause(&mut self) {
        if self.wants_pause() {
            self.short = 0;
        }
    }

    /// A fault once a peer has gone on for too long.
    pub(in crate::http2::session) fn check(&self) -> Result<(), Fault> {
        if self.in_a_row < HEADS_MAX {
            return Ok(());
        }
        let what = "heads that are larger than they may be, again and again";
        Err(Fault::Connection(ErrorCode::ENHANCE_YOUR_CALM, what))
    }
}
