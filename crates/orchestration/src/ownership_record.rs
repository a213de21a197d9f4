//! By what right does this autoscaler decide, and which version has its next word?

use serde::{Deserialize, Serialize};
use vocabulary::{Epoch, Ownership, RevisionName, Version};

use crate::assignments::Versions;
use crate::orders::Fence;

/// The buckets that are ours, and the numbers of what we say by that right.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OwnershipRecord {
    ownership: Ownership,
    versions: Versions,
}

impl OwnershipRecord {
    pub(crate) fn present(&self) -> &Ownership {
        &self.ownership
    }

    /// Takes in which buckets are ours now; returns which were.
    pub(crate) fn replace(&mut self, ownership: Ownership) -> Ownership {
        std::mem::replace(&mut self.ownership, ownership)
    }

    /// Since which epoch a revision is ours; `None` if it is not.
    pub(crate) fn epoch_of(&self, revision: &RevisionName) -> Option<Epoch> {
        self.ownership.epoch_of(revision)
    }

    /// By what right an order about a revision is given; `None` if the revision is not ours. The bucket says
    /// so and not a record: a removed revision has no record, and its entrances are still to be released.
    pub(crate) fn fence_of(&self, revision: &RevisionName) -> Option<Fence> {
        let bucket = self.ownership.bucket_of(revision);
        self.ownership.epoch_of(revision).map(|epoch| Fence { bucket, epoch })
    }

    /// By what right an order is given that is about no revision; `None` while no bucket is ours.
    pub(crate) fn any_fence(&self) -> Option<Fence> {
        self.ownership.epochs.first_key_value().map(|(&bucket, &epoch)| Fence { bucket, epoch })
    }

    /// The next version for a revision that is ours since `epoch`.
    pub(crate) fn next_version(&mut self, epoch: Epoch) -> Version {
        self.versions.next(epoch)
    }
}
