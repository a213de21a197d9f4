//! The vectors V1–V17 of the data-plane specification (§9.6): which of them hold here, and what replaces the
//! others.

/// What becomes of a vector.
enum Fate {
    /// It holds; a test names it.
    Holds,
    /// Something of ours takes its place, shown by the named test.
    Replaced { by: &'static str, test: &'static str, why: &'static str },
    /// Nothing here asks that question.
    NotAsked { why: &'static str },
}
use Fate::{Holds, NotAsked, Replaced};

const VECTORS: [(&str, Fate); 17] = [
    (
        "V1",
        NotAsked {
            why: "the Host names the revision; identity headers are an ingress's and are stripped (D9, L12)",
        },
    ),
    (
        "V2",
        Replaced {
            by: "any host of the assignment, with or without port",
            test: "a_host_is_compared_without_port_case_and_final_dot",
            why: "the autoscaler says which hosts there are",
        },
    ),
    (
        "V3",
        Replaced {
            by: "404, ebb-error: no-such-revision",
            test: "an_unknown_host_is_unknown_only_after_the_first_sync",
            why: "design §6",
        },
    ),
    (
        "V4",
        Replaced {
            by: "200: case does not matter in the DNS",
            test: "an_unknown_host_is_unknown_only_after_the_first_sync",
            why: "routing by Host",
        },
    ),
    (
        "V5",
        Replaced {
            by: "the Host wins; the header does not reach the pod",
            test: "the_pod_sees_who_sent_the_request_and_nothing_a_client_made_up",
            why: "L12",
        },
    ),
    ("V6", NotAsked { why: "as V1" }),
    ("V7", NotAsked { why: "health is the admin port's, and does not depend on the autoscaler (L29)" }),
    ("V8", NotAsked { why: "probes are answered on the admin port (design §6)" }),
    ("V9", NotAsked { why: "as V8" }),
    ("V10", NotAsked { why: "as V8" }),
    ("V11", Holds),
    (
        "V12",
        Replaced {
            by: "nothing is written to a client that has gone; place and slot are free at once",
            test: "a_client_that_leaves_gives_back_its_slot_and_its_place",
            why: "a 500 that no client reads only spoils the metrics",
        },
    ),
    (
        "V13",
        Replaced {
            by: "what exceeds the limit is refused",
            test: "more_than_a_limit_of_waiting_requests_are_refused",
            why: "L13; the full number is in throttling",
        },
    ),
    (
        "V14",
        Replaced {
            by: "502, ebb-error: upstream-closed, without the operating system's words",
            test: "a_pod_that_breaks_off_a_request_it_may_have_started_is_a_502",
            why: "L35, and L21 where the request was not started",
        },
    ),
    ("V15", NotAsked { why: "there is no mesh passthrough" }),
    (
        "V16",
        Replaced {
            by: "503 queue-full with Retry-After; 504 no-ready-pod at the deadline",
            test: "more_than_a_limit_of_waiting_requests_are_refused",
            why: "L50 and design §6",
        },
    ),
    (
        "V17",
        Replaced {
            by: "no pod means waiting, and what gave up never runs",
            test: "a_client_that_leaves_gives_back_its_slot_and_its_place",
            why: "L19",
        },
    ),
];

const SOURCES: [&str; 3] = [
    include_str!("stack.rs"),
    include_str!("../tests/activator/requests.rs"),
    include_str!("../tests/activator/retries.rs"),
];

#[test]
fn every_vector_is_accounted_for_and_the_named_tests_exist() {
    for (number, (id, fate)) in (1..).zip(&VECTORS) {
        assert_eq!(*id, format!("V{number}"));
        let is_there = |name: &str| SOURCES.iter().any(|source| source.contains(&format!("fn {name}")));
        match fate {
            Holds => assert!(is_there(&format!("{}_", id.to_lowercase())), "{id} has no test"),
            Replaced { by, test, why } => {
                assert!(is_there(&format!("{test}(")), "{id}: no test is called {test}");
                assert!(!by.is_empty() && !why.is_empty());
            }
            NotAsked { why } => assert!(!why.is_empty()),
        }
    }
}
