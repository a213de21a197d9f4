//! Which writes does the API server get, and how did the request of a write end?

use std::time::Duration;

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{Fence, OrderOutcome};
use vocabulary::RevisionName;

use crate::count_writer::CountWrite;
use crate::deletion_hint::DeletionHint;
use crate::event_book::EventWrite;
use crate::index::Takeover;
use crate::knative::{DeskWrite, WrittenObject};
use crate::lease::{LeaseRecord, LeaseWrite};
use crate::lease_names::AutoscalerLease;
use crate::resources::workload::{ObjectVersion, ScaleSubject};
use crate::slices::SliceChange;

/// One write: an object of the API server, and what is to become of it. Each is answered once, by a
/// [`WriteAnswer`] of the same name.
#[derive(Clone, Debug)]
pub enum ClusterWrite {
    /// A workload's count, by a patch of its `scale` subresource; before it the hints for its pods.
    Count {
        /// The count, and the count over which it is written.
        write: CountWrite,
        /// The object that has the count.
        subject: ScaleSubject,
        /// Written first, so that those pods end that disturb least.
        hints: Vec<DeletionHint>,
    },
    /// Slices of the Services that serve a revision, one after the other.
    Slices {
        /// The right by which the slices are written.
        fence: Fence,
        /// The revision that the Services serve.
        revision: RevisionName,
        /// In the order in which they are to be done.
        changes: Vec<SliceChange>,
    },
    /// The slices and Endpoints that others left on a Service that serves a revision.
    Takeover {
        /// The right by which the Service is taken over.
        fence: Fence,
        /// The revision that the Service serves.
        revision: RevisionName,
        /// The objects that are there, and the objects that are to be there.
        takeover: Takeover,
    },
    /// One of the two objects of a revision of Knative's.
    Revision {
        /// The right by which the object is written.
        fence: Fence,
        /// The revision that the object is of.
        revision: RevisionName,
        /// The `ServerlessService`, or the status of the `PodAutoscaler`.
        write: DeskWrite,
    },
    /// A Lease, by the name of its object. It needs no right: the version that it is written over is the
    /// proof.
    Lease(AutoscalerLease, String, LeaseWrite),
    /// An Event, which is not tried again.
    Event(EventWrite),
}

/// How the request of a write ended.
#[derive(Debug)]
pub enum WriteAnswer {
    /// With what became of the count.
    Count(RevisionName, Result<ScaleAnswer, Failure>),
    /// With what is there now of each slice that was written, and `None` for one that is gone.
    Slices(RevisionName, Vec<(SliceChange, Option<EndpointSlice>)>, Result<(), Failure>),
    /// With what the Endpoints object says now, if there is one.
    Takeover(RevisionName, Takeover, Result<Option<Vec<EndpointSubset>>, Failure>),
    /// What became of the object; the watch shows what it is now.
    Revision(RevisionName, WrittenObject, Result<(), Failure>),
    /// With the Lease as it stands now.
    Lease(AutoscalerLease, Result<LeaseRecord, Failure>),
    /// Whether the Event was written or not.
    Event(Result<(), Failure>),
}

/// How the write of a count ended.
#[derive(Debug)]
pub struct ScaleAnswer {
    /// What the autoscaler hears of its order.
    pub outcome: OrderOutcome,
    /// The version of the object from which on the count is there, if it is.
    pub version: Option<ObjectVersion>,
}

impl From<OrderOutcome> for ScaleAnswer {
    fn from(outcome: OrderOutcome) -> Self {
        Self { outcome, version: None }
    }
}

/// Why a request did nothing, as far as we know.
#[derive(Debug)]
pub enum Failure {
    /// Another autoscaler owns the bucket by now.
    NotOwner,
    /// The server knows no such object; if the object is gone, the watch says so too.
    Gone(String),
    /// The object was written meanwhile, by us or by another writer; the watch brings what it is now.
    Conflict,
    /// The server does not take the object as it is, and says what is wrong with it.
    Refused(String),
    /// The API server refuses for want of a right, and names it.
    Forbidden(String),
    /// The request may succeed later; the server may have said when.
    Passing {
        /// What the server said, or how the request ended.
        why: String,
        /// How long the server asked to wait.
        after: Option<Duration>,
    },
}

impl Failure {
    /// How long the server asked to wait before the next attempt; zero if it did not.
    pub fn wait(&self) -> Duration {
        match self {
            Self::Passing { after, .. } => after.unwrap_or_default(),
            Self::NotOwner | Self::Gone(_) | Self::Conflict | Self::Refused(_) | Self::Forbidden(_) => {
                Duration::ZERO
            }
        }
    }

    /// In the server's own words, where it has some.
    pub fn words(&self) -> &str {
        match self {
            Self::Gone(words)
            | Self::Refused(words)
            | Self::Forbidden(words)
            | Self::Passing { why: words, .. } => words,
            Self::NotOwner => "another autoscaler owns the bucket",
            Self::Conflict => "another client wrote the object at the same time",
        }
    }

    /// The outcome of an order that failed so, as the autoscaler hears of it. What is refused today (by a
    /// webhook, say) may be taken tomorrow, and the autoscaler gives no new order while the wanted count
    /// stays the same.
    pub fn outcome(&self) -> OrderOutcome {
        match self {
            Self::NotOwner => OrderOutcome::NotOwner,
            Self::Forbidden(why) => {
                OrderOutcome::Retrying(format!("the API server forbids the write: {why}"))
            }
            Self::Gone(_) | Self::Refused(_) | Self::Conflict | Self::Passing { .. } => {
                OrderOutcome::Retrying(self.words().to_owned())
            }
        }
    }
}
