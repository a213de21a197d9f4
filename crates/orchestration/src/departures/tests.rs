use vocabulary::{Concurrency, Load};

use super::*;
use crate::readiness::tests::{heard, pod};

fn loaded(concurrency: f64) -> HeardOfPod {
    let load = Load { concurrency: Concurrency::clamped(concurrency), ..Load::default() };
    HeardOfPod { load, ..heard(PodState::Ready) }
}

#[test]
fn those_that_serve_nobody_end_first_then_the_least_loaded() {
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
