//! What all threads share in limited amount: places for waiting requests, bytes for bodies that may have to
//! be sent again. Tried in every order by `tests/loom`.

use crate::sync::{AtomicUsize, Ordering};

/// A limit that all threads share: the sum of what they take does not exceed it.
pub(crate) struct Quota {
    limit: usize,
    taken: AtomicUsize,
}

impl Quota {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0) }
    }

    /// Takes `amount`, which the caller gives back later. Returns `false`, and takes nothing, if less is
    /// left.
    pub(crate) fn take(&self, amount: usize) -> bool {
        // No other memory is handed over with it, so only the number must be right.
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            taken.checked_add(amount).filter(|sum| *sum <= self.limit)
        });
        taken.is_ok()
    }

    pub(crate) fn give_back(&self, amount: usize) {
        self.taken.fetch_sub(amount, Ordering::Relaxed);
    }
}
