//! The two Services of a `ServerlessService`: contract §3.3, points 1 and 2.

use serde_json::{Value, json};

use super::planned_write::{ControllerStep, PlannedWrite, ensured};
use crate::knative::keys;
use crate::knative::objects::{KnownObjects, ObjectId, PlayedKind, entries, owner_reference, text};
use crate::knative::revision_spec::request_port;

/// The private Service first; the public one once that is there.
pub(super) fn of_serverless(known: &KnownObjects, id: &ObjectId, serverless: &Value) -> Option<PlannedWrite> {
    let private = private_id(id);
    if known.get(&private).is_none() {
        let selector = selector_of(known, id, serverless)?;
        let wanted = service(serverless, "Private", &private_ports(is_h2c(serverless)), &selector);
        return ensured(known, ControllerStep::Services, private, wanted);
    }
    // A public Service that is there gets its labels, owner and ports back, and loses a selector.
    let wanted = service(serverless, "Public", &public_ports(is_h2c(serverless)), &Value::Null);
    ensured(known, ControllerStep::Services, public_id(id), wanted)
}

pub(super) fn private_id(id: &ObjectId) -> ObjectId {
    id.beside(PlayedKind::Service, &format!("{}-private", id.name))
}

pub(super) fn public_id(id: &ObjectId) -> ObjectId {
    id.beside(PlayedKind::Service, &id.name)
}

pub(super) fn is_h2c(serverless: &Value) -> bool {
    text(serverless, "/spec/protocolType") == "h2c"
}

/// The selector of the workload's pods; `None` until the workload is known.
fn selector_of(known: &KnownObjects, id: &ObjectId, serverless: &Value) -> Option<Value> {
    let target = id.beside(PlayedKind::Deployment, text(serverless, "/spec/objectRef/name"));
    known.get(&target)?.pointer("/spec/selector/matchLabels").cloned()
}

fn service(serverless: &Value, kind: &str, ports: &Value, selector: &Value) -> Value {
    json!({
        "metadata": {
            "labels": labels_of(serverless, kind),
            "ownerReferences": owner_reference(PlayedKind::ServerlessService, serverless),
        },
        "spec": {"ports": ports, "selector": selector},
    })
}

/// The labels of the Services and Endpoints that are made for a `ServerlessService`.
pub(super) fn labels_of(serverless: &Value, kind: &str) -> Value {
    let mut labels = entries(serverless, "/metadata/labels");
    labels.insert(keys::SERVERLESS_SERVICE.to_owned(), json!(text(serverless, "/metadata/name")));
    labels.insert(keys::SERVICE_TYPE.to_owned(), json!(kind));
    Value::Object(labels)
}

fn private_ports(is_h2c: bool) -> Value {
    let target = request_port(is_h2c);
    let (name, istio) = if is_h2c { ("http2", "http2-istio") } else { ("http", "http-istio") };
    let mut ports = json!([
        {"name": name, "port": 80, "targetPort": target},
        {"name": "https", "port": 443, "targetPort": keys::TLS_PORT},
        {"name": "http-autometric", "port": keys::STAT_PORT, "targetPort": "http-autometric"},
        {"name": "http-usermetric", "port": keys::REQUEST_METRICS_PORT, "targetPort": "http-usermetric"},
        {"name": istio, "port": target, "targetPort": target},
    ]);
    if is_h2c {
        ports[0]["appProtocol"] = json!("kubernetes.io/h2c");
    }
    ports
}

fn public_ports(is_h2c: bool) -> Value {
    let (name, port) = if is_h2c { ("http2", 81) } else { ("http", 80) };
    json!([
        {"name": name, "port": port, "targetPort": request_port(is_h2c)},
        {"name": "https", "port": 443, "targetPort": keys::TLS_PORT},
    ])
}
