//! What does a pod say that class hpa goes by: how far its life has come, since when it is ready, what it
//! requests?

use std::collections::BTreeMap;

use jiff::Timestamp as WallTime;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use scaling::hpa::{HpaPod, HpaPodPhase, ReadyCondition, ReadyStatus};
use settings::hpa::{ContainerRequests, PodRequests, ResourceRequests};
use vocabulary::{PodId, Timestamp, parse_quantity};

use crate::moment::Moment;

/// A pod as class hpa looks at it, in Kubernetes' own times.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledPodRecord {
    phase: HpaPodPhase,
    is_deleted: bool,
    started: Option<WallTime>,
    ready: Option<(ReadyStatus, WallTime)>,
    requests: PodRequests,
}

/// Reads what class hpa goes by.
pub fn read(pod: &Pod) -> ScaledPodRecord {
    let no_status = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&no_status);
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
    ScaledPodRecord {
        phase: match status.phase.as_deref() {
            Some("Running") => HpaPodPhase::Running,
            Some("Succeeded") => HpaPodPhase::Succeeded,
            Some("Failed") => HpaPodPhase::Failed,
            Some("Unknown") => HpaPodPhase::Unknown,
            Some(_) | None => HpaPodPhase::Pending,
        },
        is_deleted: pod.metadata.deletion_timestamp.is_some(),
        started: status.start_time.as_ref().map(|time| time.0),
        ready: ready.and_then(|condition| {
            let status = match condition.status.as_str() {
                "True" => ReadyStatus::True,
                "False" => ReadyStatus::False,
                _ => ReadyStatus::Unknown,
            };
            Some((status, condition.last_transition_time.as_ref()?.0))
        }),
        requests: pod.spec.as_ref().map(requests_of).unwrap_or_default(),
    }
}

/// All containers count, and the init containers that stay beside them; those of the pod as a whole stand
/// instead where there are any.
pub(crate) fn requests_of(spec: &PodSpec) -> PodRequests {
    let stays = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(stays);
    let container = |container: &Container| ContainerRequests {
        name: container.name.as_str().into(),
        requests: amounts(container.resources.as_ref()),
    };
    let pod_level = spec.resources.as_ref().filter(|resources| {
        resources.requests.as_ref().is_some_and(|requests: &BTreeMap<String, Quantity>| !requests.is_empty())
    });
    PodRequests {
        pod_level: pod_level.map(|resources| amounts(Some(resources))),
        containers: spec.containers.iter().chain(sidecars).map(container).collect(),
    }
}

fn amounts(resources: Option<&ResourceRequirements>) -> ResourceRequests {
    let mut amounts = ResourceRequests::default();
    for (name, quantity) in resources.and_then(|resources| resources.requests.as_ref()).into_iter().flatten()
    {
        // The API server admits nothing that cannot be read; what cannot be read all the same was not
        // requested.
        let Ok(amount) = parse_quantity(&quantity.0) else { continue };
        match name.as_str() {
            "cpu" => amounts.cpu = Some(amount),
            "memory" => amounts.memory = Some(amount),
            other => amounts.others.push((other.into(), amount)),
        }
    }
    amounts
}

impl ScaledPodRecord {
    /// The same on our axis, under a number.
    pub(crate) fn on_axis(&self, pod: PodId, moment: Moment) -> HpaPod {
        HpaPod {
            pod,
            phase: self.phase,
            is_deleted: self.is_deleted,
            started: self.started.map(|at| moment.on_axis(at)),
            ready: self
                .ready
                .map(|(status, since)| ReadyCondition { status, since: self.ready_since(since, moment) }),
            requests: self.requests.clone(),
        }
    }

    /// Of a pod that started before our axis begins, only one thing matters: how long after its start its
    /// readiness changed. So that stays as it was, though neither point can be said.
    fn ready_since(&self, since: WallTime, moment: Moment) -> Timestamp {
        let at = moment.on_axis(since);
        match self.started.filter(|started| moment.on_axis(*started) == Timestamp::ZERO) {
            Some(started) => (Timestamp::ZERO + Moment::between(started, since)).max(at).min(moment.axis),
            None => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use vocabulary::MilliValue;

    use super::*;

    fn read_json(pod: Value) -> ScaledPodRecord {
        read(&serde_json::from_value(pod).expect("a Pod"))
    }

    fn moment(wall: &str) -> Moment {
        Moment { wall: wall.parse().expect("a time"), axis: Timestamp::from_secs(4000) }
    }

    fn running(started: &str, ready: &str, since: &str) -> ScaledPodRecord {
        let condition = json!({"type": "Ready", "status": ready, "lastTransitionTime": since});
        read_json(
            json!({"metadata": {}, "status": {"phase": "Running", "startTime": started, "conditions": [condition]}}),
        )
    }

    #[test]
    fn kubernetes_times_are_put_onto_our_axis() {
        let pod = running("2026-11-22T10:00:00Z", "True", "2026-11-22T10:00:20Z");
        let pod = pod.on_axis(PodId(7), moment("2026-11-22T10:01:00Z"));
        assert_eq!(pod.started, Some(Timestamp::from_secs(3940)));
        let ready = ReadyCondition { status: ReadyStatus::True, since: Timestamp::from_secs(3960) };
        assert_eq!((pod.pod, pod.phase, pod.ready), (PodId(7), HpaPodPhase::Running, Some(ready)));
    }

    /// A pod that runs for days and got unready long after its start is another one than one that never was
    /// ready.
    #[test]
    fn times_before_our_axis_keep_their_distance() {
        let now = moment("2026-11-22T10:00:00Z");
        let got_unready =
            running("2026-11-19T10:00:00Z", "False", "2026-11-20T10:00:00Z").on_axis(PodId(1), now);
        let never_ready =
            running("2026-11-19T10:00:00Z", "False", "2026-11-19T10:00:05Z").on_axis(PodId(1), now);
        let late = running("2026-11-19T10:00:00Z", "False", "2026-11-22T09:59:50Z").on_axis(PodId(1), now);
        let distance = |pod: &HpaPod| {
            pod.ready.expect("it says so").since.saturating_since(pod.started.expect("it was started"))
        };
        assert!(distance(&got_unready) > Duration::from_secs(3600));
        assert_eq!(distance(&never_ready), Duration::from_secs(5));
        assert!(distance(&late) > Duration::from_secs(3600));
    }

    #[test]
    fn requests_are_those_of_containers_that_stay_or_of_the_pod() {
        let container = |name: &str, cpu: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}});
        let mut sidecar = container("mesh", "50m");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [container("app", "1500u")], "initContainers": [sidecar, container("setup", "4")]});
        let requests = read_json(json!({"metadata": {}, "spec": spec})).requests;
        let cpu = |one: &ContainerRequests| (one.name.to_string(), one.requests.cpu.map(MilliValue::value));
        let names: Vec<_> = requests.containers.iter().map(cpu).collect();
        assert_eq!(
            names,
            [("app".to_owned(), Some(2)), ("mesh".to_owned(), Some(50))],
            "rounded away from zero"
        );
        assert_eq!(requests.pod_level, None);

        let spec = json!({"containers": [{"name": "app"}], "resources": {"requests": {"cpu": "2"}}});
        let requests = read_json(json!({"metadata": {}, "spec": spec})).requests;
        assert_eq!(requests.pod_level.and_then(|pod| pod.cpu), Some(MilliValue::new(2000)));
    }
}
