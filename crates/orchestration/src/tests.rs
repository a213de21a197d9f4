//! The control loop in a made-up world: what it says to whom, event by event, and laws over worlds that
//! chance makes.

mod activator;
mod adopted;
mod exact_state;
mod foreign;
mod hosts;
mod laws;
mod lives;
mod readers;
mod world;

use std::sync::Arc;
use std::time::Duration;

use vocabulary::{
    ActivatorWord, Bucket, Epoch, LateBytes, Ownership, PodState, PresentCount, ReplicaName, Routing, Sample,
    Slice, Standing, Version,
};

use self::activator::Told;
use self::world::{World, hello, name, pod};
use super::*;

#[test]
fn the_first_request_asks_for_a_pod_and_the_ready_pod_reaches_the_activator() {
    let mut world = World::with_activators(&["a"]);
    let count = PresentCount { in_flight: 1, waiting: 1 };
    world.activator(
        "a",
        vocabulary::ActivatorWord::Present { revision: name(), count, oldest_wait: Duration::ZERO },
    );
    assert_eq!(world.counts(), [1]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    let assignment = world.told("a").expect("it serves");
    let states: Vec<_> = assignment.pods.iter().map(|pod| (pod.pod.as_str(), pod.state)).collect();
    assert_eq!(states, [("p", PodState::Ready)]);
}

#[test]
fn a_leaving_pod_is_released_once_every_possible_sender_has_acknowledged() {
    let mut world = World::with_activators(&["a", "b"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    world.stall("b");
    world.leave("p");
    world.acknowledge_all();
    assert_eq!(world.releases(), []);
    world.resume("b");
    world.acknowledge_all();
    assert_eq!(world.releases(), [("p".to_owned(), ReleaseProof::Acknowledged)]);
}

#[test]
fn an_activator_that_never_answers_delays_a_release_by_the_named_limit_and_no_longer() {
    let mut world = World::with_activators(&["a", "b"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    world.stall("b");
    world.leave("p");
    world.acknowledge_all();
    world.pass(Duration::from_millis(4900));
    assert_eq!(world.releases(), []);
    world.pass(Duration::from_millis(200));
    assert_eq!(world.releases(), [("p".to_owned(), ReleaseProof::OutOfTime)]);
    assert_eq!(world.people(), [ReasonCode::ReleasedUnacknowledged]);
}

#[test]
fn one_that_is_on_its_way_out_is_told_on_and_must_acknowledge_like_the_others() {
    let mut world = World::with_activators(&["old", "new"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    world.life("old", ActivatorLife::Terminating);
    let retired = world.told("old").expect("it still serves what it holds");
    assert_eq!(retired.standing, Standing::Retired);
    assert_eq!(world.told("new").expect("it serves").standing, Standing::Assigned);
    world.acknowledge_all();
    world.stall("old");
    world.leave("p");
    world.acknowledge_all();
    assert_eq!(world.releases(), [], "what waits there may still be sent to the pod");
    world.resume("old");
    assert_eq!(world.told("old").expect("it is told on").pods[0].state, PodState::Draining);
    world.acknowledge_all();
    assert_eq!(world.releases().len(), 1);
}

#[test]
fn a_retired_revision_is_forgotten_thirty_seconds_after_it_is_empty_and_no_route_names_it() {
    let mut world = World::with_activators(&["old", "new"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    world.life("old", ActivatorLife::Terminating);
    world.acknowledge_all();
    world.pass(Duration::from_secs(100));
    assert_eq!(world.forgotten("old"), 0, "it holds requests");
    world.activator("old", vocabulary::ActivatorWord::Emptied { revision: name() });
    world.pass(Duration::from_secs(29));
    assert_eq!(world.forgotten("old"), 0);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.forgotten("old"), 1);
    assert_eq!(world.forgotten("new"), 0);
}

#[test]
fn one_that_holds_nothing_hears_of_pods_until_it_has_forgotten() {
    let mut world = World::with_activators(&["old", "new"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.life("old", ActivatorLife::Terminating);
    world.acknowledge_all();
    world.empty("old");
    world.leave("p");
    let told = world.told("old").expect("something may still come to it");
    assert_eq!((told.standing, told.pods[0].state), (Standing::Retired, PodState::Draining));
    world.acknowledge_all();
    assert_eq!(world.releases(), [("p".to_owned(), ReleaseProof::Acknowledged)]);
}

#[test]
fn a_late_request_is_served_before_the_revision_is_forgotten() {
    let mut world = World::with_activators(&["old", "new"]);
    world.life("old", ActivatorLife::Terminating);
    world.acknowledge_all();
    world.empty("old");
    world.pass(Duration::from_secs(20));
    world.hold("old", PresentCount { in_flight: 1, waiting: 1 });
    world.pass(Duration::from_secs(60));
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    assert_eq!(world.forgotten("old"), 0);
    assert_eq!(world.told("old").expect("it waits for a pod").pods.len(), 1);
    world.empty("old");
    world.pass(Duration::from_secs(29));
    assert_eq!(world.forgotten("old"), 0);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.forgotten("old"), 1);
}

#[test]
fn words_that_a_lost_link_did_not_bring_are_said_again() {
    let mut world = World::with_activators(&["a", "b"]);
    world.routed();
    world.acknowledge_all();
    world.link_of_activator("b", LinkNews::Lost);
    world.link("b");
    world.activator("b", vocabulary::ActivatorWord::Draining);
    world.acknowledge_all();
    assert_eq!(world.released_activators(), ["b"]);
    world.empty("b");
    world.link_of_activator("b", LinkNews::Lost);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.forgotten("b"), 0, "it does not hear it");
    world.link("b");
    assert_eq!(world.forgotten("b"), 1);
    assert_eq!(world.released_activators(), ["b"]);
    world.link_of_activator("a", LinkNews::Lost);
    world.remove();
    assert!(world.told("a").is_some());
    world.link("a");
    assert_eq!(world.told("a"), None, "what waits there is refused");
    world.acknowledge_removal("a");
    assert_eq!(world.entrances(), []);
    world.acknowledge_removal("b");
    assert_eq!(world.entrances(), [Entrance::Host("one".to_owned())]);
}

#[test]
fn slots_are_divided_among_the_activators_that_serve() {
    let mut world = World::with_limit(1, &["a", "b"]);
    world.pods(&["p", "q"]);
    for pod in ["p", "q"] {
        world.pod_says(pod, PodState::Ready);
    }
    let slices = |world: &World, activator| -> Vec<Slice> {
        world.told(activator).expect("it serves").pods.iter().map(|pod| pod.slice).collect()
    };
    assert_eq!(slices(&world, "a"), [Slice::Inside, Slice::Outside]);
    assert_eq!(slices(&world, "b"), [Slice::Outside, Slice::Inside]);
    world.life("b", ActivatorLife::Terminating);
    assert_eq!(slices(&world, "a"), [Slice::Undivided, Slice::Undivided]);
}

#[test]
fn a_host_is_released_only_when_no_activator_listens_for_it() {
    let mut world = World::with_activators(&["a"]);
    world.acknowledge_all();
    world.hosts(&["one", "two"]);
    world.acknowledge_all();
    world.stall("a");
    world.hosts(&["one"]);
    assert_eq!(world.entrances(), []);
    world.resume("a");
    world.acknowledge_all();
    assert_eq!(world.entrances(), [Entrance::Host("two".to_owned())]);
    world.remove();
    assert_eq!(world.entrances(), []);
    world.acknowledge_removal("a");
    assert_eq!(world.entrances(), [Entrance::Host("one".to_owned())]);
}

#[test]
fn a_host_stays_until_every_activator_that_knew_its_revision_before_us_has_let_go() {
    let mut world = World::with_activators(&["a"]);
    world.acknowledge_all();
    world.link_of_activator("a", LinkNews::Lost);
    world.replace_owner(Epoch(2));
    world.remove();
    assert_eq!(world.entrances(), [], "nobody has heard of that");
    world.link("a");
    assert_eq!(world.entrances(), [], "it has said that it knows it");
    world.acknowledge_removal("a");
    assert_eq!(world.entrances(), [Entrance::Host("one".to_owned())]);
}

#[test]
fn a_new_revision_is_led_to_the_activators_that_acknowledged_it_before_any_decision() {
    let mut world = World::with_activators(&["a", "b"]);
    assert_eq!(world.written, None, "none listens for it yet");
    for (name, expected) in [("a", vec!["a"]), ("b", vec!["a", "b"])] {
        world.acknowledge(name);
        let routing = world.written.as_ref().map(|route| route.routing);
        assert_eq!(
            (routing, world.routed_to()),
            (Some(Routing::Direct), expected),
            "pods, once one is ready"
        );
    }
}

#[test]
fn a_pod_that_refuses_its_link_is_not_ready_until_it_says_so() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    let state = |world: &World| world.told("a").expect("it serves").pods[0].state;
    world.link_of_pod("p", LinkNews::Lost);
    assert_eq!(state(&world), PodState::Ready, "a lost link changes nothing");
    world.link_of_pod("p", LinkNews::Refused);
    assert_eq!(state(&world), PodState::Unready);
    world.pod("p", vocabulary::PodWord::Hello(hello("p", PodState::Ready)));
    assert_eq!(state(&world), PodState::Ready);
}

/// One that crashes is being restarted, and whose drain was cut off says nothing of its app.
#[test]
fn a_leaving_pod_whose_queue_proxy_drained_and_ended_has_drained() {
    for (state, leaves, expected) in [
        (PodState::Draining, true, vec!["p".to_owned()]),
        (PodState::Draining, false, Vec::new()),
        (PodState::Ready, true, Vec::new()),
    ] {
        let mut world = World::with_activators(&["a"]);
        world.pods(&["p"]);
        world.pod_says("p", PodState::Ready);
        if leaves {
            world.leave("p");
        }
        world.pod_says("p", state);
        world.link_of_pod("p", LinkNews::Lost);
        assert_eq!(world.drained(), Vec::<String>::new(), "a lost link proves nothing");
        world.link_of_pod("p", LinkNews::Refused);
        assert_eq!(world.drained(), expected, "{state:?}, {leaves}");
    }
}

#[test]
fn a_count_of_another_writer_stays_and_the_next_decision_goes_on_from_it() {
    let mut world = World::with_activators(&["a"]);
    let count = PresentCount { in_flight: 1, waiting: 1 };
    let present =
        |count| vocabulary::ActivatorWord::Present { revision: name(), count, oldest_wait: Duration::ZERO };
    world.answer_scales_with(OrderOutcome::Conflict { found: vocabulary::PodCount::new(3) });
    world.activator("a", present(count));
    assert_eq!(world.counts(), [1]);
    let snapshot = world.snapshot();
    let view = snapshot.view(&name(), world.now).expect("it is ours");
    assert_eq!(view.status.wanted.value(), 3);
}

/// Class hpa goes on from the count that there is, and tries again at its next sync.
#[test]
fn a_count_of_class_hpa_that_is_refused_is_tried_again_at_the_next_sync() {
    let mut world = World::with_activators(&["a"]);
    world.wanted = 1;
    world.answer_scales_with(OrderOutcome::Refused("a quota".to_owned()));
    let class = ("autoscaling.knative.dev/class", "hpa.autoscaling.knative.dev");
    world.state_annotated(&[
        class,
        ("autoscaling.knative.dev/metric", "cpu"),
        ("autoscaling.knative.dev/min-scale", "3"),
    ]);
    let wanted = |world: &mut World| {
        let snapshot = world.snapshot();
        snapshot.view(&name(), world.now).expect("it is ours").status.wanted.value()
    };
    for sync in 1..=3 {
        world.pass(Duration::from_secs(15));
        assert_eq!((world.counts(), wanted(&mut world)), (vec![3], 1), "sync {sync}");
    }
    world.answer_scales_with(OrderOutcome::Done);
    world.pass(Duration::from_secs(15));
    assert_eq!((world.counts(), wanted(&mut world)), (vec![3], 3));
}

#[test]
fn a_complaint_of_a_sync_of_class_hpa_is_told_once() {
    let mut world = World::with_activators(&["a"]);
    world.wanted = 1;
    let class = ("autoscaling.knative.dev/class", "hpa.autoscaling.knative.dev");
    world.state_annotated(&[class, ("autoscaling.knative.dev/metric", "cpu")]);
    world.pass(Duration::from_secs(15));
    let told: Vec<&str> = world.people().into_iter().map(ReasonCode::word).collect();
    assert_eq!(
        told,
        ["FailedGetResourceMetric", "FailedComputeMetricsReplicas"],
        "there is no pod to measure"
    );
    world.pass(Duration::from_secs(30));
    assert_eq!(world.people(), []);
}

#[test]
fn the_oldest_wait_is_that_of_all_activators_and_grows_until_it_is_no_news() {
    let mut world = World::with_activators(&["a", "b"]);
    let count = PresentCount { in_flight: 1, waiting: 1 };
    for (activator, waited) in [("a", 700), ("b", 200)] {
        let oldest_wait = Duration::from_millis(waited);
        world.activator(
            activator,
            vocabulary::ActivatorWord::Present { revision: name(), count, oldest_wait },
        );
    }
    let snapshot = world.snapshot();
    let oldest = |world: &World| snapshot.view(&name(), world.now).expect("it is ours").oldest_wait();
    assert_eq!(oldest(&world), Some(Duration::from_millis(700)));
    world.pass(Duration::from_secs(1));
    assert_eq!(oldest(&world), Some(Duration::from_millis(1_700)));
    world.pass(Duration::from_secs(2));
    assert_eq!(oldest(&world), None, "nobody has said so for three seconds");
}

#[test]
fn late_bytes_of_a_pods_app_are_shown_until_its_connections_are_used_again() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    let second = |world: &mut World, late_bytes| {
        let sample = Sample { second: 0, load: vocabulary::Load::default() };
        world.pod("p", vocabulary::PodWord::Load { sample, usage: None, late_bytes });
    };
    let shown = |world: &mut World| {
        let snapshot = world.snapshot();
        let view = snapshot.view(&name(), world.now).expect("it is ours");
        view.pods(AppOutput::Withheld)[0].late_bytes
    };
    let late = |seconds| LateBytes { connections: 3, reuse_in: Duration::from_secs(seconds) };
    second(&mut world, None);
    assert_eq!(shown(&mut world), None);
    second(&mut world, Some(late(600)));
    world.pass(Duration::from_secs(100));
    assert_eq!(shown(&mut world), Some(late(500)), "a silent link changes nothing");
    world.pass(Duration::from_secs(500));
    assert_eq!(shown(&mut world), None);
    second(&mut world, Some(late(600)));
    second(&mut world, None);
    assert_eq!(shown(&mut world), None, "another queue-proxy has begun anew");
}

#[test]
fn a_takeover_goes_on_with_the_route_in_force_and_a_late_owner_orders_nothing() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    let before = world.orders;
    world.fact(PlatformFact::OwnershipChanged(Ownership { epochs: [].into(), buckets: 1 }));
    let count = PresentCount { in_flight: 900, waiting: 900 };
    world.activator(
        "a",
        vocabulary::ActivatorWord::Present { revision: name(), count, oldest_wait: Duration::ZERO },
    );
    world.leave("p");
    world.pass(Duration::from_secs(60));
    assert_eq!(world.orders, before, "it is another's affair");
    let route = RouteInForce { routing: Routing::Direct, activators: Vec::new() };
    world.fact(PlatformFact::RouteFound { revision: name(), route });
    let epochs = [(Bucket(0), Epoch(9))].into();
    world.fact(PlatformFact::OwnershipChanged(Ownership { epochs, buckets: 1 }));
    world.link("a");
    let told = world.told("a").expect("it serves");
    assert_eq!((told.version.epoch, told.routing), (Epoch(9), Routing::Direct));
}

/// Who has only stood by knows nothing of what waits, and no word of an activator repeats it but its hello.
#[test]
fn a_new_owner_hears_every_activators_hello_again() {
    let mut world = World::with_activators(&["a"]);
    world.fact(PlatformFact::OwnershipChanged(Ownership { epochs: [].into(), buckets: 1 }));
    let count = PresentCount { in_flight: 900, waiting: 900 };
    world.hold("a", count);
    assert_eq!(world.counts(), Vec::<u32>::new());
    let before = world.link_id("a", false);
    world.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(2))));
    assert!(world.link_id("a", false) > before, "a new link");
    world.link("a");
    assert_eq!(world.counts().last(), Some(&129), "900 wait, and a pod is to take 7");
    let link = world.link_id("a", false);
    world.fact(PlatformFact::OwnershipChanged(Ownership { epochs: [].into(), buckets: 1 }));
    assert_eq!(world.link_id("a", false), link, "what is only lost needs no hello");
}

#[test]
fn an_activator_on_its_way_out_is_released_when_no_route_names_it() {
    let mut world = World::with_activators(&["a", "b"]);
    world.routed();
    world.acknowledge_all();
    world.activator("b", vocabulary::ActivatorWord::Draining);
    world.acknowledge_all();
    assert_eq!(world.released_activators(), ["b"]);
}

#[test]
fn pods_of_a_revision_are_told_their_settings_before_anything_else() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    let settings = world.settings("p").expect("its link was opened with them");
    assert_eq!(settings.version.epoch, Epoch(1));
    let leaving = PodFacts { ends_in: Some(Duration::from_secs(40)), ..pod("p") };
    world.fact(PlatformFact::PodsChanged { revision: name(), pods: vec![leaving] });
    let told = world.settings("p").expect("it is told");
    assert_eq!(told.departure, vocabulary::Departure::Leaving { within: Duration::from_secs(40) });
    assert!(told.version > settings.version);
}

/// On a cluster a pod accepts until it hears that neither an assignment nor a route names it.
#[test]
fn a_pod_hears_that_it_is_released_when_no_route_or_activator_leads_to_it() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    let departure = |world: &World| world.settings("p").expect("it is linked").departure;
    let within = Duration::from_secs(40);
    let leaving = PodFacts { leaving: true, ends_in: Some(within), ..pod("p") };
    world.fact(PlatformFact::PodsChanged { revision: name(), pods: vec![leaving] });
    assert_eq!(departure(&world), vocabulary::Departure::Leaving { within });
    world.acknowledge_all();
    assert_eq!(world.releases(), [("p".to_owned(), ReleaseProof::Acknowledged)]);
    assert_eq!(departure(&world), vocabulary::Departure::Released);
}

/// On one machine the supervisor sends TERM to a pod that is released, and that is the one beginning of its
/// end.
#[test]
fn a_pod_that_its_platform_ends_by_term_hears_nothing_of_its_departure() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.acknowledge_all();
    let told = world.settings("p").expect("it is linked");
    let leaving = PodFacts { leaving: true, ..pod("p") };
    world.fact(PlatformFact::PodsChanged { revision: name(), pods: vec![leaving] });
    world.acknowledge_all();
    assert_eq!(world.releases(), [("p".to_owned(), ReleaseProof::Acknowledged)]);
    assert_eq!(world.settings("p").expect("it is linked").departure, vocabulary::Departure::NotPlanned);
    assert_eq!(world.settings("p").expect("it is linked").version, told.version, "nothing is said again");
}

#[test]
fn after_a_restart_the_route_in_force_is_left_alone() {
    let mut world = World::new(0);
    world.pods.insert("p".to_owned(), pod("p"));
    world.begin_with_route(&["a"], Routing::ThroughActivator);
    world.pod_says("p", PodState::Ready);
    assert_eq!(world.written, None, "nobody has acknowledged, and yet nothing is rewritten");
    world.acknowledge_all();
    assert_eq!(world.written, None);
}

/// It is two writes that no activator needs, and for a moment one activator has the requests of all.
#[test]
fn after_a_restart_who_serves_stays_in_the_route_until_it_has_been_asked() {
    let mut world = World::new(0);
    world.begin_with_route(&["a", "b"], Routing::ThroughActivator);
    world.acknowledge("a");
    assert_eq!(world.written, None, "the other one serves as before");
    world.acknowledge("b");
    assert_eq!(world.written, None);

    // One that lives no more leaves it, and that it serves again is to be proven then.
    let mut world = World::new(0);
    world.begin_with_route(&["a", "b"], Routing::ThroughActivator);
    world.acknowledge("a");
    world.life("b", ActivatorLife::NotReady);
    assert_eq!(world.routed_to(), ["a"]);
    world.life("b", ActivatorLife::Ready);
    assert_eq!(world.routed_to(), ["a"], "it may be another process of that name");
    world.acknowledge("b");
    assert_eq!(world.routed_to(), ["a", "b"]);
}

/// It was linked all the time, and each says hello to it once more, one after the other.
#[test]
fn a_standby_that_takes_over_keeps_who_serves_until_it_has_been_asked() {
    for routing in [Routing::ThroughActivator, Routing::Direct] {
        let mut world = World::new(0);
        world.pods.insert("p".to_owned(), pod("p"));
        world.stand_by(&["a", "b"], routing);
        world.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(2))));
        world.link("a");
        world.acknowledge("a");
        assert_eq!(world.written, None, "the other one serves as before");
        world.link("b");
        let version = Version { epoch: Epoch(1), counter: 9 };
        world.activator("b", ActivatorWord::Acknowledged { revision: name(), version });
        assert_eq!(world.written, None, "that was the former owner's");
        world.acknowledge("b");
        assert_eq!(world.written, None);
    }
}

/// An acknowledgement to the former owner keeps an activator in a route, and brings none into it.
#[test]
fn an_activator_that_left_the_route_serves_again_once_it_has_acknowledged_to_the_present_owner() {
    let mut world = World::choosing(ActivatorChoice::AsManyAsNeeded, &["a", "b"]);
    world.acknowledge("b");
    assert_eq!(world.routed_to(), ["b"]);
    world.owner_changed();
    world.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(2))));
    world.add_activator("c");
    world.link("c");
    world.acknowledge("c");
    assert_eq!(world.routed_to(), ["b", "c"], "b serves as before");
    world.link_of_activator("b", LinkNews::Refused);
    assert_eq!(world.routed_to(), ["c"]);
    world.link("b");
    assert_eq!(world.routed_to(), ["c"], "b has acknowledged nothing of the present owner's");
    world.acknowledge("b");
    assert_eq!(world.routed_to(), ["b", "c"]);
}

#[test]
fn an_activator_that_forgot_the_revision_for_an_owner_in_between_is_not_in_the_route() {
    let mut world = World::with_activators(&["a", "b"]);
    world.acknowledge_all();
    assert_eq!(world.routed_to(), ["a", "b"]);
    world.fact(PlatformFact::OwnershipChanged(Ownership { epochs: [].into(), buckets: 1 }));
    // Another owner leads to the first alone, and has the second forget the revision.
    let (version, now) = (Version { epoch: Epoch(2), counter: 1 }, world.now);
    let second = world.activators.get_mut("b").expect("it is there");
    second.tell(Told::Unassigned(version, Unassignment::Forgotten), now);
    assert_eq!(world.forgotten("b"), 1);
    let route = RouteInForce { routing: Routing::Direct, activators: vec![ReplicaName::new("a")] };
    world.written = Some(route.clone());
    world.fact(PlatformFact::RouteFound { revision: name(), route });
    world.owner_changed();
    world.stall("b");
    world.fact(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(3))));
    world.link("a");
    world.link("b");
    world.acknowledge("a");
    assert_eq!(world.routed_to(), ["a"], "b does not know the revision");
    world.resume("b");
    world.acknowledge("b");
    assert_eq!(world.routed_to(), ["a", "b"]);
}

#[test]
fn waiting_requests_of_a_revision_that_was_given_back_are_served_before_it_is_forgotten() {
    let mut world = World::with_activators(&["a"]);
    world.acknowledge_all();
    world.hold("a", PresentCount { in_flight: 1, waiting: 1 });
    world.give_back();
    world.acknowledge_all();
    assert_eq!(world.told("a").map(|told| told.standing), Some(Standing::Retired));
    world.empty("a");
    assert_eq!((world.forgotten("a"), world.told("a")), (1, None));
    assert_eq!(world.breaches, Vec::<String>::new());
}

#[test]
fn the_platforms_floor_brings_pods_and_keeps_them_whatever_the_settings_say() {
    let mut world = World::with_activators(&["a"]);
    world.pass(Duration::from_secs(4));
    assert_eq!(world.counts(), []);
    world.floor = 2;
    world.state_revision();
    world.pass(Duration::from_secs(4));
    assert_eq!(world.counts(), [2]);
    world.pass(Duration::from_secs(300));
    assert_eq!(world.counts(), [], "nobody asks for it, and it stays");
}

#[test]
fn a_count_that_the_platform_may_not_write_is_decided_and_not_ordered() {
    let mut world = World::with_activators(&["a"]);
    world.may_write = false;
    world.floor = 2;
    world.state_revision();
    world.pass(Duration::from_secs(4));
    assert_eq!(world.counts(), []);
    world.may_write = true;
    world.state_revision();
    world.pass(Duration::from_secs(4));
    assert_eq!(world.counts(), [2]);
}

#[test]
fn a_held_revision_keeps_no_request_waiting_unless_a_pod_is_ready_or_on_its_way() {
    let mut world = World::with_activators(&["a"]);
    world.held = Some("another one decides".to_owned());
    world.state_revision();
    assert_eq!(world.told("a").and_then(|told| told.hold.as_deref()), Some("another one decides"));
    world.held = None;
    world.state_annotated(&[("ebb.dev/paused", "true")]);
    assert_eq!(world.told("a").and_then(|told| told.hold.as_deref()), Some("paused"));
    // A person asks for one.
    world.wanted = 1;
    world.state_annotated(&[("ebb.dev/paused", "true")]);
    assert_eq!(world.told("a").and_then(|told| told.hold.as_deref()), None);
    world.wanted = 0;
    world.state_annotated(&[("ebb.dev/paused", "true")]);
    assert_eq!(world.told("a").and_then(|told| told.hold.as_deref()), Some("paused"));
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    assert_eq!(world.told("a").and_then(|told| told.hold.as_deref()), None);
}

/// What stands in an assignment is answered to whichever client asks.
#[test]
fn an_assignment_repeats_an_apps_output_only_where_the_platform_withholds_none() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    let mut told = |trouble: &str, without_output: Option<&str>, hold: &str| {
        let failing = PodFacts {
            trouble: Some(trouble.to_owned()),
            trouble_without_output: without_output.map(str::to_owned),
            hold: Some(hold.to_owned()),
            ..pod("p")
        };
        world.pods.insert("p".to_owned(), failing);
        world.state_pods();
        world.pass(Duration::from_secs(1));
        let told = world.told("a").expect("it serves");
        (told.waiting_for.clone(), told.hold.clone().unwrap_or_default())
    };
    let without_output = format!("it failed ({})", AppOutput::ADVICE);
    let (waiting_for, hold) = told("it failed: the password is 4711", Some(&without_output), &without_output);
    let expected = "it failed (`ebb explain default/service/hello` shows its last lines)";
    assert_eq!((waiting_for, hold), (format!("pod p: {expected}"), expected.to_owned()));
    let (waiting_for, hold) = told("it failed: no database", None, "it failed: no database");
    assert!(waiting_for.contains("no database") && hold.contains("no database"), "{waiting_for} {hold}");
}

#[test]
fn activators_hear_at_once_whose_requests_are_not_measured() {
    let mut world = World::with_activators(&["a"]);
    let agents = |world: &World| world.told("a").expect("it serves").ignored_user_agents.to_string();
    assert_eq!(agents(&world), vocabulary::IgnoredUserAgents::default().to_string());
    let config = |text: &str| {
        let ignored_user_agents = text.parse().expect("they are visible");
        PlatformFact::ConfigChanged(Arc::new(settings::ClusterConfig {
            ignored_user_agents,
            ..settings::ClusterConfig::default()
        }))
    };
    world.fact(config("Prometheus/"));
    assert_eq!(agents(&world), "Prometheus/");
    world.state_annotated(&[("ebb.dev/ignore-user-agents", "HAProxy")]);
    assert_eq!(agents(&world), "HAProxy");
    world.fact(config("kube-probe/"));
    assert_eq!(agents(&world), "HAProxy", "a revision's own stand instead");
}

#[test]
fn activators_and_pods_hear_at_once_how_large_heads_may_be() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    let told = |world: &World| {
        let of_pod = world.settings("p").expect("it is linked").head_size_limit.to_string();
        assert_eq!(world.told("a").expect("it serves").head_size_limit.to_string(), of_pod);
        of_pod
    };
    assert_eq!(told(&world), "128Ki");
    let config = |bytes: u32| {
        let head_size_limit = vocabulary::HeadSizeLimit::new(bytes).expect("in range");
        PlatformFact::ConfigChanged(Arc::new(settings::ClusterConfig {
            head_size_limit,
            ..settings::ClusterConfig::default()
        }))
    };
    world.fact(config(256 << 10));
    assert_eq!(told(&world), "256Ki");
    world.state_annotated(&[("ebb.dev/head-size-limit", "64Ki")]);
    assert_eq!(told(&world), "64Ki");
    world.fact(config(32 << 10));
    assert_eq!(told(&world), "32Ki", "an annotation that was accepted before lets nothing larger in");
}
