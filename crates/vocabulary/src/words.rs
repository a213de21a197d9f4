//! What is said on links: the words of queue-proxies and activators, and what a queue-proxy is told.
//!
//! Every word says what *is*, so a repeat does no harm. How they look on the wire is `link`'s business.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::adopted_connections::{AdoptedConnections, AdoptionId};
use crate::assignment::{PodState, RequestTimeouts, Routing, Version};
use crate::caller::Caller;
use crate::head_size::HeadSizeLimit;
use crate::hop_key::HopKey;
use crate::late_bytes::LateBytes;
use crate::late_timeout::LateTimeout;
use crate::load::{BootId, Load, PresentCount, Sample};
use crate::revision::{PodName, ReplicaName, RevisionName};
use crate::usage::ResourceUsage;

/// Which words a program knows. Messages only grow, so a greater number knows all of the smaller one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkVersion(pub u32);

impl LinkVersion {
    /// Before there were numbers: no versions of settings, no retiring.
    pub const FIRST: Self = Self(1);
    /// The version that this program speaks.
    pub const CURRENT: Self = Self(2);
}

/// From a queue-proxy to the autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub enum PodWord {
    /// The first word after every connect.
    Hello(PodHello),
    /// One completed second; all zero is a heartbeat.
    Load {
        /// What it measured of requests.
        sample: Sample,
        /// What its app used, where a metric reads that.
        usage: Option<ResourceUsage>,
        /// What its app sent behind responses, while its connections are not used again for that.
        late_bytes: Option<LateBytes>,
    },
    /// The pod's state is another one than it said before.
    State {
        /// The new state of the pod.
        state: PodState,
        /// Why it is not ready, for people; may be empty.
        detail: String,
    },
    /// Sent at once when in-flight plus queued crosses the surge threshold, then again every 100 ms until one
    /// below the threshold was sent. Without the part that came through an activator.
    Present(PresentCount),
    /// The settings with this version are in force.
    SettingsAcknowledged(Version),
    /// What is left of the connections from before an adoption, once the owner has named one, and at every
    /// change. An owner that names none does not know this word.
    Adopted(AdoptedConnections),
}

/// What a queue-proxy says first.
#[derive(Clone, Debug, PartialEq)]
pub struct PodHello {
    /// The newest version of words that the queue-proxy knows.
    pub speaks: LinkVersion,
    /// Which pod answers; checked against the one that was dialled.
    pub pod: PodName,
    /// Another one after each start of the queue-proxy.
    pub boot: BootId,
    /// The state of the pod when it says hello.
    pub state: PodState,
    /// Why it is not ready, for people; may be empty.
    pub detail: String,
    /// The limit it was started with; 0 means none.
    pub container_concurrency: u32,
    /// The timeouts it was started with.
    pub timeouts: RequestTimeouts,
    /// The number of its second that runs now.
    pub current_second: u64,
    /// Its past seconds, oldest first, at most 60.
    pub history: Vec<Sample>,
}

/// All that a queue-proxy is told: on connect and at every change, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSettings {
    /// Only greater ones are taken over, so that a late owner changes nothing.
    pub version: Version,
    /// From which in-flight-plus-queued count on it reports at once; `None`: never.
    pub surge_threshold: Option<u32>,
    /// Whether the activators are in the path: the losing side of a switch tells its clients to reconnect.
    pub routing: Routing,
    /// Proofs that a request comes from an activator, all of which are taken.
    #[serde(with = "crate::exposed_hop_keys")]
    pub hop_keys: Vec<HopKey>,
    /// Whether the pod is to go.
    pub departure: Departure,
    /// The latest adoption of a Service that led to the pod before; `None` while there was none. Its number
    /// stands for a set of connections, which is taken once.
    pub adoption: Option<AdoptionId>,
    /// How large heads of clients' requests and of the app's responses may be.
    pub head_size_limit: HeadSizeLimit,
    /// The end of a response that has begun, once the time of its request is up.
    pub late: LateTimeout,
}

/// How far a pod's departure has come, as its owner knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Departure {
    /// It stays, or the platform itself will tell it to go.
    #[default]
    NotPlanned,
    /// The platform ends it: it drains from now on.
    Leaving {
        /// In so long from when this was said.
        within: Duration,
    },
    /// Neither a route nor an assignment names it any more.
    Released,
}

/// From an activator to the autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub enum ActivatorWord {
    /// The first word after every connect.
    Hello(ActivatorHello),
    /// One completed second: all revisions with something to say, the rest is zero.
    Loads {
        /// The number of the activator's second.
        second: u64,
        /// In the order of their names.
        loads: Vec<RevisionLoad>,
    },
    /// What the activator holds for one revision right now: at its first request after idleness, then again
    /// as it grows, at most every 10 ms, and when it has held less than it said for 100 ms. Silence means
    /// that it held as much within the last 100 ms. (Activators of former releases say when it grows, and no
    /// more.)
    Present {
        /// The one whose requests they are.
        revision: RevisionName,
        /// The requests in flight and those that wait, now.
        count: PresentCount,
        /// How long the oldest has waited.
        oldest_wait: Duration,
    },
    /// The assignment with this version is acted upon: pods it does not name, or names as draining, are
    /// picked no more and have no idle connection left. Of a revision that was removed or forgotten: it is
    /// gone.
    Acknowledged {
        /// The one that was assigned, removed or forgotten.
        revision: RevisionName,
        /// The version of the assignment, or of the word to forget it.
        version: Version,
    },
    /// A retired revision holds no request any more.
    Emptied {
        /// One that was retired before.
        revision: RevisionName,
    },
    /// The activator is on its way out: it serves on, but is to be left out from now on.
    Draining,
}

/// What an activator says first.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivatorHello {
    /// The newest version of words that the activator knows.
    pub speaks: LinkVersion,
    /// The activator that answers; checked against the one that was dialled.
    pub activator: ReplicaName,
    /// Another one after each start of the activator.
    pub boot: BootId,
    /// The number of its second that runs now.
    pub current_second: u64,
    /// Its past seconds, oldest first, at most 60: what [`ActivatorWord::Loads`] said.
    pub history: Vec<(u64, Vec<RevisionLoad>)>,
    /// What it holds right now, per revision.
    pub present: Vec<(RevisionName, PresentCount)>,
    /// The routing in force here, per revision it has an assignment of: an autoscaler that was rebuilt goes
    /// on from it.
    pub routings: Vec<(RevisionName, Routing)>,
}

/// One revision's part of an activator's second.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionLoad {
    /// The one that the load is of.
    pub revision: RevisionName,
    /// What was measured in that second.
    pub load: Load,
    /// How long the oldest waiting request has waited.
    pub oldest_wait: Duration,
    /// Some of those who sent its requests lately, for people; nothing is decided by them.
    pub callers: Vec<Caller>,
}
