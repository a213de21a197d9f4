//! The objects that a Service and its revisions have: contract §1.1, §2.1, §6.1 and §6.2.

use serde_json::{Map, Value, json};

use super::conditions::condition;
use super::planned_write::{ControllerStep, PlannedWrite, WriteForm, ensured};
use crate::knative::keys;
use crate::knative::objects::{
    KnownObjects, ObjectId, PlayedKind, entries, label, number, owner_reference, text,
};
use crate::knative::revision_spec::{is_h2c, request_port, timeout_seconds};
use crate::knative::subset::hash;

/// The port of an app that names none.
const USER_PORT: i64 = 8080;

/// The revision of a Service's present generation, and the routing states of all.
pub(super) fn of_service(known: &KnownObjects, id: &ObjectId, service: &Value) -> Vec<PlannedWrite> {
    let generation = number(service, "/metadata/generation");
    let name = revision_name(&id.name, generation);
    let revision = id.beside(PlayedKind::Revision, &name);
    let mut writes = Vec::new();
    if known.get(&revision).is_none() {
        writes.extend(ensured(known, ControllerStep::Revisions, revision, revision_of(service)));
    }
    let latest_ready = latest_ready(known, id);
    for (id, revision) in revisions_of(known, id) {
        let state = routing_state(id, latest_ready);
        if label(revision, keys::ROUTING_STATE) != state {
            let patch = json!({"metadata": {"labels": {keys::ROUTING_STATE: state}}});
            let form = WriteForm::Patch(patch);
            writes.push(PlannedWrite { step: ControllerStep::Revisions, id: id.clone(), form });
        }
    }
    writes
}

pub(super) fn revision_name(service: &str, generation: i64) -> String {
    format!("{service}-{generation:05}")
}

/// The revisions of a Service, the oldest first.
fn revisions_of<'k>(
    known: &'k KnownObjects,
    service: &'k ObjectId,
) -> impl Iterator<Item = (&'k ObjectId, &'k Value)> {
    known.of_kind(PlayedKind::Revision).filter(move |(id, revision)| {
        id.namespace == service.namespace && label(revision, keys::SERVICE) == service.name
    })
}

/// The newest revision of a Service that is ready, to which its route leads.
pub(super) fn latest_ready<'k>(known: &'k KnownObjects, service: &'k ObjectId) -> Option<&'k str> {
    let ready = revisions_of(known, service).filter(|(_, one)| condition(one, "Ready").status == "True");
    ready.last().map(|(id, _)| id.name.as_str())
}

/// Names of revisions have five digits, so they sort by their generation.
fn routing_state(revision: &ObjectId, latest_ready: Option<&str>) -> &'static str {
    match latest_ready {
        Some(ready) if revision.name == ready => "active",
        Some(ready) if revision.name.as_str() < ready => "reserve",
        Some(_) | None => "pending",
    }
}

fn revision_of(service: &Value) -> Value {
    let template = service.pointer("/spec/template").cloned().unwrap_or_default();
    let mut annotations = entries(&template, "/metadata/annotations");
    // The webhook and the controller default both.
    annotations.entry(keys::CLASS).or_insert(json!("kpa.autoscaling.knative.dev"));
    annotations.entry(keys::METRIC).or_insert(json!("concurrency"));
    let name = text(service, "/metadata/name");
    let mut labels = entries(&template, "/metadata/labels");
    let generation = number(service, "/metadata/generation").to_string();
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
    let image = known.setting(system, "config-deployment", "queue-sidecar-image").unwrap_or_default();
    let labels = labels_of(revision);
    let mut own_labels = labels.clone();
    own_labels.insert(keys::DEPLOYMENT_HASH.to_owned(), json!(template_hash(revision, image)));
    let mut annotations = entries(revision, "/metadata/annotations");
    annotations.retain(|key, _| !key.starts_with(keys::AUTOSCALING));
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
                    "containers": [user_container(revision), queue_proxy(revision, system, image)],
                    "terminationGracePeriodSeconds": timeout_seconds(revision),
                    "enableServiceLinks": false,
                },
            },
        },
    })
}

/// A short text for the spec and the image that a template is made of: another text rolls the Deployment.
fn template_hash(revision: &Value, image: &str) -> String {
    let text = format!("{image} {}", revision.get("spec").unwrap_or(&Value::Null));
    format!("{:016x}", hash(text.as_bytes()))
}

fn user_port(revision: &Value) -> i64 {
    let port = number(revision, "/spec/containers/0/ports/0/containerPort");
    if port > 0 { port } else { USER_PORT }
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

fn queue_proxy(revision: &Value, system: &str, image: &str) -> Value {
    let port = request_port(is_h2c(revision));
    // An app without a probe gets one that asks for a connection; kubelet's defaults time it.
    let mut own_probe = revision.pointer("/spec/containers/0/readinessProbe").cloned().unwrap_or(json!({}));
    if let Some(fields) = own_probe.as_object_mut() {
        fields.retain(|key, _| key.ends_with("Seconds") || key.ends_with("Threshold"));
        // A zero makes the queue-proxy look often; kubelet takes its own default instead.
        fields.retain(|_, value| value.as_i64() != Some(0));
    }
    own_probe["httpGet"] = json!({
        "port": port, "httpHeaders": [{"name": "K-Network-Probe", "value": "queue"}],
    });
    json!({
        "name": "queue-proxy",
        "image": image,
        "ports": [
            {"name": "http-autometric", "containerPort": keys::STAT_PORT},
            {"name": "http-usermetric", "containerPort": keys::REQUEST_METRICS_PORT},
            {"name": "queue-port", "containerPort": port},
            {"name": "https-port", "containerPort": keys::TLS_PORT},
        ],
        "readinessProbe": own_probe,
        "env": queue_proxy_environment(revision, system, port),
        "resources": {"requests": {"cpu": "25m"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
    })
}

/// The environment in the order of the contract's §6.1.
fn queue_proxy_environment(revision: &Value, system: &str, port: u16) -> Value {
    let spec_number = |key: &str| number(revision, &format!("/spec/{key}")).to_string();
    let probe = queue_probe(revision).to_string();
    let texts = [
        ("SERVING_NAMESPACE", text(revision, "/metadata/namespace").to_owned()),
        ("SERVING_SERVICE", label(revision, keys::SERVICE).to_owned()),
        ("SERVING_CONFIGURATION", label(revision, keys::CONFIGURATION).to_owned()),
        ("SERVING_REVISION", text(revision, "/metadata/name").to_owned()),
        ("QUEUE_SERVING_PORT", port.to_string()),
        ("QUEUE_SERVING_TLS_PORT", keys::TLS_PORT.to_string()),
        ("CONTAINER_CONCURRENCY", spec_number("containerConcurrency")),
        ("REVISION_TIMEOUT_SECONDS", timeout_seconds(revision).to_string()),
        ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", spec_number("responseStartTimeoutSeconds")),
        ("REVISION_IDLE_TIMEOUT_SECONDS", spec_number("idleTimeoutSeconds")),
        ("SERVING_LOGGING_CONFIG", String::new()),
        ("SERVING_LOGGING_LEVEL", String::new()),
        ("USER_PORT", user_port(revision).to_string()),
        ("SYSTEM_NAMESPACE", system.to_owned()),
        ("SERVING_READINESS_PROBE", probe),
        ("ENABLE_HTTP2_AUTO_DETECTION", "false".to_owned()),
        ("ENABLE_HTTP_FULL_DUPLEX", "false".to_owned()),
        ("ROOT_CA", String::new()),
        ("ENABLE_MULTI_CONTAINER_PROBES", "false".to_owned()),
        ("OBSERVABILITY_CONFIG", "{}".to_owned()),
    ];
    let fields =
        [("SERVING_POD", "metadata.name"), ("SERVING_POD_IP", "status.podIP"), ("HOST_IP", "status.hostIP")];
    let texts = texts.into_iter().map(|(name, value)| json!({"name": name, "value": value}));
    let fields = fields
        .into_iter()
        .map(|(name, path)| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
    texts.chain(fields).collect()
}

/// The probe that the queue-proxy runs: the app's, at the loopback address.
fn queue_probe(revision: &Value) -> Value {
    let mut probe = revision.pointer("/spec/containers/0/readinessProbe").cloned().unwrap_or(json!({}));
    let port = user_port(revision);
    let handler = ["httpGet", "tcpSocket", "grpc"].into_iter().find(|key| probe.get(key).is_some());
    if let Some(handler) = handler {
        let own = number(&probe, &format!("/{handler}/port"));
        probe[handler]["port"] = json!(if own > 0 { own } else { port });
        probe[handler]["host"] = json!("127.0.0.1");
    } else {
        // For an app with an exec probe or with none the queue-proxy asks for a connection.
        probe = json!({"tcpSocket": {"host": "127.0.0.1", "port": port}});
    }
    if probe.get("successThreshold").is_none() {
        probe["successThreshold"] = json!(1);
    }
    probe
}
