//! How much of the process's memory one connection holds: the head of its present request, and what was read
//! of the body and has not gone on.

use protocol::http2::{OverShare, large_head_memory};

use super::ServerWire;
use crate::http1::READ_BYTES;

/// How much of a body is read at once while the process has little memory left for unread bytes. Of its first
/// bytes a connection need not give account (16 KiB), so this always goes on.
const SCARCE_READ_BYTES: usize = 8 * 1024;

impl ServerWire {
    /// Accounts for `bytes` of the present body, which were read and have not gone on.
    pub(super) fn hold(&self, bytes: usize) {
        // One that is over its share has nothing to break off, as HTTP/2 has; what it reads next is small, as
        // long as that is so.
        let _ = self.held.borrow_mut().settle(self.head_bytes.get() + bytes);
    }

    /// A head takes so much memory, for as long as its request lasts.
    pub(in crate::server::http1) fn hold_head(&self, bytes: usize) -> Result<(), OverShare> {
        let mut held = self.held.borrow_mut();
        held.settle_large_heads(large_head_memory(bytes))?;
        held.settle(bytes).inspect_err(|OverShare| {
            // It is no more than was held a moment ago.
            let _ = held.settle_large_heads(large_head_memory(self.head_bytes.get()));
        })?;
        self.head_bytes.set(bytes);
        Ok(())
    }

    /// The head of the answer takes so much memory beside that of the request, until it is out.
    pub(in crate::server::http1) fn hold_answer(&self, bytes: usize) -> Result<(), OverShare> {
        self.hold_head(self.head_bytes.get() + bytes)
    }

    /// The request is over, and with it its head.
    pub(in crate::server::http1) fn let_go_of_head(&self) {
        if self.head_bytes.take() > 0 {
            // To hold nothing is always allowed.
            let _ = self.held.borrow_mut().settle_large_heads(0);
            self.hold(0);
        }
    }

    /// How much of a body is read at once. What is not read fills the kernel's buffers, and then the client
    /// waits.
    pub(super) fn body_read_bytes(&self) -> usize {
        if self.memory.has_room_for(READ_BYTES) { READ_BYTES } else { SCARCE_READ_BYTES }
    }
}
