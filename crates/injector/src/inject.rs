//! How does a pod get its queue-proxy? The steps, in the order in which they depend on each other.

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

/// What an injection makes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The pod does not ask for a queue-proxy.
    NotAsked,
    /// The pod cannot be served as it is, for each of these reasons.
    Refused(Vec<String>),
    /// The pod has a queue-proxy now, or had one of ours before.
    Injected(Injection),
}

/// A pod with its queue-proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// The whole pod, with every field that it had.
    pub pod: Value,
    /// Sentences about the pod that people should read.
    pub warnings: Vec<String>,
}

/// Gives a pod, or the template of one, its queue-proxy.
pub fn inject(pod: &Value, settings: &InjectorSettings) -> Outcome {
    let plan = InjectionPlan::of(pod, settings);
    // Most pods of a cluster do not ask for a queue-proxy, and need no copy.
    if matches!(plan, InjectionPlan::NotAsked) {
        return Outcome::NotAsked;
    }
    plan.carry_out(pod.clone(), settings)
}

/// The step that a pod needs.
pub(crate) enum InjectionPlan {
    NotAsked,
    Refused(Vec<String>),
    /// The pod has a queue-proxy of ours, from a former call of the webhook.
    Again,
    FirstTime(Box<FirstInjection>),
}

/// What the queue-proxy of a pod that has none is made of.
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

    /// Carries out the plan on the pod for which it was made.
    pub(crate) fn carry_out(self, pod: Value, settings: &InjectorSettings) -> Outcome {
        match self {
            Self::NotAsked => Outcome::NotAsked,
            Self::Refused(problems) => Outcome::Refused(problems),
            Self::Again => Outcome::Injected(again(pod)),
            Self::FirstTime(first) => Outcome::Injected(first_time(pod, settings, &first)),
        }
    }
}

/// Other webhooks may have added containers since: these get the hook, and where kubelet probes them, kubelet
/// judges the pod's readiness.
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
    // The sum of both: the app is told to end only when its requests have ended, and has its own grace period
    // from then on.
    pod["spec"]["terminationGracePeriodSeconds"] =
        json!(limits.drain_limit().as_secs().saturating_add(own_grace));
    pod["metadata"]["annotations"][INJECTED_ANNOTATION] = json!("true");
    Injection { pod, warnings }
}

/// Why a pod cannot be served: no Service of ours could lead to it, or it ends by itself.
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
        problems.push(format!(
            "the pod belongs to a {owner}, which is not scaled; remove the label {INJECT_LABEL}"
        ));
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
