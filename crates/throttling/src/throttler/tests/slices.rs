//! Facts about several activators that send to the same pods.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use vocabulary::{PodExits, PodState};

use crate::throttler::*;

const START: Timestamp = Timestamp::from_secs(3600);

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn pod(index: usize, slice: Slice) -> PodAssignment {
    PodAssignment {
        pod: PodName::new(&format!("pod-{index}")),
        address: ([127, 0, 0, 1], 8000 + u16::try_from(index).expect("few pods")).into(),
        exits: PodExits::default(),
        state: PodState::Ready,
        slots: 1,
        slice,
        is_plain: false,
    }
}

/// A throttler with one pod of its own and one of another slice, each with one slot.
fn one_inside_one_outside() -> Throttler {
    let mut throttler = Throttler::new(100, 1);
    throttler.set_pods(1, &[pod(0, Slice::Inside), pod(1, Slice::Outside)]);
    throttler
}

#[test]
fn requests_without_a_slot_in_their_slice_are_tried_outside_one_at_a_time() {
    let mut throttler = one_inside_one_outside();
    throttler.set_pods(1, &[pod(0, Slice::Inside), pod(1, Slice::Outside), pod(2, Slice::Outside)]);
    for _ in 0..3 {
        throttler.arrive(START).expect("there is room");
    }
    let slices = [(); 3].map(|()| throttler.next_dispatch(START).map(|dispatch| dispatch.slice));
    assert_eq!(slices, [Some(Slice::Inside), Some(Slice::Outside), None]);
    let next = throttler.next_deadline(START).expect("time alone lets the third be tried");
    assert_eq!(throttler.next_dispatch(next).map(|dispatch| dispatch.slice), Some(Slice::Outside));
    assert_eq!(throttler.next_deadline(next), None, "all pods are full by our own count");
}

#[test]
fn a_pod_that_took_one_from_another_slice_lets_the_next_be_tried_at_once() {
    let mut throttler = one_inside_one_outside();
    throttler.set_pods(1, &[pod(0, Slice::Outside), pod(1, Slice::Outside)]);
    throttler.arrive(START).expect("there is room");
    throttler.arrive(START).expect("there is room");
    assert!(throttler.next_dispatch(START).is_some());
    assert_eq!(throttler.next_dispatch(START), None);
    throttler.note_admitted_outside(START);
    assert!(throttler.next_dispatch(START).is_some());
}

#[test]
fn a_refusal_for_want_of_room_keeps_the_place_in_the_queue() {
    let mut throttler = one_inside_one_outside();
    let tickets = [(); 3].map(|()| throttler.arrive(START).expect("there is room"));
    let inside = throttler.next_dispatch(START).expect("its own slot is free");
    let outside = throttler.next_dispatch(START).expect("the other may be tried");
    assert_eq!((inside.ticket, outside.ticket), (tickets[0], tickets[1]));
    throttler.requeue_for_want_of_room(&outside, START);
    assert_eq!(throttler.next_dispatch(START), None, "there is a pause");
    throttler.finish(inside.pod);
    let again = throttler.next_dispatch(START).expect("its own slot is free");
    assert_eq!((again.ticket, again.slice), (tickets[1], Slice::Inside), "ahead of who came later");
    assert_eq!(throttler.next_deadline(START), Some(START + milliseconds(1)));
}

#[test]
fn a_pod_of_ours_that_others_have_filled_is_left_alone_for_a_moment() {
    let mut throttler = one_inside_one_outside();
    throttler.set_pods(1, &[pod(0, Slice::Inside)]);
    throttler.arrive(START).expect("there is room");
    let mut now = START;
    for pause in [1, 2, 4, 8, 16, 32, 50, 50] {
        let dispatch = throttler.next_dispatch(now).expect("it has rested");
        throttler.requeue_for_want_of_room(&dispatch, now);
        assert_eq!(throttler.next_dispatch(now), None);
        now += milliseconds(pause);
        assert_eq!(throttler.next_deadline(now - milliseconds(pause)), Some(now));
    }
    let taken = throttler.next_dispatch(now).expect("it has rested");
    throttler.note_started(taken.pod);
    throttler.finish(taken.pod);
    throttler.arrive(now).expect("there is room");
    assert!(throttler.next_dispatch(now).is_some(), "what was full is forgotten");
}

#[test]
fn dispatches_never_exceed_the_slots_by_the_activators_own_count() {
    let mut throttler = one_inside_one_outside();
    for _ in 0..5 {
        throttler.arrive(START).expect("there is room");
    }
    let mut now = START;
    let mut dispatched = 0;
    for _ in 0..100 {
        dispatched += u32::from(throttler.next_dispatch(now).is_some());
        now += milliseconds(10);
    }
    assert_eq!(dispatched, 2, "one slot inside, one outside");
}

/// Several activators before pods with one slot each, which take a request at once or refuse it at once.
struct World {
    activators: Vec<Throttler>,
    /// Until when each pod is busy.
    busy: Vec<Option<Timestamp>>,
    /// Since when each pod has been idle while something waited.
    idle_since: Vec<Option<Timestamp>>,
    /// What runs: when it ends, where, from whom, as what.
    running: BTreeMap<(Timestamp, usize), (usize, Dispatch)>,
    random: SmallRng,
    longest_idle: Duration,
}

impl World {
    fn new(activators: usize, pods: usize, seed: u64) -> Self {
        let throttlers = (0..activators).map(|index| {
            // Dealt out in turn; with fewer pods than activators several share one.
            let is_own = |place: usize| place % activators == index || index % pods == place;
            let slice = |place| if is_own(place) { Slice::Inside } else { Slice::Outside };
            let list: Vec<_> = (0..pods).map(|place| pod(place, slice(place))).collect();
            let mut throttler = Throttler::new(10_000, seed);
            throttler.set_pods(1, &list);
            throttler
        });
        Self {
            activators: throttlers.collect(),
            busy: vec![None; pods],
            idle_since: vec![None; pods],
            running: BTreeMap::new(),
            random: SmallRng::seed_from_u64(seed),
            longest_idle: Duration::ZERO,
        }
    }

    fn step(&mut self, now: Timestamp) {
        while let Some((&(end, place), _)) =
            self.running.first_key_value().filter(|((end, _), _)| *end <= now)
        {
            let (activator, dispatch) = self.running.remove(&(end, place)).expect("it was the first");
            self.busy[place] = None;
            self.activators[activator].note_started(dispatch.pod);
            self.activators[activator].finish(dispatch.pod);
        }
        for index in 0..self.activators.len() {
            self.dispatch(index, now);
        }
        self.look_for_idle_pods(now);
    }

    fn dispatch(&mut self, index: usize, now: Timestamp) {
        while let Some(dispatch) = self.activators[index].next_dispatch(now) {
            let place = usize::from(dispatch.address.port() - 8000);
            if self.busy[place].is_some() {
                self.activators[index].requeue_for_want_of_room(&dispatch, now);
                continue;
            }
            let end = now + milliseconds(self.random.random_range(20..400));
            self.busy[place] = Some(end);
            self.running.insert((end, place), (index, dispatch));
            if dispatch.slice == Slice::Outside {
                self.activators[index].note_admitted_outside(now);
            }
        }
    }

    fn look_for_idle_pods(&mut self, now: Timestamp) {
        let is_anything_waiting = self.activators.iter().any(|throttler| throttler.counts().waiting > 0);
        for (busy, idle_since) in self.busy.iter().zip(&mut self.idle_since) {
            if busy.is_some() || !is_anything_waiting {
                *idle_since = None;
            } else {
                let since = *idle_since.get_or_insert(now);
                self.longest_idle = self.longest_idle.max(now.saturating_since(since));
            }
        }
    }
}

proptest! {
    /// However unevenly requests come in, no slot stays idle for longer than 100 ms while anything waits
    /// anywhere.
    #[test]
    fn no_slot_idles_for_long_while_anything_waits_anywhere(
        activators in 2usize..5,
        pods in 1usize..13,
        seed: u64,
        bursts in proptest::collection::vec((0u64..2000, 0usize..5, 1usize..40), 1..8),
    ) {
        let mut world = World::new(activators, pods, seed);
        let mut now = START;
        for millisecond in 0..4000 {
            for &(at, to, count) in &bursts {
                if at == millisecond {
                    for _ in 0..count {
                        world.activators[to % activators].arrive(now).expect("the queue is deep");
                    }
                }
            }
            world.step(now);
            now += milliseconds(1);
        }
        prop_assert!(world.longest_idle <= milliseconds(100), "a slot was idle for {:?}", world.longest_idle);
    }
}
