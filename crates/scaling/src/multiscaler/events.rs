//! What goes into a multiscaler, and what comes out.

use std::sync::Arc;

use serde::Serialize;
use settings::ScalingSpec;
use settings::hpa::HpaScaling;
use vocabulary::{
    AdoptedConnections, BootId, PodCount, PodId, PresentCount, ReplicaId, Reporter, ResourceUsage,
    RevisionId, Routing, Sample,
};

use crate::decision::Decision;
use crate::hpa::{HpaWarning, MetricAnswers};

/// Where a revision comes from that appears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RevisionOrigin {
    /// It has just been made, and has never been ready: it starts with its initial scale, and has what it
    /// needs once that is reached.
    New,
    /// It was there before we were (a restart, another owner): what it has is kept until its windows are full
    /// again, since that may be what it needs.
    #[default]
    Found,
}

/// A fact, and (in [`super::Multiscaler::handle`]) when it became known.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A revision appeared, its settings changed, or somebody (we or another) wrote its replica count.
    RevisionChanged {
        /// New, or with other settings.
        revision: RevisionId,
        /// Its settings, resolved.
        spec: Arc<ScalingSpec>,
        /// The platform's replica count.
        wanted: PodCount,
        /// Looked at when the revision appears.
        origin: RevisionOrigin,
    },
    /// A revision is gone.
    RevisionRemoved {
        /// It exists no more.
        revision: RevisionId,
    },
    /// The pods of a revision, all of them.
    PodsChanged {
        /// All pods that are told are its own.
        revision: RevisionId,
        /// In any order.
        pods: Vec<PodFact>,
    },
    /// One pod's readiness or phase changed; ignored unless it is among the pods of a revision.
    PodChanged {
        /// The pod as it now is.
        pod: PodFact,
    },
    /// A link came up: what the reporter remembers, at most 60 s. Its second numbers are anchored to our axis
    /// here.
    ReporterStarted {
        /// A pod, or an activator.
        reporter: Reporter,
        /// Seconds of another life are other seconds.
        boot: BootId,
        /// The number of its second that runs now.
        current_second: u64,
        /// Its past seconds, oldest first; for an activator, each with the revision.
        history: Vec<(RevisionId, Sample)>,
    },
    /// A reporter's completed second, of one revision. A repeat of the same second replaces.
    LoadReported {
        /// The pod or activator that measured.
        reporter: Reporter,
        /// The one that the load is of; an activator reports several.
        revision: RevisionId,
        /// What it measured.
        sample: Sample,
    },
    /// What the app of a pod and everything below it used.
    UsageReported {
        /// The pod whose app used it.
        pod: PodId,
        /// The mean of a window, which it names.
        usage: ResourceUsage,
    },
    /// What a round of questions brought ([`Command::AskMetrics`]).
    MetricsAnswered {
        /// The one that was asked for.
        revision: RevisionId,
        /// As the question numbered it; a late answer of an older round is ignored.
        round: u64,
        /// What was answered.
        answers: MetricAnswers,
    },
    /// How the last order of a count ended; said where an order failed, and when it was carried out after
    /// all.
    ScaleEnded {
        /// The one whose count was to be written.
        revision: RevisionId,
        /// Written, or not.
        ending: ScaleEnding,
    },
    /// A reporter said, for this second of its own, that it holds nothing of whatever it did not mention (a
    /// pod's heartbeat, the end of an activator's frame). It is heard.
    ReporterHeard {
        /// A pod or an activator that has nothing to report.
        reporter: Reporter,
        /// Which second.
        second: u64,
    },
    /// What a reporter holds right now, unasked.
    PresentReported {
        /// The pod or activator that holds them.
        reporter: Reporter,
        /// The one whose requests they are.
        revision: RevisionId,
        /// Held at this instant.
        count: PresentCount,
    },
    /// What is left of a pod's connections from before its Service was adopted.
    AdoptedConnectionsReported {
        /// The pod whose app they lead to.
        pod: PodId,
        /// As its queue-proxy sees them.
        connections: AdoptedConnections,
    },
    /// A link is gone. The reporter's values stay; its silence counts from its last frame.
    LinkLost {
        /// The pod or activator that is heard no more.
        reporter: Reporter,
    },
    /// The activators that exist.
    ActivatorsChanged {
        /// All of them.
        activators: Vec<ReplicaId>,
    },
    /// Whether every activator assigned to the revision (at least one) has acknowledged, in its present boot,
    /// an assignment that routes through it. This is Knative's activator probe, with our own facts.
    ///
    /// What was said before a [`Command::SetRouting`] that changed a known route no longer counts: say it
    /// again when it holds again.
    PathAcknowledged {
        /// Whose path.
        revision: RevisionId,
        /// Through activators and acknowledged by all.
        acknowledged: bool,
    },
    /// The route that an earlier owner of the revision left in force, where that can be known. Ignored once
    /// we ordered one.
    RoutingObserved {
        /// The one that is served so.
        revision: RevisionId,
        /// What is in force.
        routing: Routing,
    },
}

/// How an order of a count ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleEnding {
    /// The count was not written, or not yet.
    Failed,
    /// It was, after it had failed.
    WrittenAfterAll,
}

/// One pod. Whether it is ready is for whoever hears both the platform and the pod's link to say: here it is
/// a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodFact {
    /// By it what the pod reports is matched.
    pub pod: PodId,
    /// How far its life has come.
    pub phase: PodPhase,
    /// Whether it takes requests.
    pub is_ready: bool,
    /// Whether clients' connections can reach it. A ready pod that they cannot reach is no room for a burst.
    pub is_reachable: bool,
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
        /// The one whose count is written.
        revision: RevisionId,
        /// To this.
        count: PodCount,
        /// The decision that this follows from.
        because: Arc<Decision>,
    },
    /// Put the activators into the request path, or take them out.
    SetRouting {
        /// The one whose clients are led.
        revision: RevisionId,
        /// To this.
        routing: Routing,
    },
    /// How many activators should serve the revision.
    SetActivatorCount {
        /// The one that they serve.
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
    /// Ask for those metrics of a document that pods do not report themselves
    /// ([`HpaScaling::is_asked_for`]), and say [`Event::MetricsAnswered`].
    AskMetrics {
        /// One of class hpa.
        revision: RevisionId,
        /// By which the answers are known.
        round: u64,
        /// What the revision goes by.
        settings: Arc<HpaScaling>,
        /// The places of the metrics that are wanted; there may be none, and only the pods matter.
        metrics: Vec<usize>,
    },
    /// A sync of class hpa complains of something that the one before did not: tell people.
    Warn {
        /// The one whose metrics it is about.
        revision: RevisionId,
        /// By it people tell one complaint from another.
        warning: HpaWarning,
        /// Why, in sentences.
        text: String,
    },
    /// Connections from before an adoption keep the count from falling, for the first time since there were
    /// none: tell people.
    ReportConnectionHold {
        /// The one whose count stays.
        revision: RevisionId,
        /// How many there are, since when and from where, and how the wait ends.
        text: String,
    },
    /// A decision was made: log it, count it, show it.
    Publish {
        /// The one that was decided about.
        revision: RevisionId,
        /// The decision.
        decision: Arc<Decision>,
    },
}
