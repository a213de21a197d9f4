//! The few hand-overs between threads, in every order that they can happen in: `tests/loom/run`.
//!
//! The sources themselves are built here, not copies of them: each finds the types through which threads meet
//! in a module `sync`, and the one below has loom's.
//!
//! | hand-over | where | what must hold |
//! |---|---|---|
//! | a body that is held back | `dataplane/body/gate.rs` | who waits when it opens is woken or sees it open, and sees what was written before |
//! | an answer, from the event that brings it to the request that waits | `activator/shared_revision/queue.rs` | no slot is lost and load is counted out once, whichever request leaves meanwhile |
//! | places that all threads share | `activator/quota.rs` | never more than there are, and all are there again in the end |
//! | room for one more client | `dataplane/connection/budget.rs` | a task that waits when a client leaves is woken or sees the room |
//! | memory that all connections share | `protocol/http2/memory.rs` | two at once stay within the budget, and give all back |
//!
//! The breaker (`dataplane/breaker.rs`) is not among them: it lives on one thread (`Rc`), whatever waits
//! there.

// What a model does not use of a file is used elsewhere.
#[expect(dead_code, reason = "the models use a part of it")]
#[path = "../../../crates/dataplane/src/connection/budget.rs"]
mod budget;
#[expect(dead_code, reason = "the models use a part of it")]
#[path = "../../../crates/dataplane/src/body/gate.rs"]
mod gate;
#[expect(dead_code, reason = "the models use a part of it")]
#[path = "../../../crates/protocol/src/http2/memory.rs"]
mod memory;
#[expect(dead_code, reason = "the models use a part of it")]
#[path = "../../../crates/activator/src/shared_revision/queue.rs"]
mod queue;
#[path = "../../../crates/activator/src/quota.rs"]
mod quota;
mod sync;

use std::collections::BTreeSet;

use loom::future::block_on;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use throttling::{ActivatorRevision, Dispatch, RequestEvent, RequestRefusal, RevisionSeed, Ticket};
use vocabulary::{
    Assignment, HeadSizeLimit, IgnoredUserAgents, PodAssignment, PodExits, PodName, PodState, PresentCount,
    RequestTimeouts, RevisionName, Routing, Slice, Standing, Timestamp, Version,
};

use budget::{ClosedIdleConnections, ConnectionBudget};
use gate::Gate;
use memory::{MemoryBudget, MemoryShare};
use queue::{RevisionQueue, WaitAnswer, Waiter};
use quota::Quota;

/// A model and its name.
type Model = (&'static str, fn());

const MODELS: [Model; 7] = [
    ("who waits at a gate is woken", a_waiter_at_a_gate_is_woken),
    ("a slot goes to the next when its request leaves", a_slot_goes_to_the_next),
    ("two who leave at once lose no slot", two_who_leave_lose_no_slot),
    ("a request that leaves as it is refused is counted out once", a_refused_request_is_counted_out_once),
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
    // What the opener has done before must be seen by the one that comes through.
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

/// Where a request waits: its answer lies here until it looks.
#[derive(Clone, Default)]
struct Mailbox(Arc<Mutex<Option<WaitAnswer>>>);

impl Mailbox {
    fn take(&self) -> Option<WaitAnswer> {
        self.0.lock().expect("nobody panics").take()
    }
}

impl Waiter for Mailbox {
    fn answer(self, answer: WaitAnswer) -> Result<(), WaitAnswer> {
        *self.0.lock().expect("nobody panics") = Some(answer);
        Ok(())
    }
}

/// A revision as the activator keeps it: everything behind one lock.
type Revision = RevisionQueue<Mailbox>;

const NOW: Timestamp = Timestamp::from_secs(3600);

fn assignment() -> Assignment {
    Assignment {
        container_concurrency: 1,
..Assignment::of_nothing(RevisionName::parse("default/service/hello").expect("a name"), Version::default())
}
}

fn revision(assignment: Assignment) -> Revision {
    let seed = RevisionSeed { depth: 10, seed: 1, is_leaving: false };
    RevisionQueue::new(ActivatorRevision::new(&std::sync::Arc::new(assignment), seed, NOW))
}

/// One pod with one slot.
fn with_a_slot() -> Revision {
    let pod = PodAssignment {
        pod: PodName::new("a"),
        address: ([127, 0, 0, 1], 8000).into(),
        state: PodState::Ready,
        slots: 1,
        slice: Slice::Undivided,
        is_plain: false,
        exits: PodExits::default(),
    };
    revision(Assignment { pods: vec![pod], ..assignment() })
}

/// A request comes, and has its answer at once or waits with a mailbox.
fn arrive(revision: &mut Revision) -> (Ticket, Option<WaitAnswer>, Mailbox) {
    let (ticket, mailbox) = (revision.revision.draw_ticket(), Mailbox::default());
    let answer = revision.join(ticket, RequestEvent::Arrived { ticket }, NOW, || Some(mailbox.clone()));
    (ticket, answer, mailbox)
}

/// The first request, which has the slot.
fn run(revision: &mut Revision) -> Dispatch {
    arrive(revision).1.expect("the slot is free").expect("nothing is held")
}

/// As a request ends that has a slot.
fn end(revision: &Mutex<Revision>, dispatch: Dispatch) {
    revision.lock().expect("nobody panics").handle(RequestEvent::Ended { dispatch }, NOW);
}

/// As a request leaves that waits.
fn go(revision: &Mutex<Revision>, ticket: Ticket, mailbox: &Mailbox) {
    let mut revision = revision.lock().expect("nobody panics");
    let unseen = mailbox.take();
    revision.leave(ticket, unseen, NOW);
}

fn present(revision: &Mutex<Revision>) -> PresentCount {
    revision.lock().expect("nobody panics").revision.present()
}

fn a_slot_goes_to_the_next() {
    let mut revision = with_a_slot();
    let running = run(&mut revision);
    let (leaving, _, mailbox) = arrive(&mut revision);
    let (_, _, last) = arrive(&mut revision);
    let revision = Arc::new(Mutex::new(revision));
    let ending = thread::spawn({
        let revision = Arc::clone(&revision);
        move || end(&revision, running)
    });
    go(&revision, leaving, &mailbox);
    ending.join().expect("it ends");
    assert!(matches!(last.take(), Some(Ok(_))), "the slot is lost");
    assert_eq!(present(&revision), PresentCount { in_flight: 1, waiting: 0 });
    assert_eq!(revision.lock().expect("nobody panics").revision.held(), 1);
}

fn two_who_leave_lose_no_slot() {
    let mut revision = with_a_slot();
    let running = run(&mut revision);
    let waiting = [arrive(&mut revision), arrive(&mut revision)];
    let revision = Arc::new(Mutex::new(revision));
    let leaving = waiting.map(|(ticket, _, mailbox)| {
        let revision = Arc::clone(&revision);
        thread::spawn(move || go(&revision, ticket, &mailbox))
    });
    end(&revision, running);
    for leaving in leaving {
        leaving.join().expect("it leaves");
    }
    assert_eq!(present(&revision), PresentCount::default());
    let mut revision = revision.lock().expect("nobody panics");
    assert_eq!(revision.revision.held(), 0);
    assert!(matches!(arrive(&mut revision).1, Some(Ok(_))), "the slot is lost");
}

/// Two wait, one of which leaves while an assignment says that no request should wait.
fn a_refused_request_is_counted_out_once() {
    let mut revision = revision(assignment());
    let (leaving, _, mailbox) = arrive(&mut revision);
    let (_, _, staying) = arrive(&mut revision);
    let revision = Arc::new(Mutex::new(revision));
    let holding = thread::spawn({
        let revision = Arc::clone(&revision);
        move || {
            let hold = Assignment { hold: Some("paused".to_owned()), ..assignment() };
            let mut revision = revision.lock().expect("nobody panics");
            revision.revision.assign(&std::sync::Arc::new(hold), NOW);
            revision.carry_out(NOW);
        }
    });
    go(&revision, leaving, &mailbox);
    holding.join().expect("it is held");
    assert_eq!(staying.take(), Some(Err(RequestRefusal::Held)));
    assert_eq!(present(&revision), PresentCount::default());
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
    // A task that is never woken is a deadlock to loom.
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
