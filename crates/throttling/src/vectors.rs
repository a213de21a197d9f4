//! Which vectors of the data-plane specification (§9) this crate answers, and which of them we overturn.

/// A vector whose outcome here is not the reference's, on purpose.
struct OverturnedVector {
    id: &'static str,
    reference: &'static str,
    ours: &'static str,
    why: &'static str,
}

/// Every vector of this crate's questions that we answer differently.
const OVERTURNED: &[OverturnedVector] = &[
    OverturnedVector {
        id: "B9",
        reference: "a slot that becomes free may go to a newcomer",
        ours: "the oldest waiter gets it in the same call",
        why: "unlucky waiters starved until their timeout (L14)",
    },
    OverturnedVector {
        id: "S9–S11",
        reference: "(1, 1) at once, then one less in the next report, and an idle revision is dropped",
        ours: "(1.5, 2), (1.5, 0), (0, 0)",
        why: "a second's value replaces the early report, so nothing is subtracted (design §4)",
    },
    OverturnedVector {
        id: "S12, N10",
        reference: "(1, 1) at once, (1, 1), (2, 0)",
        ours: "(2, 2), (2, 0)",
        why: "design §4",
    },
    OverturnedVector {
        id: "S13, N9", reference: "(1, 1) at once, (0, 1)", ours: "(1, 2)", why: "design §4"
    },
    OverturnedVector {
        id: "S14, N12",
        reference: "(1, 1) at once, (0.5, 1)",
        ours: "(1.5, 2)",
        why: "design §4",
    },
    OverturnedVector { id: "S15", reference: "(1, 1) at once, (0, 2)", ours: "(0, 3)", why: "design §4" },
    OverturnedVector {
        id: "S16, N11",
        reference: "(0, 0), then (1, 1) at once again",
        ours: "(1, 1), (0, 0), then (0.5, 1) for the second in which the request came",
        why: "design §4",
    },
    OverturnedVector {
        id: "V13",
        reference: "12,000 wait, none is refused",
        ours: "10,000 wait, 2,000 are refused",
        why: "an unbounded queue takes the process down with everyone's requests (L13)",
    },
    OverturnedVector {
        id: "C22",
        reference: "waits until the removed pod's request ends",
        ours: "runs on the idle pod at once",
        why: "free slots of single pods decide alone (L15)",
    },
    OverturnedVector {
        id: "C23",
        reference: "two run in a pod with one slot",
        ours: "the second waits",
        why: "what runs is counted per pod name (L16)",
    },
    OverturnedVector {
        id: "V17",
        reference: "no pod is an error, and a cancelled request runs once there is one",
        ours: "no pod means waiting, and what gave up never runs",
        why: "L19",
    },
];

/// Vectors of the same families that ask something which this crate does not decide.
const ELSEWHERE: &[(&str, &str)] = &[
    ("B2", "queue-proxy: the same over HTTP/2"),
    ("B5", "queue-proxy: no breaker without a limit"),
    ("B11", "queue-proxy: timeouts"),
    ("C1", "no ClusterIP mode: pods are always addressed one by one"),
    ("C2", "no ClusterIP mode"),
    ("C3", "a pod without a limit has room always; the gate is the list of ready pods"),
    ("C4–C16", "orchestration: slices of the slots"),
    ("C24–C25", "orchestration: the choice of activators"),
];

/// The sources whose tests name vectors.
const SOURCES: [&str; 4] = [
    include_str!("breaker.rs"),
    include_str!("balancer.rs"),
    include_str!("load_meter/tests.rs"),
    include_str!("throttler/tests.rs"),
];

/// The single ids in a text such as `S9–S11` or `S12, N10`.
fn ids(text: &str) -> Vec<String> {
    let number = |id: &str| id[1..].parse::<u32>().expect("an id is a letter and a number");
    text.split(", ")
        .flat_map(|part| match part.split_once('–') {
            Some((first, last)) => {
                (number(first)..=number(last)).map(|n| format!("{}{n}", &first[..1])).collect::<Vec<_>>()
            }
            None => vec![part.to_owned()],
        })
        .collect()
}

/// Whether a test source names the id, alone or within a range.
fn is_named(id: &str) -> bool {
    let words = SOURCES.iter().flat_map(|source| source.split(|c: char| !c.is_alphanumeric() && c != '–'));
    words.into_iter().any(|word| {
        let lower = word.to_lowercase();
        let is_range_with_id = word.contains('–')
            && word.starts_with(&id[..1])
            && word.split('–').all(|end| end.len() > 1 && end[1..].parse::<u32>().is_ok())
            && ids(word).iter().any(|inner| inner == id);
        is_range_with_id || lower == id.to_lowercase()
    }) || SOURCES.iter().any(|source| source.contains(&format!("fn {}_", id.to_lowercase())))
}

#[test]
fn every_vector_of_our_families_is_tested_or_accounted_for() {
    let elsewhere: Vec<String> = ELSEWHERE.iter().flat_map(|(list, _)| ids(list)).collect();
    let overturned: Vec<String> = OVERTURNED.iter().flat_map(|row| ids(row.id)).collect();
    for (family, count) in [('B', 11), ('S', 16), ('C', 25)] {
        for number in 1..=count {
            let id = format!("{family}{number}");
            let is_accounted = elsewhere.contains(&id) || overturned.contains(&id);
            assert!(is_accounted || is_named(&id), "{id} is neither tested nor in a table");
        }
    }
}

#[test]
fn every_overturned_vector_is_tested_with_our_value() {
    for row in OVERTURNED {
        assert_ne!(row.reference, row.ours);
        assert!(!row.why.is_empty());
        for id in ids(row.id) {
            assert!(is_named(&id), "{id} has a value of ours that no test names");
        }
    }
}
