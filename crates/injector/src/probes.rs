//! Who asks the app whether it is well?
//!
//! Readiness is the queue-proxy's: it asks far more often while the app starts, and says so on its link in
//! the same instant; kubelet asks the queue-proxy. Liveness and startup stay kubelet's, and so does whatever
//! runs a command in the app's container or asks another port.

use serde_json::{Value, json};
use vocabulary::{ProbeQuestion, ProbeSpec, ProbeTiming, QUEUE_PROXY};

use crate::pod::app_containers_mut;
use crate::ports::{ServedPorts, resolve};

/// How long the app's hook may wait for a drain that does not come ([`crate::hooks`]).
const HOOK_WAITS: u64 = 10;
/// Three years: for ever, in a number that any clock takes.
const PATIENCE_SECONDS: u32 = 100_000_000;

/// What the queue-proxy asks, and whose word a pod's readiness is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TakenProbes {
    pub(crate) readiness: Option<ProbeSpec>,
    /// A copy of kubelet's, which ends the app that does not pass it: the queue-proxy asks nothing else
    /// before.
    pub(crate) startup: Option<ProbeSpec>,
    pub(crate) judge: ProbeJudge,
}

/// Who knows whether the pod is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeJudge {
    QueueProxy,
    /// Kubelet asks what a queue-proxy cannot ask.
    Platform,
}

/// The container whose readiness the queue-proxy asks.
struct AskedContainer {
    readiness: ProbeSpec,
    startup: Option<ProbeSpec>,
}

/// The queue-proxy cannot ask it.
struct KubeletsAlone;

/// Takes the readiness probe of a served port out of its container, the first that there is; a check that the
/// first port accepts connections where its container has none at all. What it cannot ask in time stays
/// kubelet's.
pub(crate) fn take(pod: &mut Value, ports: &ServedPorts) -> TakenProbes {
    let mut names: Vec<&str> = ports.all().map(|port| port.container.as_str()).collect();
    names.dedup();
    let first = &ports.first.container;
    let asked = names.into_iter().find_map(|name| take_from(container_mut(pod, name)?, ports));
    let asked = asked.or_else(|| connection_to(container_mut(pod, first)?, ports));
    let startups_asked = asked.iter().filter(|asked| asked.startup.is_some()).count();
    let judge = judge_of(pod, startups_asked);
    let (readiness, startup) = asked.map(|asked| (asked.readiness, asked.startup)).unzip();
    TakenProbes { readiness, startup: startup.flatten(), judge }
}

fn container_mut<'a>(pod: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    app_containers_mut(pod).find(|container| container["name"] == name)
}

fn take_from(container: &mut Value, ports: &ServedPorts) -> Option<AskedContainer> {
    let startup = startup_of(container, ports).ok()?;
    let readiness = with_number(container.get("readinessProbe")?.clone(), container, ports)?;
    container.as_object_mut()?.remove("readinessProbe");
    Some(AskedContainer { readiness, startup })
}

/// For a container that has no readiness probe.
fn connection_to(container: &Value, ports: &ServedPorts) -> Option<AskedContainer> {
    if container.get("readinessProbe").is_some() {
        return None;
    }
    let mut readiness = ProbeSpec::of_connection(Some(ports.first.app));
    readiness.timing.period_seconds = Some(1);
    let (readiness, startup) = (with_defaults(readiness), startup_of(container, ports).ok()?);
    Some(AskedContainer { readiness, startup })
}

/// An error if there is a startup probe that the queue-proxy cannot ask: readiness waits for it, so it must
/// not ask that either.
fn startup_of(container: &Value, ports: &ServedPorts) -> Result<Option<ProbeSpec>, KubeletsAlone> {
    let Some(startup) = container.get("startupProbe") else { return Ok(None) };
    let mut startup = with_number(startup.clone(), container, ports).ok_or(KubeletsAlone)?;
    // It is kubelet who gives up.
    let period = startup.timing.period_seconds.unwrap_or(1).max(1);
    startup.timing.failure_threshold = Some(PATIENCE_SECONDS / period);
    Ok(Some(startup))
}

/// Whether kubelet goes by more than what the queue-proxy asks, which is no readiness probe that still stands
/// in the pod, and so many of its startup probes.
fn asks_more(pod: &Value, startups_asked: usize) -> bool {
    let list = |key: &str| pod["spec"][key].as_array().map(Vec::as_slice).unwrap_or_default();
    let apps = || list("containers").iter().filter(|container| container["name"] != QUEUE_PROXY);
    let is_asked_itself = |container: &Value| container.get("readinessProbe").is_some();
    let startups = apps().filter(|container| container.get("startupProbe").is_some()).count();
    apps().any(is_asked_itself)
        || startups > startups_asked
        || list("initContainers").iter().any(is_asked_itself)
        || !list("readinessGates").is_empty()
}

/// Whose word the readiness of a pod is whose queue-proxy asks so many of its startup probes.
pub(crate) fn judge_of(pod: &Value, startups_asked: usize) -> ProbeJudge {
    if asks_more(pod, startups_asked) { ProbeJudge::Platform } else { ProbeJudge::QueueProxy }
}

/// The probe with its port as a number; `None` if it is not the queue-proxy's to ask. Any host is another one
/// here: kubelet asks it from the node.
fn with_number(mut probe: Value, container: &Value, ports: &ServedPorts) -> Option<ProbeSpec> {
    let kind = ["httpGet", "tcpSocket", "grpc"].into_iter().find(|kind| probe.get(*kind).is_some())?;
    let asks_elsewhere = probe[kind]["host"].as_str().is_some_and(|host| !host.is_empty());
    let asked = resolve(&probe[kind]["port"], container)?;
    if asks_elsewhere || !ports.all().any(|port| port.app == asked) {
        return None;
    }
    probe[kind]["port"] = json!(asked);
    // What a queue-proxy could not read would end it: that stays kubelet's to complain about.
    serde_json::from_value(probe).ok().map(with_defaults)
}

/// What the API server adds to a probe: the same pod comes out whether it has seen it before us or will see
/// it after.
fn with_defaults(mut probe: ProbeSpec) -> ProbeSpec {
    let ProbeTiming {
        initial_delay_seconds,
        period_seconds,
        timeout_seconds,
        success_threshold,
        failure_threshold,
    } = &mut probe.timing;
    *initial_delay_seconds = initial_delay_seconds.filter(|seconds| *seconds != 0);
    let defaults =
        [(timeout_seconds, 1), (period_seconds, 10), (success_threshold, 1), (failure_threshold, 3)];
    for (number, default) in defaults {
        *number = number.filter(|number| *number != 0).or(Some(default));
    }
    match &mut probe.question {
        ProbeQuestion::Http(http) => {
            let path = http.path.take().filter(|path| !path.is_empty());
            http.path = path.or_else(|| Some("/".to_owned()));
        }
        ProbeQuestion::Grpc { service, .. } => {
            *service = service.take().filter(|service| !service.is_empty());
        }
        ProbeQuestion::Tcp { .. } | ProbeQuestion::Exec { .. } => {}
    }
    probe
}

/// Whether a container that fails a probe waits for something before it is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookWait {
    None,
    /// Our hook does, for a drain that does not come: the container ends by itself, the pod does not.
    ForDrain,
}

/// What a container has that fails its liveness or startup probe: the time that it had before, and that of
/// its hook. Without a word it would be the pod's, which the drain has lengthened.
pub(crate) fn keep_grace(container: &mut Value, own_grace: u64, hook: HookWait) {
    let wait = match hook {
        HookWait::None => 0,
        HookWait::ForDrain => HOOK_WAITS,
    };
    for kind in ["livenessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(kind) {
            let given = probe["terminationGracePeriodSeconds"].as_u64().unwrap_or(own_grace);
            probe["terminationGracePeriodSeconds"] = json!(given.saturating_add(wait));
        }
    }
}
