//! A timer of the runtime that outlives the request it was made for.
//!
//! To make one, to put it into the runtime's wheel and to take it out again costs more than all else that a
//! request does about time, while one that is in the wheel moves to a later point for next to nothing. So
//! those that no task needs are kept for the next request. One that fires meanwhile wakes the task that used
//! it last, which finds that nothing has happened.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};
use vocabulary::Timestamp;

/// How many are kept. Requests end and begin in turns, so that a few serve many.
const SPARE_MAX: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<(Id, Pin<Box<Sleep>>)>> = const { RefCell::new(Vec::new()) };
}

/// A timer that is set.
#[derive(Debug)]
pub(super) struct Alarm {
    at: Timestamp,
    /// To which it belongs. A thread may have had another one before, whose timers never fire again.
    runtime: Id,
    /// `None` once it is dropped.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Sets one to `at`, which is `instant` on the runtime's axis.
    pub(super) fn set(at: Timestamp, instant: Instant) -> Self {
        let runtime = Handle::current().id();
        let sleep = match SPARE.with_borrow_mut(Vec::pop) {
            Some((known, mut spare)) if known == runtime => {
                spare.as_mut().reset(instant);
                spare
            }
            Some(_) | None => Box::pin(tokio::time::sleep_until(instant)),
        };
        Self { at, runtime, sleep: Some(sleep) }
    }

    /// To when it is set.
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// Sets it to another point.
    pub(super) fn move_to(&mut self, at: Timestamp, instant: Instant) {
        self.at = at;
        if let Some(sleep) = &mut self.sleep {
            sleep.as_mut().reset(instant);
        }
    }

    /// Ready once it has fired.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(context))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let Some(sleep) = self.sleep.take() else { return };
        // The thread may be about to end, and have no spares any more.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push((self.runtime, sleep));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use runtime::Clock;

    use super::*;

    fn set(clock: Clock, after: u64) -> Alarm {
        let at = clock.now() + Duration::from_secs(after);
        Alarm::set(at, clock.instant(at))
    }

    async fn fire(clock: Clock, mut alarm: Alarm) -> u64 {
        let before = clock.now();
        poll_fn(|context| alarm.poll(context)).await;
        clock.now().saturating_since(before).as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_used_before_fires_when_it_is_set_to() {
        let clock = Clock::start();
        for (used, after) in [(5, 9), (9, 5), (0, 3)] {
            let mut before = set(clock, used);
            let _ = poll_fn(|context| Poll::Ready(before.poll(context))).await;
            drop(before);
            assert_eq!(SPARE.with_borrow(Vec::len), 1);
            assert_eq!(fire(clock, set(clock, after)).await, after, "after {used}");
        }
    }

    #[test]
    fn one_of_a_runtime_that_is_gone_is_not_used_again() {
        for _ in 0..2 {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().start_paused(true).build().expect("a runtime");
            runtime.block_on(async {
                let clock = Clock::start();
                assert_eq!(fire(clock, set(clock, 2)).await, 2);
            });
        }
    }
}
