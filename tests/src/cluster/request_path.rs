//! Which way requests take to pods that are there: the suites try what they prove on both.

use super::{Workload, WorkloadPlan};

/// The way that requests take to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPath {
    /// From nodes to pods, past every activator.
    Direct,
    /// Through an activator, which could hold them.
    ThroughActivator,
}

/// The annotation that decides about it.
const CAPACITY: &str = "autoscaling.knative.dev/target-burst-capacity";

impl RequestPath {
    /// Both ways, for tests that try each.
    pub const BOTH: [Self; 2] = [Self::Direct, Self::ThroughActivator];

    fn capacity(self) -> &'static str {
        match self {
            Self::Direct => "0",
            Self::ThroughActivator => "-1",
        }
    }

    /// A name for what is made for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::ThroughActivator => "through",
        }
    }
}

impl WorkloadPlan {
    /// Its requests go this way.
    #[must_use]
    pub fn by(self, path: RequestPath) -> Self {
        self.annotated(CAPACITY, path.capacity())
    }
}

impl Workload {
    /// Requests go this way from now on.
    pub async fn goes_by(&self, path: RequestPath) {
        self.annotate(CAPACITY, Some(path.capacity())).await;
    }

    /// Waits until its Service leads this way, and no other.
    pub async fn is_served_by(&self, path: RequestPath) {
        match path {
            RequestPath::Direct => self.is_served_directly().await,
            RequestPath::ThroughActivator => self.is_served_through_activators().await,
        }
    }
}
