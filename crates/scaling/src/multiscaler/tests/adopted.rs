//! Connections from before an adoption keep the count from falling, under every class, and bring no pod.

use std::net::IpAddr;

use vocabulary::{AdoptedConnections, ConnectionTally, PeerList};

use super::*;

/// Windows that are as short as they may be.
fn short_windows() -> ScalingSpec {
    let seconds = Duration::from_secs;
    ScalingSpec {
        stable_window: seconds(6),
        panic_window: seconds(1),
        scale_to_zero_grace_period: seconds(6),
        adopted_connections_hold: seconds(600),
        ..spec()
    }
}

fn says(world: &mut World, pod: u32, connections: AdoptedConnections) -> Vec<Command> {
    world.handle(Event::AdoptedConnectionsReported { pod: PodId(pod), connections })
}

fn open(count: u32) -> AdoptedConnections {
    let peers = PeerList::of([IpAddr::from([10, 0, 0, 7])]);
    AdoptedConnections::Open(ConnectionTally { count, age: Duration::ZERO, peers })
}

fn why_not_zero(world: &World) -> String {
    world.status().why_not_zero.map(|why| why.to_string()).unwrap_or_default()
}

/// What people were told, with the seconds since the start.
fn told(world: &World) -> Vec<&str> {
    let told = world.log.iter().filter_map(|(_, command)| match command {
        Command::ReportConnectionHold { text, .. } => Some(text.as_str()),
        Command::ScaleTo { .. }
        | Command::SetRouting { .. }
        | Command::SetActivatorCount { .. }
        | Command::SetSurgeThreshold { .. }
        | Command::AskMetrics { .. }
        | Command::Warn { .. }
        | Command::Publish { .. } => None,
    });
    told.collect()
}

#[test]
fn open_connections_keep_an_idle_pod_and_the_route_is_that_of_rest() {
    let mut world = serving(short_windows());
    says(&mut world, 0, open(4));
    world.run_until(20.0);
    world.acknowledged(true);
    world.run_until(120.0);
    assert_eq!(world.scale_orders(), []);
    assert_eq!(world.status().desired, Some(PodCount::ZERO), "they are no load");
    let why = why_not_zero(&world);
    let expected = "the count stays at 1: 4 connections from before the adoption past ebb, the oldest for 2m, from 10.0.0.7";
    assert!(why.starts_with(expected), "{why}");
    let decision = last_decision(&world);
    assert_eq!(decision.reasons.last().map(|last| last.stage), Some(Stage::AdoptedConnections));
    assert_eq!(told(&world).len(), 1, "people are told once: {:?}", told(&world));
    let switches = world.route_orders().len();
    assert!(switches <= 2, "the path is not switched back and forth: {:?}", world.route_orders());
    says(&mut world, 0, open(1));
    world.run_until(200.0);
    assert_eq!(world.scale_orders(), [], "one is enough");
    let at = world.now;
    says(&mut world, 0, open(0));
    world.run_until(220.0);
    let orders = world.scale_orders();
    assert_eq!(orders.last().map(|&(_, count)| count), Some(0), "since {at:?}: {orders:?}");
}

#[test]
fn no_count_falls_while_connections_are_open_and_it_still_rises() {
    let mut world = World::new(ScalingSpec { target_per_pod: 1.0, ..short_windows() });
    world.create(3);
    world.activator_starts();
    world.acknowledged(true);
    world.ready(3);
    says(&mut world, 2, open(1));
    world.in_activator = 1;
    world.run_until(60.0);
    assert_eq!(world.scale_orders(), [], "one pod would do for the load");
    world.in_activator = 5;
    world.run_until(80.0);
    assert_eq!(world.status().wanted, PodCount::new(5));
    world.ready(5);
    world.in_activator = 1;
    world.run_until(120.0);
    assert_eq!(world.status().wanted, PodCount::new(5));
    says(&mut world, 2, open(0));
    world.run_until(160.0);
    let half = PodCount::new(2);
    assert_eq!(world.status().wanted, half, "as far as max-scale-down-rate lets it fall from five");
}

#[test]
fn connections_of_a_pod_that_goes_hold_nothing() {
    for is_gone in ["terminating", "gone"] {
        let mut world = World::new(short_windows());
        world.create(2);
        world.activator_starts();
        world.acknowledged(true);
        world.ready(2);
        says(&mut world, 1, open(1));
        world.run_until(30.0);
        assert_eq!(world.scale_orders(), [], "{is_gone}");
        let mut facts = vec![running(PodId(0), true)];
        if is_gone == "terminating" {
            facts.push(PodFact { phase: PodPhase::Terminating, ..running(PodId(1), true) });
        }
        world.handle(Event::PodsChanged { revision: REVISION, pods: facts });
        world.acknowledged(true);
        world.run_until(60.0);
        assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0), "{is_gone}");
    }
}

#[test]
fn the_wait_ends_with_its_time_or_with_the_annotation() {
    let hold = Duration::from_secs(100);
    for ends_by in ["time", "annotation"] {
        let mut world = serving(ScalingSpec { adopted_connections_hold: hold, ..short_windows() });
        says(&mut world, 0, open(4));
        world.run_until(40.0);
        world.acknowledged(true);
        world.run_until(60.0);
        assert_eq!(world.scale_orders(), [], "{ends_by}");
        if ends_by == "annotation" {
            world.edit(|spec| spec.adopted_connections_hold = Duration::ZERO);
        }
        world.run_until(110.0);
        let orders = world.scale_orders();
        let [(at, 0)] = orders[..] else { panic!("{ends_by}: {orders:?}") };
        let expected = if ends_by == "time" { 99.0..=103.0 } else { 60.0..=64.0 };
        assert!(expected.contains(&at), "{ends_by}: at {at}");
    }
}

#[test]
fn a_pod_whose_connections_cannot_be_seen_holds_the_count_for_a_stable_window() {
    let mut world = serving(ScalingSpec { stable_window: Duration::from_secs(60), ..short_windows() });
    world.run_until(50.0);
    world.acknowledged(true);
    says(&mut world, 0, AdoptedConnections::Unreadable { age: Duration::ZERO });
    world.run_until(105.0);
    assert_eq!(world.scale_orders(), []);
    assert!(why_not_zero(&world).contains("1 pod whose kernel does not show"), "{}", why_not_zero(&world));
    world.run_until(130.0);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0));
}

#[test]
fn a_count_that_a_person_writes_and_an_upper_bound_are_not_held() {
    let mut world = World::new(short_windows());
    world.create(3);
    world.activator_starts();
    world.ready(3);
    says(&mut world, 0, open(1));
    world.run_until(10.0);
    world.edit(|spec| spec.max_scale = Some(PodCount::new(2)));
    world.run_until(20.0);
    assert_eq!(world.status().wanted, PodCount::new(2));
    world.create(1);
    world.run_until(60.0);
    assert_eq!(world.status().wanted, PodCount::ONE, "connections bring no pod");
}
