//! What goes in and what comes out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use forecasting::ZoneOffsets;
use scaling::hpa::MetricAnswers;
use scaling::{Decision, DemandDays, RevisionHistory};
use serde::{Deserialize, Serialize};
use settings::hpa::HpaScaling;
use vocabulary::{
    ActivatorWord, Assignment, Bucket, LinkAddress, Ownership, PodName, PodSettings, PodWord, ReplicaName,
    RevisionName, TimeZoneName, Timestamp, Version,
};

use crate::facts::PlatformFact;
use crate::links::LinkId;
use crate::orders::PlatformOrder;

/// A fact of the platform, a word of a link or an answer: the input of [`crate::Orchestrator::handle`].
#[derive(Clone, Debug)]
pub enum ControlEvent {
    /// The platform told a fact.
    Platform(PlatformFact),
    /// A queue-proxy said something. Its hello comes first, and is from the pod that was dialled.
    PodSpoke {
        /// It leads to the pod; one that was closed meanwhile is ignored.
        link: LinkId,
        /// One whole message as its queue-proxy sent it.
        word: PodWord,
    },
    /// An activator said something. Its hello comes first, and is from the activator that was dialled.
    ActivatorSpoke {
        /// It leads to the activator; one that was closed meanwhile is ignored.
        link: LinkId,
        /// One whole message as the activator sent it.
        word: ActivatorWord,
    },
    /// What a round of questions brought ([`ControlCommand::AskMetrics`]).
    MetricsAnswered {
        /// The one that was asked for.
        revision: RevisionName,
        /// As the question numbered it; a late answer of an older round is ignored.
        round: u64,
        /// One answer for each metric that the question named.
        answers: MetricAnswers,
    },
    /// A link went up or down by itself.
    LinkChanged {
        /// One that was ordered by [`ControlCommand::OpenLink`].
        link: LinkId,
        /// What became of the connection since the last news.
        news: LinkNews,
    },
    /// The wall clock was read: at the start, and again now and then, for it may be set.
    WallClockRead {
        /// The time since the beginning of 1970.
        since_epoch: Duration,
    },
    /// A zone of local time was looked up: when the wall clock is read, for each zone that is in use
    /// ([`crate::Orchestrator::zones_in_use`]).
    ZoneRead {
        /// The name of the zone.
        zone: TimeZoneName,
        /// How far it is from UTC, for the past two weeks and after the next change.
        offsets: ZoneOffsets,
    },
    /// The history of a revision was read from the store. It takes the place of what was measured since the
    /// revision appeared, so it comes as soon as the platform has told the revision; before that, and about a
    /// revision of another owner, it is ignored. [`crate::ControlSnapshot::history_records`] is the way back.
    HistoryRestored {
        /// The revision that was measured.
        revision: RevisionName,
        /// The history until it was written down; the time since then stays a gap.
        history: Box<RevisionHistory>,
    },
    /// A person told of demand that was measured elsewhere. About a revision that is not known, or is another
    /// owner's, it is ignored.
    DemandImported {
        /// The revision whose demand it is taken to have been.
        revision: RevisionName,
        /// The demand by the minute, up to now.
        demand: Arc<DemandDays>,
    },
}

/// What became of a link that was not closed by an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// The connection is gone; it is dialled again.
    Lost,
    /// The link stood, and two attempts to dial it again were refused: no program listens there.
    Refused,
    /// No connection could be had for a minute, and why.
    Blocked(String),
    /// The link is silent or broken, or never stood, and two looks in a row beside it got as far as no
    /// accepted connection. Said again while that lasts.
    Unreachable {
        /// Since when the peer should have been heard.
        since: Timestamp,
    },
    /// A look beside the silent or broken link was accepted: the host lives.
    Accepting,
}

/// What must be done. Drain every command before the next event.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlCommand {
    /// Keep a link to a pod or an activator, from now on.
    OpenLink {
        /// By which it is known.
        link: LinkId,
        /// The pod or the activator at its other end.
        peer: Peer,
        /// The peer's address and the credential to present.
        address: LinkAddress,
        /// Which link is dialled first when many are due.
        priority: Priority,
    },
    /// End a link; words of it that come later are ignored.
    CloseLink {
        /// One that was opened before.
        link: LinkId,
    },
    /// Tell an activator, which has said hello, everything.
    Sync {
        /// Its link, which has just said hello.
        activator: LinkId,
        /// The buckets that it is everything of.
        ownership: Ownership,
        /// All revisions of these buckets that the activator must know.
        assignments: Vec<Arc<Assignment>>,
    },
    /// Tell an activator of a revision; only the latest counts.
    Assign {
        /// The link to the activator.
        activator: LinkId,
        /// The whole assignment of the revision, not a difference.
        assignment: Arc<Assignment>,
        /// The longest wait before it is sent.
        urgency: Urgency,
    },
    /// Tell an activator that it need not know a revision any more.
    Unassign {
        /// The link to the activator.
        activator: LinkId,
        /// One that it was assigned before.
        revision: RevisionName,
        /// Newer than any assignment it had.
        version: Version,
        /// What becomes of what it holds.
        how: Unassignment,
    },
    /// Tell a queue-proxy its settings; only the latest count.
    TellPod {
        /// The link to the pod.
        pod: LinkId,
        /// The complete settings, with the version that the pod acknowledges.
        settings: Arc<PodSettings>,
    },
    /// Tell an activator on its way out that no route of these buckets names it any more.
    ReleaseActivator {
        /// The link to the activator.
        activator: LinkId,
        /// Of which no route names it any more.
        buckets: BTreeSet<Bucket>,
    },
    /// Ask the sources of metrics for those of a revision of class hpa that pods do not report, and say
    /// [`ControlEvent::MetricsAnswered`].
    AskMetrics {
        /// A revision of class hpa, by its name.
        revision: RevisionName,
        /// By which the answers are known.
        round: u64,
        /// The document with the metrics.
        settings: Arc<HpaScaling>,
        /// The places of those that are wanted; there may be none, and only the pods matter.
        metrics: Vec<usize>,
    },
    /// Order something from the platform.
    Order(PlatformOrder),
    /// A decision was made: log it, count it, show it.
    Publish {
        /// The one that was decided about.
        revision: RevisionName,
        /// The decision with its inputs and its reasons.
        decision: Arc<Decision>,
    },
}

/// The other end of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Peer {
    /// The queue-proxy of a pod, which listens for links.
    Pod {
        /// The pod that must name itself so in its hello.
        name: PodName,
        /// What it is told first.
        settings: Arc<PodSettings>,
    },
    /// An activator, which must name itself so in its hello.
    Activator {
        /// As the platform calls the replica.
        name: ReplicaName,
    },
}

/// The order in which links are dialled when many are due; the first is dialled first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// An activator: every revision depends on it.
    Activator,
    /// A pod of a revision with waiting requests or no ready pod.
    Awaited,
    /// A pod that no waiting request depends on.
    Rest,
}

/// How soon activators must hear of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// A pod became usable or stopped being so, or the path changed.
    AtOnce,
    /// Anything else: with the next frame for the revision, at most every 20 ms.
    Soon,
}

/// Why an activator need not know a revision any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unassignment {
    /// The revision is gone: what waits for it is refused.
    Removed,
    /// Others have served it for a while: it is dropped once nothing of it is held.
    Forgotten,
}
