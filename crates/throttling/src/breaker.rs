//! May this request run now, must it wait, or is it refused?
//!
//! A concurrency limit with a bounded queue (not a circuit breaker). A slot that becomes free is handed to
//! the oldest waiter in the same call, so a newcomer can never overtake: Knative's breaker wakes a waiter
//! that then competes with newcomers, and unlucky ones starve.
//!
//! As in Knative the bound is on waiting plus running (depth plus the largest capacity): with all of the
//! capacity in use, exactly `depth` requests can wait. Nothing here knows how a waiter is woken: the request
//! whose [`Ticket`] a call returned runs.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::ticket::Ticket;

/// The limits with which a breaker is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// How many requests may wait while the whole capacity is in use; at least 1.
    pub depth: u32,
    /// The most that [`Breaker::resize`] may ever set.
    pub capacity_max: u32,
    /// How many requests may run at once, for a start; at most `capacity_max`.
    pub capacity: u32,
}

/// Why a breaker cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BreakerError {
    /// A queue without room would refuse what arrives between two releases.
    #[error("the queue depth is 0; it must be at least 1")]
    NoDepth,
    /// The initial capacity exceeds the largest.
    #[error("the initial capacity {capacity} exceeds the largest, {capacity_max}")]
    CapacityAboveMax {
        /// The capacity that was asked for.
        capacity: u32,
        /// The largest capacity that is allowed.
        capacity_max: u32,
    },
}

/// The answer to a request that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The request runs now. Its end is [`Breaker::release`].
    Admitted,
    /// The request waits; a later call returns its ticket, and it runs then.
    Queued(Ticket),
    /// The queue is full: the request is refused.
    Refused,
}

/// A concurrency limit with a bounded first-come-first-served queue.
#[derive(Clone, Debug)]
pub struct Breaker {
    capacity: u32,
    capacity_max: u32,
    total_max: usize,
    in_flight: u32,
    // A set and no queue: a request that gives up may stand anywhere in the line.
    waiting: BTreeSet<Ticket>,
    next_ticket: Ticket,
}

impl Breaker {
    /// A breaker with nothing in it.
    pub fn new(limits: BreakerLimits) -> Result<Self, BreakerError> {
        let BreakerLimits { depth, capacity_max, capacity } = limits;
        if depth == 0 {
            return Err(BreakerError::NoDepth);
        }
        if capacity > capacity_max {
            return Err(BreakerError::CapacityAboveMax { capacity, capacity_max });
        }
        Ok(Self {
            capacity,
            capacity_max,
            total_max: usize::try_from(u64::from(depth) + u64::from(capacity_max)).unwrap_or(usize::MAX),
            in_flight: 0,
            waiting: BTreeSet::new(),
            next_ticket: Ticket::FIRST,
        })
    }

    /// A request came. Only an empty queue lets it run at once, which a free slot implies.
    pub fn arrive(&mut self) -> Arrival {
        // No waiting request is overtaken here: `release` has handed each free slot on, and so has the caller
        // of `resize`.
        if self.in_flight < self.capacity {
            self.in_flight += 1;
            return Arrival::Admitted;
        }
        // Both together are bounded: while the capacity is below the largest, more than `depth` may wait.
        if self.held() >= self.total_max {
            return Arrival::Refused;
        }
        let ticket = self.next_ticket.draw();
        self.waiting.insert(ticket);
        Arrival::Queued(ticket)
    }

    /// A request came that must not wait (`ebb-no-queue`): whether it runs now. End with
    /// [`Breaker::release`].
    pub fn try_admit(&mut self) -> bool {
        let is_free = self.in_flight < self.capacity;
        self.in_flight += u32::from(is_free);
        is_free
    }

    /// A running request ended. Its slot goes to the returned waiter, which runs from now on.
    pub fn release(&mut self) -> Option<Ticket> {
        debug_assert!(self.in_flight > 0, "only what was admitted is released");
        self.in_flight = self.in_flight.saturating_sub(1);
        self.next_admitted()
    }

    /// A waiter gave up. `false` if it did not wait any more: it was handed a slot in the meantime, and must
    /// [`Breaker::release`] that.
    pub fn abandon(&mut self, ticket: Ticket) -> bool {
        self.waiting.remove(&ticket)
    }

    /// Changes how many may run at once (no more than the largest that the breaker was built for). What runs
    /// goes on; call [`Breaker::next_admitted`] until it returns `None`.
    pub fn resize(&mut self, capacity: u32) {
        self.capacity = capacity.min(self.capacity_max);
    }

    /// Hands a free slot to the oldest waiter, if there are both.
    pub fn next_admitted(&mut self) -> Option<Ticket> {
        // After a resize to less, more may run than the capacity: what ends then frees nothing.
        if self.in_flight >= self.capacity {
            return None;
        }
        let ticket = self.waiting.pop_first()?;
        self.in_flight += 1;
        Some(ticket)
    }

    /// How many may run at once.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The number of requests that run.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The number of requests that wait.
    pub fn waiting(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    fn held(&self) -> usize {
        usize::try_from(self.in_flight).unwrap_or(usize::MAX).saturating_add(self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn breaker(depth: u32, capacity_max: u32, capacity: u32) -> Breaker {
        Breaker::new(BreakerLimits { depth, capacity_max, capacity }).expect("legal limits")
    }

    fn ticket(arrival: Arrival) -> Ticket {
        match arrival {
            Arrival::Queued(ticket) => ticket,
            Arrival::Admitted | Arrival::Refused => panic!("{arrival:?} is not queued"),
        }
    }

    /// B1, B3: containerConcurrency 1 with Knative's queue of ten times that.
    #[test]
    fn of_15_requests_at_concurrency_1_4_are_refused_and_11_run_one_by_one() {
        let mut breaker = breaker(10, 1, 1);
        let arrivals: Vec<Arrival> = (0..15).map(|_| breaker.arrive()).collect();
        assert_eq!(arrivals[0], Arrival::Admitted);
        assert_eq!(arrivals[11..], [Arrival::Refused; 4]);
        for arrival in &arrivals[1..11] {
            assert_eq!(breaker.release(), Some(ticket(*arrival)));
            assert_eq!(breaker.in_flight(), 1);
        }
        assert_eq!(breaker.release(), None);
    }

    #[test]
    fn b4_concurrency_10_holds_110_and_refuses_the_111th() {
        let mut breaker = breaker(100, 10, 10);
        assert!((0..110).all(|_| breaker.arrive() != Arrival::Refused));
        assert_eq!(breaker.arrive(), Arrival::Refused);
        assert_eq!((breaker.in_flight(), breaker.waiting()), (10, 100));
    }

    #[test]
    fn b6_what_waits_for_a_capacity_of_0_runs_in_turn_once_it_is_1() {
        let mut breaker = breaker(1, 1, 0);
        let (first, second) = (ticket(breaker.arrive()), ticket(breaker.arrive()));
        assert_eq!(breaker.next_admitted(), None);
        breaker.resize(1);
        assert_eq!(breaker.next_admitted(), Some(first));
        assert_eq!(breaker.next_admitted(), None);
        assert_eq!(breaker.release(), Some(second));
        assert_eq!(breaker.release(), None);
    }

    #[test]
    fn b7_admission_without_waiting_needs_a_free_slot() {
        let mut breaker = breaker(1, 1, 1);
        assert_eq!(breaker.arrive(), Arrival::Admitted);
        assert!(!breaker.try_admit());
        assert_eq!(breaker.release(), None);
        assert!(breaker.try_admit());
    }

    #[test]
    fn b8_limits_that_make_no_sense_are_refused() {
        let build = |depth, capacity_max, capacity| {
            Breaker::new(BreakerLimits { depth, capacity_max, capacity }).map(|_| ())
        };
        assert_eq!(build(0, 1, 1), Err(BreakerError::NoDepth));
        assert_eq!(build(1, 1, 2), Err(BreakerError::CapacityAboveMax { capacity: 2, capacity_max: 1 }));
        assert_eq!(build(1, 1, 1), Ok(()));
    }

    #[test]
    fn b9_a_waiter_that_gives_up_leaves_its_place_to_a_newcomer() {
        let mut breaker = breaker(1, 1, 1);
        assert_eq!(breaker.arrive(), Arrival::Admitted);
        let gone = ticket(breaker.arrive());
        assert_eq!(breaker.arrive(), Arrival::Refused);
        assert!(breaker.abandon(gone));
        let newcomer = ticket(breaker.arrive());
        assert_eq!(breaker.release(), Some(newcomer));
        assert!(!breaker.abandon(newcomer), "it runs; giving up is a release now");
    }

    #[test]
    fn b10_a_lower_capacity_admits_nobody_until_enough_have_ended() {
        let mut breaker = breaker(10, 3, 3);
        assert!((0..3).all(|_| breaker.arrive() == Arrival::Admitted));
        let next = ticket(breaker.arrive());
        breaker.resize(1);
        assert_eq!(breaker.next_admitted(), None);
        assert_eq!((breaker.release(), breaker.release()), (None, None));
        assert_eq!(breaker.release(), Some(next));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arrive,
        TryAdmit,
        Release,
        AbandonNth(usize),
        Resize(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Arrive),
            1 => Just(Step::TryAdmit),
            3 => Just(Step::Release),
            1 => (0..8usize).prop_map(Step::AbandonNth),
            1 => (0..6u32).prop_map(Step::Resize),
        ];
        proptest::collection::vec(step, 0..200)
    }

    /// The running world: what a caller would know.
    #[derive(Default)]
    struct Ledger {
        arrived: u32,
        admitted: u32,
        refused: u32,
        abandoned: u32,
        queue: Vec<Ticket>,
    }

    impl Ledger {
        fn handed_over(&mut self, ticket: Ticket) {
            assert_eq!(self.queue.first(), Some(&ticket), "first come, first served");
            self.queue.remove(0);
            self.admitted += 1;
        }

        fn arrive(&mut self, arrival: Arrival) {
            self.arrived += 1;
            match arrival {
                Arrival::Admitted => {
                    assert!(self.queue.is_empty(), "a newcomer overtook");
                    self.admitted += 1;
                }
                Arrival::Queued(ticket) => self.queue.push(ticket),
                Arrival::Refused => self.refused += 1,
            }
        }
    }

    proptest! {
        #[test]
        fn order_is_kept_no_slot_leaks_and_limits_hold(steps in steps(), depth in 1..6u32) {
            let mut breaker = breaker(depth, 5, 2);
            let mut ledger = Ledger::default();
            for step in steps {
                let running_before = breaker.in_flight();
                match step {
                    Step::Arrive => ledger.arrive(breaker.arrive()),
                    Step::TryAdmit => {
                        if breaker.try_admit() {
                            ledger.arrive(Arrival::Admitted);
                        }
                    }
                    Step::Release if running_before > 0 => {
                        if let Some(ticket) = breaker.release() {
                            ledger.handed_over(ticket);
                        }
                    }
                    Step::Release => {}
                    Step::AbandonNth(n) => {
                        if n < ledger.queue.len() {
                            prop_assert!(breaker.abandon(ledger.queue.remove(n)));
                            ledger.abandoned += 1;
                        }
                    }
                    Step::Resize(capacity) => {
                        breaker.resize(capacity);
                        while let Some(ticket) = breaker.next_admitted() {
                            ledger.handed_over(ticket);
                        }
                    }
                }
                prop_assert!(breaker.in_flight() <= breaker.capacity().max(running_before));
                prop_assert!(breaker.in_flight() + breaker.waiting() <= depth + 5);
                let queued = u32::try_from(ledger.queue.len()).expect("few");
                prop_assert_eq!(breaker.waiting(), queued);
                prop_assert_eq!(
                    ledger.arrived,
                    ledger.admitted + ledger.refused + ledger.abandoned + queued
                );
            }
        }

        #[test]
        fn at_full_capacity_no_more_than_the_depth_wait(arrivals in 0..100u32, depth in 1..20u32) {
            let mut breaker = breaker(depth, 3, 3);
            for _ in 0..arrivals {
                let _ = breaker.arrive();
            }
            prop_assert!(breaker.waiting() <= depth);
        }
    }
}
