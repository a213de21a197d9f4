//! Which vectors of the data-plane specification (§9.2, §9.5) this crate proves: those about what a probe
//! asks and which headers a hop writes, wherever a request is going. The others of these families are the
//! queue-proxy's.

/// The vectors proved here; a test names each.
const PROVED: [&str; 9] = ["R5", "R6", "R7", "R12", "H3", "H4", "H5", "H6", "H7"];

/// Of these, what is answered otherwise than by the reference: id, what it does, what we do, why.
const OVERTURNED: [(&str, &str, &str, &str); 1] =
    [("R7", "the probe's Host header is ignored", "it reaches the app", "a kubelet honours it (L41)")];

/// The sources whose tests name vectors.
const SOURCES: [&str; 2] =
    [include_str!("../../protocol/src/headers/tests.rs"), include_str!("probe/tests.rs")];

#[test]
fn every_vector_of_ours_is_named_by_a_test() {
    let named = |id: &str| {
        let mut words =
            SOURCES.iter().flat_map(|source| source.split(|letter: char| !letter.is_alphanumeric()));
        words.any(|word| word.eq_ignore_ascii_case(id))
    };
    for id in PROVED {
        assert!(named(id), "{id} is named by no test");
    }
    for (id, reference, ours, why) in OVERTURNED {
        assert!(PROVED.contains(&id) && reference != ours && !why.is_empty(), "{id}");
    }
}
