//! How does Kubernetes hear which pods a smaller count should end? By their deletion costs: pods with the
//! least cost end first.
//!
//! Writing it takes the right to patch pods, which is optional (`deploy/components/pod-deletion-cost`).

use std::time::Duration;

use cluster::resources::pod::{COST_OF_FIRST, DELETION_COST};
use cluster::resources::workload::ObjectVersion;
use cluster::{DeletionHint, Failure};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::Patch;
use orchestration::Fence;
use serde_json::json;

use super::{Requests, patch_parameters};

/// The count waits no longer than this for hints.
const HINTS_WITHIN: Duration = Duration::from_secs(3);
/// Nor longer than this, once they are written, for our watch of pods to show them: Kubernetes' controllers
/// hear of pods by one watch and of counts by another. That their watch shows the hints too does not follow,
/// but is likely.
pub(crate) const HINTS_SHOWN_WITHIN: Duration = Duration::from_millis(500);
/// More are not marked for one change of a count.
const HINTS_MAX: usize = 100;

impl Requests {
    /// Writes hints, as far as there is time, and returns when our watch has shown them. One that fails
    /// changes only which pod is drained.
    pub(crate) async fn hint(&self, fence: Fence, namespace: &str, hints: &[DeletionHint]) {
        if hints.is_empty() {
            return;
        }
        let written = tokio::time::timeout(HINTS_WITHIN, async {
            if !self.may_patch_pods(namespace).await {
                return;
            }
            let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            let writes = hints.iter().take(HINTS_MAX).map(|hint| self.write_hint(fence, &api, hint));
            let mut newest = None;
            for answer in join_all(writes).await {
                match answer {
                    Ok(version) => newest = newest.max(version),
                    Err(failure) => {
                        tracing::debug!(?failure, namespace, "a pod's deletion cost could not be written");
                    }
                }
            }
            if !self.shown(newest).await {
                tracing::debug!(namespace, "pods' deletion costs were not shown by the watch in time");
            }
        });
        if written.await.is_err() {
            tracing::debug!(namespace, "pods' deletion costs were not written in time");
        }
    }

    /// Whether the watch has come to this version of pods in time.
    async fn shown(&self, version: Option<ObjectVersion>) -> bool {
        let mut shown = self.shown_pods.subscribe();
        let wait = shown.wait_for(|shown| *shown >= version);
        tokio::time::timeout(HINTS_SHOWN_WITHIN, wait).await.is_ok()
    }

    /// Returns from which version of the pod on the hint is there, if versions can be compared.
    async fn write_hint(
        &self,
        fence: Fence,
        api: &Api<Pod>,
        hint: &DeletionHint,
    ) -> Result<Option<ObjectVersion>, Failure> {
        // In a merge patch `null` takes an annotation away.
        let cost = hint.is_chosen.then_some(COST_OF_FIRST);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {DELETION_COST: cost}}}));
        let parameters = patch_parameters();
        let written = self.fenced(fence, api.patch_metadata(&hint.pod, &parameters, &patch)).await?;
        Ok(ObjectVersion::of(&written.metadata))
    }
}
