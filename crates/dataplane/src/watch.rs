//! Breaks off an HTTP/2 stream whose client has stopped to read.
//!
//! A response body checks its own timers whenever it is asked for more. But while a client takes nothing, nobody asks: the task only waits for
//! room to send. Its timer still wakes it, and then the task looks here. (Our HTTP/1.1 asks the body instead, see `ResponseBody`.)
//!
//! Which timers belong to a task is noted by the body itself, when it gets them. It is created somewhere below hyper, which knows nothing of
//! this, hence the thread's memory of whose turn it is.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use crate::timers::{Expired, Timers};

/// The timers of a response that is being sent.
pub(crate) type SharedTimers = Rc<RefCell<Timers>>;

thread_local! {
    static CURRENT: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// What one stream's task is sending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Rc<RefCell<Weak<RefCell<Timers>>>>);

impl Watch {
    /// Runs a turn of this task.
    pub(crate) fn during<Answer>(&self, turn: impl FnOnce() -> Answer) -> Answer {
        let before = CURRENT.replace(Some(self.clone()));
        let answer = turn();
        CURRENT.set(before);
        answer
    }

    /// Whether a timer of what is being sent has fired and nobody else saw it.
    pub(crate) fn poll_expired(&self, context: &mut Context<'_>) -> Poll<Expired> {
        let Some(timers) = self.0.borrow().upgrade() else { return Poll::Pending };
        let mut timers = timers.borrow_mut();
        if timers.is_due() { timers.poll_expired(context) } else { Poll::Pending }
    }
}

/// The task whose turn it is sends a response with these timers now.
pub(crate) fn note(timers: &SharedTimers) {
    CURRENT.with_borrow(|current| {
        if let Some(Watch(sending)) = current {
            sending.replace(Rc::downgrade(timers));
        }
    });
}
