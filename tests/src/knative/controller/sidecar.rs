//! The container that every pod of a revision has beside its app: contract §6.1 and §6.2.

use serde_json::{Value, json};

use crate::knative::keys;
use crate::knative::objects::{KnownObjects, label, number, text};
use crate::knative::revision_spec::{is_h2c, request_port, timeout_seconds};

/// The port of an app that names none.
const USER_PORT: i64 = 8080;

/// What `config-deployment` says of every queue-proxy.
#[derive(Clone, Copy)]
pub(super) struct SidecarSettings<'k> {
    pub(super) image: &'k str,
    pub(super) root_ca: &'k str,
}

impl<'k> SidecarSettings<'k> {
    pub(super) fn read(known: &'k KnownObjects, system: &str) -> Self {
        let setting = |key| known.setting(system, "config-deployment", key).unwrap_or_default();
        Self { image: setting("queue-sidecar-image"), root_ca: setting("queue-sidecar-rootca") }
    }
}

/// The port at which the app listens.
pub(super) fn user_port(revision: &Value) -> i64 {
    let port = number(revision, "/spec/containers/0/ports/0/containerPort");
    if port > 0 { port } else { USER_PORT }
}

/// The container `queue-proxy` of a revision's pods.
pub(super) fn queue_proxy(revision: &Value, system: &str, sidecar: SidecarSettings<'_>) -> Value {
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
        "image": sidecar.image,
        "ports": [
            {"name": "http-autometric", "containerPort": keys::STAT_PORT},
            {"name": "http-usermetric", "containerPort": keys::REQUEST_METRICS_PORT},
            {"name": "queue-port", "containerPort": port},
            {"name": "https-port", "containerPort": keys::TLS_PORT},
        ],
        "readinessProbe": own_probe,
        "env": queue_proxy_environment(revision, system, port, sidecar.root_ca),
        "resources": {"requests": {"cpu": "25m"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
    })
}

/// The environment in the order of the contract's §6.1.
fn queue_proxy_environment(revision: &Value, system: &str, port: u16, root_ca: &str) -> Value {
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
        ("ROOT_CA", root_ca.to_owned()),
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
