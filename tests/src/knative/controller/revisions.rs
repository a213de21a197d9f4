//! The objects that a Service and its revisions have: contract §1.1, §2.1, §6.1 and §6.2.

use serde_json::{Map, Value, json};

use super::conditions::condition;
use super::planned_write::{ControllerStep, PlannedWrite, WriteForm, ensured};
use super::sidecar::{SidecarSettings, queue_proxy, user_port};
use super::traffic::{latest_ready, leads_to, revisions_of, traffic_of};
use crate::knative::keys;
use crate::knative::objects::{
    KnownObjects, ObjectId, PlayedKind, entries, label, number, owner_reference, text,
};
use crate::knative::revision_spec::{is_h2c, timeout_seconds};
use crate::knative::subset::hash;

/// The revision of a Service's present template, and the routing states of all.
pub(super) fn of_service(known: &KnownObjects, id: &ObjectId, service: &Value) -> Vec<PlannedWrite> {
    let mut writes = Vec::new();
    if present_revision(known, id, service).is_none() {
        let former = revisions_of(known, id).last();
        let former = former.and_then(|(_, former)| label(former, keys::GENERATION).parse::<u32>().ok());
        let generation = former.map_or(1, |former| former + 1);
        let revision = id.beside(PlayedKind::Revision, &format!("{}-{generation:05}", id.name));
        let wanted = revision_of(service, generation);
        writes.extend(ensured(known, ControllerStep::Revisions, revision, wanted));
    }
    let (latest_ready, traffic) = (latest_ready(known, id), traffic_of(known, id, service));
    for (id, revision) in revisions_of(known, id) {
        let former = label(revision, keys::ROUTING_STATE);
        let is_routed = leads_to(&traffic, &id.name);
        let state = if is_routed { "active" } else { idle_state(id, former, latest_ready) };
        if former != state {
            let patch = json!({"metadata": {"labels": {keys::ROUTING_STATE: state}}});
            let form = WriteForm::Patch(patch);
            writes.push(PlannedWrite { step: ControllerStep::Revisions, id: id.clone(), form });
        }
    }
    writes
}

/// The revision of a Service's present template; `None` until it is made. A change of the traffic alone makes
/// none.
pub(super) fn present_revision<'k>(
    known: &'k KnownObjects,
    id: &'k ObjectId,
    service: &Value,
) -> Option<(&'k ObjectId, &'k Value)> {
    let template = service_template_hash(service);
    let latest = revisions_of(known, id).last();
    latest.filter(|(_, revision)| revision["metadata"]["annotations"][keys::TEMPLATE] == template.as_str())
}

/// The state of a revision to which no route leads: one that was routed, or that a newer one has overtaken,
/// is kept in reserve. Names of revisions have five digits, so they sort by their generation.
fn idle_state(revision: &ObjectId, former: &str, latest_ready: Option<&str>) -> &'static str {
    let is_overtaken = latest_ready.is_some_and(|ready| revision.name.as_str() < ready);
    if is_overtaken || ["active", "reserve"].contains(&former) { "reserve" } else { "pending" }
}

/// A short text for the template of a Service.
fn service_template_hash(service: &Value) -> String {
    let template = service.pointer("/spec/template").unwrap_or(&Value::Null);
    format!("{:016x}", hash(template.to_string().as_bytes()))
}

fn revision_of(service: &Value, generation: u32) -> Value {
    let template = service.pointer("/spec/template").cloned().unwrap_or_default();
    let mut annotations = entries(&template, "/metadata/annotations");
    // The webhook and the controller default both.
    annotations.entry(keys::CLASS).or_insert(json!("kpa.autoscaling.knative.dev"));
    annotations.entry(keys::METRIC).or_insert(json!("concurrency"));
    annotations.insert(keys::TEMPLATE.to_owned(), json!(service_template_hash(service)));
    let name = text(service, "/metadata/name");
    let mut labels = entries(&template, "/metadata/labels");
    let generation = generation.to_string();
    for (key, value) in
        [(keys::SERVICE, name), (keys::CONFIGURATION, name), (keys::GENERATION, generation.as_str())]
    {
        labels.insert(key.to_owned(), json!(value));
    }
    labels.insert(keys::ROUTING_STATE.to_owned(), json!("pending"));
    let owners = owner_reference(PlayedKind::KnativeService, service);
    json!({
        "metadata": {"labels": labels, "annotations": annotations, "ownerReferences": owners},
        "spec": template.get("spec").cloned().unwrap_or_default(),
    })
}

/// The Deployment of a revision, and then its `PodAutoscaler`.
pub(super) fn objects_of(
    known: &KnownObjects,
    system: &str,
    id: &ObjectId,
    revision: &Value,
) -> Vec<PlannedWrite> {
    let deployment = id.beside(PlayedKind::Deployment, &deployment_name(&id.name));
    let wanted = deployment_of(known, system, revision);
    let hash = wanted["metadata"]["labels"][keys::DEPLOYMENT_HASH].clone();
    let Some(live) = known.get(&deployment) else {
        return ensured(known, ControllerStep::Revisions, deployment, wanted).into_iter().collect();
    };
    let mut writes = Vec::new();
    // Nothing but the hash is compared: a foreign change of the template stays.
    if label(live, keys::DEPLOYMENT_HASH) != hash {
        let mut patch = wanted;
        patch["spec"].as_object_mut().expect("a Deployment has a spec").remove("replicas");
        writes.push(PlannedWrite {
            step: ControllerStep::Revisions,
            id: deployment.clone(),
            form: WriteForm::Patch(patch),
        });
    }
    let autoscaler = id.beside(PlayedKind::PodAutoscaler, &id.name);
    let wanted = autoscaler_of(known, id, revision, live);
    writes.extend(ensured(known, ControllerStep::Revisions, autoscaler, wanted));
    writes
}

fn deployment_name(revision: &str) -> String {
    format!("{revision}-deployment")
}

/// The labels that Deployment, pods and `PodAutoscaler` have.
fn labels_of(revision: &Value) -> Map<String, Value> {
    let mut labels = entries(revision, "/metadata/labels");
    labels.remove(keys::ROUTING_STATE);
    let name = text(revision, "/metadata/name");
    labels.insert(keys::REVISION.to_owned(), json!(name));
    labels.insert(keys::REVISION_UID.to_owned(), json!(text(revision, "/metadata/uid")));
    labels.entry("app").or_insert(json!(name));
    labels
}

fn autoscaler_of(known: &KnownObjects, id: &ObjectId, revision: &Value, deployment: &Value) -> Value {
    let mut annotations = entries(revision, "/metadata/annotations");
    annotations.remove(keys::TEMPLATE);
    // A setting that was removed from the revision goes from its autoscaler, too.
    let live = known.get(&id.beside(PlayedKind::PodAutoscaler, &id.name));
    for key in live.map(|live| entries(live, "/metadata/annotations")).unwrap_or_default().keys() {
        if key.starts_with(keys::AUTOSCALING) && !annotations.contains_key(key) {
            annotations.insert(key.clone(), Value::Null);
        }
    }
    let protocol = if is_h2c(revision) { "h2c" } else { "http1" };
    json!({
        "metadata": {
            "labels": labels_of(revision),
            "annotations": annotations,
            "ownerReferences": owner_reference(PlayedKind::Revision, revision),
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment_name(&id.name)},
            "containerConcurrency": number(revision, "/spec/containerConcurrency"),
            "protocolType": protocol,
            "reachability": reachability(revision, deployment),
        },
    })
}

fn reachability(revision: &Value, deployment: &Value) -> &'static str {
    let has_failed = ["ResourcesAvailable", "ContainerHealthy"]
        .iter()
        .any(|kind| condition(revision, kind).status == "False");
    let is_stuck =
        number(deployment, "/spec/replicas") > 0 && number(deployment, "/status/readyReplicas") == 0;
    match label(revision, keys::ROUTING_STATE) {
        _ if has_failed && is_stuck => "Unreachable",
        "active" => "Reachable",
        "reserve" => "Unreachable",
        _ => "",
    }
}

/// How many pods a new revision begins with.
fn initial_scale(known: &KnownObjects, system: &str, revision: &Value) -> i64 {
    let annotation = entries(revision, "/metadata/annotations");
    let annotation = annotation.get(keys::INITIAL_SCALE).and_then(Value::as_str);
    let text = annotation.or_else(|| known.setting(system, "config-autoscaler", "initial-scale"));
    text.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn deployment_of(known: &KnownObjects, system: &str, revision: &Value) -> Value {
    let sidecar = SidecarSettings::read(known, system);
    let labels = labels_of(revision);
    let mut own_labels = labels.clone();
    own_labels.insert(keys::DEPLOYMENT_HASH.to_owned(), json!(template_hash(revision, sidecar)));
    let mut annotations = entries(revision, "/metadata/annotations");
    annotations.retain(|key, _| !key.starts_with(keys::AUTOSCALING) && key != keys::TEMPLATE);
    let uid = &labels[keys::REVISION_UID];
    json!({
        "metadata": {
            "labels": own_labels,
            "annotations": annotations,
            "ownerReferences": owner_reference(PlayedKind::Revision, revision),
        },
        "spec": {
            "replicas": initial_scale(known, system, revision),
            "selector": {"matchLabels": {keys::REVISION_UID: uid}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
            "revisionHistoryLimit": 0,
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {"kubectl.kubernetes.io/default-container": container_name(revision)},
                },
                "spec": {
                    "containers": [user_container(revision), queue_proxy(revision, system, sidecar)],
                    "terminationGracePeriodSeconds": timeout_seconds(revision),
                    "enableServiceLinks": false,
                },
            },
        },
    })
}

/// A short text for the spec and the settings that a template is made of: another text rolls the Deployment.
fn template_hash(revision: &Value, sidecar: SidecarSettings<'_>) -> String {
    let SidecarSettings { image, root_ca } = sidecar;
    let text = format!("{image} {root_ca} {}", revision.get("spec").unwrap_or(&Value::Null));
    format!("{:016x}", hash(text.as_bytes()))
}

fn container_name(revision: &Value) -> &str {
    let name = text(revision, "/spec/containers/0/name");
    if name.is_empty() { "user-container" } else { name }
}

/// The app's container, whose readiness the queue-proxy judges.
fn user_container(revision: &Value) -> Value {
    let mut container = revision.pointer("/spec/containers/0").cloned().unwrap_or_default();
    let port = user_port(revision);
    container["name"] = json!(container_name(revision));
    container["ports"] = json!([{"name": "user-port", "containerPort": port}]);
    let mut environment = container["env"].as_array().cloned().unwrap_or_default();
    environment.push(json!({"name": "PORT", "value": port.to_string()}));
    for (variable, value) in [
        ("K_REVISION", text(revision, "/metadata/name")),
        ("K_CONFIGURATION", label(revision, keys::CONFIGURATION)),
        ("K_SERVICE", label(revision, keys::SERVICE)),
    ] {
        environment.push(json!({"name": variable, "value": value}));
    }
    container["env"] = Value::Array(environment);
    container["lifecycle"] =
        json!({"preStop": {"httpGet": {"port": keys::DRAIN_PORT, "path": "/wait-for-drain"}}});
    // Kubelet runs an exec probe; the queue-proxy runs every other one.
    let is_exec_probe = container.pointer("/readinessProbe/exec").is_some();
    if !is_exec_probe && let Some(fields) = container.as_object_mut() {
        fields.remove("readinessProbe");
    }
    container
}
