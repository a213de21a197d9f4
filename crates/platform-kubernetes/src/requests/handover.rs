//! How does what others left on a Service of ours go?

use cluster::{Failure, Takeover, endpoints, slices};
use k8s_openapi::api::core::v1::{EndpointSubset, Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions};
use orchestration::Fence;

use super::{Requests, post_parameters};

impl Requests {
    /// The Endpoints object first, for a slice that is copied from it would come again. Returns what that
    /// says now, if there is one.
    pub(crate) async fn take_over(
        &self,
        fence: Fence,
        takeover: &Takeover,
    ) -> Result<Option<Vec<EndpointSubset>>, Failure> {
        let kept = self.keep_endpoints(fence, takeover).await?;
        let api: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &takeover.service.namespace);
        for leftover in &takeover.leftovers {
            let preconditions = Preconditions {
                uid: leftover.uid.clone(),
                resource_version: leftover.resource_version.clone(),
            };
            let parameters = DeleteParams::default().preconditions(preconditions);
            match self.fenced(fence, api.delete(&leftover.key.name, &parameters)).await {
                Ok(_) | Err(Failure::Gone(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(kept)
    }

    async fn keep_endpoints(
        &self,
        fence: Fence,
        takeover: &Takeover,
    ) -> Result<Option<Vec<EndpointSubset>>, Failure> {
        let api: Api<Endpoints> = Api::namespaced(self.client.clone(), &takeover.service.namespace);
        let name = &takeover.service.name;
        let Some(there) = self.fenced(fence, api.get_opt(name)).await? else { return Ok(None) };
        let owner = slices::owner(name, &takeover.uid);
        if let Some(next) = endpoints::replacement(there, &takeover.endpoints, &owner) {
            // Asked after what is to be replaced was read: a selector that is put back later makes Kubernetes
            // write them later too, and then ours is refused. Written over Kubernetes' own they would stay,
            // for it looks at them again only when a pod changes.
            if self.has_selector(fence, takeover).await? {
                return Err(Failure::Conflict);
            }
            let parameters = post_parameters();
            self.fenced(fence, api.replace(name, &parameters, &next)).await?;
        }
        Ok(Some(takeover.endpoints.clone()))
    }

    async fn has_selector(&self, fence: Fence, takeover: &Takeover) -> Result<bool, Failure> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), &takeover.service.namespace);
        let named = ListParams::default().fields(&format!("metadata.name={}", takeover.service.name));
        let found = self.fenced(fence, api.list(&named)).await?.items;
        let mut selectors = found.into_iter().filter_map(|service| service.spec?.selector);
        Ok(selectors.any(|selector| !selector.is_empty()))
    }
}
