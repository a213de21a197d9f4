//! The breaker of `throttling`, for futures: a queued request is one that waits here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use thiserror::Error;
use throttling::{Arrival, Breaker, Ticket};

/// The queue of a breaker is full: the request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the queue is full")]
pub struct BreakerFull;

/// A concurrency limit with a bounded first-come-first-served queue, on one thread. Clones share it.
#[derive(Clone, Debug)]
pub struct AsyncBreaker(Rc<BreakerState>);

#[derive(Debug)]
struct BreakerState {
    breaker: RefCell<Breaker>,
    waiting: RefCell<BTreeMap<Ticket, Rc<BreakerWaiter>>>,
}

#[derive(Debug, Default)]
struct BreakerWaiter {
    is_admitted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl AsyncBreaker {
    /// Lets futures wait for `breaker`.
    pub fn new(breaker: Breaker) -> Self {
        Self(Rc::new(BreakerState { breaker: RefCell::new(breaker), waiting: RefCell::default() }))
    }

    /// Waits for a slot, in order of arrival. Dropping the future leaves the queue.
    pub async fn admit(&self) -> Result<Permit, BreakerFull> {
        // In a statement of its own: the borrow must be over before anything below waits or wakes.
        let arrival = self.0.breaker.borrow_mut().arrive();
        let ticket = match arrival {
            Arrival::Admitted => return Ok(Permit { breaker: self.clone() }),
            Arrival::Refused => return Err(BreakerFull),
            Arrival::Queued(ticket) => ticket,
        };
        // Which request gets a slot, and when:
        //
        //     arrive --> Queued --wake()--> is_admitted --next poll--> Permit --drop--> release(): next one
        //                  \--drop: abandon()    \--drop before that poll: release()
        //
        // The place below is what is dropped, so a request that its client gives up at any of these points
        // gives back exactly what it has.
        let waiter = Rc::new(BreakerWaiter::default());
        self.0.waiting.borrow_mut().insert(ticket, Rc::clone(&waiter));
        let place = BreakerPlace { breaker: self.clone(), ticket, waiter };
        poll_fn(|context| {
            if place.waiter.is_admitted.get() {
                return Poll::Ready(());
            }
            *place.waiter.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        Ok(place.into_permit())
    }

    /// A slot if one is free right now and no request waits.
    pub fn try_admit(&self) -> Option<Permit> {
        let is_admitted = self.0.breaker.borrow_mut().try_admit();
        is_admitted.then(|| Permit { breaker: self.clone() })
    }

    /// Changes how many requests may run at once; those that may run now are woken.
    pub fn resize(&self, capacity: u32) {
        self.0.breaker.borrow_mut().resize(capacity);
        loop {
            let Some(ticket) = self.0.breaker.borrow_mut().next_admitted() else { return };
            self.wake(ticket);
        }
    }

    /// How many requests wait in the queue now.
    pub fn waiting(&self) -> u32 {
        self.0.breaker.borrow().waiting()
    }

    /// How many requests hold a slot now.
    pub fn in_flight(&self) -> u32 {
        self.0.breaker.borrow().in_flight()
    }

    /// How many may run at once.
    pub fn capacity(&self) -> u32 {
        self.0.breaker.borrow().capacity()
    }

    fn release(&self) {
        // The slot belongs to the next in the queue from here on, although its task has not run yet: no
        // request that arrives in between may take it.
        let next = self.0.breaker.borrow_mut().release();
        if let Some(ticket) = next {
            self.wake(ticket);
        }
    }

    fn wake(&self, ticket: Ticket) {
        // Taken out before it is woken. A waiter that drops its place from now on finds that it is not
        // waiting, and so gives a slot back instead of a place in the queue.
        let waiter = self.0.waiting.borrow_mut().remove(&ticket).expect("every ticket has its waiter");
        waiter.is_admitted.set(true);
        if let Some(waker) = waiter.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// The right to run. Dropping it hands the slot to the next in the queue.
#[derive(Debug)]
pub struct Permit {
    breaker: AsyncBreaker,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.breaker.release();
    }
}

/// A place in the queue. Dropping it leaves the queue, or gives the slot back that it was handed in the
/// meantime.
struct BreakerPlace {
    breaker: AsyncBreaker,
    ticket: Ticket,
    waiter: Rc<BreakerWaiter>,
}

impl BreakerPlace {
    fn into_permit(self) -> Permit {
        // The place's own drop must not release what the permit now holds.
        self.waiter.is_admitted.set(false);
        Permit { breaker: self.breaker.clone() }
    }
}

impl Drop for BreakerPlace {
    fn drop(&mut self) {
        if self.breaker.0.waiting.borrow_mut().remove(&self.ticket).is_some() {
            self.breaker.0.breaker.borrow_mut().abandon(self.ticket);
        } else if self.waiter.is_admitted.get() {
            self.breaker.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use throttling::BreakerLimits;

    use super::*;

    fn breaker(depth: u32, capacity: u32) -> AsyncBreaker {
        let limits = BreakerLimits { depth, capacity_max: 10, capacity };
        AsyncBreaker::new(Breaker::new(limits).expect("legal"))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_slot_goes_to_the_oldest_waiter() {
        let breaker = breaker(10, 1);
        let first = breaker.admit().await.expect("free");
        let mut second = Box::pin(breaker.admit());
        let mut third = Box::pin(breaker.admit());
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(futures_util::poll!(&mut third).is_pending());
        assert!(breaker.try_admit().is_none());
        drop(first);
        assert!(futures_util::poll!(&mut third).is_pending());
        let second = second.await.expect("its turn");
        assert_eq!((breaker.in_flight(), breaker.waiting()), (1, 1));
        drop(second);
        drop(third.await.expect("its turn"));
        assert_eq!((breaker.in_flight(), breaker.waiting()), (0, 0));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_request_that_gives_up_while_it_waits_or_is_called_leaves_nothing_behind() {
        let breaker = breaker(10, 1);
        let first = breaker.admit().await.expect("free");
        let mut gone = Box::pin(breaker.admit());
        let mut called = Box::pin(breaker.admit());
        assert!(futures_util::poll!(&mut gone).is_pending());
        assert!(futures_util::poll!(&mut called).is_pending());
        drop(gone);
        drop(first);
        drop(called);
        assert_eq!((breaker.in_flight(), breaker.waiting()), (0, 0));
        assert!(breaker.try_admit().is_some());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn more_capacity_wakes_those_who_wait() {
        let breaker = breaker(10, 0);
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(breaker.admit())).collect();
        for waiter in &mut waiting {
            assert!(futures_util::poll!(waiter).is_pending());
        }
        breaker.resize(2);
        let mut polled = Vec::new();
        for waiter in &mut waiting {
            polled.push(futures_util::poll!(waiter));
        }
        let admitted: Vec<bool> = polled.iter().map(Poll::is_ready).collect();
        assert_eq!(admitted, [true, true, false]);
    }
}
