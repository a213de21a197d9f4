//! What the autoscaler tells, frame by frame. What it is told are the words of `vocabulary`; how all of it
//! looks on the wire is `wire.rs`'s business.

use std::collections::BTreeSet;
use std::sync::Arc;

use vocabulary::{Assignment, Bucket, Ownership, PodSettings, ReplicaName, RevisionName, Version};

/// From the autoscaler to a queue-proxy.
#[derive(Clone, Debug, PartialEq)]
pub enum PodOrder {
    /// All that the queue-proxy is told; sent on connect and at every change.
    Settings(Arc<PodSettings>),
    /// Nothing new; sent once a second when nothing else was.
    Heartbeat,
}

/// From the autoscaler to an activator.
#[derive(Clone, Debug, PartialEq)]
pub enum ActivatorOrder {
    /// Everything in these buckets follows, closed by [`ActivatorOrder::SyncEnd`].
    SyncBegin {
        /// The name of the owner: a new link of an owner replaces its former link.
        owner: ReplicaName,
        /// The buckets that are its own.
        ownership: Ownership,
    },
    /// All that the activator needs to know of one revision.
    Assign(Box<Assignment>),
    /// A revision that is gone; what waits for it is refused.
    Remove {
        /// The revision that exists no more.
        revision: RevisionName,
        /// Newer than any assignment it had.
        version: Version,
    },
    /// A retired revision that may be forgotten once nothing of it is held.
    Forget {
        /// It moved to other activators.
        revision: RevisionName,
        /// Newer than any assignment it had.
        version: Version,
    },
    /// What was not named since [`ActivatorOrder::SyncBegin`], of its buckets, is retired.
    SyncEnd,
    /// No route of these buckets names the activator any more: it need not wait for requests of theirs.
    Released {
        /// The buckets of the owner for which that holds.
        buckets: BTreeSet<Bucket>,
    },
    /// Nothing new; sent once a second when nothing else was.
    Heartbeat,
}
