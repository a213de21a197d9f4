//! Which vectors of the data-plane specification (§9.1–9.5) hold here, and which of them we overturn on
//! purpose. The tests that prove them, or what stands in their place, name their ids.

/// A vector whose outcome here is not the reference's.
struct OverturnedVector {
    id: &'static str,
    reference: &'static str,
    ours: &'static str,
    why: &'static str,
}

/// Every vector that we answer differently, or that asks about what we do not have.
const OVERTURNED: &[OverturnedVector] = &[
    OverturnedVector {
        id: "P1–P8",
        reference: "answered on the request port to every client",
        ours: "answered there to our own hops (hop key), and to every client in Knative's place and on the admin port; else the app answers",
        why: "any client could pose as a prober (L12, design §8)",
    },
    OverturnedVector {
        id: "P2",
        reference: "a kubelet's bare probe is 400",
        ours: "400 on the admin port; on the request port the app answers, with a hop key too",
        why: "the agent is the client's header, and an activator passes it on (L12)",
    },
    OverturnedVector {
        id: "P9",
        reference: "K-Kubelet-Probe bypasses breaker and load for every client",
        ours: "only with a hop key, or in Knative's place",
        why: "L12",
    },
    OverturnedVector {
        id: "P13",
        reference: "/wait-for-drain makes the pod unready for a second",
        ours: "it waits up to ten seconds for a drain and changes nothing",
        why: "any client that reached the pod could take it out of service (L11)",
    },
    OverturnedVector {
        id: "P15, P16",
        reference: "30 s after the last request",
        ours: "as soon as nothing is in flight and no connection of an activator is open",
        why: "the routers have acknowledged by then (L6, L7)",
    },
    OverturnedVector {
        id: "P17",
        reference: "an open WebSocket is cut after 90 s",
        ours: "after the longest request timeout, or the drain limit where there is none, and 45 s",
        why: "L9",
    },
    OverturnedVector {
        id: "R1–R4, R17",
        reference: "a prober that runs when asked, up to 10 s",
        ours: "the app is asked all the time, and each caller gets the last answer at once",
        why: "D4, L42: the kubelet's own limit ended first",
    },
    OverturnedVector {
        id: "R8",
        reference: "an HTTPS probe fails on a self-signed certificate",
        ours: "it checks that the port accepts connections, with a warning at the start",
        why: "TLS is not spoken yet; the kubelet verifies nothing either (L41)",
    },
    OverturnedVector {
        id: "R9–R11",
        reference: "HTTP/2 is detected on each probe",
        ours: "the setting is accepted with a warning",
        why: "not built yet",
    },
    OverturnedVector {
        id: "R13",
        reference: "exec fails always",
        ours: "the command is run",
        why: "design §7",
    },
    OverturnedVector {
        id: "O2, O3, O8",
        reference: "a timer appends its text to a response that has begun, and ends it cleanly",
        ours: "the response is broken off and nothing is added, unless an owner in Knative's place chooses that (late-timeout)",
        why: "a truncated answer must not look whole (L2)",
    },
    OverturnedVector {
        id: "O5, O6",
        reference: "504 \"request timeout\"",
        ours: "504 with the name of the timer that fired",
        why: "design §6",
    },
    OverturnedVector {
        id: "O9",
        reference: "a busy WebSocket is closed by the response-start and idle limits",
        ours: "by the request limit only",
        why: "L4",
    },
    OverturnedVector {
        id: "O10",
        reference: "a timeout of 0 expires at once",
        ours: "it is no limit",
        why: "design §6",
    },
    OverturnedVector {
        id: "O12, O13",
        reference: "the inner task of a request goes on after its timer fired",
        ours: "there is no inner task: the exchange is dropped",
        why: "one task per request (L37)",
    },
    OverturnedVector {
        id: "H8–H10",
        reference: "internal headers are believed and passed on",
        ours: "with a hop key, or in Knative's place; else they are stripped",
        why: "L12",
    },
    OverturnedVector {
        id: "H13, H14, H28",
        reference: "labels of metrics and logs",
        ours: "no route tags; the trace of a line as there",
        why: "tracing is not built yet",
    },
    OverturnedVector {
        id: "H15, H16",
        reference: "502 with the raw error, addresses included",
        ours: "502 with a fixed text",
        why: "L35",
    },
    OverturnedVector {
        id: "H18",
        reference: "103 reaches the client",
        ours: "it is dropped, and the final status stays what it is",
        why: "the HTTP stack cannot send it",
    },
    OverturnedVector {
        id: "H19, H20",
        reference: "the client gets 200 after an interim status (a bug)",
        ours: "the final status",
        why: "L1",
    },
    OverturnedVector {
        id: "H22",
        reference: "unannounced trailers reach the client",
        ours: "over HTTP/2; over HTTP/1.1 the announced ones, to clients that say TE: trailers",
        why: "the HTTP stack writes no others",
    },
    OverturnedVector {
        id: "H23",
        reference: "Upgrade: h2c is answered 101, then 502",
        ours: "the offer is ignored",
        why: "L44",
    },
    OverturnedVector {
        id: "H25",
        reference: "CONNECT is 502",
        ours: "405",
        why: "CONNECT is a mistake of the client; a 502 counts as one of the app",
    },
    OverturnedVector {
        id: "H29",
        reference: "a lock-step exchange stalls unless full duplex is switched on",
        ours: "it flows",
        why: "L43",
    },
    OverturnedVector {
        id: "S9–S16",
        reference: "an activator's early message is subtracted from its next report",
        ours: "a second's value replaces what was said early",
        why: "design §4; see the same table of the throttling crate",
    },
];

/// Vectors of our families that other crates answer, and those that no test here can.
const ELSEWHERE: &[(&str, &str)] = &[
    ("R5–R7", "dataplane: what a probe asks"),
    ("R12", "as R5"),
    ("R8–R11", "not built yet, see above"),
    ("B6–B10", "throttling"),
    ("H3–H7", "dataplane: the headers that a hop writes"),
    ("O12, O13", "there is no inner task that could go on"),
    ("H13, H14, H28", "not built yet, see above; the trace of a line: `runtime::request_log`"),
];

/// The files whose tests name vectors.
const TESTS: &[&str] = &[
    include_str!("config/tests.rs"),
    include_str!("health/tests.rs"),
    include_str!("stat.rs"),
    include_str!("../tests/it/breaker.rs"),
    include_str!("../tests/it/drain.rs"),
    include_str!("../tests/it/headers.rs"),
    include_str!("../tests/it/pages.rs"),
    include_str!("../tests/it/program.rs"),
    include_str!("../tests/it/protocols.rs"),
    include_str!("../tests/it/timeouts.rs"),
];

/// `P1–P8, R7` one by one.
fn ids(text: &str) -> Vec<String> {
    let number = |id: &str| id[1..].parse::<u32>().expect("an id is a letter and a number");
    text.split(", ")
        .flat_map(|part| {
            let (first, last) = part.split_once('–').unwrap_or((part, part));
            (number(first)..=number(last)).map(|n| format!("{}{n}", &first[..1])).collect::<Vec<_>>()
        })
        .collect()
}

fn is_named(id: &str) -> bool {
    TESTS
        .iter()
        .flat_map(|source| source.split(|letter: char| !letter.is_alphanumeric()))
        .any(|word| word.eq_ignore_ascii_case(id))
}

#[test]
fn every_vector_of_our_families_is_tested_or_accounted_for() {
    let elsewhere: Vec<String> = ELSEWHERE.iter().flat_map(|(list, _)| ids(list)).collect();
    for (family, count) in [('P', 18), ('R', 17), ('B', 11), ('O', 13), ('H', 29)] {
        for number in 1..=count {
            let id = format!("{family}{number}");
            assert_ne!(
                is_named(&id),
                elsewhere.contains(&id),
                "{id} is neither tested nor in a table, or both"
            );
        }
    }
}

#[test]
fn every_overturned_vector_says_what_stands_in_its_place_and_why() {
    for row in OVERTURNED {
        assert_ne!(row.reference, row.ours, "{}", row.id);
        assert!(!ids(row.id).is_empty() && !row.why.is_empty(), "{}", row.id);
    }
}
