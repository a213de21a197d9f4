//! Which autoscaler decides about which revisions?
//!
//! Revisions are hashed to buckets, and each bucket has one owner at a time. A bucket's epoch grows with
//! every acquisition, so that a late word or order of an earlier owner is recognised by its number,
//! however late it comes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::hash::fnv1a;
use crate::knative_names::{KNATIVE_BUCKETS_MAX, KNATIVE_REVISION_KIND, knative_lease};
use crate::revision::RevisionName;
use crate::subset::choose_one;

/// One of the parts into which revisions are hashed, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bucket(pub u16);

/// Grows with every acquisition of a bucket (locally: with every start of the autoscaler).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The buckets that one autoscaler owns, whole: what is not named is not its own any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// The buckets, each with the epoch of its acquisition.
    pub epochs: BTreeMap<Bucket, Epoch>,
    /// How many buckets there are; the same for all autoscalers. Zero is read as one.
    pub buckets: u16,
}

impl Ownership {
    /// One bucket, which holds everything.
    pub fn of_everything(epoch: Epoch) -> Self {
        Self { epochs: BTreeMap::from([(Bucket(0), epoch)]), buckets: 1 }
    }

    /// In which bucket a revision is. One of an installed Knative is where Knative's autoscaler would look
    /// for it, so that the two never decide both.
    pub fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        // Where one owner has everything, as on one machine, no word about a revision costs a hash.
        if self.buckets <= 1 {
            return Bucket(0);
        }
        if revision.kind() == KNATIVE_REVISION_KIND {
            return knative_bucket(revision, self.buckets);
        }
        let bucket = fnv1a(revision.as_str().bytes()) % u64::from(self.buckets);
        Bucket(u16::try_from(bucket).expect("less than the number of buckets"))
    }

    /// Since which epoch a revision is ours; `None` if it is not.
    pub fn epoch_of(&self, revision: &RevisionName) -> Option<Epoch> {
        self.epochs.get(&self.bucket_of(revision)).copied()
    }

    /// Whether these are all buckets.
    pub fn is_everything(&self) -> bool {
        self.epochs.len() >= usize::from(self.buckets.max(1))
    }
}

/// The names of all Leases of an installed Knative; those of N buckets are at index N. They are made once,
/// since the bucket of a revision is asked for at each word about it.
static LEASES: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| (0..=KNATIVE_BUCKETS_MAX).map(leases).collect());

fn leases(buckets: u16) -> Vec<String> {
    (0..buckets).map(|bucket| knative_lease(bucket, buckets)).collect()
}

/// Knative chooses one of the names of all Leases, by the revision's namespace and name.
fn knative_bucket(revision: &RevisionName, buckets: u16) -> Bucket {
    let key = format!("{}/{}", revision.namespace(), revision.name());
    let place = match LEASES.get(usize::from(buckets)) {
        Some(leases) => choose_one(leases, &key),
        None => choose_one(&leases(buckets), &key),
    };
    Bucket(place.and_then(|place| u16::try_from(place).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N1 and N2: the bucket for 1, 2, 3, 5 and 10 buckets.
    #[test]
    fn a_revision_of_knatives_is_in_the_bucket_that_knative_chooses() {
        for (revision, expected) in [
            ("default/revision/hello-00001", [0, 1, 0, 0, 5]),
            ("default/revision/hello-00002", [0, 1, 1, 1, 8]),
            ("prod/revision/checkout-00042", [0, 0, 0, 2, 8]),
            ("a/revision/b", [0, 0, 2, 4, 4]),
        ] {
            let name = RevisionName::parse(revision).expect("a name");
            let bucket = |buckets| Ownership { epochs: BTreeMap::new(), buckets }.bucket_of(&name).0;
            assert_eq!([1, 2, 3, 5, 10].map(bucket), expected, "{revision}");
        }
    }

    #[test]
    fn every_revision_is_in_exactly_one_bucket() {
        let name =
            |number: u32| RevisionName::new("default", "service", &format!("r{number}")).expect("a name");
        let owns = |bucket| Ownership { epochs: [(Bucket(bucket), Epoch(7))].into(), buckets: 3 };
        let owners = [owns(0), owns(1), owns(2)];
        for number in 0..100 {
            let held = owners.iter().filter(|owner| owner.epoch_of(&name(number)).is_some()).count();
            assert_eq!(held, 1, "{number}");
        }
        let all = Ownership::of_everything(Epoch(2));
        assert!(all.is_everything() && !owns(1).is_everything());
        assert_eq!(all.epoch_of(&name(1)), Some(Epoch(2)));
        assert_eq!(Ownership::default().epoch_of(&name(1)), None);
    }
}
