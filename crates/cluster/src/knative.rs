//! How does a workload come to us in an installed Knative Serving?
//!
//! There a Service is no object that ebb adopts: Knative's controller makes a `PodAutoscaler` for each
//! revision, and ebb stands in the place of Knative's autoscaler. The `PodAutoscaler` is read, its status is
//! written; the `ServerlessService` is written, its status is read; the count goes the way of all counts.
//! Everything here is a value of its own, which an installation without Knative never makes.
//!
//! ```text
//!   PodAutoscaler ─► [`PodAutoscalerRecord`] ──┐                        ┌─► [`StatusWrite`]
//!                                              ├─► [`KnativeRevisions`] ┤
//!   ServerlessService ─► [`ServerlessRecord`] ─┘     ▲                  └─► [`ServerlessWrite`]
//!                        count, route, ready pods ───┘
//! ```
//!
//! The revision's workload is its Deployment ([`RevisionDeployment`]), and clients follow the slices of its
//! public Service ([`PublicSlice`]).
//!
//! Left out on purpose: which count is right (`scaling`), when activators take over (`orchestration`), and
//! the objects of Knative's controller, which ebb never writes.

mod active;
mod buckets;
mod condition;
mod deployment;
mod facts;
mod fields;
mod handling;
mod lenient;
mod path_proof;
mod pod_autoscaler;
pub mod pods;
mod public_slice;
mod revision_deployment;
mod revision_desk;
mod revisions;
mod serverless;
mod status;
mod status_pace;
mod versioned_writes;

pub use active::{ActiveState, PodNeed};
pub use buckets::{KnativeBuckets, holder_identity};
pub use condition::{Condition, ConditionKind, ConditionStatus, ConditionWords};
pub use deployment::{QueueProxyEnvironment, ReadinessDecider, queue_proxy_environment, readiness_decider};
pub use facts::{KnativeSurroundings, RevisionReading, closing_facts, revision_facts};
pub use handling::HandledRevision;
pub use lenient::{KnownKeys, known_annotations, known_config, late_timeout};
pub use path_proof::{PathEvidence, PathState, path_state};
pub(crate) use pod_autoscaler::AUTOSCALER_API;
pub use pod_autoscaler::{
    AutoscalerClass, PodAutoscalerRecord, Reachability, ScaledWorkload, ServedProtocol, pod_autoscalers,
};
pub use public_slice::{MIRRORED_SLICES, PublicSlice, public_slice};
pub use revision_deployment::{RevisionDeployment, revision_deployment};
pub use revision_desk::{DeskWrite, RevisionDesk, RevisionFigures, RouteOrder};
pub use revisions::{KnativeRevisions, WriteEnd, WrittenObject};
pub use serverless::{
    ServerlessMode, ServerlessRecord, ServerlessSpec, ServerlessWrite, mode_for, proxied_since,
    serverless_services,
};
pub use settings::BucketCount;
pub use status::{AutoscalerStatus, StatusWrite};
pub use status_pace::{COUNTS_EVERY, StatusPace};
