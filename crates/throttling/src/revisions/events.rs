//! What an activator hears and what its value has done about it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use vocabulary::{Assignment, BootId, Bucket, HeadSizeLimit, Ownership, ReplicaName, RevisionName, Version};

use crate::claims::LinkNumber;
use crate::revision::{RequestEvent, RequestRefusal};
use crate::throttler::Dispatch;
use crate::ticket::Ticket;

/// The name of an activator and the number of its life, which its hello says.
#[derive(Clone, Debug)]
pub struct ActivatorIdentity {
    /// As the platform calls the replica.
    pub name: ReplicaName,
    /// Another one after each start.
    pub boot: BootId,
}

/// How many requests may wait at one activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Requests that may wait for one revision.
    pub per_revision: u32,
    /// Requests that may wait in all.
    pub in_all: u32,
}

/// One piece of work that an assignment asks for before it may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpkeepId(pub(crate) u64);

/// A fact that concerns an activator.
#[derive(Clone, Debug)]
pub enum ActivatorEvent {
    /// An autoscaler has opened a link.
    LinkOpened {
        /// A number that no link had before.
        link: LinkNumber,
    },
    /// A link has ended; [`ActivatorCommand::CloseLink`] needs no such answer.
    LinkClosed {
        /// The link that has ended.
        link: LinkNumber,
    },
    /// An owner has begun to name all revisions of its buckets.
    SyncBegan {
        /// The link on which it speaks from now on.
        link: LinkNumber,
        /// The name of the owner, whose former link this one replaces.
        owner: ReplicaName,
        /// The buckets that are its own.
        ownership: Ownership,
    },
    /// An owner has said all that is to be known of a revision.
    Assigned {
        /// The link on which it was said.
        link: LinkNumber,
        /// The whole assignment of the revision.
        assignment: Arc<Assignment>,
    },
    /// An owner has said that a revision exists no more.
    Removed {
        /// The link on which it was said.
        link: LinkNumber,
        /// The revision that exists no more.
        revision: RevisionName,
        /// Newer than any assignment that it had.
        version: Version,
    },
    /// An owner has said that a revision may be forgotten once it is empty.
    ForgettingAllowed {
        /// The link on which it was said.
        link: LinkNumber,
        /// The revision that others serve.
        revision: RevisionName,
        /// Newer than any assignment that it had.
        version: Version,
    },
    /// An owner has named all revisions of its buckets.
    SyncEnded {
        /// The link on which it was said.
        link: LinkNumber,
    },
    /// An owner has said that no route of these buckets names the activator any more.
    Released {
        /// The link on which it was said.
        link: LinkNumber,
        /// Some of the owner's buckets.
        buckets: BTreeSet<Bucket>,
    },
    /// What [`ActivatorCommand::CarryOut`] asked for is done.
    UpkeepEnded {
        /// The work that is done.
        upkeep: UpkeepId,
    },
    /// A revision that is kept behind a lock has something to say, or its deadline has come.
    RevisionIsDue {
        /// The revision that has said so.
        revision: RevisionName,
    },
    /// Something happened to a request; of revisions that are kept behind a lock the value does not hear it.
    Request {
        /// The revision of the request.
        revision: RevisionName,
        /// What happened to the request.
        event: RequestEvent,
    },
    /// The activator is on its way out: it serves on, and its owners hear that it drains.
    LeavingBegan,
    /// The deadline of the activator has come.
    TimePassed,
}

/// What has to be done for an activator. Drain all commands before the next event.
#[derive(Clone, Debug, PartialEq)]
pub enum ActivatorCommand {
    /// End a link, which is known no more.
    CloseLink {
        /// A link that was opened before.
        link: LinkNumber,
    },
    /// Words are ready for a link: ask for them when it can be written to (`next_words`), until there are
    /// none. Said once until then.
    Write {
        /// The link with something to say.
        link: LinkNumber,
    },
    /// Requests for a host are for this revision from now on.
    LeadHost {
        /// The host in lower case and without port.
        host: String,
        /// The revision that is known under it.
        revision: RevisionName,
    },
    /// No revision is known under a host any more.
    ReleaseHost {
        /// One that led to a revision.
        host: String,
    },
    /// Heads of requests whose revision is not known yet may be as large as this.
    LimitHeads {
        /// The greatest limit of all revisions.
        limit: HeadSizeLimit,
    },
    /// The revisions of every bucket were named once: a host that is not known is unknown for certain.
    NoteSynced,
    /// The owners of all buckets have said that no route names the activator.
    NoteReleased,
    /// An order was passed over because a newer assignment is in force, or a later owner's claim.
    CountStaleOrder,
    /// Close idle connections to these addresses, then make the open ports of a revision those that are
    /// named; say [`ActivatorEvent::UpkeepEnded`] when both is done.
    CarryOut {
        /// The number of this work.
        upkeep: UpkeepId,
        /// The revision that it is done for.
        revision: RevisionName,
        /// Addresses of pods that are left.
        closed: Vec<SocketAddr>,
        /// All ports of the revision; none if it is known no more.
        ports: BTreeSet<u16>,
    },
    /// Send a request to its pod.
    Grant {
        /// The revision of the request.
        revision: RevisionName,
        /// The request and the pod.
        dispatch: Dispatch,
    },
    /// Answer a request with a refusal.
    Refuse {
        /// The revision of the request.
        revision: RevisionName,
        /// The ticket of the request.
        ticket: Ticket,
        /// Why it is not served.
        refusal: RequestRefusal,
    },
}
