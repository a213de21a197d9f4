//! What a revision does over time, through the events and commands that the autoscaler sees.

mod adopted;
mod closed_loop;
mod forecast;
mod forecast_cpu;
mod forecast_law;
mod foreign_forecast;
mod former_record;
mod history;
mod hpa;
mod in_flight;
mod laws;
mod ledger;
mod one_count;
mod peers;
mod refused;
mod rest;
mod restart;
mod vectors;
mod world;

use std::time::Duration;

use settings::ScalingSpec;
use vocabulary::{BurstCapacity, PodState};

use self::world::{ACTIVATOR, REVISION, World, running, sample};
use super::*;
use crate::decision::{Stage, Trigger};

fn spec() -> ScalingSpec {
    ScalingSpec::default()
}

fn with_burst_capacity(value: f64) -> ScalingSpec {
    ScalingSpec { target_burst_capacity: BurstCapacity::new(value).unwrap(), ..spec() }
}

/// A revision at zero whose activator is linked and has acknowledged.
fn at_zero(spec: ScalingSpec) -> World {
    let mut world = World::new(spec);
    world.create(0);
    world.activator_starts();
    world.acknowledged(true);
    world.run_until(2.5);
    world.forget();
    world
}

/// A revision with one ready pod, which serves.
fn serving(spec: ScalingSpec) -> World {
    let mut world = World::new(spec);
    world.create(1);
    world.activator_starts();
    world.acknowledged(true);
    world.ready(1);
    world
}

/// The counts of the orders among `commands`, in their order.
fn counts(commands: &[Command]) -> Vec<u32> {
    let counts = commands.iter().filter_map(|command| match command {
        Command::ScaleTo { count, because, .. } => {
            assert_eq!(because.wanted, Some(*count), "an order carries the decision that it follows from");
            Some(count.value())
        }
        Command::SetRouting { .. }
        | Command::SetActivatorCount { .. }
        | Command::SetSurgeThreshold { .. }
        | Command::AskMetrics { .. }
        | Command::Warn { .. }
        | Command::ReportConnectionHold { .. }
        | Command::Publish { .. } => None,
    });
    counts.collect()
}

fn last_decision(world: &World) -> &Decision {
    world.multiscaler.decisions(REVISION).last().expect("something was decided")
}

#[test]
fn the_first_request_at_zero_orders_a_pod_in_the_same_call() {
    let mut world = at_zero(spec());
    assert_eq!(counts(&world.present(1, 1)), [1]);
    assert_eq!(world.status().activity, "activating");
}

#[test]
fn a_revision_that_never_decided_wakes_as_fast() {
    let mut world = World::new(spec());
    world.create(0);
    world.activator_starts();
    assert_eq!(counts(&world.present(1, 1)), [1]);
}

#[test]
fn a_burst_at_zero_is_seen_in_full_before_the_next_tick() {
    let mut world = at_zero(spec());
    world.run_until(2.7);
    world.present(1, 1);
    world.run_until(2.72);
    world.present(500, 500);
    assert_eq!(world.scale_orders(), [(2.7, 1), (2.72, 8)]);
    assert!(world.status().panicking);
    let reasons: Vec<Stage> = last_decision(&world).reasons.iter().map(|reason| reason.stage).collect();
    assert_eq!(reasons, [Stage::StableWindow], "after the rest the windows hold nothing but the burst");
    world.run_until(20.0);
    assert_eq!(world.scale_orders().last(), Some(&(2.72, 8)), "the ticks agree");
}

#[test]
fn without_surge_evaluation_a_burst_is_seen_at_the_ticks() {
    let mut world = at_zero(ScalingSpec { surge_evaluation: false, ..spec() });
    world.run_until(2.7);
    assert_eq!(counts(&world.present(1, 1)), [1], "Knative's poke");
    world.present(500, 500);
    assert_eq!(world.scale_orders(), [(2.7, 1)]);
    world.run_until(12.5);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(8));
}

#[test]
fn one_life_with_the_activator_in_the_path() {
    let mut world = serving(spec());
    world.in_activator = 5;
    world.run_until(10.0);
    world.in_activator = 0;
    world.run_until(65.0);
    assert_eq!(world.scale_orders(), [], "the stable window still holds load");
    world.run_until(75.0);
    // The last second with load is 9, so the window is empty from 69 on; the next tick is enough.
    let [(at, 0)] = world.scale_orders()[..] else { panic!("{:?}", world.scale_orders()) };
    assert!((69.0..=72.0).contains(&at), "{at}");
    assert_eq!(world.status().activity, "inactive");
    assert_eq!(world.route_orders().len(), 1, "the activator was in the path all the time");

    world.pods(0);
    world.run_until(500.0);
    assert_eq!(world.scale_orders().len(), 1, "zero is at rest");
    world.forget();
    assert_eq!(counts(&world.present(1, 1)), [1]);
    world.ready(1);
    assert_eq!(world.status().activity, "active");
}

#[test]
fn one_life_with_the_pods_in_the_path() {
    let mut world = serving(with_burst_capacity(0.0));
    world.in_pods.insert(PodId(0), 5);
    world.run_until(10.0);
    world.in_pods.clear();
    world.run_until(65.0);
    assert_eq!(
        world.route_orders(),
        [(2.0, Routing::Direct)],
        "with the first decision: nobody served before"
    );
    world.forget();
    world.run_until(75.0);
    let [(switched, Routing::ThroughActivator)] = world.route_orders()[..] else {
        panic!("{:?}", world.route_orders())
    };
    assert!((69.0..=72.0).contains(&switched), "{switched}");
    assert_eq!(world.scale_orders(), [], "the activators have not acknowledged");
    assert!(world.status().why_not_zero.is_some_and(|why| why.to_string().contains("acknowledged")));
    world.acknowledged(true);
    world.run_until(switched + 29.9);
    assert_eq!(world.scale_orders(), []);
    world.run_until(110.0);
    // The route was switched when the revision became inactive, and that is what the grace period counts from
    // in the end.
    assert_eq!(world.scale_orders(), [(switched + 30.0, 0)]);
    assert_eq!(world.status().why_not_zero, None);
}

#[test]
fn a_woken_revision_keeps_one_pod_for_a_stable_window() {
    let short = Duration::from_secs(6);
    let mut world =
        at_zero(ScalingSpec { stable_window: short, scale_to_zero_grace_period: short, ..spec() });
    world.present(30, 30);
    world.run_until(4.0);
    world.in_activator = 0;
    world.pods(1);
    world.run_until(9.0);
    world.pod_is(PodId(0), PodState::Ready);
    world.run_until(14.9);
    assert_eq!(world.status().desired, Some(PodCount::ZERO));
    assert_eq!(world.scale_orders(), [(2.5, 1)]);
    assert!(world.status().why_not_zero.is_some_and(|why| why.to_string().contains("active for less than")));
    world.run_until(40.0);
    assert_eq!(world.scale_orders(), [(2.5, 1), (15.0, 0)], "a stable window after it got ready");
}

#[test]
fn nothing_goes_to_zero_before_every_activator_has_acknowledged() {
    let mut world = serving(spec());
    world.acknowledged(false);
    world.run_until(300.0);
    assert_eq!(world.scale_orders(), []);
    assert_eq!(world.status().activity, "inactive");
    assert_eq!(counts(&world.acknowledged(true)), [0], "at once: inactivity has lasted long enough");
}

#[test]
fn a_restart_keeps_eight_pods_for_a_stable_window() {
    let mut world = World::new(with_burst_capacity(0.0));
    world.create(8);
    world.handle(Event::RoutingObserved { revision: REVISION, routing: Routing::Direct });
    world.activator_starts();
    world.ready(8);
    for pod in 0..8 {
        world.in_pods.insert(PodId(pod), 8);
    }
    world.run_until(60.0);
    assert_eq!(world.scale_orders(), []);
    assert_eq!(world.route_orders(), []);
    assert_eq!(world.status().routing, Routing::Direct);
    world.run_until(62.5);
    assert_eq!(world.scale_orders(), [(62.0, 4)], "J5: panic has ended, the rate limit holds");
    world.ready(4);
    world.run_until(64.5);
    assert_eq!(world.scale_orders().last(), Some(&(64.0, 2)));
}

#[test]
fn a_restart_raises_to_the_lower_bound_but_lowers_nothing() {
    let bounds = ScalingSpec { min_scale: PodCount::new(3), initial_scale: PodCount::new(5), ..spec() };
    let mut world = World::new(bounds);
    assert!(!world.create(12).iter().any(|command| matches!(command, Command::ScaleTo { .. })));
    world.run_until(30.0);
    assert_eq!(world.scale_orders(), [], "no data, no decision");
    let mut world = World::new(ScalingSpec { min_scale: PodCount::new(3), ..spec() });
    assert_eq!(counts(&world.create(1)), [3]);
}

/// The minimal case of an exception: to Knative a revision at rest is one of which nothing is known.
#[test]
fn a_lower_bound_that_is_raised_at_rest_holds_before_the_first_decision() {
    let mut world = World::new(spec());
    world.create(0);
    assert_eq!(counts(&world.edit(|spec| spec.min_scale = PodCount::new(2))), [2]);
}

/// The minimal case of an exception: what was found may be what is needed.
#[test]
fn a_lower_bound_that_is_lowered_ends_no_pod_before_the_first_decision() {
    let mut world = World::new(ScalingSpec { min_scale: PodCount::new(4), ..spec() });
    world.create(4);
    assert_eq!(counts(&world.edit(|spec| spec.min_scale = PodCount::new(2))), [0; 0]);
    assert_eq!(world.status().wanted, PodCount::new(4));
}

/// The minimal case of an exception: Knative's panic would end three of the six.
#[test]
fn panic_ends_no_pod_that_others_asked_for() {
    let mut world = serving(spec());
    world.run_until(20.0);
    world.in_activator = 200;
    world.run_until(30.0);
    assert_eq!((world.status().wanted, world.status().panicking), (PodCount::new(3), true));
    world.forget();
    world.create(6);
    world.run_until(60.0);
    assert!(world.status().panicking);
    assert_eq!(world.status().wanted, PodCount::new(6));
    assert!(world.scale_orders().iter().all(|&(_, count)| count == 6), "{:?}", world.scale_orders());
}

#[test]
fn a_restart_orders_no_more_than_the_upper_bound() {
    let (min_scale, max_scale) = (PodCount::new(3), Some(PodCount::new(8)));
    let mut world = World::new(ScalingSpec { min_scale, max_scale, ..spec() });
    world.create(12);
    // Another client writes a count before there is a decision.
    world.create(11);
    world.edit(|spec| spec.min_scale = PodCount::new(4));
    world.run_until(30.0);
    assert!(world.scale_orders().iter().all(|&(_, count)| count <= 8), "{:?}", world.scale_orders());
}

#[test]
fn absurd_seconds_of_an_activator_are_tolerated() {
    let mut world = World::new(spec());
    let Reporter::Activator(activator) = ACTIVATOR else { unreachable!("it is one") };
    world.handle(Event::ActivatorsChanged { activators: vec![activator] });
    for current_second in [u64::MAX, u64::MAX - 1, u64::MAX / 2] {
        let history = vec![(REVISION, sample(current_second, 5.0, 0))];
        world.handle(Event::ReporterStarted {
            reporter: ACTIVATOR,
            boot: BootId(current_second),
            current_second,
            history,
        });
        world.now += Duration::from_secs(3);
        world.create(1);
        world.handle(Event::ReporterHeard { reporter: ACTIVATOR, second: u64::MAX });
        world.handle(Event::LoadReported {
            reporter: ACTIVATOR,
            revision: REVISION,
            sample: sample(current_second, 5.0, 0),
        });
        world.handle(Event::RevisionRemoved { revision: REVISION });
    }
    world.create(1);
    world.activator_starts();
    world.ready(1);
    world.in_activator = 60;
    world.run_until(100.0);
    assert_eq!(world.status().stable_value, Some(60.0));
}

#[test]
fn a_restart_at_zero_stays_there_unless_the_lower_bound_asks_for_pods() {
    for initial in [0, 1, 3] {
        let mut world = World::new(ScalingSpec { initial_scale: PodCount::new(initial), ..spec() });
        world.create(0);
        world.activator_starts();
        world.run_until(100.0);
        assert_eq!(world.scale_orders(), [], "initial-scale {initial}");
        assert_eq!(world.status().activity, "inactive");
    }
    let mut world = World::new(ScalingSpec { min_scale: PodCount::new(2), ..spec() });
    assert_eq!(counts(&world.create(0)), [2]);
}

#[test]
fn the_initial_scale_holds_until_that_many_pods_were_ready() {
    let mut world = World::new(ScalingSpec { initial_scale: PodCount::new(3), ..spec() });
    world.create(3);
    world.activator_starts();
    world.pods(3);
    world.in_activator = 1;
    world.run_until(120.0);
    assert_eq!(world.scale_orders(), []);
    world.ready(3);
    world.run_until(126.5);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(1));
}

#[test]
fn a_new_revision_has_its_initial_scale_until_that_was_reached_and_then_what_it_needs() {
    let mut world = World::new(ScalingSpec { initial_scale: PodCount::new(10), ..spec() });
    world.make(10);
    world.activator_starts();
    world.pods(10);
    world.in_activator = 60;
    world.run_until(20.5);
    assert_eq!(world.scale_orders(), [], "a bound until then");
    world.ready(10);
    assert_eq!(world.scale_orders(), [(20.5, 1)], "at once, and not a window later");
    world.ready(1);
    world.run_until(90.0);
    assert_eq!(world.scale_orders(), [(20.5, 1)]);
}

/// The minimal case of an exception: what was there before us may be what is needed.
#[test]
fn a_found_revision_keeps_its_count_where_a_new_one_would_scale_on() {
    for (origin, expected) in [("new", vec![(2.0, 1)]), ("found", vec![])] {
        let mut world = World::new(ScalingSpec { initial_scale: PodCount::new(3), ..spec() });
        if origin == "new" {
            world.make(3)
        } else {
            world.create(3)
        };
        world.activator_starts();
        world.ready(3);
        world.run_until(30.0);
        assert_eq!(world.scale_orders(), expected, "{origin}");
    }
}

#[test]
fn a_new_revision_that_has_no_pod_yet_is_not_taken_for_one_that_sleeps() {
    let mut world = World::new(ScalingSpec { initial_scale: PodCount::new(2), ..spec() });
    assert_eq!(counts(&world.make(0)), [2]);
    assert_eq!(world.status().activity, "activating");
}

#[test]
fn a_lost_link_changes_neither_readiness_nor_count() {
    let mut world = serving(with_burst_capacity(0.0));
    world.ready(4);
    world.edit(|spec| spec.min_scale = PodCount::new(4));
    for pod in 0..4 {
        world.in_pods.insert(PodId(pod), 60);
    }
    world.run_until(90.0);
    assert_eq!(world.status().wanted, PodCount::new(4));
    world.edit(|spec| spec.min_scale = PodCount::ZERO);
    world.forget();
    for pod in 0..4 {
        world.linked.remove(&PodId(pod));
        world.handle(Event::LinkLost { reporter: Reporter::Pod(PodId(pod)) });
    }
    world.run_until(110.0);
    assert_eq!(world.status().ready_pods, PodCount::new(4));
    assert_eq!(world.scale_orders(), [], "silence is not zero");
}

#[test]
fn a_foreign_write_becomes_the_present_count_until_the_next_evaluation() {
    let mut world = serving(spec());
    world.in_activator = 60;
    world.run_until(4.5);
    world.forget();
    assert_eq!(world.create(6), []);
    assert_eq!(world.status().wanted, PodCount::new(6));
    world.run_until(6.5);
    assert_eq!(world.scale_orders(), [(6.0, 1)]);
    // The same count is ordered too if what was said may have crossed with an order.
    world.forget();
    world.create(6);
    world.create(1);
    world.run_until(20.5);
    assert_eq!(world.scale_orders(), [(8.0, 1)]);
}

#[test]
fn a_new_burst_lowers_nothing_that_an_earlier_one_left() {
    let mut world = at_zero(ScalingSpec { stable_window: Duration::from_secs(6), ..spec() });
    world.present(281, 281);
    world.in_activator = 0;
    world.run_until(12.5);
    assert_eq!((world.status().desired, world.status().wanted), (Some(PodCount::ZERO), PodCount::new(5)));
    world.forget();
    world.present(71, 71);
    assert!(world.status().panicking);
    assert_eq!(world.scale_orders(), []);
    assert_eq!(last_decision(&world).wanted, Some(PodCount::new(5)));
}

#[test]
fn an_edited_lower_bound_is_followed_at_once() {
    let mut world = serving(spec());
    world.in_activator = 5;
    world.run_until(4.5);
    for count in [2, 3, 1] {
        assert_eq!(counts(&world.edit(|spec| spec.min_scale = PodCount::new(count))), [count], "P8");
    }
}

#[test]
fn the_activator_leaves_the_path_after_thirty_seconds_of_room() {
    let mut world = serving(with_burst_capacity(50.0));
    world.in_activator = 60;
    world.run_until(10.0);
    assert_eq!(world.route_orders(), [(2.0, Routing::ThroughActivator)]);
    world.in_activator = 20;
    world.run_until(120.0);
    let [_, (left, Routing::Direct)] = world.route_orders()[..] else { panic!("{:?}", world.route_orders()) };
    // The panic window falls to 50 within six seconds, and the dwell follows.
    assert!((42.0..=48.0).contains(&left), "{left}");
    world.in_activator = 60;
    world.run_until(130.0);
    assert_eq!(world.route_orders().last().map(|&(_, routing)| routing), Some(Routing::ThroughActivator));
}

/// Later ones wait for lasting room, as those of every revision.
#[test]
fn the_first_direct_route_of_a_target_burst_capacity_of_zero_waits_for_nothing() {
    let mut world = at_zero(with_burst_capacity(0.0));
    world.present(1, 1);
    world.ready(1);
    world.run_until(10.0);
    let [(first, Routing::Direct)] = world.route_orders()[..] else { panic!("{:?}", world.route_orders()) };
    assert!((2.5..=4.5).contains(&first), "{first}");
    (world.in_activator, world.waiting) = (0, 0);
    world.run_until(90.0);
    world.acknowledged(true);
    world.run_until(200.0);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0));
    world.pods(0);
    world.run_until(210.0);
    world.forget();
    world.present(1, 1);
    world.ready(1);
    world.run_until(250.0);
    let [(second, Routing::Direct)] = world.route_orders()[..] else { panic!("{:?}", world.route_orders()) };
    assert!((240.0..=242.0).contains(&second), "{second}");
}

#[test]
fn unlimited_burst_capacity_keeps_the_activator_in_the_path() {
    let mut world = serving(with_burst_capacity(-1.0));
    world.in_activator = 1;
    world.run_until(120.0);
    assert_eq!(world.route_orders(), [(2.0, Routing::ThroughActivator)]);
    world.in_activator = 0;
    world.run_until(300.0);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0));
}

#[test]
fn without_a_valid_decision_no_route_is_ordered() {
    let mut world = World::new(spec());
    world.create(2);
    world.pods(2);
    world.run_until(60.0);
    assert_eq!(world.route_orders(), []);
    assert_eq!(world.status().desired, None);
    let decision = last_decision(&world);
    assert_eq!((decision.inputs, decision.wanted), (None, None));
    assert_eq!(decision.reasons.last().map(|reason| reason.stage), Some(Stage::NoData));
}

#[test]
fn an_activation_that_takes_too_long_is_given_up_and_can_be_tried_again() {
    let timeout = Duration::from_secs(100);
    let mut world = at_zero(ScalingSpec { activation_timeout: timeout, ..spec() });
    world.run_until(3.0);
    world.present(1, 1);
    world.pods(1);
    world.pod_is(PodId(0), PodState::Starting);
    world.run_until(10.0);
    world.in_activator = 0;
    world.run_until(102.9);
    assert_eq!(world.scale_orders(), [(3.0, 1)]);
    assert!(world.status().why_not_zero.is_some_and(|why| why.to_string().contains("still starting")));
    world.run_until(105.0);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0));
    let stages: Vec<Stage> = world
        .multiscaler
        .decisions(REVISION)
        .flat_map(|decision| decision.reasons.iter().map(|reason| reason.stage))
        .collect();
    assert!(stages.contains(&Stage::ActivationTimeout), "{stages:?}");
    assert_eq!(world.status().activity, "inactive");
    world.pods(0);
    world.run_until(110.0);
    assert_eq!(counts(&world.present(1, 1)), [1]);
}

#[test]
fn requests_that_wait_keep_an_activation_alive() {
    let mut world = at_zero(ScalingSpec { activation_timeout: Duration::from_secs(20), ..spec() });
    world.present(1, 1);
    world.pods(1);
    world.pod_is(PodId(0), PodState::Starting);
    world.run_until(300.0);
    assert!(!world.scale_orders().iter().any(|&(_, count)| count == 0));
}

#[test]
fn a_deadline_of_the_zero_guard_does_not_wait_for_a_tick() {
    let grace = Duration::from_millis(30_700);
    let mut world = serving(ScalingSpec { scale_to_zero_grace_period: grace, ..with_burst_capacity(0.0) });
    world.run_until(50.0);
    world.forget();
    world.run_until(60.0);
    assert_eq!(world.route_orders(), [(60.0, Routing::ThroughActivator)]);
    world.acknowledged(true);
    world.run_until(120.0);
    assert_eq!(world.scale_orders(), [(90.7, 0)]);
}

#[test]
fn revisions_that_sleep_are_looked_at_together_and_keep_their_phase() {
    let mut world = World::new(spec());
    world.run_until(0.3);
    world.create(0);
    let tick = |seconds: f64| Some(Timestamp::from_secs(1000) + Duration::from_secs_f64(seconds));
    assert_eq!(world.multiscaler.next_deadline(), tick(2.5));
    world.run_until(2.5);
    assert_eq!(world.multiscaler.next_deadline(), tick(4.5));
    // With a pod it is looked at in its own time again.
    world.ready(1);
    assert_eq!(world.multiscaler.next_deadline(), tick(4.3));
}

#[test]
fn the_first_tick_is_two_seconds_after_creation_and_the_phase_stays() {
    let mut world = World::new(spec());
    assert_eq!(world.multiscaler.next_deadline(), None);
    world.run_until(0.3);
    world.create(1);
    let tick = |seconds: f64| Some(Timestamp::from_secs(1000) + Duration::from_secs_f64(seconds));
    assert_eq!(world.multiscaler.next_deadline(), tick(2.3));
    world.now = Timestamp::from_secs(1007);
    world.multiscaler.advance(world.now);
    assert_eq!(world.multiscaler.next_deadline(), tick(8.3));
    world.handle(Event::RevisionRemoved { revision: REVISION });
    assert_eq!(world.multiscaler.next_deadline(), None);
    assert!(world.multiscaler.status(REVISION, world.now).is_none());
}

#[test]
fn quiet_ticks_are_not_published_and_leave_the_history_alone() {
    let mut world = serving(spec());
    world.in_activator = 5;
    world.run_until(20.0);
    world.forget();
    let before: Vec<_> = world.multiscaler.decisions(REVISION).cloned().collect();
    world.run_until(300.0);
    assert_eq!(world.log, []);
    let after: Vec<_> = world.multiscaler.decisions(REVISION).cloned().collect();
    assert_eq!(after.len(), before.len());
    assert_eq!(after[..after.len() - 1], before[..before.len() - 1]);
    assert_eq!(last_decision(&world).at, Timestamp::from_secs(1300));
    assert_eq!(last_decision(&world).trigger, Trigger::Tick);
}

#[test]
fn loss_of_all_data_is_said_once_and_changes_nothing() {
    let mut world = serving(spec());
    world.in_activator = 200;
    world.run_until(10.0);
    world.ready(3);
    world.forget();
    world.falls_silent();
    world.run_until(400.0);
    let published =
        world.log.iter().filter(|(_, command)| matches!(command, Command::Publish { .. })).count();
    assert_eq!((world.log.len(), published), (1, 1), "{:?}", world.log);
    assert_eq!(world.status().wanted, PodCount::new(3));
}

/// All requests may be at activators whose links are cut: a zero of before the silence ends no pod.
#[test]
fn a_zero_that_was_decided_before_a_silence_waits_for_its_end() {
    // Active for less than a stable window, and inactive within the retention.
    for silence in [40.0, 65.0] {
        let mut world = serving(ScalingSpec { pod_retention: Duration::from_secs(20), ..spec() });
        world.run_until(silence);
        assert_eq!(world.status().desired, Some(PodCount::ZERO));
        world.falls_silent();
        world.run_until(200.0);
        world.pods(2);
        world.run_until(300.0);
        assert_eq!(world.scale_orders(), [], "silent after {silence} s: no data is not zero");
        assert_eq!(world.status().wanted, PodCount::ONE);
        world.activator_starts();
        world.ready(1);
        world.run_until(400.0);
        assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0), "there is data again");
    }
}

#[test]
fn an_activator_that_was_there_first_reports_for_later_revisions() {
    let mut world = World::new(spec());
    world.activator_starts();
    world.run_until(5.0);
    world.create(1);
    world.run_until(7.5);
    assert_eq!(world.status().desired, Some(PodCount::ZERO), "its heartbeats are data");
}

#[test]
fn a_reporters_history_decides_at_the_first_tick() {
    let mut world = World::new(with_burst_capacity(0.0));
    world.run_until(200.0);
    world.create(1);
    world.activator_starts();
    world.pods(1);
    let now = world.now.whole_secs();
    let history = (now - 60..now).map(|second| (REVISION, sample(second, 150.0, 0))).collect();
    world.linked.insert(PodId(0));
    world.starts(Reporter::Pod(PodId(0)), history);
    world.handle(Event::PodChanged { pod: running(PodId(0), true) });
    world.in_pods.insert(PodId(0), 150);
    world.run_until(202.5);
    assert_eq!(world.scale_orders(), [(202.0, 3)]);
}

#[test]
fn events_about_unknown_revisions_and_pods_are_ignored() {
    let mut world = World::new(spec());
    world.pods(2);
    world.pod_is(PodId(7), PodState::Ready);
    world.acknowledged(true);
    assert_eq!(world.present(3, 3), []);
    world.handle(Event::LinkLost { reporter: Reporter::Pod(PodId(7)) });
    world.handle(Event::LoadReported { reporter: ACTIVATOR, revision: REVISION, sample: sample(1, 2.0, 0) });
    assert_eq!(world.log, []);
    assert_eq!(world.multiscaler.next_deadline(), None);
}

#[test]
fn a_pods_threshold_is_said_once_and_follows_the_settings() {
    let threshold = |commands: &[Command]| {
        commands.iter().find_map(|command| match command {
            Command::SetSurgeThreshold { threshold, .. } => Some(*threshold),
            Command::ScaleTo { .. }
            | Command::SetRouting { .. }
            | Command::SetActivatorCount { .. }
            | Command::AskMetrics { .. }
            | Command::Warn { .. }
            | Command::ReportConnectionHold { .. }
            | Command::Publish { .. } => None,
        })
    };
    let mut world = World::new(spec());
    assert_eq!(threshold(&world.create(1)), Some(Some(101)), "more than one pod can take");
    assert_eq!(threshold(&world.pods(1)), None);
    assert_eq!(threshold(&world.edit(|spec| spec.surge_evaluation = false)), Some(None));
}
