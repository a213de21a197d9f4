//! Which probes of the app does the queue-proxy run, and which stay kubelet's?
//!
//! The queue-proxy runs the readiness probe: it probes far more often while the app starts, and reports the
//! outcome on its link in the same instant; kubelet probes the queue-proxy. Liveness and startup probes stay
//! kubelet's, and so does a readiness probe that runs a command in the app's container or asks another port.

use serde_json::{Value, json};
use vocabulary::{ProbeQuestion, ProbeSpec, ProbeTiming, QUEUE_PROXY};

use crate::pod::app_containers_mut;
use crate::ports::{ServedPorts, resolve};

/// How long the app's hook may wait for a drain that does not come, in seconds ([`crate::hooks`]).
const HOOK_WAITS: u64 = 10;
/// Three years: for ever, in a number that any clock takes.
const PATIENCE_SECONDS: u32 = 100_000_000;

/// The probes that the queue-proxy runs, and the judge of the pod's readiness.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TakenProbes {
    pub(crate) readiness: Option<ProbeSpec>,
    /// A copy of the startup probe that kubelet runs too: the queue-proxy probes readiness only after it has
    /// passed. Kubelet ends an app that does not pass it.
    pub(crate) startup: Option<ProbeSpec>,
    pub(crate) judge: ProbeJudge,
}

/// Which program knows whether the pod is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeJudge {
    QueueProxy,
    /// Kubelet: it probes something that a queue-proxy cannot.
    Platform,
}

/// The probes of the container whose readiness the queue-proxy judges.
struct AskedContainer {
    readiness: ProbeSpec,
    startup: Option<ProbeSpec>,
}

/// The probe stays kubelet's, because the queue-proxy cannot run it.
struct KubeletsAlone;

/// Takes the readiness probe of a served port out of its container, the first that there is; a check that the
/// first port accepts connections where its container has none at all. A probe that the queue-proxy cannot
/// run stays kubelet's.
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

/// The probe for a container that has no readiness probe: a connection to its first served port.
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
    // Kubelet alone gives up on an app that does not start.
    let period = startup.timing.period_seconds.unwrap_or(1).max(1);
    startup.timing.failure_threshold = Some(PATIENCE_SECONDS / period);
    Ok(Some(startup))
}

/// Whether the pod's readiness depends on probes that the queue-proxy does not run. The queue-proxy runs no
/// readiness probe that still stands in the pod, and `startups_asked` of its startup probes.
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

/// The judge of a pod's readiness, if its queue-proxy runs `startups_asked` of its startup probes.
pub(crate) fn judge_of(pod: &Value, startups_asked: usize) -> ProbeJudge {
    if asks_more(pod, startups_asked) { ProbeJudge::Platform } else { ProbeJudge::QueueProxy }
}

/// The probe with its port as a number; `None` if the queue-proxy cannot run it. A probe that names a host is
/// kubelet's: the host may mean another address from the node than from the pod.
fn with_number(mut probe: Value, container: &Value, ports: &ServedPorts) -> Option<ProbeSpec> {
    let kind = ["httpGet", "tcpSocket", "grpc"].into_iter().find(|kind| probe.get(*kind).is_some())?;
    let asks_elsewhere = probe[kind]["host"].as_str().is_some_and(|host| !host.is_empty());
    let asked = resolve(&probe[kind]["port"], container)?;
    if asks_elsewhere || !ports.all().any(|port| port.app == asked) {
        return None;
    }
    probe[kind]["port"] = json!(asked);
    // A probe that a queue-proxy cannot read would end the queue-proxy: kubelet keeps it, and reports what is
    // wrong.
    serde_json::from_value(probe).ok().map(with_defaults)
}

/// Adds the defaults of the API server, so that the result is the same whether the API server saw the pod
/// before the injection or will see it after.
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
    /// Our hook waits for a drain, which does not come where the container ends alone and not its pod.
    ForDrain,
}

/// Sets the grace period of a container that fails its liveness or startup probe: the time that it had
/// before, and the wait of its hook. Otherwise it would be the pod's grace period, which the drain has
/// lengthened.
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
