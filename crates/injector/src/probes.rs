//! Who asks the app whether it is well?
//!
//! Readiness is the queue-proxy's: it asks far more often while the app starts, and says so on its link in the same instant; kubelet asks the queue-proxy. Liveness
//! and startup stay kubelet's, and so does whatever runs a command in the app's container or asks another port.

use serde_json::{Value, json};
use vocabulary::ProbeSpec;

use crate::inject::app_containers_mut;
use crate::ports::{ServedPorts, resolve};

/// How long the app's hook may wait for a drain that does not come ([`crate::hooks`]).
const HOOK_WAITS: u64 = 10;

/// Takes the readiness probe of a served port out of its container, the first that there is; a check that the first port accepts connections where its
/// container has none at all. Probes of other containers stay kubelet's.
pub(crate) fn take_readiness(pod: &mut Value, ports: &ServedPorts) -> Option<ProbeSpec> {
    let mut containers: Vec<&str> = ports.all().map(|port| port.container.as_str()).collect();
    containers.dedup();
    let mut has_none = false;
    for name in containers {
        let container = app_containers_mut(pod).find(|container| container["name"] == name);
        let Some(container) = container else { continue };
        let Some(probe) = container.get("readinessProbe").cloned() else {
            has_none |= name == ports.first.container;
            continue;
        };
        if let Some(taken) = with_number(probe, container, ports) {
            if let Some(container) = container.as_object_mut() {
                container.remove("readinessProbe");
            }
            return Some(taken);
        }
    }
    has_none.then(|| {
        let mut probe = ProbeSpec::of_connection(Some(ports.first.app));
        probe.timing.period_seconds = Some(1);
        probe
    })
}

/// The probe with its port as a number; `None` if it is not the queue-proxy's to ask. Any host is another one here: kubelet asks it
/// from the node.
fn with_number(mut probe: Value, container: &Value, ports: &ServedPorts) -> Option<ProbeSpec> {
    let kind = ["httpGet", "tcpSocket", "grpc"].into_iter().find(|kind| probe.get(*kind).is_some())?;
    let asks_elsewhere = probe[kind]["host"].as_str().is_some_and(|host| !host.is_empty());
    let asked = resolve(&probe[kind]["port"], container)?;
    if asks_elsewhere || !ports.all().any(|port| port.app == asked) {
        return None;
    }
    probe[kind]["port"] = json!(asked);
    // What a queue-proxy could not read would end it: that stays kubelet's to complain about.
    serde_json::from_value(probe).ok()
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
