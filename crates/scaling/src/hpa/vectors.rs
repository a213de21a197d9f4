//! Which of the reference's vectors are proved where, and which do not hold here, and why.

use std::collections::BTreeSet;

use super::tests::{TABLES, TRACES};

/// The ids of the reference: letter and last number. Group V (documents) is proved by the crate `settings`.
const REFERENCE: [(char, u32); 12] = [
    ('A', 35),
    ('B', 12),
    ('C', 15),
    ('D', 12),
    ('E', 8),
    ('F', 27),
    ('G', 12),
    ('T', 19),
    ('P', 12),
    ('K', 14),
    ('N', 8),
    ('Q', 4),
];

/// Vectors with a test of their own, and its name.
const TESTS: &[(&str, &str)] = &[
    ("K10", "passes::a_count_that_could_not_be_written_is_no_event"),
    ("Q1", "vocabulary: milli::quantities_are_those_of_the_reference"),
    ("Q2", "vocabulary: milli::quantities_are_those_of_the_reference"),
    ("Q3", "vocabulary: milli::quantities_are_those_of_the_reference"),
    ("Q4", "vocabulary: milli::quantities_are_those_of_the_reference"),
];

/// Vectors that do not hold here, and why. There is none.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Where class hpa differs from Kubernetes on purpose, beside the vectors: what, what Kubernetes makes of the
/// minimal case, what it is here, and the test of that.
const DIFFERENCES: &[(&str, &str, &str, &str)] = &[(
    "changes are remembered for the longest period of either direction, and none is written over by another",
    "down policy 4 pods in 1,800 s, up 4 pods in 15 s; 4 → 8 → 10, then nothing is needed: 4, for the rise to 8 is \
     forgotten with its own direction's period",
    "1, for the policy looks back on both rises",
    "boundaries::changes_are_remembered_for_the_longest_period_of_either_direction",
)];

/// The id at the start of a row: `K8 absent` is a part of K8.
fn id(text: &str) -> Option<&str> {
    let id = text.split_whitespace().next()?;
    let number = id.strip_prefix(|letter: char| letter.is_ascii_uppercase())?;
    number.parse::<u32>().is_ok().then_some(id)
}

#[test]
fn each_difference_names_the_test_of_its_minimal_case() {
    const SOURCE: &str = include_str!("tests/boundaries.rs");
    for (what, theirs, ours, test) in DIFFERENCES {
        assert!([what, theirs, ours].iter().all(|text| !text.is_empty()), "{what}");
        let name = test.strip_prefix("boundaries::").expect("it stands in that file");
        assert!(SOURCE.contains(&format!("fn {name}()")), "{test}");
    }
}

#[test]
fn every_vector_is_proved_or_an_exception() {
    let rows = TABLES.iter().flat_map(|table| table.lines());
    let traces = TRACES.lines().filter_map(|line| line.strip_prefix("## "));
    let proved: BTreeSet<&str> = rows.chain(traces).filter_map(id).collect();
    for letter in REFERENCE {
        let (group, last) = letter;
        for number in 1..=last {
            let vector = format!("{group}{number}");
            let places = [
                proved.contains(vector.as_str()),
                TESTS.iter().any(|(id, _)| *id == vector),
                EXCEPTIONS.iter().any(|(id, _)| *id == vector),
            ];
            let count = places.iter().filter(|&&is_there| is_there).count();
            assert_eq!(count, 1, "{vector} must stand in the tables, in TESTS or in EXCEPTIONS");
        }
    }
    let known = |id: &str| {
        REFERENCE.iter().any(|(group, last)| {
            id.strip_prefix(*group)
                .and_then(|number| number.parse().ok())
                .is_some_and(|number: u32| (1..=*last).contains(&number))
        })
    };
    let named = TESTS.iter().chain(EXCEPTIONS).map(|(id, _)| *id);
    for id in proved.iter().copied().chain(named) {
        assert!(known(id), "the reference has no vector {id}");
    }
}
