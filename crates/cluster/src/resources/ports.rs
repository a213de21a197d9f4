//! Where does a Service's port lead in a pod?
//!
//! Its target is a number, or the name of a declared port, which may be another number in each pod. Before a
//! port of an app stands the queue-proxy's, unless the port is *plain* (people say so, or the Service names a
//! protocol that is none of ours) or it was not declared when the pod was made.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ContainerPort, PodSpec, ServicePort as KubernetesServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use vocabulary::{DeclaredPort, PLAIN_PORTS_ANNOTATION, PORTS_ANNOTATION, PortAnnotations, QUEUE_PROXY};

/// The protocols that travel as HTTP, by Kubernetes' names.
const PROTOCOLS_OF_OURS: [&str; 4] = ["http", "grpc", "kubernetes.io/h2c", "kubernetes.io/ws"];

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServicePort {
    /// The endpoints repeat this name. Only a Service with one port may leave it out.
    pub(crate) name: Option<String>,
    pub(crate) number: u16,
    pub(crate) target: TargetPort,
    pub(crate) app_protocol: Option<String>,
}

/// Which port of a pod it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetPort {
    Number(u16),
    Name(String),
}

/// How a Service's port is served, by the workload's template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortKind {
    /// The requests of the port are measured, limited, and held while no pod is there.
    Served,
    /// The port leads to the pods' own port, and no request waits for it.
    Plain,
    /// The template does not declare where it leads, so its pods have no queue-proxy before that.
    Undeclared,
}

impl ServicePort {
    /// `None` for what is no port of TCP.
    pub(crate) fn read(port: &KubernetesServicePort) -> Option<Self> {
        if port.protocol.as_deref().unwrap_or("TCP") != "TCP" {
            return None;
        }
        let number = u16::try_from(port.port).ok()?;
        let target = match &port.target_port {
            None => TargetPort::Number(number),
            Some(IntOrString::Int(number)) => TargetPort::Number(u16::try_from(*number).ok()?),
            Some(IntOrString::String(name)) => TargetPort::Name(name.clone()),
        };
        Some(Self { name: port.name.clone(), number, target, app_protocol: port.app_protocol.clone() })
    }

    /// Whether its `appProtocol` is one that activators take, or missing.
    pub(crate) fn speaks_http(&self) -> bool {
        self.app_protocol.as_deref().is_none_or(|protocol| PROTOCOLS_OF_OURS.contains(&protocol))
    }

    /// The port's name and number, or its number alone, for messages.
    pub(crate) fn text(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.number),
            None => self.number.to_string(),
        }
    }
}

/// The ports that a pod, or a template of pods, declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContainerPorts {
    /// The numbers of TCP ports by their names, for ports that have one.
    named: BTreeMap<String, u16>,
    /// Before which the queue-proxy stands.
    served: BTreeSet<u16>,
    rule: PortAnnotations,
}

impl ContainerPorts {
    pub(crate) fn read(spec: Option<&PodSpec>, annotations: Option<&BTreeMap<String, String>>) -> Self {
        let text = |key| annotations.and_then(|map| map.get(key)).map_or("", String::as_str);
        // A text that is no port was refused or warned of when the pod was injected.
        let (rule, _) = PortAnnotations::read(text(PORTS_ANNOTATION), text(PLAIN_PORTS_ANNOTATION));
        let containers = spec.into_iter().flat_map(|spec| &spec.containers);
        let apps = containers.filter(|container| container.name != QUEUE_PROXY);
        let ports = apps.flat_map(|container| container.ports.iter().flatten()).filter_map(declared);
        let (mut named, mut served) = (BTreeMap::new(), rule.added().collect::<BTreeSet<u16>>());
        for port in ports.filter(DeclaredPort::is_tcp) {
            named.extend(port.name.map(|name| (name.to_owned(), port.number)));
            served.extend(rule.is_served(&port).then_some(port.number));
        }
        Self { named, served, rule }
    }

    /// Which number a target is here; `None` for the name of a port that is not declared.
    pub(crate) fn number(&self, target: &TargetPort) -> Option<u16> {
        match target {
            TargetPort::Number(number) => Some(*number),
            TargetPort::Name(name) => self.named.get(name).copied(),
        }
    }

    pub(crate) fn kind(&self, port: &ServicePort) -> PortKind {
        match self.number(&port.target) {
            _ if !port.speaks_http() => PortKind::Plain,
            Some(number) if self.is_plain(number) => PortKind::Plain,
            Some(number) if self.served.contains(&number) => PortKind::Served,
            Some(_) | None => PortKind::Undeclared,
        }
    }

    /// A number may be called plain that no container declares.
    fn is_plain(&self, number: u16) -> bool {
        let mut names = self.named.iter().filter(|(_, port)| **port == number).map(|(name, _)| name.as_str());
        self.rule.is_plain(number, None) || names.any(|name| self.rule.is_plain(number, Some(name)))
    }
}

/// `None` for what the API server refuses.
fn declared(port: &ContainerPort) -> Option<DeclaredPort<'_>> {
    let number = u16::try_from(port.container_port).ok()?;
    Some(DeclaredPort { number, name: port.name.as_deref(), protocol: port.protocol.as_deref() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ports(annotations: &[(&str, &str)]) -> ContainerPorts {
        let spec = json!({"containers": [
            {"name": "app", "ports": [
                {"name": "http", "containerPort": 8080},
                {"name": "metrics", "containerPort": 9100},
                {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            ]},
            {"name": QUEUE_PROXY, "ports": [{"name": "ebb-requests", "containerPort": 8012}]},
        ]});
        let spec = serde_json::from_value(spec).expect("a PodSpec");
        let annotations = annotations.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
        ContainerPorts::read(Some(&spec), Some(&annotations.collect()))
    }

    fn service_port(port: serde_json::Value) -> ServicePort {
        let port = serde_json::from_value(port).expect("a ServicePort");
        ServicePort::read(&port).expect("a port of TCP")
    }

    #[test]
    fn a_port_leads_through_the_queue_proxy_if_it_is_declared_and_not_plain() {
        use PortKind::{Plain, Served, Undeclared};
        let rows = [
            (json!({"port": 80, "targetPort": 8080}), Served),
            (json!({"port": 80, "targetPort": "http"}), Served),
            (json!({"port": 8080}), Served),
            (json!({"port": 80}), Undeclared),
            (json!({"port": 80, "targetPort": "web"}), Undeclared),
            (json!({"port": 53, "targetPort": 53}), Undeclared),
            (json!({"port": 80, "targetPort": 7070}), Served),
            (json!({"port": 9100, "targetPort": "metrics"}), Plain),
            (json!({"port": 80, "targetPort": 8080, "appProtocol": "kubernetes.io/h2c"}), Served),
            (json!({"port": 80, "targetPort": 8080, "appProtocol": "https"}), Plain),
            (json!({"port": 5432, "targetPort": 5432, "appProtocol": "postgresql"}), Plain),
        ];
        for plain in ["metrics", "9100"] {
            let ports = ports(&[(PLAIN_PORTS_ANNOTATION, plain), (PORTS_ANNOTATION, "7070")]);
            for (port, expected) in &rows {
                assert_eq!(ports.kind(&service_port(port.clone())), *expected, "{port}");
            }
        }
    }

    #[test]
    fn a_port_of_another_protocol_than_tcp_is_not_read() {
        let udp = serde_json::from_value(json!({"port": 53, "protocol": "UDP"})).expect("a ServicePort");
        assert_eq!(ServicePort::read(&udp), None);
    }
}
