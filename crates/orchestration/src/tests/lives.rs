//! When pods came, became ready, began to leave and went, as readers see it.

use std::sync::Arc;

use vocabulary::{PodName, Timestamp};

use super::world::pod;
use crate::pod_lives::PodLives;
use crate::{PodFacts, PodStart};

#[test]
fn a_pod_has_the_time_of_each_step_and_the_reason_of_its_end() {
    let (a, b) = (pod("a"), pod("b"));
    let known = PodStart::known(None, at(1));
    let ready = PodStart { running_at: Some(at(2)), ready_at: Some(at(3)), ..known };
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
        let start = PodStart::known(None, at(number));
        lives = after(&lives, &[(pod(&format!("p{number}")), start)], number);
    }
    let ended: Vec<&str> = lives.ended().map(|ended| ended.name.as_str()).collect();
    assert_eq!((ended.len(), ended[0], ended[19]), (20, "p29", "p48"));
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn after(former: &Arc<PodLives>, pods: &[(PodFacts, PodStart)], second: u64) -> Arc<PodLives> {
    let pods = pods.iter().map(|(facts, start)| (facts, *start));
    let story = |name: &PodName| (name.as_str() == "b").then(|| "the app exited with code 3".to_owned());
    PodLives::after(Arc::clone(former), pods, story, at(second))
}
