//! The test vectors of the reference for the configuration that do not hold here, with the value that does.
//!
//! Groups A (annotations), B (the ConfigMap) and C (targets), and O5 of the HPA class, are proved by this
//! crate's tests, each of which names the ids of its vectors; groups D to M by those of `scaling`. Every
//! exception here is the deliberate difference D7: a value that silently means nothing is refused. One row
//! per id, in the order of the ids.

use std::collections::BTreeSet;

/// A vector that does not hold here.
struct VectorException {
    /// The id of the vector, with the part of the vector that is meant where it has several.
    id: &'static str,
    /// The result that holds here instead.
    expected: &'static str,
}

const fn exception(id: &'static str, expected: &'static str) -> VectorException {
    VectorException { id, expected }
}

const EXCEPTIONS: &[VectorException] = &[
    // A: annotations.
    exception(
        "A18 without class",
        "refused, because the class that applies is kpa and it knows no such algorithm",
    ),
    exception("A35", "refused: not a finite number"),
    exception("A36 initial 3000000000", "refused: out of the range of a replica count"),
    // B: the ConfigMap.
    exception(
        "B1 with the class of another autoscaler",
        "accepted, and revisions that it applies to are refused with the key, for nothing here runs them; a name that \
         ends in .knative.dev and is none of Knative's classes is refused at once",
    ),
    exception("B14", "refused: the annotation's range 110 … 1000 applies here too"),
    exception("B22", "accepted with a warning for each key; keys that Knative never had are refused"),
    exception("B23", "refused: not a finite number"),
    exception("B24 scale-down-delay 5h", "refused: the annotation's range 0 … 1 h applies here too"),
    // O: the HPA class.
    exception("O5", "refused: half a Mi would be rounded to nothing"),
];

#[test]
fn each_exception_stands_once_and_names_its_result() {
    let mut seen = BTreeSet::new();
    for VectorException { id, expected } in EXCEPTIONS {
        assert!(seen.insert(id), "{id} stands twice");
        assert!(id.starts_with(['A', 'B', 'C', 'O']), "{id}");
        assert!(!expected.is_empty(), "{id}");
    }
}
