//! May we patch pods, which only an optional role allows (`deploy/components/pod-deletion-cost`)? The API
//! server is asked before: what is refused again and again would only fill its audit log.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::{Requests, within};

/// For so long a right is taken to be as it was.
const RIGHTS_KEPT: Duration = Duration::from_mins(5);

impl Requests {
    /// Whether we may patch pods of this namespace. An API server that does not answer has not allowed it.
    pub(super) async fn may_patch_pods(&self, namespace: &str) -> bool {
        let now = self.clock.now();
        let known = self.pod_rights.lock().get(namespace).copied();
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
        let mut rights = self.pod_rights.lock();
        rights.retain(|_, (_, asked)| now.saturating_since(*asked) < RIGHTS_KEPT);
        rights.insert(namespace.to_owned(), (may, now));
        may
    }
}
