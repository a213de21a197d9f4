//! What does a pod say about where it takes requests, and how it is?

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp as WallTime;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use orchestration::PodFacts;
use scaling::PodPhase;
use vocabulary::{
    DRAIN_HOOK_PATH, EXIT_PART_FAILED, INJECT_LABEL, LinkAddress, LinkChannel, PodExits, PodName,
    QUEUE_PROXY, Timestamp, parse_duration,
};

use crate::moment::Moment;
use crate::resources::app_container::{self, FailedContainer};
use crate::resources::ports::{ContainerPorts, PortKind, ServicePort, TargetPort};
use crate::resources::scaled_pod::{self, ScaledPodRecord};

/// By it Kubernetes chooses which pods a smaller count ends: the least first; none counts as 0.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The cost that ebb writes. Any other number is another client's.
pub const COST_OF_FIRST: &str = "-1000";

/// The queue-proxy's own numbers, where its environment says no others.
const REQUESTS_PORT: u16 = 8012;
const LINK_PORT: u16 = 8024;
/// Kubelet writes the first conditions of a pod with its start, as soon as it has asked the API server.
const FIRST_CONDITION_WITHIN: Duration = Duration::from_secs(5);
/// The label by which pods of one owner are told apart by their template, where the owner outlives templates.
const REVISION_HASH: &str = "controller-revision-hash";
/// The grace period that Kubernetes gives a pod that names none.
const APP_GRACE: Duration = Duration::from_secs(30);

/// A pod as the watch shows it, as far as anything follows from it here.
#[derive(Clone, Debug, PartialEq)]
pub struct PodObject {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// The controller that made the pod and replaces it, if there is one.
    pub(crate) controller: Option<PodController>,
    pub(crate) node: Option<String>,
    /// One address of each family that the cluster has, the preferred one first; none before the pod has a
    /// network.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) is_ready: bool,
    /// The ports that the app's containers declare.
    pub(crate) ports: ContainerPorts,
    /// `None` for a pod without a queue-proxy.
    pub(crate) queue_proxy: Option<QueueProxyRecord>,
    /// Containers whose preStop hook is not ours: they end without waiting for the queue-proxy.
    pub(crate) own_hooks: Vec<String>,
    pub(crate) life: PodLife,
    /// Whether a container of it runs, as far as kubelet has said. Of a pod that ends it says nothing before
    /// all its containers have (kubernetes/kubernetes#128820).
    pub(crate) has_running: bool,
    pub(crate) trouble: Option<String>,
    /// Containers of the app that have failed or cannot be started.
    pub(crate) failed: Vec<FailedContainer>,
    /// When it was made, by the API server's clock.
    pub(crate) created: Option<WallTime>,
    /// When it stopped being ready, if it ever was and is not now.
    pub(crate) ready_until: Option<WallTime>,
    /// Why a container of it was started again, if a part failed in it on which all others rely.
    pub(crate) failed_part: Option<String>,
    pub(crate) deletion_cost: DeletionCost,
    /// The record of the pod that class hpa goes by.
    pub(crate) scaled: ScaledPodRecord,
}

/// The controller of a pod: the owner that makes and replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodController {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Whether a pod is to end before others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DeletionCost {
    /// The pod has no deletion cost.
    #[default]
    None,
    /// Ebb has written the cost of a pod that ends before others.
    EndsFirst,
    /// Another client has written a cost, which stays.
    Others,
}

impl DeletionCost {
    fn read(metadata: &ObjectMeta) -> Self {
        let annotations = metadata.annotations.as_ref();
        match annotations.and_then(|annotations| annotations.get(DELETION_COST)).map(String::as_str) {
            None => Self::None,
            Some(COST_OF_FIRST) => Self::EndsFirst,
            Some(_) => Self::Others,
        }
    }
}

/// How far a pod's life has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodLife {
    Pending,
    Running,
    /// The pod was deleted, and may take so long to end.
    Terminating(Duration),
    /// The containers have ended for good; only the object is left.
    Over,
}

/// How a queue-proxy was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueProxyRecord {
    pub(crate) requests_port: u16,
    /// The app's ports, and the queue-proxy's before them.
    pub(crate) served: BTreeMap<u16, u16>,
    pub(crate) link_port: u16,
    /// The time in which the app has to end, once its requests have ended.
    pub(crate) app_grace: Duration,
    /// Whether it was given an authority by which it knows an autoscaler.
    knows_authority: bool,
}

impl QueueProxyRecord {
    /// Whether it can take a link in a pod that Knative's controller made: it knows an authority, which
    /// Knative's queue-proxies are not given, and the app has another port than the link.
    pub(crate) fn takes_link(&self) -> bool {
        self.knows_authority && !self.served.contains_key(&self.link_port)
    }
}

/// Reads a pod as far as it concerns us.
pub fn read(pod: &Pod) -> PodObject {
    let metadata = &pod.metadata;
    let no_status = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&no_status);
    let spec = pod.spec.as_ref();
    let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let queue_proxy = containers.iter().find(|container| container.name == QUEUE_PROXY);
    PodObject {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        labels: metadata.labels.clone().unwrap_or_default(),
        controller: read_controller(metadata),
        node: spec.and_then(|spec| spec.node_name.clone()),
        addresses: read_addresses(status),
        is_ready: has_condition(status, "Ready"),
        ports: ContainerPorts::read(spec, metadata.annotations.as_ref()),
        queue_proxy: queue_proxy.map(read_queue_proxy),
        own_hooks: queue_proxy.map(|_| read_own_hooks(containers)).unwrap_or_default(),
        life: read_life(pod, status),
        has_running: status.container_statuses.iter().flatten().any(is_running),
        trouble: read_trouble(status),
        failed: app_container::read(status),
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
        ready_until: read_ready_until(status),
        failed_part: read_failed_part(pod, status),
        deletion_cost: DeletionCost::read(metadata),
        scaled: scaled_pod::read(pod),
    }
}

fn read_addresses(status: &PodStatus) -> Vec<IpAddr> {
    let all: Vec<IpAddr> =
        status.pod_ips.iter().flatten().filter_map(|address| address.ip.parse().ok()).collect();
    if all.is_empty() {
        return status.pod_ip.iter().filter_map(|address| address.parse().ok()).collect();
    }
    all
}

fn read_controller(metadata: &ObjectMeta) -> Option<PodController> {
    let mut owners = metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(PodController { kind: owner.kind.clone(), name: owner.name.clone(), uid: owner.uid.clone() })
}

fn read_queue_proxy(container: &Container) -> QueueProxyRecord {
    let value = |name: &str| {
        let variable = container.env.iter().flatten().find(|variable| variable.name == name);
        variable.and_then(|variable| variable.value.as_deref())
    };
    let port = |name, default| value(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let requests_port = port("QUEUE_SERVING_PORT", REQUESTS_PORT);
    let pairs = value("EBB_MORE_PORTS").unwrap_or_default().split(',').filter_map(|pair| {
        let (ours, app) = pair.split_once(':')?;
        Some((app.trim().parse().ok()?, ours.trim().parse().ok()?))
    });
    let first = value("USER_PORT").and_then(|text| text.parse().ok()).map(|app| (app, requests_port));
    QueueProxyRecord {
        requests_port,
        served: pairs.chain(first).collect(),
        link_port: port("EBB_LINK_PORT", LINK_PORT),
        app_grace: value("EBB_APP_GRACE").and_then(|text| parse_duration(text).ok()).unwrap_or(APP_GRACE),
        knows_authority: [value("EBB_LINK_CA"), value("ROOT_CA")]
            .into_iter()
            .flatten()
            .any(|text| text.contains("BEGIN CERTIFICATE")),
    }
}

fn read_own_hooks(containers: &[Container]) -> Vec<String> {
    let is_own = |container: &&Container| {
        let hook = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        let path = hook.map(|hook| hook.http_get.as_ref().and_then(|get| get.path.as_deref()));
        container.name != QUEUE_PROXY && path.is_some_and(|path| path != Some(DRAIN_HOOK_PATH))
    };
    containers.iter().filter(is_own).map(|container| container.name.clone()).collect()
}

fn read_life(pod: &Pod, status: &PodStatus) -> PodLife {
    if pod.metadata.deletion_timestamp.is_some() {
        let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
        return PodLife::Terminating(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
    }
    match status.phase.as_deref() {
        Some("Running") => PodLife::Running,
        Some("Succeeded" | "Failed") => PodLife::Over,
        Some(_) | None => PodLife::Pending,
    }
}

fn is_running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

fn has_condition(status: &PodStatus, name: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == name && condition.status == "True")
}

/// A pod that was never ready has its condition since kubelet first saw it.
fn read_ready_until(status: &PodStatus) -> Option<WallTime> {
    let started = status.start_time.as_ref()?.0;
    let condition = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready")?;
    let since = condition.last_transition_time.as_ref()?.0;
    let has_changed = Moment::between(started, since) > FIRST_CONDITION_WITHIN;
    (condition.status == "False" && has_changed).then_some(since)
}

/// Why a pod does not come up: no node takes it, or a container waits for more than its turn.
fn read_trouble(status: &PodStatus) -> Option<String> {
    let unscheduled = status.conditions.iter().flatten().find(|condition| {
        condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
    });
    if let Some(condition) = unscheduled {
        return Some(format!("no node takes it: {}", condition.message.clone().unwrap_or_default()));
    }
    status.container_statuses.iter().flatten().find_map(container_trouble)
}

fn container_trouble(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().unwrap_or_default();
    // Every pod goes through these.
    if matches!(reason, "ContainerCreating" | "PodInitializing" | "") {
        return None;
    }
    let message = waiting.message.as_deref().unwrap_or_default();
    Some(format!("container {}: {reason} {message}", container.name).trim_end().to_owned())
}

/// What one of our programs said before it ended because of a bug, and when that was. It stands there until
/// the container ends once more.
fn read_failed_part(pod: &Pod, status: &PodStatus) -> Option<String> {
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get("app.kubernetes.io/name"));
    let is_all_ours = label.is_some_and(|name| name == "ebb");
    let containers = status.container_statuses.iter().flatten();
    // An app may mean what it likes by its exit codes.
    let is_ours = |name: &str| is_all_ours || name == QUEUE_PROXY || is_in_knatives_place(pod, name);
    let mut ours = containers.filter(|container| is_ours(&container.name));
    ours.find_map(|container| {
        // Until it is started again it is its state, and then its last one.
        let mut ends = [&container.state, &container.last_state]
            .into_iter()
            .filter_map(|state| state.as_ref()?.terminated.as_ref());
        let end = ends.find(|end| end.exit_code == i32::from(EXIT_PART_FAILED))?;
        // `deploy/` has kubelet take the last lines of the log for the message, and a thread that panics
        // writes some of its own.
        let lines = end.message.as_deref().unwrap_or_default().lines();
        let reason =
            lines.rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or("no reason is known");
        let when = end.finished_at.as_ref().map(|at| format!(" at {}", at.0)).unwrap_or_default();
        Some(format!("{} ended{when} with exit code {EXIT_PART_FAILED}: {reason}", container.name))
    })
}

/// Whether a container runs a program of ebb's in the place of Knative's: the labels of its pod are
/// Knative's.
fn is_in_knatives_place(pod: &Pod, container: &str) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let named = containers.filter(|of| of.name == container);
    named.flat_map(|of| of.env.iter().flatten()).any(|variable| variable.name == "EBB_PROFILE")
}

impl PodObject {
    /// Unlike any other's in the cluster; its queue-proxy says the same in its hello (`SERVING_POD`).
    pub(crate) fn pod_name(&self) -> PodName {
        PodName::new(&format!("{}/{}", self.namespace, self.name))
    }

    /// Whether it has, or was to have, a queue-proxy. Others only count.
    pub(crate) fn is_ours(&self) -> bool {
        self.queue_proxy.is_some() || self.labels.get(INJECT_LABEL).is_some_and(|value| value == "true")
    }

    /// Whether both were made from the same template: a Deployment has an owner of pods for each.
    pub(crate) fn has_template_of(&self, other: &Self) -> bool {
        let owner = |pod: &Self| pod.controller.as_ref().map(|owner| owner.uid.clone());
        owner(self) == owner(other) && self.labels.get(REVISION_HASH) == other.labels.get(REVISION_HASH)
    }

    /// Whether it is neither ending nor over.
    pub(crate) fn stays(&self) -> bool {
        matches!(self.life, PodLife::Pending | PodLife::Running)
    }

    /// The address at which our own programs call it.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.addresses.first().copied()
    }

    /// The address and port at which the queue-proxy takes requests for the app's first port.
    pub(crate) fn requests(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.address()?, self.queue_proxy.as_ref()?.requests_port))
    }

    /// Where in it a Service's port leads: to the queue-proxy, if that stands before the port.
    pub(crate) fn port(&self, port: &ServicePort) -> Option<u16> {
        let number = self.ports.number(&port.target)?;
        match self.ports.kind(port) {
            PortKind::Plain => Some(number),
            PortKind::Served | PortKind::Undeclared => Some(self.served(&port.target).unwrap_or(number)),
        }
    }

    /// The queue-proxy's port before a port of the app.
    pub(crate) fn served(&self, target: &TargetPort) -> Option<u16> {
        let number = self.ports.number(target)?;
        self.queue_proxy.as_ref()?.served.get(&number).copied()
    }

    /// The same as a fact, but for exits, which are its Services'. `seen_ending` is when it was first seen to
    /// be deleted.
    pub(crate) fn facts(&self, seen_ending: Option<Timestamp>, now: Timestamp) -> PodFacts {
        let (phase, ends_in) = match self.life {
            PodLife::Pending => (PodPhase::Pending, None),
            PodLife::Running => (PodPhase::Running, None),
            PodLife::Terminating(grace) => {
                let passed = now.saturating_since(seen_ending.unwrap_or(now));
                (PodPhase::Terminating, Some(grace.saturating_sub(passed)))
            }
            PodLife::Over => (PodPhase::Terminating, Some(Duration::ZERO)),
        };
        let link = self.queue_proxy.as_ref().zip(self.address()).map(|(queue_proxy, address)| {
            let socket = SocketAddr::new(address, queue_proxy.link_port);
            LinkAddress { channel: LinkChannel::TlsOfPod, ..socket.into() }
        });
        let details = [("node", &self.node), ("address", &self.address().map(|address| address.to_string()))];
        let details = details.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        PodFacts {
            name: self.pod_name(),
            phase,
            leaving: phase == PodPhase::Terminating,
            ends_in,
            platform_ready: Some(self.is_ready),
            requests: self.requests(),
            exits: PodExits::default(),
            link,
            adoption: None,
            outdated: false,
            awaits_core: false,
            trouble: self.trouble.clone().or_else(|| self.not_injected()),
            // Kubernetes' own rights say which people read of a pod.
            trouble_without_output: None,
            hold: None,
            details: details.collect(),
        }
    }

    fn not_injected(&self) -> Option<String> {
        let text = format!("the pod has no container {QUEUE_PROXY:?}, so no link of ebb reaches it");
        self.queue_proxy.is_none().then_some(text)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn hooks_that_are_not_ours_are_named() {
        let container = |name: &str, hook: Value| {
            serde_json::from_value(json!({"name": name, "lifecycle": {"preStop": hook}}))
                .expect("a container")
        };
        let ours = json!({"httpGet": {"path": DRAIN_HOOK_PATH, "port": 8022}});
        let containers = [
            container("app", ours),
            container("http", json!({"httpGet": {"path": "/bye", "port": 8080}})),
            container("exec", json!({"exec": {"command": ["save"]}})),
            container(QUEUE_PROXY, json!({"exec": {"command": ["save"]}})),
            serde_json::from_value(json!({"name": "none"})).expect("a container"),
        ];
        assert_eq!(read_own_hooks(&containers), ["http", "exec"]);
    }

    /// A pod of `app: hello` with a queue-proxy, changed by `status` and `metadata`.
    pub(crate) fn pod(name: &str, metadata: Value, status: &Value) -> PodObject {
        let mut whole = json!({"name": name, "namespace": "default", "uid": format!("uid-{name}"), "labels": {"app": "hello"}});
        let (Value::Object(map), Value::Object(changes)) = (&mut whole, metadata) else { unreachable!() };
        map.extend(changes);
        let env = json!([
            {"name": "SERVING_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "USER_PORT", "value": "8080"},
            {"name": "EBB_MORE_PORTS", "value": "8100:9090"},
        ]);
        let ports = json!([
            {"name": "http", "containerPort": 8080},
            {"name": "grpc", "containerPort": 9090},
            {"name": "metrics", "containerPort": 9100},
        ]);
        let containers = json!([{"name": "app", "ports": ports}, {"name": QUEUE_PROXY, "env": env}]);
        let pod = json!({"metadata": whole, "spec": {"nodeName": "n1", "containers": containers}, "status": status});
        read(&serde_json::from_value(pod).expect("a Pod"))
    }

    pub(crate) fn running(address: &str, ready: &str) -> Value {
        json!({"phase": "Running", "podIP": address, "conditions": [{"type": "Ready", "status": ready}]})
    }

    #[test]
    fn a_program_that_ended_because_of_a_bug_says_what_failed() {
        let ended = |code: i32, message: &str| json!({"terminated": {"exitCode": code, "message": message, "finishedAt": "2026-11-22T10:00:00Z"}});
        let log = "thread 'main' panicked at lib.rs:3:\nerror: the link failed (a sum)\n";
        let failed_of = |name: &str, state: &Value, last_state: &Value| {
            let status = json!({"name": "activator", "state": state, "lastState": last_state, "ready": true, "restartCount": 1, "image": "", "imageID": ""});
            let metadata = json!({"labels": {"app.kubernetes.io/name": name}});
            pod("a", metadata, &json!({"containerStatuses": [status]})).failed_part
        };
        let failed = |state: &Value, last_state: &Value| failed_of("ebb", state, last_state);
        let said = "activator ended at 2026-11-22T10:00:00Z with exit code 70: the link failed (a sum)";
        let running = json!({"running": {}});
        assert_eq!(failed(&running, &ended(70, log)).as_deref(), Some(said));
        assert_eq!(failed(&ended(70, log), &json!({})).as_deref(), Some(said));
        assert_eq!(failed(&running, &ended(137, log)), None, "it was killed");
        assert_eq!(failed(&running, &json!({})), None);
        assert_eq!(failed_of("hello", &running, &ended(70, log)), None, "an app's own code");
    }

    #[test]
    fn a_running_pod_is_reached_at_its_queue_proxy() {
        let facts = pod("a", json!({}), &running("10.0.0.7", "True")).facts(None, Timestamp::ZERO);
        assert_eq!(facts.name.as_str(), "default/a");
        assert_eq!(facts.requests, "10.0.0.7:8012".parse().ok());
        let link = facts.link.expect("its address is known");
        assert_eq!((link.socket.port(), link.channel), (8024, LinkChannel::TlsOfPod));
        assert_eq!(
            (facts.phase, facts.platform_ready, facts.leaving),
            (PodPhase::Running, Some(true), false)
        );
    }

    /// As injection moves them where the pod has those already.
    #[test]
    fn a_queue_proxy_whose_ports_made_way_is_called_where_it_listens() {
        let env = [("QUEUE_SERVING_PORT", "8100"), ("EBB_LINK_PORT", "8112"), ("EBB_APP_GRACE", "5s")];
        let env: Value = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let container = json!({"name": QUEUE_PROXY, "env": env});
        let record = read_queue_proxy(&serde_json::from_value(container).expect("a container"));
        assert_eq!((record.requests_port, record.link_port), (8100, 8112));
        assert_eq!(record.app_grace, Duration::from_secs(5));
    }

    #[test]
    fn a_pod_of_two_families_is_called_at_the_address_that_the_cluster_prefers() {
        let status = json!({"phase": "Running", "podIP": "fd00::7", "podIPs": [{"ip": "fd00::7"}, {"ip": "10.0.0.7"}]});
        let both = pod("a", json!({}), &status);
        let addresses: Vec<String> = both.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["fd00::7", "10.0.0.7"]);
        assert_eq!(both.requests(), "[fd00::7]:8012".parse().ok());
        assert_eq!(pod("a", json!({}), &json!({"phase": "Pending"})).address(), None);
    }

    #[test]
    fn a_services_port_leads_to_the_queue_proxy_if_that_stands_before_it() {
        let port = |target: Value| {
            let port = json!({"port": 80, "targetPort": target});
            ServicePort::read(&serde_json::from_value(port).expect("a ServicePort")).expect("of TCP")
        };
        let plain = json!({"annotations": {"ebb.dev/plain-ports": "metrics"}});
        let record = pod("a", plain, &running("10.0.0.7", "True"));
        for (target, expected) in [
            (json!("http"), Some(8012)),
            (json!(9090), Some(8100)),
            (json!("metrics"), Some(9100)),
            (json!(7070), Some(7070)),
            (json!("other"), None),
        ] {
            assert_eq!(record.port(&port(target.clone())), expected, "{target}");
        }
        let bare = PodObject { queue_proxy: None, ..record };
        assert_eq!(bare.port(&port(json!("http"))), Some(8080), "it has no queue-proxy");
    }

    #[test]
    fn a_deleted_pod_has_less_time_the_later_it_is() {
        let deleted = json!({"deletionTimestamp": "2026-11-22T10:00:00Z", "deletionGracePeriodSeconds": 30});
        let record = pod("a", deleted, &running("10.0.0.7", "True"));
        let seen = Timestamp::from_duration(Duration::from_secs(100));
        let facts = record.facts(Some(seen), seen + Duration::from_secs(12));
        assert_eq!((facts.phase, facts.leaving), (PodPhase::Terminating, true));
        assert_eq!(facts.ends_in, Some(Duration::from_secs(18)));
    }

    #[test]
    fn the_trouble_of_a_pod_that_cannot_run_is_read() {
        let waiting = |reason: &str| {
            let state = json!({"waiting": {"reason": reason, "message": "no such image"}});
            let status = json!({"name": "app", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
            pod("a", json!({}), &json!({"phase": "Pending", "containerStatuses": [status]})).trouble
        };
        assert_eq!(waiting("ContainerCreating"), None);
        assert_eq!(
            waiting("ErrImageNeverPull").as_deref(),
            Some("container app: ErrImageNeverPull no such image")
        );
        let unscheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "too little memory"});
        let record = pod("a", json!({}), &json!({"phase": "Pending", "conditions": [unscheduled]}));
        assert_eq!(record.trouble.as_deref(), Some("no node takes it: too little memory"));
    }
}
