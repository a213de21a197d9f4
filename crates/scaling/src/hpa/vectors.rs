//! Which of the reference's vectors are proved where, and which do not hold here, and why.

use std::collections::BTreeSet;

use super::reading;
use super::tests::{TABLES, TRACES};

/// The ids of the reference: letter, first and last number.
const REFERENCE: [(char, u32); 13] = [
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
    ('V', 9),
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

/// The id at the start of a row: `K8 absent` is a part of K8.
fn id(text: &str) -> Option<&str> {
    let id = text.split_whitespace().next()?;
    let number = id.strip_prefix(|letter: char| letter.is_ascii_uppercase())?;
    number.parse::<u32>().is_ok().then_some(id)
}

#[test]
fn every_vector_is_proved_or_an_exception() {
    let documents = [reading::tests::ACCEPTED, reading::tests::REFUSED];
    let rows = TABLES.iter().chain(&documents).flat_map(|table| table.lines());
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
    // X numbers are compat switches, not vectors.
    let known = |id: &str| {
        REFERENCE.iter().any(|(group, last)| {
            id.strip_prefix(*group)
                .and_then(|number| number.parse().ok())
                .is_some_and(|number: u32| (1..=*last).contains(&number))
        })
    };
    let named = TESTS.iter().chain(EXCEPTIONS).map(|(id, _)| *id);
    for id in proved.iter().copied().chain(named).filter(|id| !id.starts_with('X')) {
        assert!(known(id), "the reference has no vector {id}");
    }
}
