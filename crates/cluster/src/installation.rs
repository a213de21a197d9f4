//! In which installation does the autoscaler decide?

use crate::knative::{BucketCount, KnativeBuckets};
use crate::lease_names::LeaseNames;

/// The installation, which says how workloads come to ebb, and by which Leases autoscalers agree.
#[derive(Clone, Debug)]
pub enum Installation {
    /// ebb's own: a Service that names a workload is adopted.
    Ebb {
        /// Into how many buckets revisions are hashed; from 1.
        buckets: u16,
    },
    /// An installed Knative Serving, in the place of its autoscaler: a revision comes by its
    /// `PodAutoscaler`.
    Knative {
        /// How many buckets Knative's autoscalers share (`buckets` of `config-leader-election`).
        buckets: BucketCount,
        /// The cluster's domain, such as `cluster.local`.
        domain: String,
    },
}

impl Installation {
    /// Into how many buckets revisions are hashed.
    pub fn buckets(&self) -> u16 {
        match self {
            Self::Ebb { buckets } => *buckets,
            Self::Knative { buckets, .. } => buckets.value(),
        }
    }

    /// The names of the Leases of these buckets.
    pub(crate) fn lease_names(&self) -> LeaseNames {
        match self {
            Self::Ebb { .. } => LeaseNames::Ebb,
            Self::Knative { buckets, .. } => LeaseNames::Knative(KnativeBuckets::new(*buckets)),
        }
    }
}
