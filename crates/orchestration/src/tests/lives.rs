//! When pods came, became ready, began to leave and went, as readers see it.

use std::sync::Arc;
use std::time::Duration;

use scaling::PodPhase;
use vocabulary::{PodName, PodState, Timestamp};

use super::world::{World, name, pod};
use crate::pod_lives::PodLives;
use crate::{PodFacts, StartSteps};

#[test]
fn a_pod_has_the_time_of_each_step_and_the_reason_of_its_end() {
    let (a, b) = (pod("a"), pod("b"));
    let known = StartSteps::known(None, at(1));
    let ready = StartSteps { running_at: Some(at(2)), ready_at: Some(at(3)), ..known };
    let first = after(&Arc::default(), &[(a.clone(), known), (b.clone(), known)], 1);
    let both = [(a.clone(), ready), (b, ready)];
    let second = after(&first, &both, 3);
    assert!(Arc::ptr_eq(&second, &after(&second, &both, 4)), "nothing has changed");
    let leaving = PodFacts { leaving: true, ..a };
    let third = after(&second, &[(leaving, ready)], 5);
    let life = third.of(&PodName::new("a")).expect("it is there");
    assert_eq!((life.start, life.ending_at), (ready, Some(at(5))));
    let last = after(&third, &[], 7);
    let ended: Vec<_> = last.ended().map(|ended| (ended.name.as_str(), ended.gone_at)).collect();
    assert_eq!(ended, [("b", at(5)), ("a", at(7))]);
    let why: Vec<&str> = last.ended().map(|ended| ended.why.as_str()).collect();
    assert!(why[0].contains("code 3") && why[1].starts_with("it was told to end"), "{why:?}");
}

#[test]
fn the_last_pods_that_ended_are_kept() {
    let mut lives = Arc::default();
    for number in 0..50 {
        let start = StartSteps::known(None, at(number));
        lives = after(&lives, &[(pod(&format!("p{number}")), start)], number);
    }
    let ended: Vec<&str> = lives.ended().map(|ended| ended.name.as_str()).collect();
    assert_eq!((ended.len(), ended[0], ended[19]), (20, "p29", "p48"));
}

#[test]
fn a_pod_that_was_ordered_has_the_time_of_each_step_of_its_start() {
    let mut world = World::with_activators(&["a"]);
    let asked_at = world.now;
    let after = |milliseconds| asked_at + Duration::from_millis(milliseconds);
    world.routed();
    assert_eq!(world.counts(), [1]);
    world.now = after(4);
    let made = PodFacts { phase: PodPhase::Pending, requests: None, link: None, ..pod("p") };
    world.pods.insert("p".to_owned(), made);
    world.state_pods();
    world.now = after(20);
    world.pods(&["p"]);
    world.now = after(70);
    world.pod_says("p", PodState::Ready);
    let (running_at, ready_at) = (Some(after(20)), Some(after(70)));
    let expected = StartSteps { asked_at: Some(asked_at), known_at: after(4), running_at, ready_at };
    assert_eq!(start_of("p", &mut world), expected);

    world.now = after(90);
    world.pods(&["q"]);
    assert_eq!(start_of("q", &mut world).asked_at, None, "it takes the place of the first pod");
}

fn start_of(pod: &str, world: &mut World) -> StartSteps {
    let snapshot = world.snapshot();
    let view = snapshot.view(&name(), world.now).expect("it is ours");
    view.pod_life(&PodName::new(pod)).expect("it is there").start
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn after(former: &Arc<PodLives>, pods: &[(PodFacts, StartSteps)], second: u64) -> Arc<PodLives> {
    let pods = pods.iter().map(|(facts, start)| (facts, *start));
    let story = |name: &PodName| (name.as_str() == "b").then(|| "the app exited with code 3".to_owned());
    PodLives::after(Arc::clone(former), pods, story, at(second))
}
