//! Which of the reference's vectors this crate answers: C4–C16, C24 and C25 of the data-plane specification
//! (slices of the slots, the choice of activators) and N1–N7 of the autoscaler's (buckets, subsets, what is
//! sent). A test that proves one names its id; the table holds the others, and why.

/// Vectors that no test here can prove.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "C15",
        "no activator looks for its own address: the autoscaler knows the activators and tells each its slice",
    ),
    (
        "C16",
        "activators are in the order of their names; in an installed Knative by their addresses, `sharing.rs`",
    ),
    ("C24", "every program makes this choice alike: vocabulary, `subset.rs`"),
    ("C25", "as C24"),
    (
        "N1",
        "every owner computes the bucket of a revision alike: vocabulary, `Ownership::bucket_of`; without a `PodAutoscaler` it is the hash of the name modulo the number of buckets",
    ),
    ("N2", "as N1"),
    ("N3", "as C24"),
    ("N4", "as C24"),
    ("N5", "vocabulary: `knative_names.rs`"),
    (
        "N6",
        "what links say is written in frames of our own (link: `wire`); frames of Knative's activators are read in link: `stats`",
    ),
    ("N7", "as N6"),
];

/// The sources whose tests name vectors.
const SOURCES: [&str; 1] = [include_str!("slices.rs")];

/// Single ids and ranges such as `C4–C13`, in any case, between characters that belong to neither.
fn named_in(source: &str) -> impl Iterator<Item = String> {
    let words = source.split(|letter: char| !letter.is_alphanumeric() && letter != '–');
    words.flat_map(|word| {
        let word = word.to_uppercase();
        let number = |id: &str| id.get(1..)?.parse::<u32>().ok();
        match word.split_once('–').map(|(first, last)| (number(first), number(last))) {
            Some((Some(first), Some(last))) => {
                (first..=last).map(|id| format!("{}{id}", &word[..1])).collect()
            }
            Some(_) | None => vec![word],
        }
    })
}

#[test]
fn every_vector_of_ours_is_named_by_a_test_or_an_exception() {
    let named: Vec<String> = SOURCES.into_iter().flat_map(named_in).collect();
    let ours = (4..=16).map(|number| format!("C{number}"));
    let ours =
        ours.chain(["C24", "C25"].map(str::to_owned)).chain((1..=7).map(|number| format!("N{number}")));
    for id in ours {
        let is_exception = EXCEPTIONS.iter().any(|(exception, _)| *exception == id);
        assert_ne!(named.contains(&id), is_exception, "{id} is neither tested nor an exception, or both");
    }
}
