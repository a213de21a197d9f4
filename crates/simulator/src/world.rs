//! The made-up world: clients, an activator, pods, a platform and the owner of all revisions, and the
//! messages between them.
//!
//! ```text
//!   clients ──► activator ──► pods ◄── platform
//!                   ▲          ▲          ▲
//!                   └── links ─┴── owner ─┘
//! ```
//!
//! The activator's end and the control loop are the values that the programs run. No part calls another: each
//! message is an event that comes after a delay, and each part does as its commands say. The way of a request
//! is in `requests`; links are in `links`, orders and facts in `control`; `whole_seconds` is in place of
//! `requests` where these are too many to follow each.

mod control;
mod faults;
mod links;
mod requests;
mod whole_seconds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use orchestration::RouteInForce;
use settings::ClusterConfig;
use vocabulary::{RevisionName, Timestamp, fnv1a};

use crate::call_log::{CallLog, OwnerCall};
use crate::event_queue::EventQueue;
use crate::fluid::{self, FluidService};
use crate::link_disturbance::{LinkDisturbances, LinkGroup};
use crate::report::{ServiceReport, SimulationReport, WaitPercentiles};
use crate::scenario::{LoadBeginning, Scenario, SimulationPace, WorldDelays};
use crate::scenario_fault::ScenarioFault;
use crate::shared_cores::{CoreCount, SharedCores};
use crate::start_slowness::StartSlowness;
use crate::tally::{PodOccupation, ServiceTally};
use crate::traffic::ServiceTraffic;
use crate::world_activator::WorldActivator;
use crate::world_event::{PodNumber, ServiceNumber, WorldEvent};
use crate::world_owner::WorldOwner;
use crate::world_platform::WorldPlatform;

/// The Services are deployed then, unless they are together with the load. No window of the past reaches back
/// before the origin of the time axis.
const DEPLOYED: Timestamp = Timestamp::from_secs(3_599);
/// The load begins then, when every link stands; in a world of a record less than a second later.
const LOAD_BEGINS: Timestamp = Timestamp::from_secs(3_600);
/// How often the activator closes a second: at whole seconds of the clock.
const SECOND: Duration = Duration::from_secs(1);
/// How often a run tells how far it is, unless it lasts for fewer seconds.
const TOLD_TIMES: u32 = 1_000;
/// So many events are part of the fingerprint of a run.
const FINGERPRINTED: u64 = 1_000;

/// All parts of the world, and the messages under way.
#[derive(Debug)]
pub(crate) struct World {
    queue: EventQueue<WorldEvent>,
    now: Timestamp,
    load_begins: Timestamp,
    ends: Timestamp,
    delays: WorldDelays,
    names: Vec<RevisionName>,
    traffic: Vec<ServiceTraffic>,
    /// The requests of each Service, where only whole seconds are simulated; empty where each request is.
    fluids: Vec<FluidService>,
    tallies: Vec<ServiceTally>,
    /// The cores of each pod of a Service, where they are limited.
    cores: Vec<Option<CoreCount>>,
    /// The work in pods whose cores are limited.
    shared_cores: BTreeMap<PodNumber, SharedCores>,
    activator: WorldActivator,
    owner: WorldOwner,
    platform: WorldPlatform,
    cluster: Arc<ClusterConfig>,
    /// The routes that were written last.
    routes: BTreeMap<ServiceNumber, RouteInForce>,
    /// The Services of which a pod was ready since the owner began.
    ready_before: BTreeSet<ServiceNumber>,
    faults: Vec<ScenarioFault>,
    disturbances: LinkDisturbances<LinkGroup>,
    /// How much longer starts of each Service take for a while.
    slow_starts: Vec<StartSlowness>,
    events: u64,
    fingerprint: u64,
}

impl World {
    /// The world as it is when the Services have just been deployed.
    pub(crate) fn new(scenario: &Scenario, calls: CallLog) -> Self {
        let services = || (0..).map(ServiceNumber).zip(&scenario.services);
        let WorldBeginning { deployed, load_begins } = WorldBeginning::of(scenario);
        let mut world = Self {
            queue: EventQueue::new(),
            now: deployed,
            load_begins,
            ends: load_begins + scenario.length,
            delays: scenario.delays,
            names: scenario.services.iter().map(|service| service.facts.name.clone()).collect(),
            traffic: services()
                .map(|(number, service)| ServiceTraffic::new(number, service, scenario.seed))
                .collect(),
            fluids: match scenario.pace {
                SimulationPace::EveryRequest => Vec::new(),
                SimulationPace::WholeSeconds => fluid::services(scenario),
            },
            tallies: services().map(|_| ServiceTally::new(load_begins)).collect(),
            cores: services().map(|(_, service)| scenario.cores.get(&service.facts.name).copied()).collect(),
            shared_cores: BTreeMap::new(),
            activator: WorldActivator::new(scenario.services.len(), scenario.seed, deployed),
            owner: WorldOwner::new(calls),
            platform: WorldPlatform::new(&scenario.services),
            cluster: Arc::clone(&scenario.cluster),
            routes: BTreeMap::new(),
            ready_before: BTreeSet::new(),
            faults: scenario.faults.clone(),
            disturbances: LinkDisturbances::default(),
            slow_starts: vec![StartSlowness::NONE; scenario.services.len()],
            events: 0,
            fingerprint: fnv1a([]),
        };
        for (number, service) in services() {
            world.scale(number, service.facts.wanted, &[], "the first count of the Service");
        }
        let second_ends = Timestamp::from_secs(deployed.whole_secs()) + SECOND;
        world.queue.push(second_ends, WorldEvent::ActivatorSecondEnds);
        for (place, fault) in scenario.faults.iter().enumerate() {
            world.queue.push(load_begins + fault.at, WorldEvent::FaultBegins(place));
        }
        world.owner_begins();
        world.begin_load();
        world
    }

    /// Lets everything happen that happens until the load ends, and tells now and then how much of its time
    /// has passed.
    pub(crate) fn run(&mut self, watch: &mut dyn FnMut(Duration)) {
        let step = (self.ends.saturating_since(self.load_begins) / TOLD_TIMES).max(SECOND);
        let mut tell_at = self.load_begins + step;
        while let Some((at, event)) = self.queue.pop() {
            if at > self.ends {
                break;
            }
            if at >= tell_at {
                watch(at.saturating_since(self.load_begins));
                tell_at = at + step;
            }
            self.now = at;
            self.record(&event);
            self.happen(event);
        }
        self.now = self.ends;
    }

    /// The calls of the control loop, if they are kept.
    pub(crate) fn take_calls(&mut self) -> Vec<OwnerCall> {
        self.owner.calls.take()
    }

    pub(crate) fn report(&mut self) -> SimulationReport {
        let hours = self.ends.saturating_since(self.load_begins).as_secs_f64() / 3_600.0;
        let now = self.now;
        let services = self.names.iter().zip(&mut self.tallies).map(|(name, tally)| {
            let (pod_time, idle_time) = tally.pod_time(now);
            // The first count is no change.
            let changes = u32::try_from(tally.counts.len().saturating_sub(1)).unwrap_or(u32::MAX);
            ServiceReport {
                name: name.clone(),
                requests: tally.requests,
                answered: tally.waits.total(),
                refused: tally.refused,
                waited_from_zero: tally.waited_from_zero,
                waited_for_growth: tally.waited_for_growth,
                wait: WaitPercentiles {
                    p50: tally.waits.of_thousand(500),
                    p95: tally.waits.of_thousand(950),
                    p99: tally.waits.of_thousand(990),
                    longest: tally.waits.longest(),
                    mean: tally.waits.mean(),
                },
                pod_time,
                idle_time,
                changes_per_hour: f64::from(changes) / hours,
                counts: tally.counts.clone(),
            }
        });
        SimulationReport { services: services.collect(), events: self.events, fingerprint: self.fingerprint }
    }

    fn record(&mut self, event: &WorldEvent) {
        self.events += 1;
        if self.events <= FINGERPRINTED {
            let line = format!("{} {event}\n", self.now.as_nanos());
            self.fingerprint = fnv1a(self.fingerprint.to_le_bytes().into_iter().chain(line.bytes()));
        }
    }

    fn happen(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::RequestArrives(service) => self.request_arrives(service),
            WorldEvent::ClientSends(service, client) => self.client_sends(service, client),
            WorldEvent::SurgeComes(service, surge) => self.surge_comes(service, surge),
            WorldEvent::WaitEnds(service, ticket) => self.wait_ends(service, ticket),
            WorldEvent::RequestReachesPod(seated) => self.request_reaches_pod(seated),
            WorldEvent::WorkEnds(pod, seated) => self.work_ends(pod, seated),
            WorldEvent::PodWorkIsDue(pod) => self.pod_work_is_due(pod),
            WorldEvent::PodAnswers(answer, seated) => self.pod_answers(answer, *seated),
            WorldEvent::RevisionIsDue(service) => self.revision_is_due(service),
            WorldEvent::ActivatorSecondEnds => self.activator_second_ends(),
            WorldEvent::ActivatorHears(event) => self.tell_activator(*event),
            WorldEvent::ActivatorHearsOwner(dial, event) => {
                if !self.owner.is_lost(dial) {
                    self.tell_activator(*event);
                }
            }
            WorldEvent::PodStarts(pod) => self.pod_starts(pod),
            WorldEvent::PodSecondEnds(pod) => self.pod_second_ends(pod),
            WorldEvent::PresentIsDue(pod) => self.present_is_due(pod),
            WorldEvent::PodHears(dial, pod, settings) => {
                if !self.owner.is_lost(dial) {
                    self.pod_hears(pod, &settings);
                }
            }
            WorldEvent::OwnerIsDue => self.owner_is_due(),
            WorldEvent::OwnerHears(event) => self.tell_owner(*event),
            WorldEvent::OwnerHearsWord(dial, event) => {
                if !self.owner.is_lost(dial) {
                    self.tell_owner(*event);
                }
            }
            WorldEvent::OwnerBegins => self.owner_begins(),
            WorldEvent::LinkStands(link, dial) => self.link_stands(link, dial),
            WorldEvent::PlatformHears(order) => self.carry_out(&order),
            WorldEvent::FaultBegins(place) => self.fault_begins(place),
        }
    }

    /// The first arrivals of open loads, and the first request of every client. A fluid begins by itself.
    fn begin_load(&mut self) {
        if !self.fluids.is_empty() {
            return;
        }
        for service in (0..self.traffic.len()).map(ServiceNumber) {
            self.plan_arrival(service);
            for client in self.traffic[service.0].clients() {
                self.queue.push(self.load_begins, WorldEvent::ClientSends(service, client));
            }
        }
    }

    fn plan_arrival(&mut self, service: ServiceNumber) {
        if let Some(after) = self.traffic[service.0].next_arrival() {
            self.queue.push(self.load_begins + after, WorldEvent::RequestArrives(service));
        }
    }

    /// A pod holds more or less than before, if its requests are no fluid: counts whether it is idle, and
    /// says its present count if that is due.
    fn pod_changed(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.pod_mut(number).filter(|_| self.fluids.is_empty()) else { return };
        if pod.is_idle() != pod.is_counted_idle {
            pod.is_counted_idle = !pod.is_counted_idle;
            let occupation = if pod.is_counted_idle { PodOccupation::Idle } else { PodOccupation::Busy };
            self.tallies[pod.service.0].note_occupation(occupation, self.now);
        }
        if let Some(at) = pod.plan_present(self.now) {
            self.queue.push(at, WorldEvent::PresentIsDue(number));
        }
    }
}

/// When a world begins, and when its load does.
#[derive(Clone, Copy, Debug)]
struct WorldBeginning {
    deployed: Timestamp,
    load_begins: Timestamp,
}

impl WorldBeginning {
    fn of(scenario: &Scenario) -> Self {
        match scenario.beginning {
            // A fluid is told of whole seconds from the beginning of the load on.
            LoadBeginning::WithAutoscaler { past_second }
                if scenario.pace == SimulationPace::EveryRequest =>
            {
                let both = LOAD_BEGINS + past_second;
                Self { deployed: both, load_begins: both }
            }
            LoadBeginning::WithAutoscaler { .. } | LoadBeginning::AfterDeployment => {
                Self { deployed: DEPLOYED, load_begins: LOAD_BEGINS }
            }
        }
    }
}

/// What tests look at besides the report.
#[cfg(test)]
impl World {
    /// The ledger of a Service from its deployment on; `None` if it was never used.
    pub(crate) fn ledger(&mut self, name: &RevisionName) -> Option<scaling::RevisionLedger> {
        self.owner.ledger(name, self.now)
    }
}
