//! A timer of the runtime that outlives the request it was made for.
//!
//! To make one, to put it into the runtime's wheel and to take it out again costs more than all else that a
//! request does about time. So it is kept for the next request, and stays where it is in the wheel: one that
//! is due before its request is moves only when it fires, which is seldom, for requests end far sooner than
//! they may. One that fires meanwhile wakes the task that used it last, which finds that nothing has
//! happened.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};

/// A timer that is set.
#[derive(Debug)]
pub(super) struct Alarm {
    /// To which it belongs. A thread may have had another one before, whose timers never fire again.
    runtime: Id,
    sleep: Pin<Box<Sleep>>,
}

impl Alarm {
    /// A new one that fires at this point.
    pub(super) fn set(at: Instant) -> Self {
        Self { runtime: Handle::current().id(), sleep: Box::pin(tokio::time::sleep_until(at)) }
    }

    /// Whether it fires in the runtime of the task that asks.
    pub(super) fn is_of_present_runtime(&self) -> bool {
        self.runtime == Handle::current().id()
    }

    /// To when it is set.
    pub(super) fn at(&self) -> Instant {
        self.sleep.deadline()
    }

    /// Sets it to another point.
    pub(super) fn move_to(&mut self, at: Instant) {
        self.sleep.as_mut().reset(at);
    }

    /// Ready once it has fired.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(context)
    }
}
