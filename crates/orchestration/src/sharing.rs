//! Which of the activators that serve a revision share the slots of its pods?
//!
//! All that serve it, where routes name exactly those. In an installed Knative every activator serves every
//! revision, for any may be asked, and Knative's controller puts some of them into the path: these share the
//! slots, and the others stand in without a share. The controller's choice is computed here, from the same
//! addresses and by the same key, and Knative's activators have their places among them in the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use vocabulary::{PodCount, ReplicaId, RevisionName, choose_subset};

/// The activators that Knative's controller puts into the path of a revision, in the order of their addresses
/// as text. `count` is that of its `ServerlessService`: zero means all, as does none before it is decided.
pub(crate) fn chosen_by_address(
    activators: impl IntoIterator<Item = (ReplicaId, IpAddr)>,
    count: Option<PodCount>,
    revision: &RevisionName,
) -> Vec<ReplicaId> {
    let activators = activators.into_iter().map(|(id, address)| (address.to_string(), id));
    let by_address: BTreeMap<String, ReplicaId> = activators.collect();
    let addresses: BTreeSet<&str> = by_address.keys().map(String::as_str).collect();
    let count = count.filter(|count| *count > PodCount::ZERO).map_or(usize::MAX, PodCount::as_usize);
    let chosen = choose_subset(&addresses, count, revision.name());
    chosen.into_iter().filter_map(|address| by_address.get(address).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(of: u32, revision: &str, count: Option<u32>) -> Vec<u32> {
        let activators = (1..=of).map(|last| {
            let last_byte = u8::try_from(last).expect("few activators");
            (ReplicaId(last), IpAddr::from([10, 0, 0, last_byte]))
        });
        let revision = RevisionName::new("default", "revision", revision).expect("a name");
        let chosen = chosen_by_address(activators, count.map(PodCount::new), &revision);
        chosen.into_iter().map(|ReplicaId(id)| id).collect()
    }

    /// C24 and C25; the key is the name of the revision, without its namespace.
    #[test]
    fn must_choose_the_activators_that_knatives_controller_chooses() {
        assert_eq!(chosen(5, "hello-00001", Some(2)), [4, 5]);
        assert_eq!(chosen(5, "hello-00001", Some(3)), [2, 4, 5]);
        assert_eq!(chosen(8, "checkout-00042", Some(3)), [1, 2, 8]);
    }

    #[test]
    fn all_are_chosen_where_as_many_are_asked_for_or_none_is_named() {
        for count in [None, Some(0), Some(3), Some(9)] {
            assert_eq!(chosen(3, "hello-00001", count), [1, 2, 3], "{count:?}");
        }
        assert_eq!(chosen(11, "hello-00001", None)[..3], [1, 10, 11], "in the order of the text");
    }
}
