//! What of an assignment a request needs, in the form it needs it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use http::HeaderValue;
use vocabulary::{Assignment, PodState, RequestTimeouts, Routing, Version};

/// The present assignment of a revision.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) version: Version,
    pub(crate) hosts: Vec<String>,
    pub(crate) routing: Routing,
    pub(crate) timeouts: RequestTimeouts,
    /// Proves to the pods' queue-proxies who sends.
    pub(crate) hop_key: Option<HeaderValue>,
    pub(crate) waiting_for: String,
    /// Why no request that no ready pod takes should wait.
    pub(crate) hold: Option<String>,
    /// Where idle connections may be kept: at pods that are named and not on their way out.
    pub(crate) kept: BTreeSet<SocketAddr>,
}

impl Settings {
    pub(crate) fn of(assignment: &Assignment) -> Self {
        let newest_key = assignment.hop_keys.first();
        let hop_key = newest_key.and_then(|key| HeaderValue::from_str(key.expose()).ok()).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        let stays = assignment.pods.iter().filter(|pod| pod.state != PodState::Draining);
        Self {
            version: assignment.version,
            hosts: assignment.hosts.clone(),
            routing: assignment.routing,
            timeouts: assignment.timeouts,
            hop_key,
            waiting_for: assignment.waiting_for.clone(),
            hold: assignment.hold.clone(),
            kept: stays.map(|pod| pod.address).collect(),
        }
    }
}
