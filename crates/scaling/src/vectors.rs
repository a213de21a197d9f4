//! Which of the reference's test vectors do not hold here, and why.
//!
//! ebb decides as Knative does, vector for vector (D–M and O name groups of vectors; each test names the ids
//! it proves; A to C, and O5, are of the crate `settings`). This table lists every
//! exception: replaced by a difference of ours, with the value expected instead; about Knative's own objects,
//! which ebb does not have; or about parts that are not built yet. One row per id, in the order of the ids.
//! Group N (buckets, subsets, what is sent) is `orchestration`'s, but N8, which is the `queue-proxy`'s, and
//! N9–N12, which are `throttling`'s; group P (end to end) is of the suite `end_to_end`, module `up`.

/// A vector that does not hold here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exception {
    /// Its id, with what part of it is meant where it has several.
    pub(crate) id: &'static str,
    /// Why it does not hold, and what happens instead.
    pub(crate) why: Why,
}

/// Why a vector does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// One of our deliberate differences.
    Replaced {
        /// Which (`D7` and so on, or `links`).
        by: &'static str,
        /// The value that is expected here instead.
        expected: &'static str,
    },
    /// It speaks of Knative's objects; what stands in their place is named.
    Plumbing(&'static str),
}

const fn replaced(id: &'static str, by: &'static str, expected: &'static str) -> Exception {
    Exception { id, why: Why::Replaced { by, expected } }
}

const fn plumbing(id: &'static str, instead: &'static str) -> Exception {
    Exception { id, why: Why::Plumbing(instead) }
}

/// All exceptions, in the order of their ids.
pub(crate) const EXCEPTIONS: &[Exception] = &[
    // D: sampling.
    replaced("D6", "D1", "every pod is heard; nothing is sampled"),
    replaced("D7", "D1", "every pod is heard; nothing is sampled"),
    replaced(
        "D8 of a pod that is not ready any more",
        "links",
        "what it holds counts as long as it says so, and then one zero; Knative asks such a pod no more, and writes none",
    ),
    replaced("D9", "D1", "every pod is heard; nothing is sampled"),
    replaced("D10", "D1", "four pods are heard and one is unheard"),
    replaced("D11", "D1", "three pods are heard and one is unheard"),
    replaced("D12", "D1", "every pod is heard, whatever its age"),
    replaced("D13", "D1", "every pod is heard, whatever its age"),
    replaced("D14", "D1", "every pod is heard, whatever its age"),
    plumbing("D15", "there is no scraping through a Service; a pod is heard on its link or not at all"),
    plumbing("D16", "there is no scraping through a Service; a pod is heard on its link or not at all"),
    // E: windows.
    replaced(
        "E1 after a window of silence",
        "links",
        "a valid 0 while an activator is heard, where Knative has no data and freezes the last count: giving an \
         activation up needs it",
    ),
    replaced(
        "E13 with a report that comes up to a second late",
        "links",
        "counts in the second in which it was measured; in Knative in that in which it comes, so the panic window of 1 s \
         reads twice the load and then nothing",
    ),
    replaced(
        "E24 with a new window that is empty",
        "links",
        "a valid 0 while a reporter is heard, as after a window of silence; Knative has no data and freezes the last count",
    ),
    replaced(
        "E26 a panic window that grows under load",
        "links",
        "seconds that were measured count: from 6 to 12 s after 30 s of load it is full at once",
    ),
    // G, I, J: decisions.
    replaced(
        "G27 with more pods than panic has asked for",
        "links",
        "stay: in panic no pod ends, whether it was found at the start or another wrote the count; Knative goes down to \
         what panic asked for itself",
    ),
    replaced("G36", "links", "pods are pushed, not listed: there is no list that could fail"),
    replaced(
        "I1 list error at creation",
        "links",
        "the count that the platform was asked for, which is always known",
    ),
    replaced(
        "I1 ready 0 of a revision that is found",
        "links",
        "the wanted count is held as in panic, ready or not: found with 2 wanted and 0 ready, panic yes, 2; a new \
         revision begins with panic no, 0",
    ),
    replaced(
        "J5 with more load than it began with",
        "links",
        "the panic of a start only holds: 3 ready, target 14, stable 36, panic 43 stay 3, where Knative's asks for 4",
    ),
    // L: zero guard.
    replaced(
        "L16 no probe",
        "links",
        "an acknowledgement costs nothing, so it is awaited with an unlimited burst capacity too",
    ),
    replaced(
        "L17 async probe",
        "links",
        "nothing is asked; the acknowledgement is an event and is acted upon when it comes",
    ),
    replaced(
        "L25 with min 2 set by an edit",
        "links",
        "2 at once: a lower bound that is raised is a wish for pods; Knative waits for a first decision",
    ),
    replaced(
        "L28 with more replicas than min 4",
        "links",
        "stay until the first decision, also if min was lowered since; Knative goes down to min at once",
    ),
    replaced("L38", "D7", "refused as a whole: \"ham\" is no number, and the last good settings stay"),
    // M: status.
    plumbing(
        "M18 without a service name",
        "a revision always has its hosts; nothing waits for a Service to be named",
    ),
    plumbing(
        "M19",
        "there is no ServerlessService; before the first valid decision the route is left as it is",
    ),
    plumbing("M20", "there are no Endpoints; the activator serves while no pod is ready, with every route"),
    // O: the HPA class.
    plumbing(
        "O8",
        "there is no ServerlessService; a revision of class hpa was ready once when as many pods as it should start with were, as one of class kpa",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_exception_stands_once_and_says_why() {
        let mut seen = BTreeSet::new();
        for Exception { id, why } in EXCEPTIONS {
            assert!(seen.insert(id), "{id} stands twice");
            assert!(id.starts_with(|group: char| ('D'..='M').contains(&group) || group == 'O'), "{id}");
            let (Why::Replaced { expected: text, .. } | Why::Plumbing(text)) = why;
            assert!(!text.is_empty(), "{id}");
            if let Why::Replaced { by, .. } = why {
                assert!(by.starts_with('D') || *by == "links", "{id}: {by}");
            }
        }
    }
}
