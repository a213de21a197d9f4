use vocabulary::{Concurrency, Load, RequestRate};

use super::*;
use crate::readiness::tests::{heard, pod};

fn loaded(concurrency: f64) -> HeardOfPod {
    let load = Load { concurrency: Concurrency::clamped(concurrency), ..Load::default() };
    HeardOfPod { load, ..heard(PodState::Ready) }
}

#[test]
fn pods_that_are_not_ready_end_first_then_the_least_loaded() {
    let pods = [
        (pod("busy"), loaded(9.0)),
        (pod("idle-b"), loaded(0.0)),
        (pod("idle-a"), loaded(0.0)),
        (pod("starting"), heard(PodState::Starting)),
        (PodFacts { leaving: true, ..pod("leaving") }, loaded(0.0)),
        (pod("half"), loaded(4.5)),
    ];
    let order = |count| {
        let names = end_first(pods.iter().map(|(pod, heard)| (pod, heard)), count);
        names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(4), ["starting", "idle-a", "idle-b", "half"]);
    assert_eq!(order(0), Vec::<String>::new());
}

/// Under metric rps a stream is no load, and yet it is what an end disturbs.
#[test]
fn pods_with_nothing_in_flight_end_before_pods_with_a_stream() {
    let rates = |rate: f64, concurrency: f64| {
        let load = Load {
            concurrency: Concurrency::clamped(concurrency),
            request_rate: RequestRate::clamped(rate),
            ..Load::default()
        };
        HeardOfPod { load, ..heard(PodState::Ready) }
    };
    let pods = [
        (pod("a-stream"), rates(0.0, 1.0)),
        (pod("b-quick-requests"), rates(50.0, 0.05)),
        (pod("c-idle"), rates(0.0, 0.0)),
    ];
    let names = end_first(pods.iter().map(|(pod, heard)| (pod, heard)), 3);
    let names: Vec<&str> = names.iter().map(PodName::as_str).collect();
    assert_eq!(names, ["c-idle", "b-quick-requests", "a-stream"]);
}
