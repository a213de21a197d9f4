//! Which owner has which bucket, and since which epoch?
//!
//! As on a platform: each bucket has a home, an owner that begins gets its buckets, and one whose lease ran
//! out loses them if the other owner is there. An epoch is given once.

use std::collections::BTreeMap;

use orchestration::Fence;
use vocabulary::{Bucket, Epoch, Ownership};

use super::fault::{OWNERS, OwnerNumber};

/// The lease of each bucket.
#[derive(Clone, Debug)]
pub(crate) struct BucketLeases {
    leases: BTreeMap<Bucket, BucketLease>,
    epochs_given: u64,
}

#[derive(Clone, Copy, Debug)]
struct BucketLease {
    home: OwnerNumber,
    holder: OwnerNumber,
    epoch: Epoch,
}

/// A bucket that has changed hands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketMove {
    pub(crate) bucket: Bucket,
    pub(crate) to: OwnerNumber,
    pub(crate) epoch: Epoch,
}

impl BucketLeases {
    /// One bucket for each owner, which holds it.
    pub(crate) fn new() -> Self {
        let mut leases = Self { leases: BTreeMap::new(), epochs_given: 0 };
        for (bucket, owner) in (0..).map(Bucket).zip((0..OWNERS).map(OwnerNumber)) {
            leases.epochs_given += 1;
            let lease = BucketLease { home: owner, holder: owner, epoch: Epoch(leases.epochs_given) };
            leases.leases.insert(bucket, lease);
        }
        leases
    }

    pub(crate) fn buckets(&self) -> u16 {
        u16::try_from(self.leases.len()).unwrap_or(u16::MAX)
    }

    /// All that an owner holds.
    pub(crate) fn ownership(&self, owner: OwnerNumber) -> Ownership {
        let held = self.leases.iter().filter(|(_, lease)| lease.holder == owner);
        let epochs = held.map(|(&bucket, lease)| (bucket, lease.epoch)).collect();
        Ownership { epochs, buckets: self.buckets() }
    }

    pub(crate) fn holder(&self, bucket: Bucket) -> Option<OwnerNumber> {
        self.leases.get(&bucket).map(|lease| lease.holder)
    }

    /// Whether an order of that owner is in force.
    pub(crate) fn allows(&self, owner: OwnerNumber, fence: Fence) -> bool {
        let lease = self.leases.get(&fence.bucket);
        lease.is_some_and(|lease| lease.holder == owner && lease.epoch == fence.epoch)
    }

    /// Gives a bucket to an owner, in a new epoch.
    pub(crate) fn give(&mut self, bucket: Bucket, to: OwnerNumber) -> Option<BucketMove> {
        let lease = self.leases.get_mut(&bucket)?;
        self.epochs_given += 1;
        (lease.holder, lease.epoch) = (to, Epoch(self.epochs_given));
        Some(BucketMove { bucket, to, epoch: lease.epoch })
    }

    /// An owner begins: it gets the buckets whose home it is, and those that it held in its former life.
    pub(crate) fn take_seat(&mut self, owner: OwnerNumber) -> Vec<BucketMove> {
        self.move_all(|lease| lease.home == owner || lease.holder == owner, owner)
    }

    /// The lease of an owner ran out: all that it holds goes to another one.
    pub(crate) fn run_out(&mut self, of: OwnerNumber, to: OwnerNumber) -> Vec<BucketMove> {
        self.move_all(|lease| lease.holder == of, to)
    }

    fn move_all(&mut self, is_meant: impl Fn(&BucketLease) -> bool, to: OwnerNumber) -> Vec<BucketMove> {
        let meant = self.leases.iter().filter(|(_, lease)| is_meant(lease));
        let meant: Vec<Bucket> = meant.map(|(&bucket, _)| bucket).collect();
        meant.into_iter().filter_map(|bucket| self.give(bucket, to)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_moves_has_a_greater_epoch_and_its_former_holder_no_right() {
        let (mut leases, one, other) = (BucketLeases::new(), OwnerNumber(0), OwnerNumber(1));
        let before = Fence { bucket: Bucket(0), epoch: Epoch(1) };
        assert!(leases.allows(one, before) && !leases.allows(other, before));
        let moves = leases.run_out(one, other);
        assert_eq!(moves.iter().map(|moved| moved.epoch).collect::<Vec<_>>(), [Epoch(3)]);
        assert!(!leases.allows(one, before) && leases.ownership(other).is_everything());
        assert_eq!(leases.take_seat(one).len(), 1, "its home comes back");
        assert_eq!(leases.holder(Bucket(0)), Some(one));
    }
}
