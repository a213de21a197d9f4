//! One revision at one activator: which request is next, and which pod takes it?
//!
//! Requests wait first come, first served. Whether one may go is decided by the free slots of single pods
//! alone: a second, revision-wide counter (Knative has one) leaves an idle pod unused while requests of a
//! removed pod still run, and makes the admission loop spin when the two disagree. What runs is counted per
//! pod *name*, so a pod that blinks out of the list and back is not overfilled.
//!
//! Waiting is the answer to an empty list. Only passing time, an event, or a slot that becomes free changes
//! an answer, and [`Throttler::next_deadline`] says when time alone will, so no task polls.
//!
//! The caller drains [`Throttler::next_dispatch`] after every call that may have freed something: all but
//! [`Throttler::abandon`].

mod budget;
mod outside;
mod pods;
mod ticket_queue;

use std::net::SocketAddr;

use thiserror::Error;
use vocabulary::{PodAssignment, PodId, PodName, Slice, Timestamp};

use crate::balancer::{Balancer, Policy};
use crate::ticket::Ticket;
use budget::RetryBudget;
use outside::OutsideAttempts;
use pods::{PodEntry, ThrottledPods};
use ticket_queue::TicketQueue;

/// The queue of a revision holds as many as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{depth} requests wait already")]
pub struct QueueFull {
    /// The number of requests that may wait.
    pub depth: u32,
}

/// A request that may go now. It ends with [`Throttler::finish`], or with [`Throttler::requeue`] if the pod
/// never started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The ticket of the request that goes.
    pub ticket: Ticket,
    /// The time at which the request arrived.
    pub arrived: Timestamp,
    /// The pod that takes it.
    pub pod: PodId,
    /// The address at which that pod takes requests.
    pub address: SocketAddr,
    /// Whether the pod is suspect: it gets no other request until [`Throttler::note_started`], or until it
    /// has rested.
    pub is_trial: bool,
    /// Whether the pod is in this activator's slice. While there are other activators the pod is to take the
    /// request at once or to refuse it at once ([`Throttler::requeue_for_want_of_room`]): a request that
    /// waits there would not see a slot that becomes free in another pod.
    pub slice: Slice,
}

/// A pod that was picked past queue and slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectPick {
    /// The pod that takes the request.
    pub pod: PodId,
    /// The address at which the pod takes requests.
    pub address: SocketAddr,
    /// Whether the pod is suspect; as [`Dispatch::is_trial`] says.
    pub is_trial: bool,
}

/// The requests that a throttler holds, and since when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that run in pods, by slots.
    pub in_flight: u32,
    /// The number of requests that wait for a slot.
    pub waiting: u32,
    /// When the oldest of those arrived.
    pub oldest_arrival: Option<Timestamp>,
}

/// The queue of one revision and the slots of its pods.
#[derive(Clone, Debug)]
pub struct Throttler {
    depth: u32,
    policy: Policy,
    balancer: Balancer,
    pods: ThrottledPods,
    fresh: TicketQueue,
    /// Requests that a pod did not start: ahead of the fresh ones, paced by the budget.
    retries: TicketQueue,
    budget: RetryBudget,
    outside: OutsideAttempts,
    in_flight: u32,
    next_ticket: Ticket,
}

impl Throttler {
    /// A throttler without pods, in which up to `depth` requests wait; `seed` decides its chances.
    pub fn new(depth: u32, seed: u64) -> Self {
        Self {
            depth,
            policy: Policy::for_concurrency(0),
            balancer: Balancer::new(seed),
            pods: ThrottledPods::default(),
            fresh: TicketQueue::default(),
            retries: TicketQueue::default(),
            budget: RetryBudget::default(),
            outside: OutsideAttempts::new(seed),
            in_flight: 0,
            next_ticket: Ticket::FIRST,
        }
    }

    /// The pods of the revision, all of them. Only ready ones are picked from now on; an unheard one stays
    /// what it was; what runs in others finishes there.
    pub fn set_pods(&mut self, container_concurrency: u32, pods: &[PodAssignment]) {
        self.policy = Policy::for_concurrency(container_concurrency);
        self.pods.replace(pods);
    }

    /// A request came. It waits, if only for the next [`Throttler::next_dispatch`].
    pub fn arrive(&mut self, now: Timestamp) -> Result<Ticket, QueueFull> {
        if self.waiting() >= self.depth {
            return Err(QueueFull { depth: self.depth });
        }
        let ticket = self.draw_ticket();
        self.fresh.insert(ticket, now);
        Ok(ticket)
    }

    /// A number for a request, by which the queue will know it. One that is not used leaves no trace.
    pub fn draw_ticket(&mut self) -> Ticket {
        self.next_ticket.draw()
    }

    /// [`Throttler::arrive`] of a request that has its ticket.
    pub(crate) fn arrive_as(&mut self, ticket: Ticket, now: Timestamp) -> Result<(), QueueFull> {
        if self.waiting() >= self.depth {
            return Err(QueueFull { depth: self.depth });
        }
        self.fresh.insert(ticket, now);
        Ok(())
    }

    /// A request that went past the queue to a pod that never started it takes its turn here. It was held
    /// already, so the depth does not refuse it; and it is no retry of the queue's, so it does not draw on
    /// the budget: the pod that refused it rests.
    pub(crate) fn rejoin_as(&mut self, ticket: Ticket, arrived: Timestamp) {
        self.fresh.insert(ticket, arrived);
    }

    /// Whether the request of a ticket waits.
    pub(crate) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.fresh.contains(ticket) || self.retries.contains(ticket)
    }

    /// Empties the queue: the tickets of all requests that waited.
    pub(crate) fn take_waiting(&mut self) -> Vec<Ticket> {
        let retries = std::mem::take(&mut self.retries);
        retries.into_tickets().chain(std::mem::take(&mut self.fresh).into_tickets()).collect()
    }

    /// The next request that may go, and where.
    pub fn next_dispatch(&mut self, now: Timestamp) -> Option<Dispatch> {
        // Without budget a retry waits while fresh requests go past it: what is slowed down are retries, not
        // the revision.
        let is_retry = !self.retries.is_empty() && self.budget.covers_one(now);
        let queue = if is_retry { &mut self.retries } else { &mut self.fresh };
        let (ticket, arrived) = queue.first()?;
        let pod = (self.pods.pick(&mut self.balancer, self.policy, now))
            .or_else(|| self.pods.pick_outside(&mut self.outside, now))?;
        // Taken from the queue only now that there is a pod: else it stays where it is, ahead of all others.
        queue.remove_first();
        let PodEntry { address, is_trial, slice } = self.pods.enter(pod, now);
        if is_retry {
            self.budget.withdraw();
        } else if slice != Slice::Outside {
            // What is tried elsewhere may be tried often; each time it earned something would make the budget
            // meaningless.
            self.budget.deposit();
        }
        self.in_flight += 1;
        Some(Dispatch { ticket, arrived, pod, address, is_trial, slice })
    }

    /// A pod takes requests: it has answered, or admitted one. The reason to suspect it is over.
    pub fn note_started(&mut self, pod: PodId) {
        self.pods.clear_suspicion(pod);
    }

    /// A pod of another slice has taken a request: the next one may be tried.
    pub fn note_admitted_outside(&mut self, now: Timestamp) {
        self.outside.admitted(now);
    }

    /// A dispatched request ended, however it did.
    pub fn finish(&mut self, pod: PodId) {
        debug_assert!(self.in_flight > 0, "only what was dispatched ends");
        self.in_flight = self.in_flight.saturating_sub(1);
        self.pods.leave(pod);
    }

    /// A pod never started what was dispatched to it. The request waits again, ahead of those that came after
    /// it; the pod is avoided for a while.
    pub fn requeue(&mut self, dispatch: &Dispatch, now: Timestamp) {
        self.pods.suspect(dispatch.pod, now);
        self.finish(dispatch.pod);
        self.retries.insert(dispatch.ticket, dispatch.arrived);
    }

    /// A pod that others send to as well had no room for what was dispatched to it. The request waits again,
    /// where it was: the pod is well, so it is neither avoided nor does the budget pay.
    pub fn requeue_for_want_of_room(&mut self, dispatch: &Dispatch, now: Timestamp) {
        match dispatch.slice {
            Slice::Outside => self.outside.refused(now, self.pods.outside()),
            Slice::Undivided | Slice::Inside => self.pods.note_full(dispatch.pod, now),
        }
        self.finish(dispatch.pod);
        // Under its old ticket, by which it keeps its place: those that came later have greater ones.
        self.fresh.insert(dispatch.ticket, dispatch.arrived);
    }

    /// A waiting request gave up. `false` if it does not wait: it was dispatched in the meantime, and must be
    /// [`Throttler::finish`]ed.
    pub fn abandon(&mut self, ticket: Ticket) -> bool {
        self.fresh.remove(ticket).or_else(|| self.retries.remove(ticket)).is_some()
    }

    /// Picks a pod past queue and slots, as a Service would: a ready one, if any. End with
    /// [`Throttler::finish_direct`].
    pub fn pick_direct(&mut self, now: Timestamp) -> Option<DirectPick> {
        let pod = self.pods.pick_direct(&mut self.balancer, now)?;
        let (address, is_trial) = self.pods.enter_direct(pod, now);
        Some(DirectPick { pod, address, is_trial })
    }

    /// When a ready pod may be picked again, of those that rest because they did not start a request. `None`
    /// if none is ready; meaningful once [`Throttler::pick_direct`] returned `None`.
    pub fn next_trial(&self, now: Timestamp) -> Option<Timestamp> {
        self.pods.next_trial(now)
    }

    /// A request that went past the queue ended.
    pub fn finish_direct(&mut self, pod: PodId) {
        self.pods.leave_direct(pod);
    }

    /// A pod never started a request that went past the queue: it is avoided for a while.
    pub fn note_not_started(&mut self, pod: PodId, now: Timestamp) {
        self.pods.suspect(pod, now);
    }

    /// Whether any pod takes requests.
    pub fn has_ready_pod(&self) -> bool {
        self.pods.has_ready()
    }

    /// Requests that wait, or run in pods, through the queue or past it.
    pub fn held(&self) -> u32 {
        self.counts().waiting.saturating_add(self.pods.held())
    }

    /// A pod's name, while it is listed or holds a request.
    pub fn pod_name(&self, pod: PodId) -> Option<&PodName> {
        self.pods.name(pod)
    }

    /// The requests that wait, and the arrival of the oldest.
    pub fn counts(&self) -> Counts {
        let oldest = |queue: &TicketQueue| queue.first().map(|(_, arrived)| arrived);
        Counts {
            in_flight: self.in_flight,
            waiting: self.waiting(),
            oldest_arrival: oldest(&self.retries).into_iter().chain(oldest(&self.fresh)).min(),
        }
    }

    /// When passing time alone may let a waiting request go. Later than `now`; meaningful once
    /// [`Throttler::next_dispatch`] returned `None`.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        if self.waiting() == 0 {
            return None;
        }
        // What is due already waits for a slot, and no time brings that: only what lies ahead is a deadline.
        let retry = (!self.retries.is_empty()).then(|| self.budget.covers_one_at()).filter(|&at| at > now);
        let outside = self.pods.has_room_outside().then(|| self.outside.next()).filter(|&at| at > now);
        self.pods.next_trial(now).into_iter().chain(retry).chain(outside).min()
    }

    fn waiting(&self) -> u32 {
        u32::try_from(self.fresh.len() + self.retries.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests;
