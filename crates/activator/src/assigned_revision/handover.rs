//! How does a slot come from the request that frees it to the request that waits for it, perhaps on another
//! thread?
//!
//! Both hold the revision's lock when they are here. But a request looks for what it was handed without the
//! lock, and may leave in that instant: what lies there unseen goes back. Every order of this is tried by
//! `tests/loom`.

use std::collections::BTreeMap;

use throttling::{Dispatch, Throttler, Ticket};
use vocabulary::Timestamp;

/// The end of a waiting request that the queue keeps, to hand it a slot.
pub(crate) trait Waiter {
    /// Its turn has come. Fails if it is not there any more.
    fn hand(self, dispatch: Dispatch) -> Result<(), Dispatch>;
}

/// Hands out what can be handed out.
pub(crate) fn hand_out<W: Waiter>(
    throttler: &mut Throttler,
    waiters: &mut BTreeMap<Ticket, W>,
    now: Timestamp,
) {
    while let Some(dispatch) = throttler.next_dispatch(now) {
        let taken = waiters.remove(&dispatch.ticket).map(|waiter| waiter.hand(dispatch));
        if !matches!(taken, Some(Ok(()))) {
            // Its request has gone in this instant.
            throttler.finish(dispatch.pod);
        }
    }
}

/// A request leaves the queue; `late` is what it was handed and did not see. Returns whether that freed a
/// slot, which is then to be handed out.
pub(crate) fn leave<W>(
    throttler: &mut Throttler,
    waiters: &mut BTreeMap<Ticket, W>,
    ticket: Ticket,
    late: Option<Dispatch>,
) -> bool {
    waiters.remove(&ticket);
    throttler.abandon(ticket);
    if let Some(dispatch) = &late {
        throttler.finish(dispatch.pod);
    }
    late.is_some()
}
