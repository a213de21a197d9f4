//! The vectors of the reference that speak of notifications, pokes and status.

use super::*;

/// What a tick orders, when the decider's answer goes from one pair of count and room to another. Knative
/// notifies its reconciler only if the count or the sign of the room changes; here a look that changes
/// nothing orders nothing.
fn orders_of_second_tick(first: u32, second: u32) -> Vec<Command> {
    let spec = ScalingSpec {
        routing_dwell: Duration::ZERO,
        panic_window: Duration::from_secs(1),
        stable_window: Duration::from_secs(60),
        ..with_burst_capacity(50.0)
    };
    let mut world = serving(spec);
    world.in_activator = first;
    world.run_until(3.0);
    world.forget();
    world.in_activator = second;
    world.run_until(4.5);
    world.log.into_iter().map(|(_, command)| command).filter(|command| !is_publish(command)).collect()
}

fn is_publish(command: &Command) -> bool {
    matches!(command, Command::Publish { .. })
}

#[test]
fn only_a_changed_count_or_a_changed_sign_of_the_room_has_consequences() {
    let route = |routing| vec![Command::SetRouting { revision: REVISION, routing }];
    assert_eq!(orders_of_second_tick(49, 49), [], "I6: an identical tick");
    assert_eq!(orders_of_second_tick(49, 51), route(Routing::ThroughActivator), "I7: (1, 1) then (1, -1)");
    assert_eq!(orders_of_second_tick(50, 43), [], "I8: (1, 0) then (1, 7)");
}

#[test]
fn a_first_answer_has_consequences() {
    let mut world = World::new(ScalingSpec { routing_dwell: Duration::ZERO, ..with_burst_capacity(0.0) });
    world.create(0);
    world.activator_starts();
    world.in_activator = 1;
    world.waiting = 0;
    world.run_until(2.5);
    assert_eq!(world.status().desired, Some(PodCount::ONE), "I6: from (-1, 0) to (1, 1)");
    assert_eq!(world.scale_orders().len(), 1);
    assert_eq!(world.route_orders().len(), 1);
}

/// Knative's poke: a pushed load is looked at before the next tick only if the last answer was exactly zero.
#[test]
fn a_poke_needs_an_answer_of_exactly_zero_and_some_concurrency() {
    let knative = || ScalingSpec { surge_evaluation: false, ..spec() };
    let reported = |world: &mut World, concurrency: f64| {
        let sample = sample(world.now.whole_secs(), concurrency, 0);
        world.handle(Event::LoadReported { reporter: ACTIVATOR, revision: REVISION, sample });
        world.status().desired.map(PodCount::value)
    };
    assert_eq!(reported(&mut at_zero(knative()), 1.0), Some(1), "I9");
    assert_eq!(reported(&mut at_zero(knative()), 0.0), Some(0), "I10: desired 0, concurrency 0");
    let mut undecided = World::new(knative());
    undecided.create(0);
    undecided.activator_starts();
    assert_eq!(reported(&mut undecided, 1.0), None, "I10: desired -1");
    let mut three = serving(ScalingSpec { panic_threshold: 10.0, ..knative() });
    three.in_activator = 200;
    three.run_until(2.5);
    three.forget();
    assert_eq!(reported(&mut three, 500.0), Some(3), "I10: desired 3");
    assert_eq!(three.log, []);
}

#[test]
fn the_status_shows_present_pods_and_the_last_wanted_count() {
    let mut world = at_zero(spec());
    world.present(1, 1);
    let status = world.status();
    assert_eq!((status.ready_pods, status.wanted), (PodCount::ZERO, PodCount::ONE), "M8");
    let mut world = World::new(spec());
    world.create(2);
    world.ready(2);
    let status = world.status();
    assert_eq!((status.ready_pods, status.wanted), (PodCount::new(2), PodCount::new(2)), "M9");
}

#[test]
fn an_initial_scale_of_zero_starts_nothing() {
    let mut world = World::new(ScalingSpec { initial_scale: PodCount::ZERO, ..spec() });
    world.make(0);
    world.activator_starts();
    world.run_until(10.0);
    assert_eq!(world.status().activity, "inactive", "M18");
    assert_eq!(world.scale_orders(), []);
}
