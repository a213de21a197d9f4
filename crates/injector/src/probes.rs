//! Who asks the app whether it is well?
//!
//! Readiness is the queue-proxy's: it asks far more often while the app starts, and says so on its link in the same instant; kubelet asks the queue-proxy. Liveness
//! and startup stay kubelet's, and so does whatever runs a command in the app's container or asks another port.

use serde_json::{Value, json};

use crate::inject::app_containers_mut;
use crate::ports::{ServedPort, resolve};

/// How long the app's hook may wait for a drain that does not come ([`crate::hooks`]).
const HOOK_WAITS: u64 = 10;

/// Takes the readiness probe of the served port out of its container; a check that the port accepts connections where there is none at all.
pub(crate) fn take_readiness(pod: &mut Value, port: &ServedPort) -> Option<Value> {
    let container = app_containers_mut(pod).find(|container| container["name"] == port.container.as_str())?;
    let Some(probe) = container.get("readinessProbe").cloned() else {
        return Some(json!({"tcpSocket": {"port": port.app}, "periodSeconds": 1}));
    };
    let taken = with_number(probe, container, port)?;
    if let Some(container) = container.as_object_mut() {
        container.remove("readinessProbe");
    }
    Some(taken)
}

/// The probe with its port as a number; `None` if it is not the queue-proxy's to ask.
fn with_number(mut probe: Value, container: &Value, port: &ServedPort) -> Option<Value> {
    let kind = ["httpGet", "tcpSocket", "grpc"].into_iter().find(|kind| probe.get(*kind).is_some())?;
    let asks_elsewhere = probe[kind]["host"].as_str().is_some_and(|host| !host.is_empty());
    if asks_elsewhere || resolve(&probe[kind]["port"], container) != Some(port.app) {
        return None;
    }
    probe[kind]["port"] = json!(port.app);
    Some(probe)
}

/// A container that fails its liveness or startup probe ends by itself: its hook waits for a drain that does not come, beside the time that it had before.
pub(crate) fn lengthen_grace(pod: &mut Value, own_grace: u64) {
    for container in app_containers_mut(pod) {
        for kind in ["livenessProbe", "startupProbe"] {
            if let Some(probe) = container.get_mut(kind) {
                let given = probe["terminationGracePeriodSeconds"].as_u64().unwrap_or(own_grace);
                probe["terminationGracePeriodSeconds"] = json!(given.saturating_add(HOOK_WAITS));
            }
        }
    }
}
