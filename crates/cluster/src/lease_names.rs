//! By which names do autoscalers hold Leases?
//!
//! In an installed Knative the names are Knative's, so that its autoscaler and ebb's never decide both.

use vocabulary::{Bucket, WAITING_LEASE, bucket_of_lease, owner_lease};

use crate::knative::KnativeBuckets;

/// A Lease by which autoscalers agree about buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AutoscalerLease {
    /// The Lease whose holder decides about this bucket.
    Bucket(Bucket),
    /// The Lease by which a replica without buckets asks for one of a replica that has several.
    Waiting,
}

/// The names of all Leases of one installation.
#[derive(Clone, Debug, Default)]
pub enum LeaseNames {
    /// Those of ebb's own installation.
    #[default]
    Ebb,
    /// Those of an installed Knative.
    Knative(KnativeBuckets),
}

impl LeaseNames {
    /// The Lease that has this name, if it is one of these.
    pub fn lease_of(&self, name: &str) -> Option<AutoscalerLease> {
        if name == WAITING_LEASE {
            return Some(AutoscalerLease::Waiting);
        }
        let bucket = match self {
            Self::Ebb => bucket_of_lease(name),
            Self::Knative(buckets) => buckets.bucket_of_lease(name),
        };
        bucket.map(AutoscalerLease::Bucket)
    }

    /// The name of the Lease object.
    pub fn name_of(&self, lease: AutoscalerLease) -> String {
        match (self, lease) {
            (_, AutoscalerLease::Waiting) => WAITING_LEASE.to_owned(),
            (Self::Ebb, AutoscalerLease::Bucket(bucket)) => owner_lease(bucket),
            (Self::Knative(buckets), AutoscalerLease::Bucket(bucket)) => buckets.lease(bucket),
        }
    }

    /// Whether the names themselves tell how many buckets there are.
    pub(crate) fn tell_bucket_count(&self) -> bool {
        matches!(self, Self::Knative(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knative::BucketCount;

    #[test]
    fn leases_are_known_by_the_names_that_they_get() {
        let knative = LeaseNames::Knative(KnativeBuckets::new(BucketCount::new(2).expect("1 to 10")));
        let second = AutoscalerLease::Bucket(Bucket(1));
        for (names, name) in [(LeaseNames::Ebb, "ebb-autoscaler-1"), (knative, "autoscaler-bucket-01-of-02")]
        {
            assert_eq!((names.name_of(second).as_str(), names.lease_of(name)), (name, Some(second)));
            assert_eq!(names.name_of(AutoscalerLease::Waiting), WAITING_LEASE);
            assert_eq!(names.lease_of(WAITING_LEASE), Some(AutoscalerLease::Waiting));
            assert_eq!(names.lease_of("autoscaler-bucket-00-of-10"), None);
        }
    }
}
