//! Which pods a smaller count should end, as a hint for whoever ends them: those with the least deletion cost
//! go first.
//!
//! Writing it takes the right to patch pods, which is optional (`deploy/components/pod-deletion-cost`). So
//! the API server is asked whether we have it: what is refused again and again would only fill its audit log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PostParams};
use orchestration::Fence;
use parking_lot::Mutex;
use serde_json::json;
use vocabulary::Timestamp;

use super::{Failure, Requests, patch_parameters, within};
use crate::resources::pod::{COST_OF_FIRST, DELETION_COST};

/// The count waits no longer than this for hints.
const HINTS_WITHIN: Duration = Duration::from_secs(3);
/// For so long a right is taken to be as it was.
const RIGHTS_KEPT: Duration = Duration::from_mins(5);
/// More are not marked for one change of a count.
const HINTS_MAX: usize = 100;

/// Where pods may be patched, as far as that was asked, and when.
pub(crate) type HintRights = Arc<Mutex<BTreeMap<String, (bool, Timestamp)>>>;

/// What to write on a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeletionHint {
    /// Its name in its namespace.
    pub(crate) pod: String,
    /// To end before others; else what we wrote before is taken away.
    pub(crate) is_chosen: bool,
}

impl Requests {
    /// Writes hints, as far as there is time. One that fails changes only which pod is drained.
    pub(crate) async fn hint(&self, fence: Fence, namespace: &str, hints: &[DeletionHint]) {
        if hints.is_empty() {
            return;
        }
        let written = tokio::time::timeout(HINTS_WITHIN, async {
            if !self.may_hint(namespace).await {
                return;
            }
            let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            let writes = hints.iter().take(HINTS_MAX).map(|hint| self.write_hint(fence, &api, hint));
            for failure in join_all(writes).await.into_iter().filter_map(Result::err) {
                tracing::debug!(?failure, namespace, "a pod's deletion cost could not be written");
            }
        });
        if written.await.is_err() {
            tracing::debug!(namespace, "pods' deletion costs were not written in time");
        }
    }

    async fn write_hint(&self, fence: Fence, api: &Api<Pod>, hint: &DeletionHint) -> Result<(), Failure> {
        let cost = hint.is_chosen.then_some(COST_OF_FIRST);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {DELETION_COST: cost}}}));
        let parameters = patch_parameters();
        self.fenced(fence, api.patch_metadata(&hint.pod, &parameters, &patch)).await.map(drop)
    }

    async fn may_hint(&self, namespace: &str) -> bool {
        let now = self.clock.now();
        let known = self.hint_rights.lock().get(namespace).copied();
        if let Some((may, _)) = known.filter(|(_, asked)| now.saturating_since(*asked) < RIGHTS_KEPT) {
            return may;
        }
        let attributes = ResourceAttributes {
            namespace: Some(namespace.to_owned()),
            resource: Some("pods".to_owned()),
            verb: Some("patch".to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let Ok(answer) = within(api.create(&PostParams::default(), &review)).await else { return false };
        let may = answer.status.is_some_and(|status| status.allowed);
        let mut rights = self.hint_rights.lock();
        rights.retain(|_, (_, asked)| now.saturating_since(*asked) < RIGHTS_KEPT);
        rights.insert(namespace.to_owned(), (may, now));
        may
    }
}
