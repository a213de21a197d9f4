//! Which ports of the app are served, and which are free for the queue-proxy?

use std::collections::BTreeSet;

use serde_json::Value;

use crate::container::{ADMIN_PORT, LINK_PORT, METRICS_PORT, REQUESTS_PORT};
use crate::inject::containers;

/// Names a port that the template does not declare.
const PORTS: &str = "ebb.dev/ports";
/// Names declared ports that are no affair of ours, by number or name.
const PLAIN_PORTS: &str = "ebb.dev/plain-ports";
/// Where to look for a free port once ours is taken; the next hundred of each.
const NEXT: u16 = 88;
/// More than any app that we know has; each costs the queue-proxy a listener.
const PORTS_MAX: usize = 32;

/// Ports of the app, and the queue-proxy's before and beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedPorts {
    /// The first one is what the queue-proxy takes for the app's.
    pub(crate) first: ServedPort,
    pub(crate) more: Vec<ServedPort>,
    pub(crate) admin: u16,
    pub(crate) link: u16,
    pub(crate) metrics: u16,
}

/// A port of the app, and the queue-proxy's before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedPort {
    /// The container that declares it; the first one, if an annotation does.
    pub(crate) container: String,
    pub(crate) app: u16,
    pub(crate) requests: u16,
}

impl ServedPorts {
    /// `None` if there is none: that is among the problems then.
    pub(crate) fn find(pod: &Value, problems: &mut Vec<String>) -> Option<Self> {
        let annotations = &pod["metadata"]["annotations"];
        let listed = |key: &str| -> Vec<&str> {
            let text = annotations[key].as_str().unwrap_or_default();
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
        };
        let plain = listed(PLAIN_PORTS);
        // In the order in which they are written, for people put first what matters most.
        let mut served: Vec<(String, u16)> = Vec::new();
        for container in containers(pod) {
            for port in declared(container).filter(|port| is_tcp(port) && !is_plain(port, &plain)) {
                served.extend(number(port).map(|number| (name(container), number)));
            }
        }
        for text in listed(PORTS) {
            match text.parse::<u16>() {
                Ok(port) if port > 0 => {
                    served.push((containers(pod).first().map(name).unwrap_or_default(), port));
                }
                _ => problems.push(format!(
                    "annotation {PORTS} names {text:?}; write port numbers with commas between them"
                )),
            }
        }
        let mut seen = BTreeSet::new();
        served.retain(|(_, port)| seen.insert(*port));
        if served.is_empty() {
            problems.push(format!(
                "no container declares a TCP port; add containerPort, or the annotation {PORTS}: \"8080\""
            ));
            return None;
        }
        if served.len() > PORTS_MAX {
            problems.push(format!(
                "{} ports are declared; {PORTS_MAX} can be served: name the others in the annotation {PLAIN_PORTS}",
                served.len()
            ));
            return None;
        }
        Some(Self::beside(pod, served))
    }

    fn beside(pod: &Value, served: Vec<(String, u16)>) -> Self {
        let ports = containers(pod).iter().flat_map(declared);
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

fn is_tcp(port: &Value) -> bool {
    port["protocol"].as_str().is_none_or(|protocol| protocol == "TCP")
}

fn is_plain(port: &Value, plain: &[&str]) -> bool {
    let by_number = number(port).is_some_and(|number| plain.contains(&number.to_string().as_str()));
    by_number || port["name"].as_str().is_some_and(|name| plain.contains(&name))
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
