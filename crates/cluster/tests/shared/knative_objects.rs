//! The objects of one revision of an installed Knative, `hello-00001`, as Knative's controller and Kubernetes
//! make them for tests.
//!
//! The unit tests of the crate cannot use its integration tests: both take this file in by its path.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vocabulary::RevisionName;

/// The name under which ebb knows the revision.
pub(crate) fn revision() -> RevisionName {
    RevisionName::parse("default/revision/hello-00001").expect("a name")
}

/// Reads an object as the type that the code under test takes.
pub(crate) fn read<Object: DeserializeOwned>(object: &Value) -> Object {
    serde_json::from_value(object.clone()).expect("an object")
}

/// The labels of the revision's Deployment and of its pods.
pub(crate) fn labels() -> Value {
    json!({"serving.knative.dev/revision": "hello-00001", "serving.knative.dev/revisionUID": "rev1"})
}

/// The `PodAutoscaler` of the revision, which names no setting but its class.
pub(crate) fn autoscaler() -> Value {
    json!({
        "apiVersion": "autoscaling.internal.knative.dev/v1alpha1", "kind": "PodAutoscaler",
        "metadata": {
            "name": "hello-00001", "namespace": "default", "uid": "pa1", "generation": 1, "resourceVersion": "7",
            "annotations": {"autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev"},
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello-00001-deployment"},
            "protocolType": "http1", "reachability": "Reachable",
        },
    })
}

/// The Deployment of the revision, with this count and this `resourceVersion`.
pub(crate) fn deployment(replicas: u32, version: &str) -> Value {
    let labels = labels();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "hello-00001-deployment", "namespace": "default", "uid": "d1", "labels": labels,
            "resourceVersion": version},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"serving.knative.dev/revisionUID": "rev1"}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "queue-proxy"}]}},
        },
    })
}

/// A pod that runs; `ready` is the status of its condition Ready.
pub(crate) fn pod_object(name: &str, namespace: &str, labels: &Value, address: &str, ready: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels, "resourceVersion": "1"},
        "spec": {"containers": [{"name": "queue-proxy"}]},
        "status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": ready}]},
    })
}

/// The status of a `ServerlessService` whose present spec the controller has carried out; `populated` is the
/// status of the condition `ActivatorEndpointsPopulated`.
pub(crate) fn carried_out_status(service: &Value, populated: &str, at: &str) -> Value {
    json!({
        "serviceName": "hello-00001", "privateServiceName": "hello-00001-private",
        "observedGeneration": service["metadata"]["generation"],
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": at},
            {"type": "ActivatorEndpointsPopulated", "status": populated, "lastTransitionTime": at},
        ],
    })
}

/// The slice of the public Service, from which clients get these addresses.
pub(crate) fn slice_object(addresses: &[impl Serialize]) -> Value {
    let endpoints: Vec<Value> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
    json!({
        "metadata": {"name": "hello-00001-x", "namespace": "default",
            "labels": {"kubernetes.io/service-name": "hello-00001"}},
        "addressType": "IPv4", "endpoints": endpoints,
    })
}

/// A condition of a status; nothing for one that is not written.
pub(crate) fn condition(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

/// The status of a `PodAutoscaler` as `kubectl get kpa` shows it: Ready with its reason, and the two counts.
pub(crate) fn status_in_words(status: &Value) -> String {
    let ready = condition(status, "Ready");
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    let words = format!("{} {}", text("status"), text("reason"));
    format!("{} {} {}", words.trim(), status["desiredScale"], status["actualScale"])
}
