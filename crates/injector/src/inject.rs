//! The steps, in the order in which they depend on each other.

use serde_json::{Value, json};
use vocabulary::{INJECT_LABEL, INJECTED_ANNOTATION, QUEUE_PROXY};

use crate::container::{self, PresentSidecar, Sidecar};
use crate::hooks;
use crate::injector_settings::InjectorSettings;
use crate::limits::PodLimits;
use crate::pod::{GRACE_DEFAULT, containers, containers_mut};
use crate::ports::ServedPorts;
use crate::probes::{self, ProbeJudge};
use crate::quality::Quality;

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
    let plan = InjectionPlan::of(pod, settings);
    // Of most pods of a cluster nothing is asked, and they need no copy.
    if matches!(plan, InjectionPlan::NotAsked) {
        return Outcome::NotAsked;
    }
    plan.carry_out(pod.clone(), settings)
}

/// What is to be done to a pod.
pub(crate) enum InjectionPlan {
    NotAsked,
    Refused(Vec<String>),
    /// It has a queue-proxy of ours.
    Again,
    FirstTime(Box<FirstInjection>),
}

/// What the queue-proxy of a pod that has none follows from.
pub(crate) struct FirstInjection {
    limits: PodLimits,
    ports: ServedPorts,
}

impl InjectionPlan {
    pub(crate) fn of(pod: &Value, settings: &InjectorSettings) -> Self {
        if pod["metadata"]["labels"][INJECT_LABEL] != "true" {
            return Self::NotAsked;
        }
        let mut problems = refused_kinds(pod);
        let is_ours = pod["metadata"]["annotations"][INJECTED_ANNOTATION] == "true";
        let has_sidecar = containers(pod).iter().any(|container| container["name"] == QUEUE_PROXY);
        let init = pod["spec"]["initContainers"].as_array().into_iter().flatten();
        let is_name_taken = init.clone().any(|container| container["name"] == QUEUE_PROXY);
        if is_name_taken || (has_sidecar && !is_ours) {
            problems.push(format!("a container is called {QUEUE_PROXY:?} already; give yours another name"));
        }
        // Webhooks are called again after others have changed the pod, and one queue-proxy is enough.
        if has_sidecar && is_ours && problems.is_empty() {
            return Self::Again;
        }
        let limits = PodLimits::read(pod, &settings.cluster, &mut problems);
        let ports = ServedPorts::find(pod, &mut problems);
        match (limits, ports) {
            (Some(limits), Some(ports)) if problems.is_empty() => {
                Self::FirstTime(Box::new(FirstInjection { limits, ports }))
            }
            _ => Self::Refused(problems),
        }
    }

    /// With the pod of which it is.
    pub(crate) fn carry_out(self, pod: Value, settings: &InjectorSettings) -> Outcome {
        match self {
            Self::NotAsked => Outcome::NotAsked,
            Self::Refused(problems) => Outcome::Refused(problems),
            Self::Again => Outcome::Injected(again(pod)),
            Self::FirstTime(first) => Outcome::Injected(first_time(pod, settings, &first)),
        }
    }
}

/// Others may have added containers since: these get the hook, and kubelet's word counts where it asks them.
fn again(mut pod: Value) -> Injection {
    let sidecar = containers(&pod).iter().find(|container| container["name"] == QUEUE_PROXY);
    let present = sidecar.map(PresentSidecar::read).unwrap_or_default();
    let warnings = hooks::add(&mut pod, present.admin, present.own_grace);
    if probes::judge_of(&pod, present.startups_asked) == ProbeJudge::Platform {
        let sidecar = containers_mut(&mut pod).find(|container| container["name"] == QUEUE_PROXY);
        sidecar.into_iter().for_each(container::leave_judgement);
    }
    Injection { pod, warnings }
}

fn first_time(mut pod: Value, settings: &InjectorSettings, first: &FirstInjection) -> Injection {
    let FirstInjection { limits, ports } = first;
    let quality = Quality::of(&pod);
    let own_grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_DEFAULT);
    let probes = probes::take(&mut pod, ports);
    let warnings = hooks::add(&mut pod, ports.admin, own_grace);
    let sidecar = Sidecar { settings, limits, ports, probes, own_grace, quality };
    if let Some(containers) = pod["spec"]["containers"].as_array_mut() {
        containers.push(sidecar.container());
    }
    // Both, one after the other: the app is told to end only when its requests are through, and has its own
    // time then.
    pod["spec"]["terminationGracePeriodSeconds"] =
        json!(limits.drain_limit().as_secs().saturating_add(own_grace));
    pod["metadata"]["annotations"][INJECTED_ANNOTATION] = json!("true");
    Injection { pod, warnings }
}

/// Pods that no Service of ours could lead to, or that end by themselves.
fn refused_kinds(pod: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if pod["spec"]["hostNetwork"] == true {
        problems.push("spec.hostNetwork is true, so its ports are the node's; remove it".to_owned());
    }
    let selector = &pod["spec"]["nodeSelector"]["kubernetes.io/os"];
    for (place, name) in [("os.name", &pod["spec"]["os"]["name"]), ("nodeSelector", selector)] {
        if name == "windows" {
            problems.push(format!("spec.{place} is windows, for which there is no queue-proxy"));
        }
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

#[cfg(test)]
mod corpus;
#[cfg(test)]
pub(crate) mod tests;
