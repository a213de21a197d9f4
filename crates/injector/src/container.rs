//! How does the queue-proxy's container look, and what does one that is there already say of itself?

use serde_json::{Value, json};
use vocabulary::QUEUE_PROXY;

use crate::injector_settings::InjectorSettings;
use crate::limits::PodLimits;
use crate::pod::GRACE_DEFAULT;
use crate::ports::{ADMIN_PORT, ServedPorts};
use crate::probes::{ProbeJudge, TakenProbes};
use crate::quality::Quality;

const ADMIN_VARIABLE: &str = "EBB_ADMIN_PORT";
const GRACE_VARIABLE: &str = "EBB_APP_GRACE";
const JUDGE_VARIABLE: &str = "EBB_READINESS_JUDGE";
const STARTUP_VARIABLE: &str = "EBB_STARTUP_PROBE";

/// Everything that the queue-proxy's container is made of.
pub(crate) struct Sidecar<'a> {
    pub(crate) settings: &'a InjectorSettings,
    pub(crate) limits: &'a PodLimits,
    pub(crate) ports: &'a ServedPorts,
    pub(crate) probes: TakenProbes,
    pub(crate) own_grace: u64,
    pub(crate) quality: Quality,
}

impl Sidecar<'_> {
    pub(crate) fn container(&self) -> Value {
        let ServedPorts { first, more, admin, link, metrics } = self.ports;
        let port = |name: &str, number: &u16| json!({"name": name, "containerPort": number});
        let mut ports = vec![port("ebb-requests", &first.requests)];
        let more = more.iter().zip(2..);
        ports.extend(more.map(|(served, count)| port(&format!("ebb-requests-{count}"), &served.requests)));
        ports.extend([port("ebb-admin", admin), port("ebb-link", link), port("ebb-metrics", metrics)]);
        json!({
            "name": QUEUE_PROXY,
            "image": self.settings.image,
            "env": self.environment(),
            "ports": ports,
            "readinessProbe": {
                "httpGet": {"path": "/ready", "port": admin},
                "periodSeconds": 1,
            },
            "resources": self.quality.resources(&self.limits.resources),
            // What the strictest of Kubernetes' pod security standards asks for.
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        })
    }

    fn environment(&self) -> Vec<Value> {
        let field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let text = |name: &str, value: String| json!({"name": name, "value": value});
        let seconds =
            |duration: Option<std::time::Duration>| duration.unwrap_or_default().as_secs().to_string();
        let (limits, ports) = (self.limits, self.ports);
        let mut variables = vec![
            field("POD_NAME", "metadata.name"),
            field("SERVING_NAMESPACE", "metadata.namespace"),
            // A name that is unique in the cluster, under which the autoscaler knows the pod too.
            text("SERVING_POD", "$(SERVING_NAMESPACE)/$(POD_NAME)".to_owned()),
            text("CONTAINER_CONCURRENCY", limits.requests.container_concurrency.to_string()),
            text("REVISION_TIMEOUT_SECONDS", seconds(limits.requests.timeouts.request)),
            text("REVISION_RESPONSE_START_TIMEOUT_SECONDS", seconds(limits.requests.timeouts.response_start)),
            text("REVISION_IDLE_TIMEOUT_SECONDS", seconds(limits.requests.timeouts.idle)),
            text("EBB_DRAIN_LIMIT", format!("{}s", limits.drain_without_timeout.as_secs())),
            text(GRACE_VARIABLE, format!("{}s", self.own_grace)),
            text("EBB_IGNORE_USER_AGENTS", limits.ignored_user_agents.to_string()),
            text("USER_PORT", ports.first.app.to_string()),
            text("QUEUE_SERVING_PORT", ports.first.requests.to_string()),
            text(ADMIN_VARIABLE, ports.admin.to_string()),
            text("EBB_LINK_PORT", ports.link.to_string()),
            text("EBB_METRICS_PORT", ports.metrics.to_string()),
            // Connections from the node's addresses are kubelet's, and no client's.
            field("EBB_NODE_ADDRESSES", "status.hostIPs"),
            // No program on a cluster reads Knative's measurements.
            text("EBB_STAT_PORT", "off".to_owned()),
            text("EBB_LINK_CA", self.settings.link_ca.clone()),
        ];
        if !ports.more.is_empty() {
            let pairs = ports.more.iter().map(|served| format!("{}:{}", served.requests, served.app));
            variables.push(text("EBB_MORE_PORTS", pairs.collect::<Vec<_>>().join(",")));
        }
        let TakenProbes { readiness, startup, judge } = &self.probes;
        for (name, probe) in [("SERVING_READINESS_PROBE", readiness), (STARTUP_VARIABLE, startup)] {
            let probe = probe.as_ref().map(|probe| serde_json::to_string(probe).expect("it is plain data"));
            variables.extend(probe.map(|probe| text(name, probe)));
        }
        match judge {
            ProbeJudge::QueueProxy => {}
            ProbeJudge::Platform => variables.push(text(JUDGE_VARIABLE, "platform".to_owned())),
        }
        if let Some(observability) = &self.settings.observability {
            // A line of the request log may name the pod's address.
            variables.push(field("SERVING_POD_IP", "status.podIP"));
            variables.push(text("OBSERVABILITY_CONFIG", unexpanded(observability)));
        }
        variables
    }
}

/// Escapes a text so that kubelet passes it on unchanged: kubelet replaces `$(NAME)` by the value of another
/// variable, and `$$` by `$`.
fn unexpanded(text: &str) -> String {
    text.replace('$', "$$")
}

/// The settings of a queue-proxy that is there already, as its container says them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PresentSidecar {
    pub(crate) admin: u16,
    pub(crate) own_grace: u64,
    /// The number of the app's startup probes that the queue-proxy runs: zero or one.
    pub(crate) startups_asked: usize,
}

impl Default for PresentSidecar {
    fn default() -> Self {
        Self { admin: ADMIN_PORT, own_grace: GRACE_DEFAULT, startups_asked: 0 }
    }
}

impl PresentSidecar {
    pub(crate) fn read(container: &Value) -> Self {
        let text = |name: &str| {
            let mut variables = container["env"].as_array().into_iter().flatten();
            variables.find(|variable| variable["name"] == name)?["value"].as_str()
        };
        let grace = text(GRACE_VARIABLE).and_then(|text| text.strip_suffix('s')?.parse().ok());
        Self {
            admin: text(ADMIN_VARIABLE).and_then(|text| text.parse().ok()).unwrap_or(ADMIN_PORT),
            own_grace: grace.unwrap_or(GRACE_DEFAULT),
            startups_asked: text(STARTUP_VARIABLE).into_iter().count(),
        }
    }
}

/// Makes kubelet the judge of the pod's readiness, if it is not the judge already.
pub(crate) fn leave_judgement(container: &mut Value) {
    if let Some(variables) = container["env"].as_array_mut()
        && variables.iter().all(|variable| variable["name"] != JUDGE_VARIABLE)
    {
        variables.push(json!({"name": JUDGE_VARIABLE, "value": "platform"}));
    }
}
