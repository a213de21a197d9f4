//! Facts about one revision at one activator. Pods are named by letters; times are milliseconds.

mod slices;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use vocabulary::PodExits;
use vocabulary::PodState::{self, Draining, Ready, Starting, Unheard, Unready};

use super::*;

/// A throttler and a clock that stands still until it is told to move.
struct World {
    throttler: Throttler,
    now: Timestamp,
}

fn listed(name: char, state: PodState, slots: u32) -> PodAssignment {
    let port = 8000 + u16::try_from(u32::from(name)).expect("a letter");
    PodAssignment {
        pod: PodName::new(&name.to_string()),
        address: ([127, 0, 0, 1], port).into(),
        exits: PodExits::default(),
        state,
        slots,
        slice: Slice::Undivided,
        is_plain: false,
    }
}

impl World {
    fn with(depth: u32) -> Self {
        Self { throttler: Throttler::new(depth, 1), now: Timestamp::from_secs(3600) }
    }

    /// Ready pods, each with `slots` slots, which is the containerConcurrency too.
    fn list(&mut self, names: &str, slots: u32) {
        let pods: Vec<_> = names.chars().map(|name| listed(name, Ready, slots)).collect();
        self.throttler.set_pods(slots, &pods);
    }

    fn arrive(&mut self) -> Ticket {
        self.throttler.arrive(self.now).expect("there is room")
    }

    fn dispatch(&mut self) -> Option<Dispatch> {
        self.throttler.next_dispatch(self.now)
    }

    /// Arrives and goes at once; returns the pod's letter.
    fn run(&mut self) -> (Dispatch, char) {
        let ticket = self.arrive();
        let dispatch = self.dispatch().expect("a pod is free");
        assert_eq!(dispatch.ticket, ticket);
        (dispatch, self.letter(dispatch.pod))
    }

    fn letter(&self, pod: PodId) -> char {
        self.throttler.pod_name(pod).and_then(|name| name.as_str().chars().next()).expect("a known pod")
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }
}

#[test]
fn requests_wait_for_a_pod_and_go_in_the_order_they_came() {
    let mut world = World::with(10);
    let tickets = [world.arrive(), world.arrive(), world.arrive()];
    assert_eq!(world.dispatch(), None);
    assert_eq!(world.throttler.next_deadline(world.now), None, "only an event changes that");
    world.list("a", 1);
    for ticket in tickets {
        let dispatch = world.dispatch().expect("the slot is free");
        assert_eq!(dispatch.ticket, ticket);
        assert_eq!(world.dispatch(), None, "one slot, one request");
        world.throttler.finish(dispatch.pod);
    }
    assert_eq!(world.throttler.counts(), Counts::default());
}

#[test]
fn v13_the_queue_is_bounded_here() {
    let mut world = World::with(10_000);
    let refused = (0..12_000).filter(|_| world.throttler.arrive(world.now).is_err()).count();
    assert_eq!(refused, 2000);
    assert_eq!(world.throttler.counts().waiting, 10_000);
    assert_eq!(world.throttler.arrive(world.now), Err(QueueFull { depth: 10_000 }));
}

#[test]
fn c22_an_idle_pod_is_used_while_a_removed_one_still_runs() {
    let mut world = World::with(10);
    world.list("ab", 1);
    let (first, second) = (world.run(), world.run());
    assert_eq!((first.1, second.1), ('a', 'b'));
    world.list("a", 1);
    world.throttler.finish(first.0.pod);
    assert_eq!(world.run().1, 'a', "the reference waits until b's request ends");
}

#[test]
fn c23_a_pod_that_comes_back_is_not_overfilled() {
    let mut world = World::with(10);
    world.list("a", 1);
    let running = world.run().0;
    world.list("", 1);
    world.list("ab", 1);
    assert_eq!(world.run().1, 'b', "the reference runs two on a");
    let third = world.arrive();
    assert_eq!(world.dispatch(), None);
    world.throttler.finish(running.pod);
    assert_eq!(world.dispatch().map(|dispatch| dispatch.ticket), Some(third));
}

#[test]
fn a_pod_with_fewer_slots_than_requests_takes_none_until_it_has_room() {
    let mut world = World::with(10);
    world.list("a", 3);
    let running = [world.run().0, world.run().0, world.run().0];
    world.list("a", 1);
    let waits = world.arrive();
    world.throttler.finish(running[0].pod);
    world.throttler.finish(running[1].pod);
    assert_eq!(world.dispatch(), None);
    world.throttler.finish(running[2].pod);
    assert_eq!(world.dispatch().map(|dispatch| dispatch.ticket), Some(waits));
}

#[test]
fn only_ready_pods_are_picked_and_unheard_ones_stay_what_they_were() {
    let mut world = World::with(10);
    let mut set = |states: &[(char, PodState)]| {
        let pods: Vec<_> = states.iter().map(|&(name, state)| listed(name, state, 1)).collect();
        world.throttler.set_pods(1, &pods);
        let _ = world.throttler.arrive(world.now);
        world.throttler.next_dispatch(world.now).map(|dispatch| {
            world.throttler.finish(dispatch.pod);
            world.letter(dispatch.pod)
        })
    };
    assert_eq!(set(&[('a', Starting), ('b', Unready), ('c', Draining), ('d', Unheard)]), None);
    assert_eq!(set(&[('a', Ready), ('b', Unready)]), Some('a'));
    assert_eq!(set(&[('a', Unheard), ('b', Unheard)]), Some('a'));
    assert_eq!(set(&[('a', Draining), ('b', Unheard)]), None);
    assert_eq!(set(&[('a', Unheard)]), None);
}

#[test]
fn a_request_that_no_pod_started_goes_first_and_to_another_pod() {
    let mut world = World::with(10);
    world.list("ab", 1);
    let (first, on) = world.run();
    assert_eq!(on, 'a');
    let (second, on) = world.run();
    assert_eq!(on, 'b');
    let third = world.arrive();
    world.throttler.requeue(&first, world.now);
    assert_eq!(world.dispatch(), None, "a is suspect, b is busy");
    world.throttler.finish(second.pod);
    let again = world.dispatch().expect("b is free");
    assert_eq!((again.ticket, world.letter(again.pod)), (first.ticket, 'b'));
    assert_eq!(again.arrived, first.arrived);
    world.throttler.finish(again.pod);
    assert_eq!(world.dispatch().map(|dispatch| dispatch.ticket), Some(third));
}

#[test]
fn a_suspect_pod_rests_and_is_tried_again_even_if_it_is_the_only_one() {
    let mut world = World::with(10);
    world.list("a", 0);
    let mut waits = Vec::new();
    let mut attempt = world.run().0;
    for _ in 0..4 {
        world.throttler.requeue(&attempt, world.now);
        assert_eq!(world.dispatch(), None, "nobody spins");
        let wake_at = world.throttler.next_deadline(world.now).expect("time will change that");
        waits.push(wake_at.saturating_since(world.now).as_millis());
        world.now = wake_at;
        attempt = world.dispatch().expect("it rested");
    }
    assert_eq!(waits, [10, 20, 40, 80]);
    let second = world.arrive();
    assert_eq!(world.dispatch(), None, "one trial at a time");
    world.throttler.note_started(attempt.pod);
    assert_eq!(world.dispatch().map(|dispatch| dispatch.ticket), Some(second));
}

#[test]
fn a_suspect_pod_is_left_alone_longer_while_there_are_others() {
    let mut world = World::with(10);
    world.list("ab", 1);
    let failed = world.run().0;
    world.throttler.requeue(&failed, world.now);
    let busy = world.dispatch().expect("b is free");
    assert_eq!(world.letter(busy.pod), 'b');
    let waiting = world.arrive();
    world.pass(99);
    assert_eq!(world.dispatch(), None);
    assert_eq!(world.throttler.next_deadline(world.now), Some(world.now + Duration::from_millis(1)));
    world.pass(1);
    let tried = world.dispatch().expect("a is tried again");
    assert_eq!((tried.ticket, world.letter(tried.pod)), (waiting, 'a'));
}

#[test]
fn a_new_address_is_no_longer_suspect() {
    let mut world = World::with(10);
    world.list("a", 1);
    let failed = world.run().0;
    world.throttler.requeue(&failed, world.now);
    let mut moved = listed('a', Ready, 1);
    moved.address.set_port(1);
    world.throttler.set_pods(1, &[moved]);
    assert!(world.dispatch().is_some_and(|dispatch| dispatch.address.port() == 1));
}

#[test]
fn retries_are_paced_by_the_budget_and_do_not_hold_up_others() {
    let mut world = World::with(1000);
    world.list("ab", 0);
    // 100 are saved up; 200 requests earn 40 more than can be saved.
    let running: Vec<Dispatch> = (0..200).map(|_| world.run().0).collect();
    for dispatch in &running {
        world.throttler.requeue(dispatch, world.now);
    }
    world.list("c", 0);
    let retried = std::iter::from_fn(|| world.dispatch()).count();
    assert_eq!(retried, 100);
    assert_eq!(world.throttler.next_deadline(world.now), Some(world.now + Duration::from_millis(100)));
    let fresh = world.arrive();
    assert_eq!(world.dispatch().map(|dispatch| dispatch.ticket), Some(fresh));
    world.pass(1000);
    assert_eq!(std::iter::from_fn(|| world.dispatch()).count(), 10, "ten a second are free");
}

#[test]
fn v17_no_pod_means_waiting_and_what_gave_up_never_runs() {
    let mut world = World::with(10);
    let (first, second) = (world.arrive(), world.arrive());
    assert!(world.throttler.abandon(first));
    world.list("a", 1);
    let dispatch = world.dispatch().expect("a is free");
    assert_eq!(dispatch.ticket, second);
    assert!(!world.throttler.abandon(second), "it runs");
    world.throttler.finish(dispatch.pod);
}

#[test]
fn direct_requests_take_no_slot() {
    let mut world = World::with(10);
    assert_eq!(world.throttler.pick_direct(world.now), None);
    world.list("a", 1);
    let direct = [(); 3].map(|()| world.throttler.pick_direct(world.now).expect("ready").pod);
    assert_eq!(world.throttler.counts().in_flight, 0);
    let (queued, _) = world.run();
    world.list("", 1);
    world.throttler.finish(queued.pod);
    for pod in direct {
        assert!(world.throttler.pod_name(pod).is_some(), "it is known while it holds a request");
        world.throttler.finish_direct(pod);
    }
    assert_eq!(world.throttler.pod_name(direct[0]), None);
}

#[test]
fn direct_requests_hear_when_pods_that_rest_may_be_tried() {
    let mut world = World::with(10);
    assert_eq!(world.throttler.next_trial(world.now), None, "no time brings a pod");
    world.list("ab", 1);
    for _ in 0..2 {
        let pod = world.throttler.pick_direct(world.now).expect("one did not fail yet").pod;
        world.throttler.note_not_started(pod, world.now);
        world.throttler.finish_direct(pod);
    }
    assert_eq!(world.throttler.pick_direct(world.now), None, "both rest");
    let at = world.throttler.next_trial(world.now).expect("not for ever");
    assert!(at > world.now);
    assert!(world.throttler.pick_direct(at).is_some_and(|pick| pick.is_trial));
    assert_eq!(world.throttler.counts().waiting, 0);
}

#[test]
fn the_oldest_wait_is_known() {
    let mut world = World::with(10);
    let first = world.now;
    world.arrive();
    world.pass(5);
    world.arrive();
    assert_eq!(world.throttler.counts().oldest_arrival, Some(first));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive,
    FinishNth(usize),
    RequeueNth(usize),
    AbandonNth(usize),
    List(u8, u32),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => Just(Step::Arrive),
        3 => (0..8usize).prop_map(Step::FinishNth),
        1 => (0..8usize).prop_map(Step::RequeueNth),
        1 => (0..8usize).prop_map(Step::AbandonNth),
        1 => (0..16u8, 1..4u32).prop_map(|(pods, slots)| Step::List(pods, slots)),
        2 => (0..300u64).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..200)
}

/// What the caller of a throttler knows.
#[derive(Default)]
struct Ledger {
    arrived: usize,
    refused: usize,
    finished: usize,
    abandoned: usize,
    waiting: Vec<Ticket>,
    requeued: Vec<Ticket>,
    running: Vec<Dispatch>,
}

impl Ledger {
    fn drain(&mut self, world: &mut World, slots: &BTreeMap<char, u32>) {
        while let Some(dispatch) = world.dispatch() {
            if let Some(index) = self.requeued.iter().position(|&ticket| ticket == dispatch.ticket) {
                assert_eq!(index, 0, "retries go in the order they came");
                self.requeued.remove(0);
            } else {
                assert_eq!(self.waiting.first(), Some(&dispatch.ticket), "first come, first served");
                self.waiting.remove(0);
            }
            self.running.push(dispatch);
            let on_this = self.running.iter().filter(|running| running.pod == dispatch.pod).count();
            let allowed = slots[&world.letter(dispatch.pod)];
            assert!(on_this <= usize::try_from(allowed).expect("few"), "a pod was overfilled");
        }
    }

    fn apply(&mut self, step: Step, world: &mut World, slots: &mut BTreeMap<char, u32>) {
        match step {
            Step::Arrive => {
                self.arrived += 1;
                match world.throttler.arrive(world.now) {
                    Ok(ticket) => self.waiting.push(ticket),
                    Err(_) => self.refused += 1,
                }
            }
            Step::FinishNth(n) if n < self.running.len() => {
                world.throttler.finish(self.running.remove(n).pod);
                self.finished += 1;
            }
            Step::RequeueNth(n) if n < self.running.len() => {
                let dispatch = self.running.remove(n);
                world.throttler.requeue(&dispatch, world.now);
                self.requeued.push(dispatch.ticket);
                self.requeued.sort_unstable();
            }
            Step::AbandonNth(n) if n < self.waiting.len() => {
                assert!(world.throttler.abandon(self.waiting.remove(n)));
                self.abandoned += 1;
            }
            Step::FinishNth(_) | Step::RequeueNth(_) | Step::AbandonNth(_) => {}
            Step::List(pods, each) => {
                let names: String = "abcd"
                    .chars()
                    .enumerate()
                    .filter(|(bit, _)| pods & (1 << bit) != 0)
                    .map(|p| p.1)
                    .collect();
                slots.extend(names.chars().map(|name| (name, each)));
                world.list(&names, each);
            }
            Step::Pass(milliseconds) => world.pass(milliseconds),
        }
    }
}

proptest! {
    #[test]
    fn order_slots_and_accounts_hold_whatever_happens(steps in steps()) {
        let mut world = World::with(8);
        let (mut ledger, mut slots) = (Ledger::default(), BTreeMap::new());
        for step in steps {
            ledger.apply(step, &mut world, &mut slots);
            ledger.drain(&mut world, &slots);
            let counts = world.throttler.counts();
            prop_assert_eq!(usize::try_from(counts.in_flight).expect("few"), ledger.running.len());
            let waiting = ledger.waiting.len() + ledger.requeued.len();
            prop_assert_eq!(usize::try_from(counts.waiting).expect("few"), waiting);
            prop_assert!(ledger.waiting.len() <= 8);
            let accounted = ledger.refused + ledger.finished + ledger.abandoned + ledger.running.len() + waiting;
            prop_assert_eq!(ledger.arrived, accounted);
        }
    }

    #[test]
    fn with_a_ready_pod_everything_that_waits_goes_in_the_end(steps in steps()) {
        let mut world = World::with(8);
        let (mut ledger, mut slots) = (Ledger::default(), BTreeMap::new());
        for step in steps {
            ledger.apply(step, &mut world, &mut slots);
            ledger.drain(&mut world, &slots);
        }
        slots.extend("abcd".chars().map(|name| (name, 1)));
        world.list("abcd", 1);
        for _ in 0..2000 {
            ledger.drain(&mut world, &slots);
            for dispatch in ledger.running.drain(..) {
                world.throttler.note_started(dispatch.pod);
                world.throttler.finish(dispatch.pod);
            }
            ledger.drain(&mut world, &slots);
            match world.throttler.next_deadline(world.now) {
                Some(deadline) if ledger.running.is_empty() => world.now = deadline,
                _ => {}
            }
        }
        prop_assert_eq!(world.throttler.counts().waiting, 0);
    }
}
