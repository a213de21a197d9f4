//! What becomes of a client whose heads are larger than they may be?
//!
//! Each of these requests is answered, and its connection goes on: the requests of one page all carry the
//! same cookies, and others may share the connection. But reading a head takes time in proportion to its
//! bytes, so it takes from the credit of its sender. After each few that find too little, their connection
//! pauses for [`MEMORY_PAUSE`](super::super::memory::MEMORY_PAUSE), in which time gives some credit back. A
//! thousand in a row, without one that is served, end the connection. One of our own hops passes on what many
//! clients send: it pays nothing, and its connection neither pauses nor ends.

mod row;

use super::super::PresentTime;
use super::super::account::Cost;
use super::{Core, Session};

pub(super) use row::OversizeHeads;

impl Session {
    /// A request that came is refused because its head, of so many bytes, is larger than its sender may send.
    /// To be called before anything more is handed in.
    pub fn note_oversize_head(&self, bytes: usize, now: PresentTime<'_>) {
        let mut core = self.0.borrow_mut();
        core.oversize.take_back_read();
        core.pay_for_oversize_head(Cost::OversizeHead(bytes), now);
    }
}

impl Core {
    /// Counts a request that is refused for the size of its head, and takes what reading it costs.
    pub(super) fn pay_for_oversize_head(&mut self, cost: Cost, now: PresentTime<'_>) {
        if !self.account.is_shared() {
            let payment = self.account.pay(cost, now);
            self.oversize.note_refused(payment);
        }
    }
}
