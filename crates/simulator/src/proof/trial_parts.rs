//! The processes of a made-up world, and what lies between them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ActivatorLife, LinkId};
use throttling::Ticket;
use vocabulary::{PodSettings, ReplicaName, Timestamp};

use super::activator_core::ActivatorCore;
use super::drifting_clock::DriftingClock;
use super::fault::{ActivatorNumber, OwnerNumber};
use super::owner_core::OwnerCore;
use super::trial_event::{ActivatorProcess, ConnectionNumber, OwnerProcess, RequestNumber, TrialEvent};
use crate::look_plan::LookPlan;
use crate::ordered_way::OrderedWay;
use crate::world_event::{PodNumber, ServiceNumber, SimulatedSeat};

/// Whether a process does anything now.
#[derive(Debug)]
pub(crate) enum ProcessState {
    Runs,
    /// The process does nothing; all that is meant for it waits.
    Stalls {
        held: Vec<TrialEvent>,
    },
    Down,
}

impl ProcessState {
    pub(crate) fn is_down(&self) -> bool {
        matches!(self, Self::Down)
    }

    /// A process that runs stalls from now on; returns whether it ran.
    pub(crate) fn stall(&mut self) -> bool {
        let has_run = matches!(self, Self::Runs);
        if has_run {
            *self = Self::Stalls { held: Vec::new() };
        }
        has_run
    }

    /// A process that stalls runs again; returns all that has waited for it, or `None` if it did not stall.
    pub(crate) fn resume(&mut self) -> Option<Vec<TrialEvent>> {
        let Self::Stalls { held } = self else { return None };
        let held = std::mem::take(held);
        *self = Self::Runs;
        Some(held)
    }
}

/// The process of an owner, or the place for one.
#[derive(Debug)]
pub(crate) struct TrialOwner {
    pub(crate) name: ReplicaName,
    pub(crate) process: OwnerProcess,
    pub(crate) state: ProcessState,
    pub(crate) core: OwnerCore,
    pub(crate) clock: DriftingClock,
    pub(crate) look: LookPlan,
    pub(crate) links: BTreeMap<LinkId, OwnerLink>,
    /// The way of facts from the platform.
    pub(crate) facts: OrderedWay,
    /// The way of orders to the platform.
    pub(crate) orders: OrderedWay,
    /// Until then the owner reaches no pod and no activator.
    pub(crate) cut_until: Timestamp,
    pub(crate) late_facts: LateFacts,
    /// By how much its wall clock was set forward.
    pub(crate) wall_forward: Duration,
}

/// By how much facts are late, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LateFacts {
    pub(crate) delay: Duration,
    pub(crate) until: Timestamp,
}

/// A link that an owner keeps.
#[derive(Clone, Debug)]
pub(crate) struct OwnerLink {
    pub(crate) far_end: FarEnd,
    /// The latest settings, if the far end is a pod; a new connection begins with them.
    pub(crate) settings: Option<Arc<PodSettings>>,
    pub(crate) connection: Option<ConnectionNumber>,
    pub(crate) has_stood: bool,
    /// Attempts in a row that found no process.
    pub(crate) refusals: u32,
}

/// The other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FarEnd {
    Activator(ActivatorNumber),
    Pod(PodNumber),
}

/// A link that stands now.
#[derive(Clone, Debug)]
pub(crate) struct TrialConnection {
    pub(crate) process: OwnerProcess,
    pub(crate) link: LinkId,
    pub(crate) far_end: FarEnd,
    pub(crate) to_owner: OrderedWay,
    pub(crate) to_far_end: OrderedWay,
    pub(crate) delay: Duration,
}

impl TrialConnection {
    /// The links whose disturbances this one has.
    pub(crate) fn group(&self) -> (OwnerNumber, FarEnd) {
        (self.process.owner, self.far_end)
    }
}

/// The process of an activator, or the place for one.
#[derive(Debug)]
pub(crate) struct TrialActivator {
    pub(crate) name: ReplicaName,
    pub(crate) process: ActivatorProcess,
    pub(crate) state: ProcessState,
    /// As the platform states it; `None` while there is none.
    pub(crate) life: Option<ActivatorLife>,
    pub(crate) core: ActivatorCore,
    pub(crate) clock: DriftingClock,
    pub(crate) looks: Vec<LookPlan>,
    pub(crate) waiting: BTreeMap<QueuePlace, RequestNumber>,
    /// The revisions of every bucket were named once.
    pub(crate) is_synced: bool,
    /// How long it is to be gone after it has ended, if it was told to end.
    pub(crate) leaves_for: Option<Duration>,
    /// Its owners have said that no route names it.
    pub(crate) is_released: bool,
}

/// The place of a request in the queues of an activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuePlace {
    pub(crate) service: ServiceNumber,
    pub(crate) ticket: Ticket,
}

/// What a pod has beside its app and its breaker.
#[derive(Clone, Debug)]
pub(crate) struct TrialPod {
    pub(crate) clock: DriftingClock,
    pub(crate) connection: Option<ConnectionNumber>,
}

impl TrialPod {
    pub(crate) fn new(clock: DriftingClock) -> Self {
        Self { clock, connection: None }
    }
}

/// A request that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialRequest {
    pub(crate) service: ServiceNumber,
    /// Which one of its Service it is: clients take the activators in turn.
    pub(crate) of_service: usize,
    pub(crate) arrived: Timestamp,
    /// Until then it waits at most.
    pub(crate) limit_at: Timestamp,
    pub(crate) place: RequestPosition,
}

/// Where a request is now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestPosition {
    /// With its client, or under way to an activator.
    Client,
    Waits {
        activator: ActivatorNumber,
        ticket: Ticket,
    },
    /// On the way to a pod, or on the way back.
    OnTheWay {
        activator: ActivatorNumber,
    },
    InPod {
        activator: ActivatorNumber,
        pod: PodNumber,
        seat: SimulatedSeat,
    },
}

impl RequestPosition {
    /// The activator that has the request.
    pub(crate) fn activator(self) -> Option<ActivatorNumber> {
        match self {
            Self::Client => None,
            Self::Waits { activator, .. } | Self::OnTheWay { activator } | Self::InPod { activator, .. } => {
                Some(activator)
            }
        }
    }
}

/// What goes wrong at the platform with one Service.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServiceTrouble {
    /// Until then orders cannot be carried out.
    pub(crate) retried_until: Timestamp,
    /// So many pods that start from now on end before they are ready.
    pub(crate) failing_starts: u32,
    pub(crate) count_is_refused: bool,
    /// How often in a row a pod was replaced.
    pub(crate) replacements: u32,
}
