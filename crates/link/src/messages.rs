//! The messages in our own words. How they look on the wire is `wire.rs`'s business.

use std::time::Duration;

use vocabulary::{
    Assignment, BootId, HopKey, Load, PodName, PodState, PresentCount, ReplicaName, RequestTimeouts,
    RevisionName, Routing, Sample, Version,
};

/// From a queue-proxy to the autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub enum PodReport {
    /// The first message after every connect.
    Hello(PodHello),
    /// One completed second; all zero is a heartbeat.
    Load(Sample),
    /// The pod's state changed.
    State {
        /// To this.
        state: PodState,
        /// Why it is not ready, for people; may be empty.
        detail: String,
    },
    /// Sent at once when in-flight plus queued crosses the surge threshold, then again as it grows, at most every 100 ms. Without the
    /// part that came through an activator.
    Present(PresentCount),
}

/// What a queue-proxy says first.
#[derive(Clone, Debug, PartialEq)]
pub struct PodHello {
    /// Which pod answers; checked against the one that was dialled.
    pub pod: PodName,
    /// Of which of its lives.
    pub boot: BootId,
    /// Its state now.
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

/// From the autoscaler to a queue-proxy.
#[derive(Clone, Debug, PartialEq)]
pub enum PodOrder {
    /// All that the queue-proxy is told; sent on connect and at every change.
    Settings {
        /// From which in-flight-plus-queued count on it reports at once; `None`: never.
        surge_threshold: Option<u32>,
        /// Who is in the path: the losing side of a switch tells its clients to reconnect.
        routing: Routing,
        /// Accepted proofs that a request comes from an activator, newest first.
        hop_keys: Vec<HopKey>,
    },
    /// Nothing new; sent once a second when nothing else was.
    Heartbeat,
}

/// From an activator to the autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub enum ActivatorReport {
    /// The first message after every connect.
    Hello(ActivatorHello),
    /// One completed second: all revisions with something to say, the rest is zero.
    Loads {
        /// The number of the activator's second.
        second: u64,
        /// In the order of their names.
        loads: Vec<RevisionLoad>,
    },
    /// What the activator holds for one revision right now: at its first request after idleness, then again as it grows, at most every 20 ms.
    Present {
        /// Which revision.
        revision: RevisionName,
        /// In flight and waiting.
        count: PresentCount,
        /// How long the oldest has waited.
        oldest_wait: Duration,
    },
    /// The assignment with this version is acted upon: pods it does not name, or names as draining, are picked no more and have no idle connection left.
    Acknowledged {
        /// Of which revision.
        revision: RevisionName,
        /// Which version.
        version: Version,
    },
}

/// What an activator says first.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivatorHello {
    /// Which activator answers.
    pub activator: ReplicaName,
    /// Of which of its lives.
    pub boot: BootId,
    /// The number of its second that runs now.
    pub current_second: u64,
    /// Its past seconds, oldest first, at most 60: what [`ActivatorReport::Loads`] said.
    pub history: Vec<(u64, Vec<RevisionLoad>)>,
    /// What it holds right now, per revision.
    pub present: Vec<(RevisionName, PresentCount)>,
    /// The routing in force here, per revision it has an assignment of: an autoscaler that was rebuilt goes on from it.
    pub routings: Vec<(RevisionName, Routing)>,
}

/// One revision's part of an activator's second.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionLoad {
    /// Which revision.
    pub revision: RevisionName,
    /// What was measured.
    pub load: Load,
    /// How long the oldest waiting request has waited.
    pub oldest_wait: Duration,
}

/// From the autoscaler to an activator.
#[derive(Clone, Debug, PartialEq)]
pub enum ActivatorOrder {
    /// Everything follows, closed by [`ActivatorOrder::SyncEnd`].
    SyncBegin,
    /// A revision, whole.
    Assign(Box<Assignment>),
    /// A revision that is gone; what waits for it is refused.
    Remove {
        /// Which.
        revision: RevisionName,
        /// Newer than any assignment it had.
        version: Version,
    },
    /// What was not named since [`ActivatorOrder::SyncBegin`] is dropped.
    SyncEnd,
    /// Nothing new; sent once a second when nothing else was.
    Heartbeat,
}
