//! What does a revision's Deployment say that its `PodAutoscaler` does not? (Contract §2.1, §6.1, §6.4.)

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use vocabulary::{LateTimeout, QUEUE_PROXY, RequestTimeouts};

/// `timeoutSeconds` where it cannot be read, as in Knative.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);

/// What the controller wrote into a revision's template: limits in the environment of the queue-proxy, and
/// probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueProxyEnvironment {
    /// How long requests may take, by stage.
    pub timeouts: RequestTimeouts,
    /// Which program decides about the readiness of its pods.
    pub readiness: ReadinessDecider,
}

impl Default for QueueProxyEnvironment {
    fn default() -> Self {
        let request = Some(TIMEOUT_DEFAULT);
        let timeouts = RequestTimeouts { request, ..RequestTimeouts::default() };
        Self { timeouts, readiness: ReadinessDecider::QueueProxy }
    }
}

/// Reads the environment of the container `queue-proxy`. Before a Deployment is known, and for a variable
/// that cannot be read, 300 s, no limit and no limit hold.
pub fn queue_proxy_environment(pod: &PodSpec) -> QueueProxyEnvironment {
    let Some(container) = pod.containers.iter().find(|container| container.name == QUEUE_PROXY) else {
        return QueueProxyEnvironment::default();
    };
    let variables = container.env.iter().flatten();
    let environment: BTreeMap<&str, &str> =
        variables.filter_map(|variable| Some((variable.name.as_str(), variable.value.as_deref()?))).collect();
    // Zero means no limit, for the first timeout too, which never is zero here.
    let seconds = |name: &str| {
        let seconds: u64 = environment.get(name)?.trim().parse().ok()?;
        Some(Some(Duration::from_secs(seconds)).filter(|limit| *limit > Duration::ZERO))
    };
    QueueProxyEnvironment {
        timeouts: RequestTimeouts {
            request: seconds("REVISION_TIMEOUT_SECONDS").unwrap_or(Some(TIMEOUT_DEFAULT)),
            response_start: seconds("REVISION_RESPONSE_START_TIMEOUT_SECONDS").flatten(),
            idle: seconds("REVISION_IDLE_TIMEOUT_SECONDS").flatten(),
            // No environment says it: it is a key of `config-autoscaler`.
            late: LateTimeout::default(),
        },
        readiness: readiness_decider(pod),
    }
}

/// Whether the word of the queue-proxy is enough to call a pod ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadinessDecider {
    /// The queue-proxy runs every probe of the pod.
    QueueProxy,
    /// kubelet runs a probe that the queue-proxy does not know: the pod's condition Ready has to hold, too.
    KubeletToo,
}

/// Which program decides about the readiness of pods made from this template: a probe or a gate that only
/// kubelet knows makes the pod's condition count.
pub fn readiness_decider(pod: &PodSpec) -> ReadinessDecider {
    let is_probed = |container: &Container| {
        container.name != QUEUE_PROXY
            && (container.readiness_probe.is_some() || container.startup_probe.is_some())
    };
    let has_gates = pod.readiness_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    if has_gates || pod.containers.iter().any(is_probed) {
        ReadinessDecider::KubeletToo
    } else {
        ReadinessDecider::QueueProxy
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(value: Value) -> PodSpec {
        serde_json::from_value(value).expect("the spec of a pod")
    }

    fn with_environment(environment: &Value) -> RequestTimeouts {
        let containers =
            json!({"containers": [{"name": "user"}, {"name": "queue-proxy", "env": environment}]});
        queue_proxy_environment(&pod(containers)).timeouts
    }

    #[test]
    fn timeouts_are_read_from_the_queue_proxys_environment() {
        let found = with_environment(&json!([
            {"name": "REVISION_TIMEOUT_SECONDS", "value": "10"},
            {"name": "REVISION_RESPONSE_START_TIMEOUT_SECONDS", "value": "5"},
            {"name": "REVISION_IDLE_TIMEOUT_SECONDS", "value": "0"},
            {"name": "SERVING_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]));
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let (request, response_start) = (seconds(10), seconds(5));
        assert_eq!(found, RequestTimeouts { request, response_start, ..RequestTimeouts::default() });
        assert_eq!(with_environment(&json!([])), QueueProxyEnvironment::default().timeouts, "300/0/0");
        let broken = with_environment(&json!([{"name": "REVISION_TIMEOUT_SECONDS", "value": "soon"}]));
        assert_eq!(broken.request, seconds(300));
    }

    #[test]
    fn probes_and_gates_that_only_kubelet_knows_make_its_word_count() {
        let decider = |value| readiness_decider(&pod(value));
        let queue_proxy = json!({"name": "queue-proxy", "readinessProbe": {"httpGet": {"port": 8012}}});
        let alone = json!({"containers": [{"name": "user"}, queue_proxy]});
        assert_eq!(decider(alone.clone()), ReadinessDecider::QueueProxy);
        for probe in ["readinessProbe", "startupProbe"] {
            let mut probed = alone.clone();
            probed["containers"][0][probe] = json!({"exec": {"command": ["true"]}});
            assert_eq!(decider(probed), ReadinessDecider::KubeletToo, "{probe}");
        }
        let mut gated = alone;
        gated["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
        assert_eq!(decider(gated), ReadinessDecider::KubeletToo);
    }
}
