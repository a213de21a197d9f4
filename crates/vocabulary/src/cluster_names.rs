//! What do objects of a cluster say by which names? Their writers and their readers go by the same.

use crate::ownership::Bucket;

/// Names a Service's workload: `KIND/NAME`, or `NAME` of a Deployment.
pub const REVISION_ANNOTATION: &str = "ebb.dev/revision";
/// Kubernetes' label of an `EndpointSlice` that names its writer.
pub const SLICE_WRITER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
/// Its value on slices of ours.
pub const SLICE_WRITER: &str = "ebb.dev";
/// Its value on slices of Services with a selector, which are left behind when that is taken away.
pub const SELECTOR_SLICE_WRITER: &str = "endpointslice-controller.k8s.io";
/// Its value on copies of the Endpoints objects of those without.
pub const MIRROR_SLICE_WRITER: &str = "endpointslicemirroring-controller.k8s.io";
/// The Lease of the first bucket's owner, and the beginning of the others' names.
pub const OWNER_LEASE: &str = "ebb-autoscaler";
/// The Lease of an autoscaler that has no bucket, where another one has several: it asks for one of them.
pub const WAITING_LEASE: &str = "ebb-autoscaler-waiting";
/// On a bucket's Lease, how many buckets there are where there are several.
pub const BUCKETS_ANNOTATION: &str = "ebb.dev/buckets";
/// The Secret of the authority that vouches for ebb's programs, with its key.
pub const AUTHORITY_SECRET: &str = "ebb-ca";

/// The Lease of the autoscaler that decides about a bucket: `ebb-autoscaler`, `ebb-autoscaler-1`, and so on.
pub fn owner_lease(bucket: Bucket) -> String {
    match bucket {
        Bucket(0) => OWNER_LEASE.to_owned(),
        Bucket(number) => format!("{OWNER_LEASE}-{number}"),
    }
}

/// Of which bucket a Lease is, if it is one of ours.
pub fn bucket_of_lease(name: &str) -> Option<Bucket> {
    let rest = name.strip_prefix(OWNER_LEASE)?;
    let bucket = if rest.is_empty() { Bucket(0) } else { Bucket(rest.strip_prefix('-')?.parse().ok()?) };
    // Neither `ebb-autoscaler-0` nor `ebb-autoscaler-01` is a bucket's.
    (owner_lease(bucket) == name).then_some(bucket)
}

/// In a Secret of Kubernetes' type `kubernetes.io/tls`, and in the folder that it is mounted as: a
/// certificate and those that lead to a root.
pub const TLS_CHAIN: &str = "tls.crt";
/// In the same, the certificate's key.
pub const TLS_KEY: &str = "tls.key";
/// In the same, the roots.
pub const TLS_ROOTS: &str = "ca.crt";
/// In the Secret of the authority, those that were revoked and have not ended.
pub const TLS_REVOKED: &str = "revoked.crt";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_has_a_lease_and_no_other_name_is_one() {
        for (bucket, name) in [(0, "ebb-autoscaler"), (1, "ebb-autoscaler-1"), (12, "ebb-autoscaler-12")] {
            assert_eq!(owner_lease(Bucket(bucket)), name);
            assert_eq!(bucket_of_lease(name), Some(Bucket(bucket)));
        }
        for other in ["ebb-autoscaler-0", "ebb-autoscaler-01", WAITING_LEASE, "ebb-autoscaler2", "ebb", ""] {
            assert_eq!(bucket_of_lease(other), None, "{other}");
        }
    }
}
