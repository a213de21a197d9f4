//! A made-up world in which things go wrong: two owners, two activators, pods, a platform, and the links
//! between them.
//!
//! ```text
//!   clients ──► activators ──► pods ◄── platform ◄── orders ─┐
//!                    ▲           ▲         │                 │
//!                    └── links ──┴─────────┼──────────► owners
//!                                          └── facts ───────┘
//! ```
//!
//! The owners' control loops, the activators' ends, and the breakers and meters of the pods are the values
//! that the programs run. As in the world of `ebb simulate` no part calls another: each message is an event
//! that comes after a delay. Beside that world, every process can stall, end and begin anew, each has a clock
//! of its own, each message belongs to a process or a connection that may be gone when it comes, and every
//! command and every end of a request is shown to the checks.

mod activators;
mod ending;
mod faults;
mod links;
mod orders;
mod owners;
mod pods;
mod requests;
mod starting;

use std::collections::{BTreeMap, VecDeque};

use orchestration::{Errand, PlatformOrder, RouteInForce};
use vocabulary::{PodCount, ReplicaName, RevisionName, Timestamp};

use super::bucket_leases::BucketLeases;
use super::checks::Checks;
use super::fault::{ActivatorNumber, OwnerNumber};
use super::plan::WorldPlan;
use super::planted_defect::PlantedDefect;
use super::trial_event::{ConnectionNumber, OwnerProcess, RequestNumber, TrialEvent};
use super::trial_parts::{
    FarEnd, ProcessState, ServiceTrouble, TrialActivator, TrialConnection, TrialOwner, TrialPod, TrialRequest,
};
use super::trial_traffic::TrialTraffic;
use crate::call_log::{CallLog, OwnerCall};
use crate::event_queue::EventQueue;
use crate::link_disturbance::LinkDisturbances;
use crate::random::RandomStream;
use crate::scenario::WorldDelays;
use crate::world_event::{PodNumber, SeatedRequest, ServiceNumber};
use crate::world_platform::WorldPlatform;

/// When worlds begin: no window of the past reaches back before the origin of the time axis.
pub(crate) const BEGAN: Timestamp = Timestamp::from_secs(3_600);
/// The prime of FNV-1a, taken over whole numbers here.
const HASH_PRIME: u64 = 0x0000_0100_0000_01b3;
/// So many of the last events are told with a failure.
const TOLD_EVENTS: usize = 50;

/// With what a world is made.
#[derive(Clone, Debug)]
pub(crate) struct TrialSetup<'a> {
    pub(crate) plan: &'a WorldPlan,
    pub(crate) defect: Option<PlantedDefect>,
    /// The count of each Service that the world must end with, if that is known.
    pub(crate) expected: Option<Vec<PodCount>>,
    pub(crate) trace: EventTrace,
    /// Whether the calls of each owner are kept.
    pub(crate) calls: CallLog,
}

/// One life of an owner, from the beginning of its process on.
#[derive(Clone, Debug)]
pub struct OwnerLife {
    /// The name of the owner, which its next life has too.
    pub owner: ReplicaName,
    /// All calls of its control loop, in their order.
    pub calls: Vec<OwnerCall>,
}

/// Whether the last events are written down.
#[derive(Clone, Debug)]
pub(crate) enum EventTrace {
    Off,
    On(VecDeque<String>),
}

/// What happened in a world, in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrialTally {
    pub(crate) requests: u64,
    pub(crate) late_refusals: u64,
    /// The seconds of all pods, which each close one.
    pub(crate) pod_seconds: u64,
}

/// From the beginning on, or slower for a while.
#[derive(Clone, Copy, Debug)]
struct SlowStarts {
    factor: u32,
    until: Timestamp,
}

/// An order that the platform could not carry out yet.
#[derive(Debug)]
struct PendingOrder {
    process: OwnerProcess,
    order: PlatformOrder,
}

/// All parts of the world, and the messages under way.
#[derive(Debug)]
pub(crate) struct TrialWorld<'a> {
    plan: &'a WorldPlan,
    defect: Option<PlantedDefect>,
    expected: Option<Vec<PodCount>>,
    queue: EventQueue<TrialEvent>,
    now: Timestamp,
    ends: Timestamp,
    delays: WorldDelays,
    names: Vec<RevisionName>,
    owners: Vec<TrialOwner>,
    leases: BucketLeases,
    activators: Vec<TrialActivator>,
    /// Numbers that no process of an owner or an activator had before.
    processes_made: u64,
    connections: BTreeMap<ConnectionNumber, TrialConnection>,
    connections_made: u64,
    /// Of the links between an owner and a far end.
    disturbances: LinkDisturbances<(OwnerNumber, FarEnd)>,
    platform: WorldPlatform,
    pods: BTreeMap<PodNumber, TrialPod>,
    routes: BTreeMap<ServiceNumber, RouteInForce>,
    pending: BTreeMap<Errand, PendingOrder>,
    troubles: Vec<ServiceTrouble>,
    slow_starts: SlowStarts,
    traffic: Vec<TrialTraffic>,
    requests: BTreeMap<RequestNumber, TrialRequest>,
    requests_made: usize,
    network: RandomStream,
    pub(crate) checks: Checks,
    pub(crate) tally: TrialTally,
    pub(crate) hash: u64,
    pub(crate) trace: EventTrace,
    /// The empty log that each new owner begins with: one that is kept, or one that forgets.
    calls: CallLog,
    /// The lives of owners that have ended, if their calls are kept.
    ended_lives: Vec<OwnerLife>,
}

impl TrialWorld<'_> {
    /// Lets everything happen until the end of the world, or until a check fails.
    pub(crate) fn run(&mut self) {
        while let Some((at, event)) = self.queue.pop() {
            if at > self.ends {
                break;
            }
            self.now = at;
            self.note(&event);
            self.checks.time_is(at);
            if let Some(event) = self.hold(event) {
                self.happen(event);
            }
            if self.checks.failure().is_some() {
                return;
            }
        }
        self.now = self.ends;
        let scene = self.end_scene();
        self.checks.ended(&scene);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// The lives of all owners, in the order of their ends, if their calls were kept.
    pub(crate) fn take_lives(&mut self) -> Vec<OwnerLife> {
        for owner in (0..self.owners.len()).map(OwnerNumber) {
            self.end_life(owner);
        }
        std::mem::take(&mut self.ended_lives)
    }

    /// Keeps what an owner was told in its life.
    fn end_life(&mut self, owner: OwnerNumber) {
        let known = &mut self.owners[owner.0];
        let calls = known.core.take_calls();
        if !calls.is_empty() {
            self.ended_lives.push(OwnerLife { owner: known.name.clone(), calls });
        }
    }

    /// The count of each Service that was ordered last.
    pub(crate) fn counts(&self) -> Vec<PodCount> {
        self.services().map(|service| self.platform.facts(service).wanted).collect()
    }

    fn services(&self) -> impl Iterator<Item = ServiceNumber> + use<> {
        (0..self.names.len()).map(ServiceNumber)
    }

    fn note(&mut self, event: &TrialEvent) {
        self.mix(self.now.as_nanos());
        self.mix(event.code());
        if let EventTrace::On(lines) = &mut self.trace {
            if lines.len() == TOLD_EVENTS {
                lines.pop_front();
            }
            lines.push_back(format!("{} {event:?}", self.now));
        }
    }

    fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(HASH_PRIME).rotate_left(23);
    }

    fn at(&mut self, at: Timestamp, event: TrialEvent) {
        self.queue.push(at.max(self.now), event);
    }

    /// Keeps an event for a process that stalls; gives back any other.
    fn hold(&mut self, event: TrialEvent) -> Option<TrialEvent> {
        let state = match self.addressee(&event) {
            Addressee::Owner(owner) => &mut self.owners[owner.0].state,
            Addressee::Activator(activator) => &mut self.activators[activator.0].state,
            Addressee::World => return Some(event),
        };
        match state {
            ProcessState::Stalls { held } => {
                held.push(event);
                None
            }
            ProcessState::Runs | ProcessState::Down => Some(event),
        }
    }

    /// The process that has to do something when the event comes.
    fn addressee(&self, event: &TrialEvent) -> Addressee {
        match event {
            TrialEvent::OwnerHears(process, _)
            | TrialEvent::OwnerLooks(process)
            | TrialEvent::LinkIsDialled(process, _) => Addressee::Owner(process.owner),
            TrialEvent::OwnerHearsWord(connection, _) => match self.connections.get(connection) {
                Some(known) => Addressee::Owner(known.process.owner),
                None => Addressee::World,
            },
            TrialEvent::ActivatorMustEnd(process)
            | TrialEvent::ActivatorHears(process, _)
            | TrialEvent::ActivatorLooks(process, _)
            | TrialEvent::ActivatorSecondEnds(process)
            | TrialEvent::RequestReachesActivator(process, _)
            | TrialEvent::WaitEnds(process, _) => Addressee::Activator(process.activator),
            TrialEvent::ActivatorHearsOrder(connection, _) => {
                self.activator_of(*connection).map_or(Addressee::World, Addressee::Activator)
            }
            TrialEvent::AnswerReachesActivator(_, seated) => {
                let place = request_of(seated).and_then(|number| self.requests.get(&number));
                let activator = place.and_then(|request| request.place.activator());
                activator.map_or(Addressee::World, Addressee::Activator)
            }
            TrialEvent::FaultBegins(_)
            | TrialEvent::QuietBegins
            | TrialEvent::OwnerStarts(_)
            | TrialEvent::OwnerResumes(_)
            | TrialEvent::LeaseEnds(_)
            | TrialEvent::ActivatorStarts(_)
            | TrialEvent::ActivatorResumes(_)
            | TrialEvent::RequestArrives(_)
            | TrialEvent::RequestIsSent(_)
            | TrialEvent::RequestReachesPod(_)
            | TrialEvent::WorkEnds(..)
            | TrialEvent::PodStarts(_)
            | TrialEvent::PodStartFails(_)
            | TrialEvent::ProbePasses(_)
            | TrialEvent::PodSecondEnds(_)
            | TrialEvent::PresentIsDue(_)
            | TrialEvent::PodHears(..)
            | TrialEvent::PodsAreReplaced(_)
            | TrialEvent::PlatformHears(..)
            | TrialEvent::OrderIsTried(..) => Addressee::World,
        }
    }

    fn happen(&mut self, event: TrialEvent) {
        match event {
            TrialEvent::FaultBegins(place) => self.fault_begins(place),
            TrialEvent::QuietBegins => self.quiet_begins(),
            TrialEvent::OwnerStarts(owner) => self.owner_starts(owner),
            TrialEvent::OwnerResumes(process) => self.owner_resumes(process),
            TrialEvent::LeaseEnds(owner) => self.lease_ends(owner),
            TrialEvent::OwnerHears(process, event) => self.tell_owner(process, *event),
            TrialEvent::OwnerHearsWord(connection, word) => self.owner_hears_word(connection, *word),
            TrialEvent::OwnerLooks(process) => self.owner_looks(process),
            TrialEvent::LinkIsDialled(process, link) => self.link_is_dialled(process, link),
            TrialEvent::ActivatorStarts(activator) => self.activator_starts(activator),
            TrialEvent::ActivatorResumes(process) => self.activator_resumes(process),
            TrialEvent::ActivatorMustEnd(process) => self.activator_must_end(process),
            TrialEvent::ActivatorHears(process, event) => self.tell_activator(process, *event),
            TrialEvent::ActivatorHearsOrder(connection, event) => {
                self.activator_hears_order(connection, *event);
            }
            TrialEvent::ActivatorLooks(process, service) => self.activator_looks(process, service),
            TrialEvent::ActivatorSecondEnds(process) => self.activator_second_ends(process),
            TrialEvent::RequestArrives(service) => self.request_arrives(service),
            TrialEvent::RequestIsSent(request) => self.request_is_sent(request),
            TrialEvent::RequestReachesActivator(process, request) => {
                self.request_reaches_activator(process, request);
            }
            TrialEvent::WaitEnds(process, request) => self.wait_ends(process, request),
            TrialEvent::RequestReachesPod(seated) => self.request_reaches_pod(seated),
            TrialEvent::WorkEnds(pod, seated) => self.work_ends(pod, seated),
            TrialEvent::AnswerReachesActivator(outcome, seated) => {
                self.answer_reaches_activator(outcome, *seated);
            }
            TrialEvent::PodStarts(pod) => self.pod_starts(pod),
            TrialEvent::PodStartFails(pod) => self.pod_start_fails(pod),
            TrialEvent::ProbePasses(pod) => self.probe_passes(pod),
            TrialEvent::PodSecondEnds(pod) => self.pod_second_ends(pod),
            TrialEvent::PresentIsDue(pod) => self.present_is_due(pod),
            TrialEvent::PodHears(connection, settings) => self.pod_hears(connection, &settings),
            TrialEvent::PodsAreReplaced(service) => self.pods_are_replaced(service),
            TrialEvent::PlatformHears(process, order) => self.platform_hears(process, *order),
            TrialEvent::OrderIsTried(errand, process, order) => self.order_is_tried(&errand, process, order),
        }
    }
}

/// The process for which an event is meant.
#[derive(Clone, Copy, Debug)]
enum Addressee {
    World,
    Owner(OwnerNumber),
    Activator(ActivatorNumber),
}

/// The number of a request: each request of a made-up world has a client of its own.
fn request_of(seated: &SeatedRequest) -> Option<RequestNumber> {
    seated.request.client.map(|client| RequestNumber(client.0))
}
