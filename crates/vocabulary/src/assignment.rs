//! What an autoscaler tells an activator about a revision, always as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::head_size::HeadSizeLimit;
use crate::hop_key::HopKey;
use crate::late_timeout::LateTimeout;
use crate::ownership::Epoch;
use crate::revision::{PodName, RevisionName};
use crate::user_agents::IgnoredUserAgents;
use crate::waiting_page::WaitingPage;

/// Everything an activator needs to serve one revision. A greater [`Version`] replaces the whole; nothing is
/// ever patched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The revision that the assignment is of.
    pub revision: RevisionName,
    /// Which of two assignments is newer.
    pub version: Version,
    /// Hosts (lower case, without port) whose requests are for this revision.
    pub hosts: Vec<String>,
    /// Ports on which the activator takes requests of this revision alone, whatever their host.
    pub ports: BTreeSet<u16>,
    /// Whether the activators are in the request path.
    pub routing: Routing,
    /// The most requests that may run in one pod at once; 0 means no limit.
    pub container_concurrency: u32,
    /// How long the revision's requests may take, by stage.
    pub timeouts: RequestTimeouts,
    /// Its pods, in the order of their names.
    pub pods: Vec<PodAssignment>,
    /// Taken by the queue-proxies of this revision; the first is the one to send.
    #[serde(with = "crate::exposed_hop_keys")]
    pub hop_keys: Vec<HopKey>,
    /// What the revision waits for while no pod is usable, for people ("the app exits at once: exit code 3").
    pub waiting_for: String,
    /// Set while no wait would help: requests that no ready pod takes are refused at once, with this text for
    /// people.
    pub hold: Option<String>,
    /// Whether this activator is to serve the revision, or to end doing so.
    pub standing: Standing,
    /// The user agents whose requests are passed on and answered, but neither measured nor queued.
    pub ignored_user_agents: IgnoredUserAgents,
    /// How large the head of a request for it may be.
    pub head_size_limit: HeadSizeLimit,
    /// What a browser is shown while it would wait for a pod.
    pub waiting_page: WaitingPage,
}

impl Assignment {
    /// An assignment that names neither host nor port nor pod, with activators in the path and no limit of
    /// its own. The caller fills in what the revision has.
    pub fn of_nothing(revision: RevisionName, version: Version) -> Self {
        Self {
            revision,
            version,
            hosts: Vec::new(),
            ports: BTreeSet::new(),
            routing: Routing::ThroughActivator,
            container_concurrency: 0,
            timeouts: RequestTimeouts::default(),
            pods: Vec::new(),
            hop_keys: Vec::new(),
            waiting_for: String::new(),
            hold: None,
            standing: Standing::Assigned,
            ignored_user_agents: IgnoredUserAgents::default(),
            head_size_limit: HeadSizeLimit::default(),
            waiting_page: WaitingPage::default(),
        }
    }
}

/// What a revision is to one activator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Standing {
    /// The activator is among those that serve it.
    #[default]
    Assigned,
    /// Others serve it from now on. What waits here and what still comes is served, and the owner told once
    /// nothing is left.
    Retired,
}

/// One pod of an [`Assignment`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodAssignment {
    /// The pod; the identity under which its requests are counted, whatever its address.
    pub pod: PodName,
    /// The address and port at which its queue-proxy takes requests.
    pub address: SocketAddr,
    /// Where requests go that came by a port of the activator, if not to that address.
    pub exits: PodExits,
    /// Whether it may take requests.
    pub state: PodState,
    /// How many requests this activator may have in it at once; 0 means no limit.
    pub slots: u32,
    /// Whether other activators send to it too.
    pub slice: Slice,
    /// Whether its queue-proxy is told nothing in ebb's words, a hop key least of all: it is Knative's, which
    /// would pass them on to the app, or has not proved yet to be ebb's. Of meaning in Knative's place alone.
    pub is_plain: bool,
}

/// Which port of a pod takes the requests that came by a port of the activator; those that are not named go
/// where the pod takes requests usually. Most apps have one port, and then there is nothing here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodExits(pub BTreeMap<u16, u16>);

impl PodExits {
    /// The address for a request that came by `entrance`, a port of the activator, in the pod that takes
    /// requests at `usual`.
    pub fn pod_address_for(&self, usual: SocketAddr, entrance: u16) -> SocketAddr {
        let port = self.0.get(&entrance);
        SocketAddr::new(usual.ip(), port.copied().unwrap_or(usual.port()))
    }

    /// Everywhere in that pod that requests may go.
    pub fn all(&self, usual: SocketAddr) -> impl Iterator<Item = SocketAddr> {
        let exits = self.0.values().map(move |&port| SocketAddr::new(usual.ip(), port));
        exits.chain([usual])
    }
}

/// The share of a pod among the activators that serve a revision. A hint that keeps several of them from
/// filling the same pods: the queue-proxy alone decides what runs, so an activator whose own pods are full
/// tries those of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slice {
    /// There is one activator: no other one fills the pod's slots.
    #[default]
    Undivided,
    /// In this activator's slice; the others try it when theirs are full.
    Inside,
    /// In the slice of another activator.
    Outside,
}

/// What is known of a pod's ability to take requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PodState {
    /// Nothing was heard from it and the platform does not say. A receiver keeps what it knew.
    #[default]
    Unheard,
    /// Its app has not passed a probe yet.
    Starting,
    /// The pod takes requests: its app passes its probe.
    Ready,
    /// Its app stopped passing its probe.
    Unready,
    /// On its way out: finishes what it holds.
    Draining,
}

/// Orders assignments of one revision: first by the autoscaler's ownership, then by its own counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Of the owner that said it.
    pub epoch: Epoch,
    /// Grows with every change within an epoch.
    pub counter: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.epoch, self.counter)
    }
}

/// Whether the activator is in a revision's request path (Knative: proxy and serve mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// Requests go to the pods while one is ready.
    Direct,
    /// Requests wait in the activator's queue for a free slot.
    #[default]
    ThroughActivator,
}

/// The three timers of a request, and what they do to a response that has begun. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTimeouts {
    /// From arrival to the end of the response (Knative: `timeoutSeconds`).
    pub request: Option<Duration>,
    /// From arrival to the first byte of the response (`responseStartTimeoutSeconds`).
    pub response_start: Option<Duration>,
    /// The longest silence, in both directions (`idleTimeoutSeconds`).
    pub idle: Option<Duration>,
    /// The end of a response that has begun, once one of them is over.
    #[serde(default)]
    pub late: LateTimeout,
}
