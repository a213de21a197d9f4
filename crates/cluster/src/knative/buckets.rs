//! By which Leases do Knative's autoscalers agree, and which of them decides about a revision? (Contract
//! §4.6.)
//!
//! ebb's autoscaler holds the same Leases, so that it and Knative's never decide both. The number of buckets
//! stands in the names: replicas that go by another number see other Leases. In which bucket a revision is,
//! [`vocabulary::Ownership::bucket_of`] says.

use settings::BucketCount;
use vocabulary::{Bucket, knative_lease};

/// The buckets of one installation.
#[derive(Clone, Copy, Debug)]
pub struct KnativeBuckets {
    count: BucketCount,
}

impl KnativeBuckets {
    /// The buckets of an installation that has so many of them.
    pub fn new(count: BucketCount) -> Self {
        Self { count }
    }

    /// The name of a bucket's Lease.
    pub fn lease(self, bucket: Bucket) -> String {
        knative_lease(bucket.0, self.count.value())
    }

    /// The bucket whose Lease has this name; `None` for any other Lease, and for one whose name tells another
    /// number of buckets.
    pub fn bucket_of_lease(self, name: &str) -> Option<Bucket> {
        (0..self.count.value()).map(Bucket).find(|bucket| self.lease(*bucket) == name)
    }
}

/// The name under which a replica holds Leases. Knative's other programs read the pod's address in it.
pub fn holder_identity(pod: &str, address: &str) -> String {
    format!("{pod}_{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(count: u16) -> KnativeBuckets {
        KnativeBuckets::new(BucketCount::new(count).expect("1 to 10"))
    }

    /// N5, and the Leases of another count, which are none of ours.
    #[test]
    fn leases_have_knatives_names() {
        let ten = buckets(10);
        assert_eq!(ten.lease(Bucket(0)), "autoscaler-bucket-00-of-10");
        assert_eq!(ten.bucket_of_lease("autoscaler-bucket-09-of-10"), Some(Bucket(9)));
        assert_eq!(ten.bucket_of_lease("autoscaler-bucket-00-of-01"), None);
        assert_eq!(ten.bucket_of_lease("ebb-autoscaler"), None);
        assert_eq!(holder_identity("autoscaler-7d9f-x2x", "10.0.0.7"), "autoscaler-7d9f-x2x_10.0.0.7");
    }
}
