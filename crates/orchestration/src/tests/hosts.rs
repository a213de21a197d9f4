//! Endpoints whose hosts are dead leave, and an owner that is cut off takes none out.

use std::time::Duration;

use scaling::PodPhase;
use vocabulary::{ActivatorWord, Load, PodState, PodWord, Routing, Sample};

use super::world::{World, name, pod};
use crate::*;

/// As on a cluster: routes name activators.
fn world(activators: &[&str]) -> World {
    World::choosing(ActivatorChoice::AsManyAsNeeded, activators)
}

/// Activators in the path, which have acknowledged it.
fn through(activators: &[&str]) -> World {
    let mut world = world(activators);
    world.routed();
    world.acknowledge_all();
    assert_eq!(world.routed_to(), activators);
    world
}

/// A frame of an activator.
fn frame(world: &mut World, activator: &str) {
    world.activator(activator, ActivatorWord::Loads { second: 0, loads: Vec::new() });
}

/// A frame of a pod.
fn pod_frame(world: &mut World, pod: &str, second: u64) {
    let sample = Sample { second, load: Load::default() };
    let idle = PodWord::Load { sample, usage: None, late_bytes: None };
    world.pod(pod, idle);
}

/// Two looks beside its silent link failed, which is told a second after its frame was due.
fn unreachable(world: &World) -> LinkNews {
    LinkNews::Unreachable { since: world.now - Duration::from_secs(1) }
}

fn activator_is_unreachable(world: &mut World, name: &str) {
    let news = unreachable(world);
    world.link_of_activator(name, news);
}

fn pod_is_unreachable(world: &mut World, name: &str) {
    let news = unreachable(world);
    world.link_of_pod(name, news);
}

/// The pods to which the platform leads no connection.
fn out(world: &World) -> Vec<&str> {
    world.unreachable.iter().map(String::as_str).collect()
}

#[test]
fn an_activator_whose_host_is_dead_leaves_the_route_until_its_first_frame() {
    let mut world = through(&["a", "b"]);
    world.pass(Duration::from_secs(4));
    frame(&mut world, "b");
    activator_is_unreachable(&mut world, "a");
    world.acknowledge_all();
    assert_eq!(world.routed_to(), ["b"]);
    // A connection that its kernel accepts is no frame.
    world.link_of_activator("a", LinkNews::Accepting);
    assert_eq!(world.routed_to(), ["b"]);
    world.link("a");
    world.acknowledge_all();
    assert_eq!(world.routed_to(), ["a", "b"]);
}

#[test]
fn a_silent_link_that_breaks_or_whose_host_accepts_takes_no_endpoint_out() {
    let mut world = through(&["a", "b"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.pass(Duration::from_secs(4));
    world.link_of_activator("a", LinkNews::Lost);
    world.link_of_activator("a", LinkNews::Accepting);
    // Suspected, and then it accepts before it is decided.
    activator_is_unreachable(&mut world, "b");
    world.link_of_activator("b", LinkNews::Accepting);
    world.pass(Duration::from_secs(4));
    assert_eq!(world.routed_to(), ["a", "b"]);
    assert_eq!(out(&world), Vec::<&str>::new());
    assert_eq!(world.people(), []);
}

#[test]
fn the_last_activator_stays() {
    let mut world = through(&["a", "b"]);
    world.pods(&["p", "q", "r"]);
    for pod in ["p", "q", "r"] {
        world.pod_says(pod, PodState::Ready);
    }
    world.pass(Duration::from_secs(4));
    for pod in ["p", "q", "r"] {
        pod_frame(&mut world, pod, 0);
    }
    activator_is_unreachable(&mut world, "a");
    world.acknowledge_all();
    assert_eq!(world.routed_to(), ["b"]);
    activator_is_unreachable(&mut world, "b");
    assert_eq!(world.routed_to(), ["b"]);
}

#[test]
fn a_pod_whose_host_is_dead_leaves_until_its_first_frame_and_the_last_ready_one_stays() {
    let mut world = world(&["a", "b"]);
    world.pods(&["p", "q"]);
    for pod in ["p", "q"] {
        world.pod_says(pod, PodState::Ready);
    }
    world.pass(Duration::from_secs(4));
    for activator in ["a", "b"] {
        frame(&mut world, activator);
    }
    pod_is_unreachable(&mut world, "p");
    assert_eq!(out(&world), ["p"]);
    let snapshot = world.snapshot();
    let view = snapshot.view(&name(), world.now).expect("it is ours");
    assert!(
        view.why_not_ready(AppOutput::Shown)
            .expect("it is in trouble")
            .contains("its port takes no connection")
    );
    pod_is_unreachable(&mut world, "q");
    assert_eq!(out(&world).len(), 1, "one of two stays");
    pod_frame(&mut world, "p", 0);
    assert_eq!(out(&world), ["q"]);
    pod_frame(&mut world, "q", 0);
    assert_eq!(out(&world), Vec::<&str>::new());
}

#[test]
fn an_owner_that_hears_less_than_half_takes_itself_to_be_cut_off_and_says_so_once() {
    let mut world = through(&["a", "b"]);
    world.pods(&["p", "q"]);
    for pod in ["p", "q"] {
        world.pod_says(pod, PodState::Ready);
    }
    world.pass(Duration::from_secs(4));
    for _ in 0..3 {
        for activator in ["a", "b"] {
            activator_is_unreachable(&mut world, activator);
        }
        pod_is_unreachable(&mut world, "p");
        world.pass(Duration::from_secs(2));
    }
    assert_eq!(world.people(), [ReasonCode::CutOff]);
    // The cut ends. Links stand again one after the other, and those that are late are not dead.
    for pod in ["p", "q"] {
        pod_frame(&mut world, pod, 0);
    }
    activator_is_unreachable(&mut world, "a");
    world.pass(Duration::from_millis(100));
    assert_eq!((world.routed_to(), out(&world)), (vec!["a", "b"], Vec::new()));
    assert_eq!(world.people(), []);
}

#[test]
fn dead_hosts_are_told_once_the_other_hosts_had_time_to_be_heard() {
    let mut world = through(&["a", "b"]);
    world.pass(Duration::from_secs(4));
    activator_is_unreachable(&mut world, "a");
    assert_eq!(world.routed_to(), ["a", "b"], "b may be as dead");
    world.pass(Duration::from_millis(500));
    frame(&mut world, "b");
    world.pass(Duration::from_millis(100));
    assert_eq!(world.routed_to(), ["b"]);
}

#[test]
fn a_successor_takes_out_an_activator_that_it_never_could_link() {
    let mut world = through(&["a", "b"]);
    // Its node died with that of the former owner.
    let now = world.now;
    world.activators.get_mut("a").expect("it is there").unlink(now);
    world.replace_owner(vocabulary::Epoch(2));
    world.acknowledge_all();
    assert_eq!(world.routed_to(), ["a", "b"], "what serves is left alone");
    world.pass(Duration::from_secs(1));
    frame(&mut world, "b");
    activator_is_unreachable(&mut world, "a");
    world.acknowledge_all();
    assert_eq!(world.routed_to(), ["b"]);
}

#[test]
fn a_pod_that_was_never_linked_leaves_only_beside_one_of_its_revision_that_is() {
    for (is_other_linked, expected) in [(true, vec!["p"]), (false, vec![])] {
        let mut world = world(&["a", "b"]);
        world.pods = ["p", "q"]
            .map(|name| (name.to_owned(), PodFacts { platform_ready: Some(true), ..pod(name) }))
            .into();
        world.state_pods();
        if is_other_linked {
            world.pod_says("q", PodState::Ready);
        }
        world.pass(Duration::from_secs(4));
        for activator in ["a", "b"] {
            frame(&mut world, activator);
        }
        pod_is_unreachable(&mut world, "p");
        world.pass(Duration::from_secs(4));
        assert_eq!(out(&world), expected, "another one is linked: {is_other_linked}");
    }
}

#[test]
fn pods_on_their_way_out_do_not_count_as_dead() {
    let mut world = world(&["a", "b"]);
    world.pods(&["p", "q", "r", "s", "t"]);
    for pod in ["p", "q", "r", "s", "t"] {
        world.pod_says(pod, PodState::Ready);
    }
    for pod in ["q", "r", "s", "t"] {
        world.pods.get_mut(pod).expect("it is there").phase = PodPhase::Terminating;
    }
    world.state_pods();
    world.pass(Duration::from_secs(4));
    for activator in ["a", "b"] {
        frame(&mut world, activator);
    }
    for pod in ["q", "r", "s", "t"] {
        pod_is_unreachable(&mut world, pod);
    }
    world.pass(Duration::from_secs(3));
    assert_eq!(out(&world), Vec::<&str>::new());
    assert_eq!(world.people(), []);
}

#[test]
fn a_pod_that_left_is_no_room_for_a_burst_so_activators_enter_the_path() {
    let mut world = world(&["a", "b"]);
    let annotations =
        [("autoscaling.knative.dev/target", "10"), ("autoscaling.knative.dev/target-burst-capacity", "15")];
    world.wanted = 2;
    world.state_annotated(&annotations);
    world.pods(&["p", "q"]);
    for pod in ["p", "q"] {
        world.pod_says(pod, PodState::Ready);
    }
    let second = |world: &mut World, number: u64, pods: &[&str]| {
        world.pass(Duration::from_secs(1));
        for activator in ["a", "b"] {
            frame(world, activator);
        }
        for pod in pods {
            pod_frame(world, pod, number);
        }
        world.acknowledge_all();
    };
    let routing = |world: &World| world.written.as_ref().map(|route| route.routing);
    for number in 1..40 {
        second(&mut world, number, &["p", "q"]);
    }
    assert_eq!(routing(&world), Some(Routing::Direct), "20 fit, and 15 are to be spare");
    for number in 40..44 {
        second(&mut world, number, &["p"]);
    }
    pod_is_unreachable(&mut world, "q");
    assert_eq!(out(&world), ["q"]);
    for number in 44..47 {
        second(&mut world, number, &["p"]);
    }
    assert_eq!(routing(&world), Some(Routing::ThroughActivator), "10 fit");
}
