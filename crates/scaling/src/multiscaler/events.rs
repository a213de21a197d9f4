//! The events that go into a multiscaler, and the commands that come out.

use std::sync::Arc;
use std::time::Duration;

use forecasting::ZoneOffsets;
use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use settings::hpa::HpaScaling;
use vocabulary::{
    AdoptedConnections, BootId, PodCount, PodId, PresentCount, ReplicaId, Reporter, ResourceUsage,
    RevisionId, Routing, Sample, TimeZoneName,
};

use crate::decision::Decision;
use crate::history::{DemandDays, RevisionHistory};
use crate::hpa::{HpaWarning, MetricAnswers};

/// The origin of a revision that appears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RevisionOrigin {
    /// The revision was just made, and has never been ready: it starts with its initial scale, and needs no
    /// more until that is reached.
    New,
    /// The revision existed before this process or this owner: its count is kept until its windows are full
    /// again, since it may need all of its pods.
    #[default]
    Found,
}

/// A fact, and (in [`super::Multiscaler::handle`]) when it became known.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A revision appeared, its settings changed, or its replica count was written, by us or by another
    /// client.
    RevisionChanged {
        /// The revision that is new, or whose settings or count changed.
        revision: RevisionId,
        /// The settings of annotations, ConfigMap and document, resolved.
        spec: Arc<ScalingSpec>,
        /// The replica count that the platform was last asked for, by us or by another.
        wanted: PodCount,
        /// Where the revision comes from; read only when it appears.
        origin: RevisionOrigin,
    },
    /// A revision was deleted, or is no longer owned by this replica.
    RevisionRemoved {
        /// The revision to forget, with its windows and decisions.
        revision: RevisionId,
    },
    /// The pods of a revision, all of them.
    PodsChanged {
        /// The revision whose pods are given.
        revision: RevisionId,
        /// Every pod of the revision, in any order.
        pods: Vec<PodFact>,
    },
    /// One pod's readiness or phase changed; ignored unless it is among the pods of a revision.
    PodChanged {
        /// The pod as it now is.
        pod: PodFact,
    },
    /// A link came up, with the seconds that the reporter remembers, at most 60. Its second numbers are
    /// anchored to our axis here.
    ReporterStarted {
        /// The pod or activator whose link came up.
        reporter: Reporter,
        /// The process that reports: seconds of another boot are other seconds.
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
        /// The revision of the load; an activator reports several.
        revision: RevisionId,
        /// The reporter's number of the second, and the load in it.
        sample: Sample,
    },
    /// The CPU and memory used by the app of a pod and all processes below it.
    UsageReported {
        /// The pod whose app used it.
        pod: PodId,
        /// The mean use over a window, whose length is part of it.
        usage: ResourceUsage,
    },
    /// The answers to a round of questions ([`Command::AskMetrics`]).
    MetricsAnswered {
        /// The revision of class hpa whose metrics were asked for.
        revision: RevisionId,
        /// The number of the round, from the question; a late answer of an older round is ignored.
        round: u64,
        /// The values of the metrics, and the pods where the platform was asked for them.
        answers: MetricAnswers,
    },
    /// The end of the last order of a count: the order failed, or was carried out after it had failed.
    ScaleEnded {
        /// The revision whose count was to be written.
        revision: RevisionId,
        /// Whether the count was written after all.
        ending: ScaleEnding,
    },
    /// For this second of its own, a reporter holds nothing of any revision that it did not mention (a pod's
    /// heartbeat, the end of an activator's frame). The reporter counts as heard.
    ReporterHeard {
        /// A pod or an activator that has nothing to report.
        reporter: Reporter,
        /// The reporter's own number of the second.
        second: u64,
    },
    /// The requests that a reporter holds at this instant, reported unasked.
    PresentReported {
        /// The pod or activator that holds them.
        reporter: Reporter,
        /// The revision of the requests.
        revision: RevisionId,
        /// The requests in flight and waiting at this instant.
        count: PresentCount,
    },
    /// The connections of a pod that remain from before its Service was adopted.
    AdoptedConnectionsReported {
        /// The pod whose app they lead to.
        pod: PodId,
        /// The connections, as the pod's queue-proxy sees them.
        connections: AdoptedConnections,
    },
    /// A link is gone. The reporter's values stay; its silence counts from its last frame.
    LinkLost {
        /// The pod or activator that is heard no more.
        reporter: Reporter,
    },
    /// An activator has come or gone.
    ActivatorsChanged {
        /// Every activator that exists now, in any order.
        activators: Vec<ReplicaId>,
    },
    /// Whether every activator assigned to the revision (at least one) has acknowledged, in its present boot,
    /// an assignment that routes through it. This is Knative's activator probe, with our own facts.
    ///
    /// An acknowledgement from before a [`Command::SetRouting`] that changed a known route no longer counts:
    /// the event must come again when all have acknowledged the new route.
    PathAcknowledged {
        /// The revision of the assignment.
        revision: RevisionId,
        /// Whether requests go through activators, all of which have acknowledged.
        acknowledged: bool,
    },
    /// The route that an earlier owner of the revision left in force, where that can be known. Ignored once
    /// we ordered one.
    RoutingObserved {
        /// The revision that is served by the route.
        revision: RevisionId,
        /// The route that clients follow at present.
        routing: Routing,
    },
    /// The wall clock was read. The seconds of a history are its seconds.
    WallClockRead {
        /// The time since the beginning of 1970, now.
        since_epoch: Duration,
    },
    /// The edge looked up how far a zone of local time is from UTC: at first, and again before that changes.
    ZoneRead {
        /// The name of the zone.
        zone: TimeZoneName,
        /// The offsets of the past two weeks and of the next change.
        offsets: ZoneOffsets,
    },
    /// The history of a revision was read from the store. It takes the place of the one that has begun since.
    HistoryRestored {
        /// The revision that was measured.
        revision: RevisionId,
        /// The history until it was written down; the time since then stays a gap.
        history: Box<RevisionHistory>,
    },
    /// A person told of demand that was measured elsewhere. It adds to what is known, and is ignored where no
    /// forecast reads demand of this metric.
    DemandImported {
        /// The revision whose demand it was, or is taken to have been.
        revision: RevisionId,
        /// The demand by the minute, up to now.
        demand: Arc<DemandDays>,
    },
}

/// How an order of a count ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleEnding {
    /// The count was not written, or not yet.
    Failed,
    /// The count was written, after its order had failed.
    WrittenAfterAll,
}

/// One pod. The caller derives its readiness from the platform and the pod's link: here it is a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFact {
    /// The id by which reports are matched to the pod.
    pub pod: PodId,
    /// How far its life has come.
    pub phase: PodPhase,
    /// Whether the pod takes requests, by its probes and its link.
    pub is_ready: bool,
    /// Whether clients' connections can reach it. A ready pod that they cannot reach is no room for a burst.
    pub is_reachable: bool,
    /// Whether the pod runs an older template than the revision's present one.
    pub is_outdated: bool,
}

/// The phases of spec kpa §7.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PodPhase {
    /// Not all containers of the pod run yet.
    Pending,
    /// The pod runs, and was not told to end.
    Running,
    /// The pod was told to end; it is never counted as ready.
    Terminating,
}

/// An order to the edge. Drain every command before the next event.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write this replica count to the platform.
    ScaleTo {
        /// The revision whose count is written.
        revision: RevisionId,
        /// The count that this was decided upon: that of the order before, or one that another client wrote
        /// since.
        from: PodCount,
        /// The count to write, after bounds and scale-to-zero rules.
        count: PodCount,
        /// The decision that this follows from.
        because: Arc<Decision>,
    },
    /// Put the activators into the request path, or take them out.
    SetRouting {
        /// The revision whose clients follow the route.
        revision: RevisionId,
        /// The route that clients are to follow.
        routing: Routing,
    },
    /// How many activators should serve the revision.
    SetActivatorCount {
        /// The revision that the activators serve.
        revision: RevisionId,
        /// The number of activators wanted; all of them if fewer exist.
        count: PodCount,
    },
    /// From which in-flight-plus-queued count on a pod must report at once; `None` turns that off.
    SetSurgeThreshold {
        /// The revision whose pods get the threshold.
        revision: RevisionId,
        /// The number of requests in flight and queued in one pod.
        threshold: Option<u32>,
    },
    /// Ask for those metrics of a document that pods do not report themselves
    /// ([`HpaScaling::is_asked_for`]), and say [`Event::MetricsAnswered`].
    AskMetrics {
        /// The revision of class hpa whose sync has begun.
        revision: RevisionId,
        /// The number of the round, which the answers have to repeat.
        round: u64,
        /// The document, and where the values of its metrics come from.
        settings: Arc<HpaScaling>,
        /// The places of the metrics that are wanted; there may be none, and only the pods matter.
        metrics: Vec<usize>,
    },
    /// A sync of class hpa has a warning that the sync before did not have: issue an Event.
    Warn {
        /// The revision whose metrics the warning is about.
        revision: RevisionId,
        /// The kind of the warning, which becomes the reason of an Event.
        warning: HpaWarning,
        /// The reasons as sentences, joined by semicolons.
        text: String,
    },
    /// Connections from before an adoption begin to keep the count from falling: issue an Event.
    ReportConnectionHold {
        /// The revision whose count stays.
        revision: RevisionId,
        /// One sentence: how many connections there are, their age and peers, and how the wait ends.
        text: String,
    },
    /// A decision was made: log it, count it, show it.
    Publish {
        /// The revision that was decided about.
        revision: RevisionId,
        /// The decision, with all its reasons.
        decision: Arc<Decision>,
    },
}
