//! A kind of workload that another project has brought: a custom resource with a scale, and its controller,
//! which makes as many pods as that says.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{PATIENCE, TestNamespace};
use crate::wait::eventually;

/// How often the controller looks.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// What the API server calls it.
pub(super) fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("tests.ebb.dev", "v1", "Fleet"))
}

/// Makes the kind known to the cluster, and lets ebb scale it.
pub async fn bring_fleets(client: &Client) {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
    });
    let scale = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".spec.selector",
    });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"scale": scale},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": anything}}},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fleets.tests.ebb.dev"},
        "spec": {
            "group": "tests.ebb.dev", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "fleets", "singular": "fleet", "kind": "Fleet"},
        },
    });
    let rules = json!([
        {"apiGroups": ["tests.ebb.dev"], "resources": ["fleets"], "verbs": ["list", "watch"]},
        {"apiGroups": ["tests.ebb.dev"], "resources": ["fleets/scale"], "verbs": ["get", "patch"]},
    ]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "ebb-scales-fleets", "labels": {"ebb.dev/aggregate-to-autoscaler": "true"}},
        "rules": rules,
    });
    for (group, kind, object) in [
        ("apiextensions.k8s.io", "CustomResourceDefinition", definition),
        ("rbac.authorization.k8s.io", "ClusterRole", role),
    ] {
        bring(client, &GroupVersionKind::gvk(group, "v1", kind), object).await;
    }
    eventually("the API server serves Fleets", PATIENCE, || async {
        let fleets = Api::<DynamicObject>::all_with(client.clone(), &resource());
        fleets.list(&ListParams::default()).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

/// Makes an object of the whole cluster, as its administrator; one that is there stays as it is.
pub async fn bring(client: &Client, kind: &GroupVersionKind, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).expect("such an object");
    let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(kind));
    match api.create(&PostParams::default(), &object).await {
        // On a cluster that was not made for this run.
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        made => drop(made.expect("the administrator may make it")),
    }
}

/// Looks after a Fleet until it is aborted.
pub async fn look_after_fleet(namespace: TestNamespace, name: String) {
    let fleets = namespace.api_of(&resource());
    let pods = namespace.api::<Pod>();
    loop {
        tokio::time::sleep(LOOKS_EVERY).await;
        let Ok(fleet) = fleets.get(&name).await else { continue };
        let wanted = fleet.data.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or_default();
        let selected = ListParams::default().labels(&format!("app={name}"));
        let Ok(there) = pods.list(&selected).await else { continue };
        let lives = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
        let living: Vec<String> =
            there.items.into_iter().filter(lives).filter_map(|pod| pod.metadata.name).collect();
        let wanted = usize::try_from(wanted).expect("a Fleet is not as large");
        for _ in living.len()..wanted {
            let mut pod = fleet.data["spec"]["template"].clone();
            pod["metadata"]["generateName"] = json!(format!("{name}-"));
            let owner = json!({
                "apiVersion": "tests.ebb.dev/v1", "kind": "Fleet", "name": name, "controller": true,
                "uid": fleet.metadata.uid,
            });
            pod["metadata"]["ownerReferences"] = json!([owner]);
            let pod: Pod = serde_json::from_value(pod).expect("its template is one of a pod");
            pods.create(&PostParams::default(), &pod).await.expect("a pod is made");
        }
        for pod in living.iter().skip(wanted) {
            pods.delete(pod, &DeleteParams::default()).await.expect("a pod is deleted");
        }
    }
}
