//! A timer of the runtime that outlives the request it was made for.
//!
//! To make one, to put it into the runtime's wheel and to take it out again costs more than all else that a
//! request does about time. So those that no task needs are kept for the next request, and stay where they
//! are in the wheel: one that is due before its request is moves only when it fires, which is seldom, for
//! requests end far sooner than they may. One that fires meanwhile wakes the task that used it last, which
//! finds that nothing has happened.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};

/// How many are kept. Requests end and begin in turns, so that a few serve many.
const SPARE_MAX: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<(Id, Pin<Box<Sleep>>)>> = const { RefCell::new(Vec::new()) };
}

/// A timer that is set.
#[derive(Debug)]
pub(super) struct Alarm {
    /// To which it belongs. A thread may have had another one before, whose timers never fire again.
    runtime: Id,
    /// `None` once it is dropped.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// One that fires at this point or before it, as [`Alarm::at`] says.
    pub(super) fn set(at: Instant) -> Self {
        let runtime = Handle::current().id();
        let sleep = match SPARE.with_borrow_mut(Vec::pop) {
            Some((known, mut spare)) if known == runtime => {
                if spare.deadline() > at {
                    spare.as_mut().reset(at);
                }
                spare
            }
            Some(_) | None => Box::pin(tokio::time::sleep_until(at)),
        };
        Self { runtime, sleep: Some(sleep) }
    }

    /// To when it is set; `None` once it is dropped.
    pub(super) fn at(&self) -> Option<Instant> {
        self.sleep.as_ref().map(|sleep| sleep.deadline())
    }

    /// Sets it to another point.
    pub(super) fn move_to(&mut self, at: Instant) {
        if let Some(sleep) = &mut self.sleep {
            sleep.as_mut().reset(at);
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
        Alarm::set(clock.instant(clock.now() + Duration::from_secs(after)))
    }

    /// Waits as its users do: one that fires before its time is set again. Says how many seconds that took.
    async fn fire(clock: Clock, after: u64) -> u64 {
        let before = clock.now();
        let at = clock.instant(before + Duration::from_secs(after));
        let mut alarm = Alarm::set(at);
        while alarm.at().is_some_and(|due| due < at) {
            poll_fn(|context| alarm.poll(context)).await;
            alarm.move_to(at);
        }
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
            assert_eq!(fire(clock, after).await, after, "after {used}");
        }
    }

    #[test]
    fn one_of_a_runtime_that_is_gone_is_not_used_again() {
        for _ in 0..2 {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().start_paused(true).build().expect("a runtime");
            runtime.block_on(async {
                let clock = Clock::start();
                assert_eq!(fire(clock, 2).await, 2);
            });
        }
    }
}
