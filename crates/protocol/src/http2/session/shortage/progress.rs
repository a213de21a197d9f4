//! How far a connection is in a shortage of memory for heads.

use super::super::block::Block;

/// How a connection gets by without memory for further heads.
#[derive(Debug, Default)]
pub(in crate::http2::session) struct Shortage {
    pub(super) progress: ShortageProgress,
    /// A whole head that waits for the end of the pause.
    pub(super) held_back: Option<Block>,
    /// How many streams were refused since the last head was served.
    pub(super) refusals: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ShortageProgress {
    #[default]
    Relieved,
    Pausing,
    Waited,
}

impl Shortage {
    /// Whether nothing more is to be looked at for now.
    pub(in crate::http2::session) fn wants_pause(&self) -> bool {
        self.progress == ShortageProgress::Pausing
    }

    /// Whether a whole head waits.
    pub(in crate::http2::session) fn holds_back(&self) -> bool {
        self.held_back.is_some()
    }

    /// The head that waited for the end of the pause.
    pub(in crate::http2::session) fn take_held_back(&mut self) -> Option<Block> {
        self.held_back.take()
    }

    /// A head that takes so much memory was served.
    pub(in crate::http2::session) fn note_accepted(&mut self, memory: usize) {
        if memory > 0 {
            self.progress = ShortageProgress::Relieved;
            self.refusals = 0;
        }
    }
}
