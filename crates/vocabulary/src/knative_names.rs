//! What do objects of an installed Knative say by which names?

/// The kind in names of revisions that come by a `PodAutoscaler`.
pub const KNATIVE_REVISION_KIND: &str = "revision";

/// The most buckets that Knative allows.
pub const KNATIVE_BUCKETS_MAX: u16 = 10;

/// The Lease of a bucket, counted from zero, where there are so many buckets; the number stands in the name.
pub fn knative_lease(bucket: u16, buckets: u16) -> String {
    format!("autoscaler-bucket-{bucket:02}-of-{buckets:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N5: the names of Leases.
    #[test]
    fn leases_have_knatives_names() {
        assert_eq!(knative_lease(0, 10), "autoscaler-bucket-00-of-10");
        assert_eq!(knative_lease(10, 1), "autoscaler-bucket-10-of-01");
    }
}
