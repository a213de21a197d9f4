//! The activator of the world: the value that the program runs, with the requests that wait in it.

use std::collections::BTreeMap;

use throttling::{ActivatorIdentity, ActivatorRevisions, DirectPick, QueueLimits, Ticket};
use vocabulary::{BootId, ReplicaName, RevisionName, Routing, Timestamp};

use crate::random::RandomStream;
use crate::tally::WaitCause;
use crate::world_event::{ServiceNumber, SimulatedRequest};

/// The name by which the platform and the links call it.
pub(crate) const ACTIVATOR: &str = "activator";
/// The limits of the program, as documented.
const LIMITS: QueueLimits = QueueLimits { per_revision: 10_000, in_all: 100_000 };

/// An activator with its waiting requests.
#[derive(Debug)]
pub(crate) struct WorldActivator {
    pub(crate) end: ActivatorRevisions,
    pub(crate) waiting: BTreeMap<(ServiceNumber, Ticket), SimulatedRequest>,
    /// When the next look at the deadline is planned.
    planned: Timestamp,
}

impl WorldActivator {
    pub(crate) fn new(seed: u64, now: Timestamp) -> Self {
        let identity = ActivatorIdentity { name: ReplicaName::new(ACTIVATOR), boot: BootId(1) };
        let seed = RandomStream::of(seed, ACTIVATOR, "choices").seed();
        Self {
            end: ActivatorRevisions::new(identity, LIMITS, (), seed, now),
            waiting: BTreeMap::new(),
            planned: Timestamp::MAX,
        }
    }

    /// A ready pod for a request past the queue, where the assignment says that requests go to the pods.
    pub(crate) fn pick_direct(&mut self, revision: &RevisionName, now: Timestamp) -> Option<DirectPick> {
        let routing = self.end.cell(revision)?.assignment().routing;
        if routing == Routing::ThroughActivator {
            return None;
        }
        self.end.pick_direct(revision, now)
    }

    /// Why requests of a revision wait now.
    pub(crate) fn wait_cause(&self, revision: &RevisionName) -> WaitCause {
        match self.end.cell(revision) {
            Some(known) if known.has_ready_pod() => WaitCause::NoFreeSlot,
            Some(_) | None => WaitCause::NoReadyPod,
        }
    }

    /// Whether time has something to do at the activator.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.end.next_deadline() <= now
    }

    /// When to look at the deadline again, if no look before that is planned; the look is planned from now
    /// on.
    pub(crate) fn plan_look(&mut self, now: Timestamp) -> Option<Timestamp> {
        let at = self.end.next_deadline().max(now);
        if at >= self.planned {
            return None;
        }
        self.planned = at;
        Some(at)
    }

    /// A look at the deadline comes, which was planned.
    pub(crate) fn looked(&mut self) {
        self.planned = Timestamp::MAX;
    }
}
