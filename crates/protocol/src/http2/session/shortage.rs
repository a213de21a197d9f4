//! What becomes of the head of a request for which there is no memory?
//!
//! Its connection is not read for a while: the heads that the connection holds may be gone by then. If they
//! are not, only the stream is refused: before its head is read with `REFUSED_STREAM`, which tells the client
//! that it may send it again, and with an answer where only reading it has shown how large it is. A peer that
//! goes on all the same loses the connection. One of our own hops neither pauses nor loses it, because it
//! passes on what many clients send: there the stream gets an answer at once.
//!
//! ```text
//!     Relieved --no memory for a head--> Pausing --`Session::resume`--> Waited
//!     Waited --no memory for a head--> that stream is refused, and after some of these: Relieved
//!     Waited --a head that counts is served--> Relieved
//! ```

mod progress;

use super::super::frame::{ErrorCode, Fault};
use super::super::head::HeadProblem;
use super::super::hpack::UnwantedHead;
use super::super::memory::large_head_memory;
use super::block::Block;
use super::{Core, Session};
use progress::ShortageProgress;

pub(super) use progress::Shortage;

/// How many streams in a row are refused for want of memory before their connection ends.
const REFUSALS_MAX: u32 = 1_000;

/// How many streams are refused until the connection pauses once more. A peer that sends such heads as fast
/// as they are refused would keep the thread from the connections of others.
const REFUSALS_PER_PAUSE: u32 = 16;

/// The fields of a head that take no more than this need no memory that counts.
const SMALL_BLOCK_BYTES: usize = 512;

/// The estimate of memory that a head takes beside twice the length of its fields, in bytes.
const PER_HEAD_BYTES: usize = 4 * 1024;

impl Session {
    /// Whether there is memory again for what waits. A pause that another reason asked for takes its time.
    pub fn has_memory_again(&self) -> bool {
        let core = self.0.borrow();
        if core.oversize.wants_pause() {
            return false;
        }
        match &core.shortage.held_back {
            Some(block) => core.has_memory_for(block),
            None => core.block.as_ref().is_none_or(|block| core.has_memory_for(block)),
        }
    }

    /// The pause is over: what waits is read, or refused.
    pub fn resume(&self) {
        let mut core = self.0.borrow_mut();
        core.oversize.end_pause();
        if core.shortage.wants_pause() {
            core.shortage.progress = ShortageProgress::Waited;
        }
    }
}

impl Core {
    fn has_memory_for(&self, block: &Block) -> bool {
        let bytes = block.fields.len();
        if bytes <= SMALL_BLOCK_BYTES {
            return true;
        }
        let memory = 2 * bytes + PER_HEAD_BYTES;
        self.memory.has_room(self.held() + memory)
            && self.memory.has_room_for_large_heads(self.large_heads_held() + large_head_memory(memory))
    }

    /// A connection that many share does not pause: those whose heads are small would wait with the others.
    fn shortage_progress(&self) -> ShortageProgress {
        if self.account.is_shared() { ShortageProgress::Waited } else { self.shortage.progress }
    }

    /// A whole head, if it is to be read now, in full or for the table's sake.
    pub(super) fn await_memory(&mut self, mut block: Block) -> Option<Block> {
        if block.refused.is_some() || self.has_memory_for(&block) {
            return Some(block);
        }
        match self.shortage_progress() {
            ShortageProgress::Relieved | ShortageProgress::Pausing => {
                self.shortage.progress = ShortageProgress::Pausing;
                // It may lie in the buffer of all.
                block.fields = bytes::BytesMut::from(&block.fields[..]);
                self.shortage.held_back = Some(block);
                None
            }
            ShortageProgress::Waited => {
                block.refused = Some((HeadProblem::NoMemory, UnwantedHead::default()));
                Some(block)
            }
        }
    }

    /// Like [`Self::await_memory`], for the beginning of a head: its connection pauses behind it, or it is
    /// refused from here on.
    pub(super) fn await_memory_for_part(&mut self, block: &mut Block) {
        if block.refused.is_some() || self.has_memory_for(block) {
            return;
        }
        match self.shortage_progress() {
            ShortageProgress::Relieved => self.shortage.progress = ShortageProgress::Pausing,
            ShortageProgress::Pausing => {}
            ShortageProgress::Waited => {
                block.refused = Some((HeadProblem::NoMemory, UnwantedHead::default()));
            }
        }
    }

    /// Refuses a stream whose head was not read.
    pub(super) fn refuse_for_memory(&mut self, id: u32) -> Result<(), Fault> {
        self.count_refused_head()?;
        self.break_off(id, ErrorCode::REFUSED_STREAM);
        Ok(())
    }

    pub(super) fn count_refused_head(&mut self) -> Result<(), Fault> {
        self.memory.count_refusal();
        self.shortage.refusals += 1;
        if self.shortage.refusals.is_multiple_of(REFUSALS_PER_PAUSE) {
            self.shortage.progress = ShortageProgress::Relieved;
        }
        if self.shortage.refusals < REFUSALS_MAX || self.account.is_shared() {
            return Ok(());
        }
        let what = "heads for which there is no memory, again and again";
        Err(Fault::Connection(ErrorCode::ENHANCE_YOUR_CALM, what))
    }
}
