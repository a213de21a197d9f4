//! The few hand-overs between threads, in every order that they can happen in: `tests/loom/run`.
//!
//! The sources themselves are built here, not copies of them: each finds the types through which threads meet
//! in a module `sync`, and the one below has loom's.
//!
//! | hand-over | where | what must hold |
//! |---|---|---|
//! | a body that is held back | `dataplane/body/gate.rs` | who waits when it opens is woken or sees it open, and sees what was written before |
//! | a slot, from whoever frees it to whoever waits | `activator/assigned_revision/handover.rs` | none is lost, whoever leaves meanwhile |
//! | places that all threads share | `activator/quota.rs` | never more than there are, and all are there again in the end |
//! | room for one more client | `dataplane/connection/budget.rs` | who waits when somebody leaves is woken or sees the room |
//! | memory that all connections share | `protocol/http2/memory.rs` | two at once stay within the budget, and give all back |
//!
//! The breaker (`dataplane/breaker.rs`) is not among them: it lives on one thread (`Rc`), whatever waits there.

// What a model does not use of a file is used elsewhere.
#[expect(dead_code, reason = "the models use a part of it")]
#[path = "../../../crates/dataplane/src/connection/budget.rs"]
mod budget;
#[expect(dead_code, reason = "the models use a part of it")]
#[path = "../../../crates/dataplane/src/body/gate.rs"]
mod gate;
#[path = "../../../crates/activator/src/assigned_revision/handover.rs"]
mod handover;
#[expect(dead_code, reason = "the models use a part of it")]
#[path = "../../../crates/protocol/src/http2/memory.rs"]
mod memory;
#[path = "../../../crates/activator/src/quota.rs"]
mod quota;
mod sync;

use std::collections::BTreeMap;

use loom::future::block_on;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use throttling::{Dispatch, Throttler, Ticket};
use vocabulary::{PodAssignment, PodExits, PodName, PodState, Slice, Timestamp};

use budget::{ClosedIdleConnections, ConnectionBudget};
use gate::Gate;
use handover::{Waiter, hand_out, leave};
use memory::{MemoryBudget, MemoryShare};
use quota::Quota;

/// A model and its name.
type Model = (&'static str, fn());

const MODELS: [Model; 6] = [
    ("who waits at a gate is woken", a_waiter_at_a_gate_is_woken),
    ("a slot goes to the next when its request leaves", a_slot_goes_to_the_next),
    ("two who leave at once lose no slot", two_who_leave_lose_no_slot),
    ("no more places are taken than there are", no_more_places_than_there_are),
    ("who waits for room is woken when somebody leaves", a_waiter_for_room_is_woken),
    ("two connections stay within the budget", two_connections_stay_within_the_budget),
];

fn main() {
    for (name, model) in MODELS {
        loom::model(model);
        println!("{name}");
    }
}

fn a_waiter_at_a_gate_is_woken() {
    let gate = Gate::default();
    // What the opener has done before must be seen by whoever comes through.
    let written = Arc::new(AtomicUsize::new(0));
    let opener = thread::spawn({
        let (gate, written) = (gate.clone(), Arc::clone(&written));
        move || {
            written.store(7, Ordering::Relaxed);
            gate.open();
        }
    });
    block_on(std::future::poll_fn(|context| gate.poll_open(context)));
    assert_eq!(written.load(Ordering::Relaxed), 7, "what came before is not seen");
    opener.join().expect("it opens");
}

/// Where a request waits: what it is handed lies here until it looks.
#[derive(Clone, Default)]
struct Mailbox(Arc<Mutex<Option<Dispatch>>>);

impl Waiter for Mailbox {
    fn hand(self, dispatch: Dispatch) -> Result<(), Dispatch> {
        *self.0.lock().expect("nobody panics") = Some(dispatch);
        Ok(())
    }
}

/// A revision as the activator keeps it: everything behind one lock.
struct Revision {
    throttler: Throttler,
    waiters: BTreeMap<Ticket, Mailbox>,
}

const NOW: Timestamp = Timestamp::from_secs(3600);

impl Revision {
    /// One pod with one slot.
    fn with_a_slot() -> Self {
        let mut throttler = Throttler::new(10, 1);
        let pod = PodAssignment {
            pod: PodName::new("a"),
            address: ([127, 0, 0, 1], 8000).into(),
            state: PodState::Ready,
            slots: 1,
            slice: Slice::Undivided,
            exits: PodExits::default(),
        };
        throttler.set_pods(1, &[pod]);
        Self { throttler, waiters: BTreeMap::new() }
    }

    fn arrive(&mut self) -> (Ticket, Mailbox) {
        let (ticket, mailbox) = (self.throttler.arrive(NOW).expect("there is room"), Mailbox::default());
        self.waiters.insert(ticket, mailbox.clone());
        self.hand_out();
        (ticket, mailbox)
    }

    fn hand_out(&mut self) {
        hand_out(&mut self.throttler, &mut self.waiters, NOW);
    }
}

/// As a request ends that has a slot.
fn end(revision: &Mutex<Revision>, dispatch: &Dispatch) {
    let mut revision = revision.lock().expect("nobody panics");
    revision.throttler.finish(dispatch.pod);
    revision.hand_out();
}

/// As a request leaves that waits.
fn go(revision: &Mutex<Revision>, ticket: Ticket, mailbox: &Mailbox) {
    let mut revision = revision.lock().expect("nobody panics");
    let late = mailbox.0.lock().expect("nobody panics").take();
    let Revision { throttler, waiters } = &mut *revision;
    if leave(throttler, waiters, ticket, late) {
        revision.hand_out();
    }
}

fn a_slot_goes_to_the_next() {
    let mut revision = Revision::with_a_slot();
    let (_, first) = revision.arrive();
    let running = first.0.lock().expect("nobody panics").take().expect("the slot is free");
    let (leaving, mailbox) = revision.arrive();
    let (_, last) = revision.arrive();
    let revision = Arc::new(Mutex::new(revision));
    let ending = thread::spawn({
        let revision = Arc::clone(&revision);
        move || end(&revision, &running)
    });
    go(&revision, leaving, &mailbox);
    ending.join().expect("it ends");
    assert!(last.0.lock().expect("nobody panics").is_some(), "the slot is lost");
    assert_eq!(revision.lock().expect("nobody panics").throttler.counts().in_flight, 1);
}

fn two_who_leave_lose_no_slot() {
    let mut revision = Revision::with_a_slot();
    let (_, first) = revision.arrive();
    let running = first.0.lock().expect("nobody panics").take().expect("the slot is free");
    let waiting = [revision.arrive(), revision.arrive()];
    let revision = Arc::new(Mutex::new(revision));
    let leaving = waiting.map(|(ticket, mailbox)| {
        let revision = Arc::clone(&revision);
        thread::spawn(move || go(&revision, ticket, &mailbox))
    });
    end(&revision, &running);
    for leaving in leaving {
        leaving.join().expect("it leaves");
    }
    let mut revision = revision.lock().expect("nobody panics");
    assert_eq!(revision.throttler.counts().in_flight, 0);
    let (_, next) = revision.arrive();
    assert!(next.0.lock().expect("nobody panics").is_some(), "the slot is lost");
}

fn no_more_places_than_there_are() {
    let quota = Arc::new(Quota::new(2));
    let held = Arc::new(AtomicUsize::new(0));
    let threads = [2, 1].map(|amount| {
        let (quota, held) = (Arc::clone(&quota), Arc::clone(&held));
        thread::spawn(move || {
            if quota.take(amount) {
                let before = held.fetch_add(amount, Ordering::SeqCst);
                assert!(before + amount <= 2, "more than there are");
                held.fetch_sub(amount, Ordering::SeqCst);
                quota.give_back(amount);
            }
        })
    });
    if quota.take(1) {
        quota.give_back(1);
    }
    for thread in threads {
        thread.join().expect("it ends");
    }
    assert!(quota.take(2), "all are there again");
}

/// There is room for one, who is leaving.
fn a_waiter_for_room_is_woken() {
    let budget = ConnectionBudget::of_connections(1, ClosedIdleConnections::default());
    budget.enter();
    let leaving = std::sync::Arc::clone(&budget);
    let leaving = thread::spawn(move || leaving.leave());
    // Whoever is never woken is a deadlock to loom.
    block_on(budget.room());
    leaving.join().expect("it leaves");
}

/// Each finds a quarter free, whichever looks first.
fn two_connections_stay_within_the_budget() {
    const STEP: usize = 16 * 1024;
    let budget = MemoryBudget::of_process(Some(10 * STEP as u64));
    let threads = [(); 2].map(|()| {
        thread::spawn(move || {
            let mut share = MemoryShare::new(budget);
            // Its first few bytes are not counted.
            let _ = share.settle(2 * STEP);
            assert!(budget.held() <= budget.bytes_max(), "more than there is");
        })
    });
    for thread in threads {
        thread.join().expect("it ends");
    }
    assert_eq!(budget.held(), 0, "something was not given back");
}
