//! What of an assignment a request needs, in the form it needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use http::HeaderValue;
use vocabulary::{Assignment, PodExits, PodState, RequestTimeouts, Routing, Version};

/// The present assignment of a revision.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) version: Version,
    pub(crate) hosts: Vec<String>,
    pub(crate) ports: BTreeSet<u16>,
    pub(crate) routing: Routing,
    pub(crate) timeouts: RequestTimeouts,
    /// Proves to the pods' queue-proxies who sends.
    pub(crate) hop_key: Option<HeaderValue>,
    pub(crate) waiting_for: String,
    /// Why no request that no ready pod takes should wait.
    pub(crate) hold: Option<String>,
    /// Where idle connections may be kept: at pods that are named and not on their way out.
    pub(crate) kept: BTreeSet<SocketAddr>,
    /// Of pods, by where they take requests usually, that take some elsewhere.
    exits: BTreeMap<SocketAddr, PodExits>,
}

impl Settings {
    pub(crate) fn of(assignment: &Assignment) -> Self {
        let newest_key = assignment.hop_keys.first();
        let hop_key = newest_key.and_then(|key| HeaderValue::from_str(key.expose()).ok()).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        let stays = assignment.pods.iter().filter(|pod| pod.state != PodState::Draining);
        let several = assignment.pods.iter().filter(|pod| !pod.exits.0.is_empty());
        Self {
            version: assignment.version,
            hosts: assignment.hosts.clone(),
            ports: assignment.ports.clone(),
            routing: assignment.routing,
            timeouts: assignment.timeouts,
            hop_key,
            waiting_for: assignment.waiting_for.clone(),
            hold: assignment.hold.clone(),
            kept: stays.flat_map(|pod| pod.exits.all(pod.address)).collect(),
            exits: several.map(|pod| (pod.address, pod.exits.clone())).collect(),
        }
    }

    /// Where a request goes that came by a port of ours, to the pod that takes requests at `usual`.
    pub(crate) fn exit(&self, usual: SocketAddr, port: u16) -> SocketAddr {
        self.exits.get(&usual).map_or(usual, |exits| exits.exit(usual, port))
    }
}
