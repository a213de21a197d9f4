//! How often an app is asked that refuses a request (`REFUSED_STREAM` of HTTP/2), and how long between.
//!
//! It says that it has not begun, so the request may be sent again; but an app that has just refused it is likely to do the same at once, and one that always
//! does must not be asked for ever. A request of an activator goes back there: another pod may take it, and it is paced there.

use std::cell::Cell;
use std::time::Duration;

use runtime::{Backoff, Clock};

/// As often as an app is asked. With the waits between, it has about 5 s to come to itself.
const ATTEMPTS_MAX: u32 = 12;

const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What is left of the patience with one request.
pub(super) struct Patience<'a> {
    backoff: Backoff,
    /// Whoever tells the client what happened reads it, also when a timer ended the waiting.
    refusals: &'a Cell<u32>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(refusals: &'a Cell<u32>) -> Self {
        Self { backoff: Backoff::new(WAIT_MIN, WAIT_MAX), refusals }
    }

    /// The app refused the request. Waits until it may be asked again; `false` if it may not.
    pub(super) async fn wait(&mut self, clock: Clock) -> bool {
        self.refusals.set(self.refusals.get() + 1);
        if self.refusals.get() >= ATTEMPTS_MAX {
            return false;
        }
        clock.sleep_until(clock.now() + self.backoff.next_wait()).await;
        true
    }
}
