//! Which revision does a person mean by the name of a Service of an installed Knative?

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};

use super::Cluster;

impl Cluster {
    /// The latest ready revision of a Service of Knative's in this namespace. `None` where there is no such
    /// Service, it has none yet, or the person may not read it: then the name stands for nothing here.
    pub(crate) async fn latest_ready_revision(&self, service: &str) -> Option<String> {
        if service.contains('/') {
            return None;
        }
        let kind = GroupVersionKind::gvk("serving.knative.dev", "v1", "Service");
        let resource = ApiResource::from_gvk_with_plural(&kind, "services");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        latest_ready(&api.get_opt(service).await.ok()??)
    }
}

fn latest_ready(service: &DynamicObject) -> Option<String> {
    Some(service.data.pointer("/status/latestReadyRevisionName")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_service_stands_for_its_latest_ready_revision() {
        let of = |status: Value| {
            let service = json!({
                "apiVersion": "serving.knative.dev/v1", "kind": "Service",
                "metadata": {"name": "hello"}, "status": status,
            });
            latest_ready(&serde_json::from_value(service).expect("an object"))
        };
        assert_eq!(
            of(json!({"latestCreatedRevisionName": "hello-00003", "latestReadyRevisionName": "hello-00002"})),
            Some("hello-00002".to_owned())
        );
        assert_eq!(of(json!({"latestCreatedRevisionName": "hello-00001"})), None, "none is ready yet");
    }
}
