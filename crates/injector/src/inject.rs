//! The steps, in the order in which they depend on each other.

use serde_json::{Value, json};
use vocabulary::LinkToken;

use crate::container::{self, Sidecar};
use crate::hooks;
use crate::limits::PodLimits;
use crate::ports::ServedPorts;
use crate::probes;
use crate::quality::Quality;

/// Asks for a queue-proxy.
pub const INJECT_LABEL: &str = "ebb.dev/inject";
/// The container that we know by this name is the queue-proxy.
pub const QUEUE_PROXY: &str = "queue-proxy";
/// Says that the container of that name is ours.
const INJECTED: &str = "ebb.dev/injected";
/// What Kubernetes gives a pod that does not say.
const GRACE_DEFAULT: u64 = 30;

/// What is the same for all pods, but for the token.
#[derive(Clone, Debug)]
pub struct InjectorSettings {
    /// The queue-proxy's image.
    pub image: String,
    /// What the autoscaler must say first on the pod's link.
    pub link_token: LinkToken,
}

/// What became of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It does not ask for anything.
    NotAsked,
    /// It cannot be served so, for each of these reasons.
    Refused(Vec<String>),
    /// It has a queue-proxy.
    Injected(Injection),
}

/// A pod with its queue-proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// The pod, whole.
    pub pod: Value,
    /// What is worth a look.
    pub warnings: Vec<String>,
}

/// Gives a pod, or the template of one, its queue-proxy.
pub fn inject(pod: &Value, settings: &InjectorSettings) -> Outcome {
    if pod["metadata"]["labels"][INJECT_LABEL] != "true" {
        return Outcome::NotAsked;
    }
    let mut problems = refused_kinds(pod);
    let is_ours = pod["metadata"]["annotations"][INJECTED] == "true";
    let has_sidecar = containers(pod).iter().any(|container| container["name"] == QUEUE_PROXY);
    if has_sidecar && !is_ours {
        problems.push(format!("a container is called {QUEUE_PROXY:?} already; give yours another name"));
    }
    if has_sidecar && is_ours && problems.is_empty() {
        return again(pod);
    }
    let limits = PodLimits::read(pod, &mut problems);
    let ports = ServedPorts::find(pod, &mut problems);
    match (limits, ports) {
        (Some(limits), Some(ports)) if problems.is_empty() => {
            Outcome::Injected(first_time(pod, settings, &limits, &ports))
        }
        _ => Outcome::Refused(problems),
    }
}

/// Others may have added containers since: these get the hook.
fn again(pod: &Value) -> Outcome {
    let mut pod = pod.clone();
    let sidecar = containers(&pod).iter().find(|container| container["name"] == QUEUE_PROXY);
    let admin = sidecar.and_then(container::admin_port).unwrap_or(container::ADMIN_PORT);
    let warnings = hooks::add(&mut pod, admin);
    Outcome::Injected(Injection { pod, warnings })
}

fn first_time(
    pod: &Value,
    settings: &InjectorSettings,
    limits: &PodLimits,
    ports: &ServedPorts,
) -> Injection {
    let quality = Quality::of(pod);
    let mut pod = pod.clone();
    let own_grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_DEFAULT);
    let readiness = probes::take_readiness(&mut pod, ports);
    // First, for what a probe leaves the pod is by its own period.
    probes::lengthen_grace(&mut pod, own_grace);
    let warnings = hooks::add(&mut pod, ports.admin);
    let sidecar = Sidecar { settings, limits, ports, readiness, own_grace, quality };
    if let Some(containers) = pod["spec"]["containers"].as_array_mut() {
        containers.push(sidecar.container());
    }
    pod["spec"]["terminationGracePeriodSeconds"] =
        json!(limits.drain_limit().as_secs().saturating_add(own_grace));
    pod["metadata"]["annotations"][INJECTED] = json!("true");
    Injection { pod, warnings }
}

/// Pods that no Service of ours could lead to, or that end by themselves.
fn refused_kinds(pod: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if pod["spec"]["hostNetwork"] == true {
        problems.push("spec.hostNetwork is true, so its ports are the node's; remove it".to_owned());
    }
    if pod["spec"]["os"]["name"] == "windows" {
        problems.push("spec.os.name is windows, for which there is no queue-proxy".to_owned());
    }
    let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    for owner in
        owners.filter_map(|owner| owner["kind"].as_str()).filter(|kind| ["DaemonSet", "Job"].contains(kind))
    {
        problems
            .push(format!("it belongs to a {owner}, which is not scaled; remove the label {INJECT_LABEL}"));
    }
    if containers(pod).is_empty() {
        problems.push("spec.containers is empty".to_owned());
    }
    problems
}

pub(crate) fn containers(pod: &Value) -> &[Value] {
    pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The app's.
pub(crate) fn app_containers_mut(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    let containers = pod["spec"]["containers"].as_array_mut().into_iter().flatten();
    containers.filter(|container| container["name"] != QUEUE_PROXY)
}

#[cfg(test)]
mod tests;
