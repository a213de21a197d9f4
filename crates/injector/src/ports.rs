//! Which ports of the app are served, and which are free for the queue-proxy?

use std::collections::BTreeSet;

use serde_json::Value;
use vocabulary::{DeclaredPort, PLAIN_PORTS_ANNOTATION, PORTS_ANNOTATION, PortAnnotations, shown};

use crate::pod::containers;

/// Where the queue-proxy listens, as far as these are free. Knative's numbers, but for metrics, whose number
/// there is one that apps like.
const REQUESTS_PORT: u16 = 8012;
pub(crate) const ADMIN_PORT: u16 = 8022;
const LINK_PORT: u16 = 8024;
const METRICS_PORT: u16 = 19091;
/// Where a usual port is taken, candidates begin this far above it: at 8100 instead of 8012.
const NEXT: u16 = 88;
/// The number of ports that are served: more than any known app has; each costs the queue-proxy a listener.
const PORTS_MAX: usize = 32;

/// The served ports of a pod, with the ports of its queue-proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedPorts {
    /// The first served port, which the queue-proxy is given as `USER_PORT`.
    pub(crate) first: ServedPort,
    pub(crate) more: Vec<ServedPort>,
    pub(crate) admin: u16,
    pub(crate) link: u16,
    pub(crate) metrics: u16,
}

/// A port of the app, with the queue-proxy's port that takes its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedPort {
    /// The container that declares the port; the first container, if an annotation names the port.
    pub(crate) container: String,
    pub(crate) app: u16,
    pub(crate) requests: u16,
}

impl ServedPorts {
    /// Finds the served ports; `None` if there is none or too many, with the reason among `problems`.
    pub(crate) fn find(pod: &Value, problems: &mut Vec<String>) -> Option<Self> {
        let annotation = |key: &str| pod["metadata"]["annotations"][key].as_str().unwrap_or_default();
        let (rule, unreadable) =
            PortAnnotations::read(annotation(PORTS_ANNOTATION), annotation(PLAIN_PORTS_ANNOTATION));
        problems.extend(unreadable.iter().map(|text| {
            format!(
                "annotation {PORTS_ANNOTATION} names {}; write port numbers with commas between them",
                shown(text)
            )
        }));
        // In the order in which they are written, for people put first what matters most.
        let mut served: Vec<(String, u16)> = Vec::new();
        for container in containers(pod) {
            let ports = declared(container).filter_map(read).filter(|port| rule.is_served(port));
            served.extend(ports.map(|port| (name(container), port.number)));
        }
        let first = containers(pod).first().map(name).unwrap_or_default();
        served.extend(rule.added().map(|port| (first.clone(), port)));
        let mut seen = BTreeSet::new();
        served.retain(|(_, port)| seen.insert(*port));
        if served.is_empty() {
            problems.push(format!(
                "no container declares a TCP port; add containerPort, or the annotation {PORTS_ANNOTATION}: \"8080\""
            ));
            return None;
        }
        if served.len() > PORTS_MAX {
            problems.push(format!(
                "{} ports are declared; {PORTS_MAX} can be served: name the others in the annotation {PLAIN_PORTS_ANNOTATION}",
                served.len()
            ));
            return None;
        }
        Some(Self::beside(pod, served))
    }

    fn beside(pod: &Value, served: Vec<(String, u16)>) -> Self {
        // Init containers share the pod's network too, and native sidecars keep running beside the app.
        let init = pod["spec"]["initContainers"].as_array().into_iter().flatten();
        let ports = containers(pod).iter().chain(init).flat_map(declared);
        let apps = served.iter().map(|(_, app)| *app);
        let mut taken: BTreeSet<u16> = ports.filter_map(number).chain(apps).collect();
        let mut free = |wanted: u16| {
            let mut candidates = std::iter::once(wanted).chain(wanted.saturating_add(NEXT)..);
            // A pod declares no sixty thousand ports.
            let port = candidates.find(|port| !taken.contains(port)).unwrap_or(wanted);
            taken.insert(port);
            port
        };
        let mut served: Vec<ServedPort> = served
            .into_iter()
            .map(|(container, app)| ServedPort { container, app, requests: free(REQUESTS_PORT) })
            .collect();
        Self {
            first: served.remove(0),
            more: served,
            admin: free(ADMIN_PORT),
            link: free(LINK_PORT),
            metrics: free(METRICS_PORT),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &ServedPort> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

fn declared(container: &Value) -> impl Iterator<Item = &Value> {
    container["ports"].as_array().into_iter().flatten()
}

fn name(container: &Value) -> String {
    container["name"].as_str().unwrap_or_default().to_owned()
}

fn number(port: &Value) -> Option<u16> {
    port["containerPort"].as_u64().and_then(|number| u16::try_from(number).ok())
}

/// Reads a declared port; `None` for one that the API server refuses.
fn read(port: &Value) -> Option<DeclaredPort<'_>> {
    let number = number(port)?;
    Some(DeclaredPort { number, name: port["name"].as_str(), protocol: port["protocol"].as_str() })
}

/// The number that a probe's port means in its container: a number, or the name of a declared one.
pub(crate) fn resolve(port: &Value, container: &Value) -> Option<u16> {
    match port {
        Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        Value::String(name) => {
            declared(container).find(|port| port["name"] == name.as_str()).and_then(number)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
