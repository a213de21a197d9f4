//! How does a pod end whose app ignores that it was told to? By a second deletion, with the time that the pod
//! had before the drain was added to it.
//!
//! Writing it takes the right to delete pods, which is optional (`deploy/components/pod-reaper`).

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use orchestration::Fence;

use super::rights::PodVerb;
use super::{Failure, Requests};

/// A pod that ends, and may take less time for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutlivingPod {
    pub(crate) namespace: String,
    /// In its namespace.
    pub(crate) name: String,
    pub(crate) uid: String,
    /// In seconds; not zero, which would take the object away and leave the app to itself.
    pub(crate) grace: u32,
}

impl Requests {
    /// Deletes a pod again, where that is allowed.
    pub(crate) async fn reap(&self, fence: Fence, pod: &OutlivingPod) -> Result<(), Failure> {
        if !self.may(PodVerb::Delete, &pod.namespace).await {
            return Ok(());
        }
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let preconditions = Preconditions { uid: Some(pod.uid.clone()), resource_version: None };
        let parameters = DeleteParams::default().grace_period(pod.grace).preconditions(preconditions);
        match self.fenced(fence, api.delete(&pod.name, &parameters)).await {
            // It has ended, and perhaps another has its name.
            Ok(_) | Err(Failure::Gone(_) | Failure::Conflict) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
