//! What `sync` is in the crates whose files are tried here, of loom.

use std::task::Waker;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Loom's takes its wakers as they are, the other one by reference.
#[derive(Debug, Default)]
pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

impl AtomicWaker {
    pub(crate) fn register(&self, waker: &Waker) {
        self.0.register_by_ref(waker);
    }

    pub(crate) fn wake(&self) {
        self.0.wake();
    }
}
