//! A timer of the runtime that outlives the request it was made for.
//!
//! To make one, to put it into the runtime's wheel and to take it out again costs more than all else that a
//! request does about time. So it is kept for the next request, and stays where it is in the wheel: one that
//! is due before its request is moves only when it fires, which is seldom, for requests end far sooner than
//! they may. One that fires meanwhile wakes the task that used it last, which finds that nothing has
//! happened. And where the next request is of the same task, nothing has to be done at all.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Handle, Id};
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep};

/// A timer that is set.
#[derive(Debug)]
pub(super) struct Alarm {
    /// To which it belongs. A thread may have had another one before, whose timers never fire again.
    runtime: Id,
    sleep: Pin<Box<Sleep>>,
    /// Of the task that it wakes; `None` where that is not known. A copy: the runtime shows its own to no
    /// caller.
    waker: Option<Waker>,
}

impl Alarm {
    /// A new one that fires at this point.
    pub(super) fn set(at: Instant) -> Self {
        Self { runtime: Handle::current().id(), sleep: Box::pin(tokio::time::sleep_until(at)), waker: None }
    }

    /// Whether it fires in the runtime of the task that asks.
    pub(super) fn is_of_present_runtime(&self) -> bool {
        self.runtime == Handle::current().id()
    }

    /// To when it is set.
    pub(super) fn at(&self) -> Instant {
        self.sleep.deadline()
    }

    /// Whether it is set, has not fired, and wakes this task when it does.
    pub(super) fn will_wake(&self, task: &Waker) -> bool {
        !self.sleep.is_elapsed() && self.waker.as_ref().is_some_and(|waker| waker.will_wake(task))
    }

    /// Sets it to another point.
    pub(super) fn move_to(&mut self, at: Instant) {
        // One that has fired has forgotten its task.
        self.waker = None;
        self.sleep.as_mut().reset(at);
    }

    /// Ready once it has fired.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // A task that has used up its turn is asked to come again, and the timer does not hear of it.
        let hears = has_budget_remaining();
        let polled = self.sleep.as_mut().poll(context);
        self.waker = (hears && polled.is_pending()).then(|| context.waker().clone());
        polled
    }
}
