//! Does something stand half on a connection, so that nothing else can come on it?
//!
//! Between the parts of a head, and within a frame, nothing of another stream may stand (RFC 9113 §6.10). How
//! long that may last is not decided here: there is no clock.

use super::Session;

/// The kind of input that has come in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfinishedInput {
    /// A head, or a frame that is no DATA, with a number that tells it from the one before.
    Head(u32),
    /// A DATA frame. Each further byte is some of a body.
    Data,
}

impl Session {
    /// The input that has come in part, if there is any.
    pub fn unfinished(&self) -> Option<UnfinishedInput> {
        let core = self.0.borrow();
        if core.input.is_within_data() {
            return Some(UnfinishedInput::Data);
        }
        let is_half = core.block.is_some() || core.input.is_within_frame();
        is_half.then_some(UnfinishedInput::Head(core.frames))
    }
}
