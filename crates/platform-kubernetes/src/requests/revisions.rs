//! How are the objects of a revision of Knative's written? (Contract §4.2.)

use cluster::Failure;
use cluster::knative::{DeskWrite, ServerlessWrite, pod_autoscalers, serverless_services};
use kube::Api;
use kube::api::Patch;
use kube::core::DynamicObject;
use orchestration::Fence;
use serde_json::Value;
use vocabulary::RevisionName;

use super::{Requests, patch_parameters, post_parameters};

impl Requests {
    /// Writes one of a revision's objects over the version that the write was decided upon.
    pub(crate) async fn write_revision(
        &self,
        fence: Fence,
        revision: &RevisionName,
        write: &DeskWrite,
    ) -> Result<(), Failure> {
        let (namespace, name) = (revision.namespace(), revision.name());
        match write {
            DeskWrite::Service(ServerlessWrite::Create(object)) => {
                let object: DynamicObject = serde_json::from_value(object.clone()).map_err(|error| {
                    Failure::Refused(format!("the ServerlessService is malformed: {error}"))
                })?;
                let (api, parameters) = (self.serverless_services(namespace), post_parameters());
                self.fenced(fence, api.create(&parameters, &object)).await.map(drop)
            }
            DeskWrite::Service(ServerlessWrite::Replace { over, spec }) => {
                self.replace_spec(fence, (namespace, name), over, spec).await
            }
            DeskWrite::Status(write) => {
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.client.clone(), namespace, &pod_autoscalers());
                let (parameters, patch) = (patch_parameters(), Patch::Merge(write.patch()));
                self.fenced(fence, api.patch_status(name, &parameters, &patch)).await.map(drop)
            }
        }
    }

    fn serverless_services(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &serverless_services())
    }

    /// Replaces the whole spec of a `ServerlessService`, of which ebb may update and not patch: what others
    /// wrote beside it stays.
    async fn replace_spec(
        &self,
        fence: Fence,
        (namespace, name): (&str, &str),
        over: &str,
        spec: &Value,
    ) -> Result<(), Failure> {
        let (api, parameters) = (self.serverless_services(namespace), post_parameters());
        let mut object = self.fenced(fence, api.get(name)).await?;
        if object.metadata.resource_version.as_deref() != Some(over) {
            return Err(Failure::Conflict);
        }
        object.data["spec"] = spec.clone();
        self.fenced(fence, api.replace(name, &parameters, &object)).await.map(drop)
    }
}
