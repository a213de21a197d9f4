//! May we patch pods, or list ConfigMaps, which only optional roles allow (`deploy/components`)? The API
//! server is asked before: what is refused again and again would only fill its audit log.

use std::time::Duration;

use cluster::Failure;
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
        let Ok(may) = self.may(namespace, "pods", "patch").await else { return false };
        let mut rights = self.pod_rights.lock();
        rights.retain(|_, (_, asked)| now.saturating_since(*asked) < RIGHTS_KEPT);
        rights.insert(namespace.to_owned(), (may, now));
        may
    }

    /// Whether we may list all ConfigMaps of our own namespace; a failure where the API server does not say.
    pub(crate) async fn may_list_config_maps(&self) -> Result<bool, Failure> {
        self.may(&self.namespace, "configmaps", "list").await
    }

    /// Whether we may do this to all objects of a kind of the API's core in a namespace.
    async fn may(&self, namespace: &str, resource: &str, verb: &str) -> Result<bool, Failure> {
        let attributes = ResourceAttributes {
            namespace: Some(namespace.to_owned()),
            resource: Some(resource.to_owned()),
            verb: Some(verb.to_owned()),
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
        let answer = within(api.create(&PostParams::default(), &review)).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
