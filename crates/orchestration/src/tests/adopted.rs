//! Which pods hear of an adoption, and what follows from what they say of their connections.

use std::net::IpAddr;

use scaling::Stage;
use vocabulary::{AdoptedConnections, AdoptionId, ConnectionTally, PeerList, Sample};

use super::*;

fn open(count: u32) -> vocabulary::PodWord {
    let peers = PeerList::of([IpAddr::from([10, 0, 0, 7])]);
    let tally = ConnectionTally { count, age: Duration::ZERO, peers };
    vocabulary::PodWord::Adopted(AdoptedConnections::Open(tally))
}

/// The platform says which adoption each pod has lived through.
fn adopts(world: &mut World, adoptions: &[(&str, Option<u64>)]) {
    for (name, adoption) in adoptions {
        world.pods.get_mut(*name).expect("it is there").adoption = adoption.map(AdoptionId);
    }
    world.state_pods();
}

fn told(world: &World, pod: &str) -> Option<AdoptionId> {
    world.settings(pod).expect("its link was opened with settings").adoption
}

/// One ready pod whose windows are short, and which the platform adopted with clients.
fn adopted() -> World {
    let mut world = World::new(0);
    world.wanted = 1;
    world.begin(&["a"]);
    world.state_annotated(&[("autoscaling.knative.dev/window", "6s")]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    adopts(&mut world, &[("p", Some(300))]);
    world
}

/// Seconds in which activator and pod are heard, and the activator acknowledges.
fn pass_seconds(world: &mut World, seconds: u64) {
    for _ in 0..seconds {
        let second = world.now.whole_secs() - 1000;
        let idle = Sample { second, load: vocabulary::Load::default() };
        world.pod("p", vocabulary::PodWord::Load { sample: idle, usage: None, late_bytes: None });
        world.activator("a", vocabulary::ActivatorWord::Loads { second, loads: Vec::new() });
        world.acknowledge_all();
        world.pass(Duration::from_secs(1));
    }
}

#[test]
fn each_pod_is_told_of_the_adoption_that_it_lived_through_on_its_link_and_on_the_next() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p", "q"]);
    assert_eq!((told(&world, "p"), told(&world, "q")), (None, None));
    let before = world.settings("q").expect("it is linked");
    adopts(&mut world, &[("p", Some(300))]);
    assert_eq!(told(&world, "p"), Some(AdoptionId(300)));
    assert_eq!(world.settings("q").expect("it is linked").version, before.version, "nothing is new to it");
    adopts(&mut world, &[("p", Some(400)), ("q", Some(400))]);
    assert_eq!((told(&world, "p"), told(&world, "q")), (Some(AdoptionId(400)), Some(AdoptionId(400))));
    // Whatever is told next names it too.
    let leaving = |name: &str| PodFacts {
        leaving: true,
        ends_in: Some(Duration::from_secs(40)),
        adoption: Some(AdoptionId(400)),
        ..pod(name)
    };
    world.pods = [("p", leaving("p"))].map(|(name, facts)| (name.to_owned(), facts)).into();
    world.state_pods();
    let settings = world.settings("p").expect("it is linked");
    assert!(matches!(settings.departure, vocabulary::Departure::Leaving { .. }));
    assert_eq!(settings.adoption, Some(AdoptionId(400)));
}

#[test]
fn connections_from_before_an_adoption_hold_the_count_until_the_last_has_ended() {
    let mut world = adopted();
    world.pod("p", open(4));
    pass_seconds(&mut world, 90);
    assert_eq!(world.counts(), Vec::<u32>::new());
    assert_eq!(world.people(), [ReasonCode::AdoptedConnections], "people are told once");
    let snapshot = world.snapshot();
    let view = snapshot.view(&name(), world.now).expect("it is there");
    let why = view.status.why_not_zero.map(|why| why.to_string()).unwrap_or_default();
    assert!(
        why.starts_with(
            "the count stays at 1: 4 connections from before the adoption past ebb, the oldest for 1m"
        ),
        "{why}"
    );
    let last =
        view.decisions().last().and_then(|decision| decision.reasons.last().map(|reason| reason.stage));
    assert_eq!(last, Some(Stage::AdoptedConnections));
    world.pod("p", open(0));
    pass_seconds(&mut world, 5);
    assert_eq!(world.counts(), [0]);
}

#[test]
fn a_queue_proxy_of_a_former_version_holds_nothing() {
    let mut world = adopted();
    pass_seconds(&mut world, 90);
    assert_eq!(world.counts(), [0], "it passes over the adoption and says nothing");
}

#[test]
fn the_annotation_ends_the_wait() {
    let mut world = adopted();
    world.pod("p", open(4));
    pass_seconds(&mut world, 90);
    assert_eq!(world.counts(), Vec::<u32>::new());
    world
        .state_annotated(&[("autoscaling.knative.dev/window", "6s"), ("ebb.dev/forget-connections", "true")]);
    pass_seconds(&mut world, 5);
    assert_eq!(world.counts(), [0]);
}

#[test]
fn connections_that_cannot_be_seen_are_told_of_once_and_hold_for_the_stable_window() {
    let mut world = adopted();
    for age in [0, 3] {
        let age = Duration::from_secs(age);
        world.pod("p", vocabulary::PodWord::Adopted(AdoptedConnections::Unreadable { age }));
    }
    assert_eq!(world.people(), [ReasonCode::ConnectionsUnreadable]);
    pass_seconds(&mut world, 90);
    assert_eq!(world.counts(), [0]);
}
