//! Which quality-of-service class does Kubernetes give the pod, and what may the sidecar ask for without
//! changing it?

use serde_json::{Value, json};
use settings::{QueueProxyResources, ResourceAmount};
use vocabulary::parse_quantity;

use crate::pod::containers;

/// The pod's quality-of-service class, on which the sidecar's resources depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quality {
    BestEffort,
    Burstable(AppLimits),
    Guaranteed,
    /// The pod says as a whole what it may have, and its class follows from that alone. What its containers
    /// ask for must fit into it, and may use it up: the sidecar asks for nothing, and has its part.
    OfThePod,
}

/// Whether every container of the app has limits; then the sidecar has some too, for a quota may ask for
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppLimits {
    OnAll,
    NotOnAll,
}

impl Quality {
    /// As Kubernetes computes it: over all containers, those that only initialise too.
    pub(crate) fn of(pod: &Value) -> Self {
        if !asks_for_nothing(&pod["spec"]) {
            return Self::OfThePod;
        }
        let init = pod["spec"]["initContainers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let all: Vec<&Value> = containers(pod).iter().chain(init).collect();
        if all.iter().all(|container| asks_for_nothing(container)) {
            return Self::BestEffort;
        }
        if all.iter().all(|container| is_guaranteed(container)) {
            return Self::Guaranteed;
        }
        let has_limits = |container: &Value| {
            ["cpu", "memory"].iter().all(|name| amount(container, "limits", name).is_some())
        };
        let on_all = containers(pod).iter().all(has_limits);
        Self::Burstable(if on_all { AppLimits::OnAll } else { AppLimits::NotOnAll })
    }

    /// The sidecar's `resources`, with which the pod keeps its class.
    pub(crate) fn resources(self, amounts: &QueueProxyResources) -> Value {
        let pair = |cpu: &ResourceAmount, memory: &ResourceAmount| json!({"cpu": cpu, "memory": memory});
        let QueueProxyResources {
            cpu_request,
            memory_request,
            cpu_limit,
            memory_limit,
            guaranteed_cpu,
            guaranteed_memory,
        } = amounts;
        let requests = pair(cpu_request, memory_request);
        match self {
            Self::BestEffort | Self::OfThePod => json!({}),
            Self::Burstable(AppLimits::NotOnAll) => json!({"requests": requests}),
            Self::Burstable(AppLimits::OnAll) => {
                json!({"requests": requests, "limits": pair(cpu_limit, memory_limit)})
            }
            Self::Guaranteed => {
                let both = pair(guaranteed_cpu, guaranteed_memory);
                json!({"requests": both, "limits": both})
            }
        }
    }
}

/// An amount of a container, or of a whole pod, in thousandths; `None` if it is not written, is zero, or
/// cannot be read.
fn amount(holder: &Value, part: &str, name: &str) -> Option<vocabulary::MilliValue> {
    let written = match &holder["resources"][part][name] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    parse_quantity(&written).ok().filter(|amount| *amount != parse_quantity("0").unwrap_or_default())
}

fn asks_for_nothing(holder: &Value) -> bool {
    let pairs = [("requests", "cpu"), ("requests", "memory"), ("limits", "cpu"), ("limits", "memory")];
    pairs.iter().all(|(part, name)| amount(holder, part, name).is_none())
}

/// Whether a container has limits of CPU and memory, and requests that are the same or are not written.
fn is_guaranteed(container: &Value) -> bool {
    ["cpu", "memory"].iter().all(|name| {
        let (limit, request) = (amount(container, "limits", name), amount(container, "requests", name));
        limit.is_some() && (request.is_none() || request == limit)
    })
}
