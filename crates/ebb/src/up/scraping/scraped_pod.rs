//! A pod whose metrics are read, and how Prometheus is told where to ask for them.

use serde::Serialize;
use vocabulary::{PodName, RevisionName};

/// Where a pod's metrics are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::up) struct ScrapedPod {
    pub(super) revision: RevisionName,
    pub(super) pod: PodName,
    pub(super) port: u16,
}

/// One entry of Prometheus' HTTP service discovery.
#[derive(Debug, Serialize)]
pub(in crate::up) struct TargetGroup {
    targets: [String; 1],
    labels: TargetLabels,
}

#[derive(Debug, Serialize)]
struct TargetLabels {
    namespace: String,
    revision: String,
    pod: String,
}

/// The targets for Prometheus' service discovery.
pub(in crate::up) fn targets(pods: &[ScrapedPod]) -> Vec<TargetGroup> {
    let target = |scraped: &ScrapedPod| TargetGroup {
        targets: [format!("127.0.0.1:{}", scraped.port)],
        labels: TargetLabels {
            namespace: scraped.revision.namespace().to_owned(),
            revision: format!("{}/{}", scraped.revision.kind(), scraped.revision.name()),
            pod: scraped.pod.to_string(),
        },
    };
    pods.iter().map(target).collect()
}
