//! Every revision that this replica owns: events in, commands out.

use std::sync::Arc;

use serde::Serialize;
use vocabulary::{
    BootId, PodCount, PodId, PodState, PresentCount, ReplicaId, RevisionId, Routing, Sample, Timestamp,
};

use crate::config::ScalingSpec;
use crate::decision::Decision;

/// Who measured something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reporter {
    /// A queue-proxy: what its pod holds. The part that came through an activator is that activator's.
    Pod(PodId),
    /// An activator: what waits there or is in flight through it.
    Activator(ReplicaId),
}

/// A fact, and (in [`Multiscaler::handle`]) when it became known.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A revision appeared, its settings changed, or somebody (we or another) wrote its replica count.
    RevisionChanged {
        /// Which.
        revision: RevisionId,
        /// Its settings, resolved.
        spec: Arc<ScalingSpec>,
        /// The platform's replica count.
        wanted: PodCount,
    },
    /// A revision is gone.
    RevisionRemoved {
        /// Which.
        revision: RevisionId,
    },
    /// The pods of a revision, all of them.
    PodsChanged {
        /// Whose.
        revision: RevisionId,
        /// In any order.
        pods: Vec<PodFact>,
    },
    /// A pod said on its link in which state it is. It overrides the platform's word while the link is up.
    PodStateChanged {
        /// Which pod; must be among the pods of a revision, else ignored.
        pod: PodId,
        /// What it said.
        state: PodState,
    },
    /// A link came up: what the reporter remembers, at most 60 s. Its second numbers are anchored to our axis here.
    ReporterStarted {
        /// Who.
        reporter: Reporter,
        /// Of which of its lives.
        boot: BootId,
        /// The number of its second that runs now.
        current_second: u64,
        /// Its past seconds, oldest first; for an activator, each with the revision.
        history: Vec<(RevisionId, Sample)>,
    },
    /// A reporter's completed second, of one revision. A repeat of the same second replaces.
    LoadReported {
        /// Who.
        reporter: Reporter,
        /// Of which revision.
        revision: RevisionId,
        /// What it measured.
        sample: Sample,
    },
    /// A reporter said, for this second of its own, that whatever it did not mention is zero (a pod's heartbeat, the end of an
    /// activator's frame). It is heard.
    ReporterHeard {
        /// Who.
        reporter: Reporter,
        /// Which second.
        second: u64,
    },
    /// What a reporter holds right now, unasked.
    PresentReported {
        /// Who.
        reporter: Reporter,
        /// Of which revision.
        revision: RevisionId,
        /// How much.
        count: PresentCount,
    },
    /// A link is gone. The reporter's values stay; its silence counts from its last frame.
    LinkLost {
        /// Whose.
        reporter: Reporter,
    },
    /// The activators that exist.
    ActivatorsChanged {
        /// All of them.
        activators: Vec<ReplicaId>,
    },
    /// Whether every activator assigned to the revision (at least one) has acknowledged, in its present boot, an assignment that
    /// routes through it. This is Knative's activator probe, with our own facts.
    PathAcknowledged {
        /// Whose path.
        revision: RevisionId,
        /// Through activators and acknowledged by all.
        acknowledged: bool,
    },
}

/// One pod as the platform and its link describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodFact {
    /// Which.
    pub pod: PodId,
    /// How far its life has come.
    pub phase: PodPhase,
    /// The platform's word on readiness; `None` where it has none (locally).
    pub platform_ready: Option<bool>,
}

/// The phases of spec kpa §7.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PodPhase {
    /// Not running yet.
    Pending,
    /// Runs.
    Running,
    /// On its way out; never counted as ready.
    Terminating,
}

/// What the edge must do. Drain every command before the next event.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write the replica count.
    ScaleTo {
        /// Of which revision.
        revision: RevisionId,
        /// To this.
        count: PodCount,
    },
    /// Put the activators into the request path, or take them out.
    SetRouting {
        /// Of which revision.
        revision: RevisionId,
        /// To this.
        routing: Routing,
    },
    /// How many activators should serve the revision.
    SetActivatorCount {
        /// Which revision.
        revision: RevisionId,
        /// At most this many; all if fewer exist.
        count: PodCount,
    },
    /// From which in-flight-plus-queued count on a pod must report at once; `None` turns that off.
    SetSurgeThreshold {
        /// The pods of this revision.
        revision: RevisionId,
        /// Requests.
        threshold: Option<u32>,
    },
    /// A decision was made: log it, count it, show it.
    Publish {
        /// Of which revision.
        revision: RevisionId,
        /// The decision.
        decision: Arc<Decision>,
    },
}

/// Where a revision stands, for people and metrics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RevisionStatus {
    /// What the platform is asked for.
    pub wanted: PodCount,
    /// What the decider wants before bounds; `None` before the first valid decision.
    pub desired: Option<PodCount>,
    /// Pods that pass their probes.
    pub ready_pods: PodCount,
    /// Pods that run or start but are not ready.
    pub not_ready_pods: PodCount,
    /// Of them, those not running yet.
    pub pending_pods: PodCount,
    /// Pods on their way out.
    pub terminating_pods: PodCount,
    /// Stable or panic.
    pub panicking: bool,
    /// The stable window's average now.
    pub stable_value: Option<f64>,
    /// The panic window's average now.
    pub panic_value: Option<f64>,
    /// The load per pod aimed at.
    pub target_per_pod: f64,
    /// Who is in the path.
    pub routing: Routing,
    /// Requests that wait, over all reporters.
    pub waiting: u32,
    /// Knative's Active condition: `active`, `activating`, `inactive`.
    pub activity: &'static str,
    /// The last sentence of the last decision that changed something.
    pub last_reason: String,
    /// Why the count is not zero, in one sentence, if zero was asked for.
    pub why_not_zero: Option<String>,
}

/// Every revision that this replica owns.
#[derive(Debug, Default)]
pub struct Multiscaler {}

impl Multiscaler {
    /// How many decisions each revision remembers.
    pub const DECISIONS_KEPT: usize = 20;

    /// Takes in a fact.
    pub fn handle(&mut self, _event: Event, _now: Timestamp) {
        todo!()
    }

    /// Does what is due at `now` (ticks, deadlines).
    pub fn advance(&mut self, _now: Timestamp) {
        todo!()
    }

    /// The next order, if any.
    pub fn next_command(&mut self) -> Option<Command> {
        todo!()
    }

    /// When [`Multiscaler::advance`] must be called at the latest; `None` if nothing is planned.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        todo!()
    }

    /// Where a revision stands.
    pub fn status(&self, _revision: RevisionId, _now: Timestamp) -> Option<RevisionStatus> {
        todo!()
    }

    /// The last decisions of a revision that changed something or were valid, oldest first, at most [`Self::DECISIONS_KEPT`].
    pub fn decisions(&self, _revision: RevisionId) -> impl Iterator<Item = &Arc<Decision>> {
        std::iter::empty()
    }
}
