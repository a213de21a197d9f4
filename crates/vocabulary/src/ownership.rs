//! Which autoscaler decides about which revisions?
//!
//! Revisions are hashed to buckets, and each bucket has one owner at a time. A bucket's epoch grows with
//! every acquisition, so that a late word or order of an earlier owner is recognised by its number,
//! however late it comes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::revision::RevisionName;

/// One of the parts into which revisions are hashed, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// In which bucket a revision is.
    pub fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        let bucket = fnv1a(revision.as_str().bytes()) % u64::from(self.buckets.max(1));
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

/// The 64-bit FNV-1a hash, which every program computes alike.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv1a(text.bytes()), hash, "{text:?}");
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
