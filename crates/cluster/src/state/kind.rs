//! Which kinds of objects are watched?

use std::collections::BTreeSet;

use crate::installation::Installation;
use crate::resources::kind::WorkloadKind;

/// Kinds of objects that are watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Config,
    Observability,
    Service,
    Workload(WorkloadKind),
    Pod,
    Activator,
    Autoscaler,
    Node,
    Slice,
    OtherSlice,
    Endpoints,
    Lease,
    PodAutoscaler,
    ServerlessService,
    RevisionDeployment,
    PublicSlice,
    AutoscalerPod,
    DeploymentConfig,
}

impl Kind {
    /// Those that are watched from the start in an installation.
    pub(super) fn of_installation(installation: &Installation) -> BTreeSet<Self> {
        let of_both = [Self::Config, Self::Pod, Self::Activator, Self::Lease];
        let others = match installation {
            Installation::Ebb { .. } => vec![
                Self::Observability,
                Self::Service,
                Self::Workload(WorkloadKind::Deployment),
                Self::Autoscaler,
                Self::Node,
                Self::Slice,
                Self::OtherSlice,
                Self::Endpoints,
            ],
            Installation::Knative { .. } => vec![
                Self::PodAutoscaler,
                Self::ServerlessService,
                Self::RevisionDeployment,
                Self::PublicSlice,
                Self::AutoscalerPod,
                Self::DeploymentConfig,
            ],
        };
        of_both.into_iter().chain(others).collect()
    }
}
