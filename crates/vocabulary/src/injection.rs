//! By what does a pod say that it wants a queue-proxy, and which of its ports does that stand before?
//!
//! Those ports of TCP that its containers declare and those that an annotation adds, but none that another
//! annotation calls plain. The injector gives pods their queue-proxy by this rule, and the platform leads
//! Services to it by the same.

use std::collections::BTreeSet;

/// The label of a pod that asks for a queue-proxy, with the value `true`.
pub const INJECT_LABEL: &str = "ebb.dev/inject";
/// Where the queue-proxy answers an app's preStop hook, once its last request has ended.
pub const DRAIN_HOOK_PATH: &str = "/wait-for-drain";
/// The container that we know by this name is the queue-proxy.
pub const QUEUE_PROXY: &str = "queue-proxy";
/// Says that the container of that name is ours.
pub const INJECTED_ANNOTATION: &str = "ebb.dev/injected";
/// Names ports, with commas between them, that no container declares.
pub const PORTS_ANNOTATION: &str = "ebb.dev/ports";
/// Names ports that are no affair of ours, by number or by name.
pub const PLAIN_PORTS_ANNOTATION: &str = "ebb.dev/plain-ports";

/// Annotations that only the program reads that gives a pod its queue-proxy: no settings of a revision. What
/// the queue-proxy may use is among them.
pub const INJECTION_ANNOTATIONS: [&str; 9] = [
    INJECTED_ANNOTATION,
    PORTS_ANNOTATION,
    PLAIN_PORTS_ANNOTATION,
    "ebb.dev/queue-proxy-cpu-request",
    "ebb.dev/queue-proxy-memory-request",
    "ebb.dev/queue-proxy-cpu-limit",
    "ebb.dev/queue-proxy-memory-limit",
    "ebb.dev/queue-proxy-guaranteed-cpu",
    "ebb.dev/queue-proxy-guaranteed-memory",
];

/// A port as a container declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredPort<'a> {
    /// The port on which the container listens.
    pub number: u16,
    /// What the container calls it.
    pub name: Option<&'a str>,
    /// `TCP` where nothing is said.
    pub protocol: Option<&'a str>,
}

impl DeclaredPort<'_> {
    /// Whether connections come in there at all.
    pub fn is_tcp(&self) -> bool {
        self.protocol.is_none_or(|protocol| protocol == "TCP")
    }
}

/// What a pod's annotations say of its ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortAnnotations {
    added: Vec<u16>,
    plain: BTreeSet<String>,
}

impl PortAnnotations {
    /// Reads [`PORTS_ANNOTATION`] and [`PLAIN_PORTS_ANNOTATION`]. What is no port goes to the second list,
    /// and counts for nothing.
    pub fn read(ports: &str, plain: &str) -> (Self, Vec<String>) {
        let mut unreadable = Vec::new();
        let mut added = Vec::new();
        for text in parts(ports) {
            match text.parse::<u16>() {
                Ok(port) if port > 0 => added.push(port),
                Ok(_) | Err(_) => unreadable.push(text.to_owned()),
            }
        }
        (Self { added, plain: parts(plain).map(str::to_owned).collect() }, unreadable)
    }

    /// Ports that no container need declare, in the order in which they are written.
    pub fn added(&self) -> impl Iterator<Item = u16> {
        self.added.iter().copied().filter(|port| !self.is_plain(*port, None))
    }

    /// Whether a port is no affair of ours. That wins over a port that is added, too.
    pub fn is_plain(&self, number: u16, name: Option<&str>) -> bool {
        self.plain.contains(&number.to_string()) || name.is_some_and(|name| self.plain.contains(name))
    }

    /// Whether the queue-proxy stands before a port that a container declares.
    pub fn is_served(&self, port: &DeclaredPort<'_>) -> bool {
        port.is_tcp() && !self.is_plain(port.number, port.name)
    }
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_tcp_are_served_unless_they_are_called_plain() {
        let (annotations, unreadable) = PortAnnotations::read("", "metrics, 9000 ,");
        assert_eq!(unreadable, Vec::<String>::new());
        for (number, name, protocol, is_served) in [
            (8080, None, None, true),
            (8080, Some("http"), Some("TCP"), true),
            (53, Some("dns"), Some("UDP"), false),
            (9100, Some("metrics"), None, false),
            (9000, Some("admin"), None, false),
        ] {
            let port = DeclaredPort { number, name, protocol };
            assert_eq!(annotations.is_served(&port), is_served, "{port:?}");
        }
    }

    #[test]
    fn added_ports_are_numbers_and_plain_wins() {
        let (annotations, unreadable) = PortAnnotations::read("7070, http,0,8080,70000", "8080");
        assert_eq!(annotations.added().collect::<Vec<_>>(), [7070]);
        assert_eq!(unreadable, ["http", "0", "70000"]);
    }
}
