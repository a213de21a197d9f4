//! What a platform is told to do.

use std::fmt;
use std::sync::Arc;

use scaling::Decision;
use scaling::hpa::HpaWarning;
use vocabulary::{Bucket, Epoch, PodCount, PodName, PodState, ReplicaName, RevisionName, Routing};

use crate::facts::{Entrance, Subject};
use crate::order_outcome::OrderId;

/// By what right an order is given: the platform refuses one whose bucket has another owner by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The bucket of the revision that the order is about.
    pub bucket: Bucket,
    /// Since when it is the orderer's.
    pub epoch: Epoch,
}

/// An order to the platform. The latest about one subject wins; each ends in exactly one final outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct PlatformOrder {
    /// By which its outcome is told.
    pub id: OrderId,
    /// The ownership under which the order was given.
    pub fence: Fence,
    /// What is to be done.
    pub what: Order,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Write the replica count of a revision's workload.
    ScaleTo {
        /// The one whose count is written.
        revision: RevisionName,
        /// The count that was decided upon.
        from: PodCount,
        /// The replica count that is to be written.
        to: PodCount,
        /// Which pods to end first if some must end (least loaded first); the platform may take it as a hint.
        end_first: Vec<PodName>,
        /// The decision that this follows from.
        because: Arc<Decision>,
    },
    /// Write whether pods or activators take a revision's requests.
    Route {
        /// The one whose clients are led.
        revision: RevisionName,
        /// Whether pods or activators take the requests from then on.
        routing: Routing,
        /// The activators: those in the path, or those that stand in while no pod is ready. In the order of
        /// their names.
        activators: Vec<ReplicaName>,
    },
    /// A leaving pod may be ended.
    ReleasePod {
        /// No activator sends to it any more.
        pod: PodName,
        /// Whether the activators acknowledged, or the time for that ran out.
        proof: ReleaseProof,
    },
    /// The queue-proxy of a leaving pod has drained and ended: what is there of the pod is its app, which was
    /// told to end.
    NoteDrained {
        /// The revision that the pod belongs to.
        revision: RevisionName,
        /// The one whose queue-proxy has ended.
        pod: PodName,
    },
    /// No activator listens on an entrance any more: it may be given to another revision.
    ReleaseEntrance {
        /// The revision that had the entrance until now.
        revision: RevisionName,
        /// No activator listens there any more.
        entrance: Entrance,
    },
    /// What a pod said on its link. A platform without probes of its own goes by this in rollouts and
    /// back-offs.
    NotePodState {
        /// The one that said its state, or was heard to have none.
        pod: PodName,
        /// The pod's state by its own word.
        state: PodState,
        /// Why it is not ready, for people; empty when there is nothing to say.
        detail: String,
    },
    /// Whether clients' connections can reach a pod, as far as its link tells. The platform leads none to one
    /// that they cannot reach.
    NotePodReach {
        /// The one whose host was lost, or is back.
        pod: PodName,
        /// Whether it can be reached.
        reach: PodReach,
    },
    /// Tell people by an Event or a line of log.
    Tell {
        /// The object that the notice is about.
        about: Subject,
        /// Which of the things worth telling.
        reason: ReasonCode,
        /// The notice, as one whole sentence.
        text: String,
    },
}

/// What an order is about: of two about the same, the later one replaces the other. States of pods come
/// first, so that what follows goes by them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errand {
    /// The state of a pod.
    State(PodName),
    /// Whether a pod can be reached.
    Reach(PodName),
    /// The route of a revision's requests.
    Route(RevisionName),
    /// The replica count of a revision.
    Scale(RevisionName),
    /// The end of a pod.
    Release(PodName),
    /// What is left of a pod.
    Drained(PodName),
    /// Where a revision is asked no more.
    Entrance(RevisionName, Entrance),
    /// What people are told about something.
    Tell(Subject),
}

impl Order {
    /// The errand of this order; of two orders with the same errand the later one replaces the earlier.
    pub fn errand(&self) -> Errand {
        match self {
            Self::ScaleTo { revision, .. } => Errand::Scale(revision.clone()),
            Self::Route { revision, .. } => Errand::Route(revision.clone()),
            Self::ReleasePod { pod, .. } => Errand::Release(pod.clone()),
            Self::NoteDrained { pod, .. } => Errand::Drained(pod.clone()),
            Self::ReleaseEntrance { revision, entrance } => {
                Errand::Entrance(revision.clone(), entrance.clone())
            }
            Self::NotePodState { pod, .. } => Errand::State(pod.clone()),
            Self::NotePodReach { pod, .. } => Errand::Reach(pod.clone()),
            Self::Tell { about, .. } => Errand::Tell(about.clone()),
        }
    }

    /// Takes the place of `replaced`, an order of the same errand that was never carried out. A count that
    /// was decided upon the one that `replaced` would have written is written over the count that
    /// `replaced` would have found.
    pub fn supersede(&mut self, replaced: &Self) {
        if let (Self::ScaleTo { from, .. }, Self::ScaleTo { from: first, to: between, .. }) = (self, replaced)
        {
            *from = decided_upon(*from, *first, *between);
        }
    }
}

/// Over which count one is written that was decided upon `from`, if what was to lead from `first` to
/// `between` was never done. Another client may have written since; then `from` says what.
pub fn decided_upon(from: PodCount, first: PodCount, between: PodCount) -> PodCount {
    if from == between { first } else { from }
}

/// Whether clients' connections can reach a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodReach {
    /// The pod can be reached, as far as the autoscaler can tell.
    #[default]
    Reachable,
    /// Its host takes no connection, while others do.
    Unreachable,
}

/// Why a pod may be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseProof {
    /// Every activator that may send to it has acknowledged that it leaves.
    Acknowledged,
    /// An activator might still send to it, but the time for its acknowledgement is over.
    OutOfTime,
}

/// What is worth telling people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonCode {
    /// No link to a pod could be had for a minute.
    LinkBlocked,
    /// A pod was released although not every activator had acknowledged.
    ReleasedUnacknowledged,
    /// More than half of all linked endpoints look dead at once.
    CutOff,
    /// Connections from before an adoption keep a count from falling.
    AdoptedConnections,
    /// The kernel does not show a pod's connections.
    ConnectionsUnreadable,
    /// A sync of class hpa complains, in the words of Kubernetes' own autoscaler.
    Autoscaler(HpaWarning),
}

impl ReasonCode {
    /// The reason in one word, as Events and programs read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::LinkBlocked => "LinkBlocked",
            Self::ReleasedUnacknowledged => "ReleasedUnacknowledged",
            Self::CutOff => "AutoscalerCutOff",
            Self::AdoptedConnections => "AdoptedConnections",
            Self::ConnectionsUnreadable => "ConnectionsUnreadable",
            Self::Autoscaler(warning) => warning.word(),
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}
