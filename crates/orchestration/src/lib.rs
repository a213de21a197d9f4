//! Who must know what, and who does?
//!
//! [`Orchestrator`] holds everything that the control loop knows: revisions, pods and activators as a
//! platform states them ([`PlatformFact`]) and as their links describe them ([`ControlEvent`]), what each
//! activator was told and has acknowledged, which buckets are ours, and the multiscaler, which says how many
//! pods there should be. Out come [`ControlCommand`]s: links to open, assignments and settings to send,
//! orders to the platform.
//!
//! No handle of a link or a platform is in here, no clock and no chance, so that a test can walk through a
//! day of restarts, stalls and changes of owner in a millisecond. Left outside on purpose: how a link is
//! dialled, and how fast frames may follow each other.
//!
//! ```text
//!   facts, words ──► intake ──► registry, activators ──► settlement ──► commands
//!                       │                                    ▲
//!                       └──────────► multiscaler ────────────┘
//! ```

mod activators;
mod assignments;
mod deadlines;
mod departures;
mod events;
mod exact_state;
mod fact_intake;
mod facts;
mod host;
mod host_review;
mod links;
mod orchestrator;
mod orchestrator_settings;
mod order_outcome;
mod orders;
mod outbox;
mod ownership_record;
mod pod_lives;
mod pod_record;
mod pod_start;
mod publication;
mod readiness;
mod registry;
mod removals;
mod route;
mod route_record;
mod settlement;
mod sharing;
mod slices;
mod snapshot;
mod state;
mod unsettled;
#[cfg(test)]
mod vectors;
mod view;
mod word_intake;

pub use events::{ControlCommand, ControlEvent, LinkNews, Peer, Priority, Unassignment, Urgency};
pub use exact_state::{ExactState, StateSize};
pub use facts::{
    ActivatorFacts, ActivatorLife, AppOutput, Entrance, OtherAutoscaler, PlatformFact, PodFacts, PodFailure,
    PodKill, RevisionFacts, RouteInForce, Subject,
};
pub use links::LinkId;
pub use orchestrator::Orchestrator;
pub use orchestrator_settings::{ActivatorChoice, OrchestratorSettings, RELEASE_AFTER};
pub use order_outcome::{OrderId, OrderOutcome};
pub use orders::{Errand, Fence, Order, PlatformOrder, PodReach, ReasonCode, ReleaseProof, decided_upon};
pub use pod_lives::{EndedPod, RecentPod};
pub use pod_start::StartSteps;
pub use snapshot::{
    ControlSnapshot, DecidedState, HpaSnapshot, LastKnownValues, LinkTally, RevisionSnapshot,
};
pub use view::{PodSnapshot, RevisionView};

#[cfg(test)]
mod tests;
