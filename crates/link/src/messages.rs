//! The messages of the autoscaler to queue-proxies and activators. The messages to the autoscaler are types
//! of `vocabulary`; the form of both on the wire is in `wire.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use vocabulary::{Assignment, Bucket, Ownership, PodSettings, ReplicaName, RevisionName, Version};

/// From the autoscaler to a queue-proxy.
#[derive(Clone, Debug, PartialEq)]
pub enum PodOrder {
    /// All settings of the queue-proxy; sent on connect and at every change.
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
        /// The revision, which moved to other activators.
        revision: RevisionName,
        /// Newer than any assignment it had.
        version: Version,
    },
    /// Every revision of the buckets that was not named since [`ActivatorOrder::SyncBegin`] is retired.
    SyncEnd,
    /// No route of these buckets names the activator any more: it need not wait for requests of theirs.
    Released {
        /// The buckets of the owner for which that holds.
        buckets: BTreeSet<Bucket>,
    },
    /// Nothing new; sent once a second when nothing else was.
    Heartbeat,
}
