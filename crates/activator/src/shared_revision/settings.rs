//! The parts of an assignment that a request needs, in the form in which it needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use dataplane::Fields;
use http::header::HeaderValue;
use vocabulary::{
    Assignment, HeadSizeLimit, IgnoredUserAgents, PodAssignment, PodExits, PodState, RequestTimeouts,
    Routing, WaitingPage,
};

/// The headers that only an activator sets on a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HopHeaders<'a> {
    /// The key that proves to the pod's queue-proxy that an activator sends.
    pub(crate) key: Option<&'a HeaderValue>,
    /// The name of the pod: its address may belong to another pod by the time that the request arrives.
    pub(crate) pod: Option<&'a HeaderValue>,
}

impl HopHeaders<'_> {
    /// Whether, in Knative's place, the pod may have a queue-proxy of Knative's, which would show a key to
    /// its app: it is told none, or an assignment that came after it was picked does not name it any more.
    pub(crate) fn may_be_plain(self) -> bool {
        self.key.is_none() || self.pod.is_none()
    }
}

/// The present assignment of a revision.
#[derive(Clone, Debug)]
pub(crate) struct AssignedSettings {
    pub(crate) ports: BTreeSet<u16>,
    pub(crate) routing: Routing,
    pub(crate) timeouts: RequestTimeouts,
    ignored_user_agents: IgnoredUserAgents,
    pub(crate) head_size: HeadSizeLimit,
    /// What a browser is shown while it would wait for a pod.
    pub(crate) waiting_page: WaitingPage,
    /// The key that proves to the pods' queue-proxies that an activator sends.
    hop_key: Option<HeaderValue>,
    /// The pods that are told nothing in our words, by where they take requests usually.
    plain: BTreeSet<SocketAddr>,
    /// The names of the pods, by where they take requests usually.
    pods: BTreeMap<SocketAddr, HeaderValue>,
    /// Why no request that no ready pod takes should wait.
    pub(crate) hold: Option<String>,
    /// Where idle connections may be kept: at pods that are named and not on their way out.
    pub(crate) kept: BTreeSet<SocketAddr>,
    /// Of pods, by where they take requests usually, that take some elsewhere.
    exits: BTreeMap<SocketAddr, PodExits>,
}

impl AssignedSettings {
    pub(crate) fn of(assignment: &Assignment) -> Self {
        let key_to_send = assignment.hop_keys.first();
        let hop_key =
            key_to_send.and_then(|key| HeaderValue::from_str(key.expose()).ok()).map(|mut value| {
                value.set_sensitive(true);
                value
            });
        let stays = assignment.pods.iter().filter(|pod| pod.state != PodState::Draining);
        let several = assignment.pods.iter().filter(|pod| !pod.exits.0.is_empty());
        Self {
            ports: assignment.ports.clone(),
            routing: assignment.routing,
            timeouts: assignment.timeouts,
            hop_key,
            plain: assignment.pods.iter().filter(|pod| pod.is_plain).map(|pod| pod.address).collect(),
            pods: assignment.pods.iter().filter_map(name_by_address).collect(),
            ignored_user_agents: assignment.ignored_user_agents.clone(),
            head_size: assignment.head_size_limit,
            waiting_page: assignment.waiting_page.clone(),
            hold: assignment.hold.clone(),
            kept: stays.flat_map(|pod| pod.exits.all(pod.address)).collect(),
            exits: several.map(|pod| (pod.address, pod.exits.clone())).collect(),
        }
    }

    /// Whether the assignment says that requests with these headers are not measured.
    pub(crate) fn ignores(&self, fields: &Fields) -> bool {
        fields.user_agent().is_some_and(|agent| self.ignored_user_agents.include(agent))
    }

    /// What a request says on its way to the pod that takes requests at `usual`.
    pub(crate) fn hop(&self, usual: SocketAddr) -> HopHeaders<'_> {
        let key = self.hop_key.as_ref().filter(|_| !self.plain.contains(&usual));
        HopHeaders { key, pod: self.pods.get(&usual) }
    }

    /// The address at which the pod that usually takes requests at `usual` takes those of the revision's port
    /// `entrance`.
    pub(crate) fn pod_address_for(&self, usual: SocketAddr, entrance: u16) -> SocketAddr {
        self.exits.get(&usual).map_or(usual, |exits| exits.pod_address_for(usual, entrance))
    }
}

fn name_by_address(pod: &PodAssignment) -> Option<(SocketAddr, HeaderValue)> {
    // The names of Kubernetes and of this machine are text that a header may have.
    Some((pod.address, HeaderValue::from_str(pod.pod.as_str()).ok()?))
}

#[cfg(test)]
mod tests {
    use vocabulary::{HopKey, PodName, RevisionName, Slice, Version};

    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn a_pod_that_is_not_named_any_more_may_be_plain() {
        let pod = |port, is_plain| PodAssignment {
            pod: PodName::new("default/a"),
            address: address(port),
            exits: PodExits::default(),
            state: PodState::Ready,
            slots: 0,
            slice: Slice::Undivided,
            is_plain,
        };
        let revision = RevisionName::parse("shop/revision/hello-00001").expect("three parts");
        let assignment = Assignment {
            pods: vec![pod(1, true), pod(2, false)],
            hop_keys: vec![HopKey::new("key".to_owned())],
            ..Assignment::of_nothing(revision, Version::default())
        };
        let settings = AssignedSettings::of(&assignment);
        let may_be_plain = [1, 2, 3].map(|port| settings.hop(address(port)).may_be_plain());
        assert_eq!(may_be_plain, [true, false, true]);
    }
}
