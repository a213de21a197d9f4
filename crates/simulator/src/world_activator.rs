//! The activator of the world: the value that the program runs, with the requests that wait in it.

use std::collections::BTreeMap;

use throttling::{ActivatorIdentity, ActivatorRevisions, QueueLimits, Ticket};
use vocabulary::{BootId, ReplicaName, RevisionName, Timestamp};

use crate::look_plan::LookPlan;
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
    /// The looks at the deadline of each revision.
    looks: Vec<LookPlan>,
}

impl WorldActivator {
    /// An activator that is to know so many revisions.
    pub(crate) fn new(services: usize, seed: u64, now: Timestamp) -> Self {
        let identity = ActivatorIdentity { name: ReplicaName::new(ACTIVATOR), boot: BootId(1) };
        let seed = RandomStream::of(seed, ACTIVATOR, "choices").seed();
        Self {
            end: ActivatorRevisions::new(identity, LIMITS, (), seed, now),
            waiting: BTreeMap::new(),
            looks: vec![LookPlan::new(); services],
        }
    }

    /// Why requests of a revision wait now.
    pub(crate) fn wait_cause(&self, revision: &RevisionName) -> WaitCause {
        match self.end.cell(revision) {
            Some(known) if known.has_ready_pod() => WaitCause::NoFreeSlot,
            Some(_) | None => WaitCause::NoReadyPod,
        }
    }

    /// When to look at the deadline of a revision, if no look before that is planned; the look is planned
    /// from now on. Each revision has looks of its own, so that a request among a hundred revisions costs as
    /// much as alone.
    pub(crate) fn plan_look(
        &mut self,
        service: ServiceNumber,
        revision: &RevisionName,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let deadline = self.end.cell(revision)?.next_deadline()?;
        self.looks[service.0].plan(deadline.max(now))
    }

    /// A look at the deadline of a revision comes. Returns whether it counts.
    pub(crate) fn look_comes(&mut self, service: ServiceNumber, now: Timestamp) -> bool {
        self.looks[service.0].comes(now)
    }

    /// Whether the deadline of a revision has come.
    pub(crate) fn is_due(&self, revision: &RevisionName, now: Timestamp) -> bool {
        let Some(known) = self.end.cell(revision) else { return false };
        known.next_deadline().is_some_and(|deadline| deadline <= now)
    }
}
