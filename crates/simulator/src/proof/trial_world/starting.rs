//! The world as it is when its Services have just been deployed.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::ActivatorLife;
use throttling::ActivatorIdentity;
use vocabulary::{BootId, ReplicaName, Timestamp, fnv1a};

use super::{BEGAN, SlowStarts, TrialSetup, TrialTally, TrialWorld};
use crate::call_log::CallLog;
use crate::event_queue::EventQueue;
use crate::link_disturbance::LinkDisturbances;
use crate::look_plan::LookPlan;
use crate::ordered_way::OrderedWay;
use crate::proof::activator_core::ActivatorCore;
use crate::proof::bucket_leases::BucketLeases;
use crate::proof::checks::Checks;
use crate::proof::drifting_clock::DriftingClock;
use crate::proof::fault::{ACTIVATORS, ActivatorNumber, OWNERS, OwnerNumber};
use crate::proof::owner_core::OwnerCore;
use crate::proof::trial_event::{ActivatorProcess, OwnerProcess, TrialEvent};
use crate::proof::trial_parts::{LateFacts, ProcessState, ServiceTrouble, TrialActivator, TrialOwner};
use crate::proof::trial_traffic::TrialTraffic;
use crate::random::RandomStream;
use crate::scenario::{ServiceScenario, WorldDelays};
use crate::world_platform::WorldPlatform;

impl<'a> TrialWorld<'a> {
    pub(crate) fn new(setup: TrialSetup<'a>) -> Self {
        let plan = setup.plan;
        let services: Vec<ServiceScenario> =
            plan.revisions.iter().map(|revision| revision.scenario.clone()).collect();
        let quiet_from = BEGAN + plan.quiet_from;
        let traffic = plan.revisions.iter();
        let traffic = traffic.map(|revision| TrialTraffic::new(revision, plan.seed, BEGAN, quiet_from));
        let mut world = Self {
            plan,
            defect: setup.defect,
            expected: setup.expected,
            queue: EventQueue::new(),
            now: BEGAN,
            ends: BEGAN + plan.length,
            delays: WorldDelays::default(),
            names: services.iter().map(|service| service.facts.name.clone()).collect(),
            owners: Vec::new(),
            leases: BucketLeases::new(),
            activators: Vec::new(),
            processes_made: 0,
            connections: BTreeMap::new(),
            connections_made: 0,
            disturbances: LinkDisturbances::default(),
            platform: WorldPlatform::new(&services),
            pods: BTreeMap::new(),
            routes: BTreeMap::new(),
            pending: BTreeMap::new(),
            troubles: vec![ServiceTrouble::default(); services.len()],
            slow_starts: SlowStarts { factor: 1, until: Timestamp::ZERO },
            traffic: traffic.collect(),
            requests: BTreeMap::new(),
            requests_made: 0,
            network: RandomStream::of(plan.seed, "network", "delays"),
            checks: Checks::new(plan),
            tally: TrialTally::default(),
            hash: fnv1a([]),
            trace: setup.trace,
            calls: setup.calls,
            ended_lives: Vec::new(),
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.owners = (0..OWNERS).map(|place| self.place_for_owner(OwnerNumber(place))).collect();
        self.activators =
            (0..ACTIVATORS).map(|place| self.place_for_activator(ActivatorNumber(place))).collect();
        for service in self.services() {
            self.scale(service, self.platform.facts(service).wanted, &[]);
        }
        for activator in (0..ACTIVATORS).map(ActivatorNumber) {
            self.activator_starts(activator);
        }
        for owner in (0..OWNERS).map(OwnerNumber) {
            self.owner_starts(owner);
        }
        let plan = self.plan;
        for (place, planned) in plan.faults.iter().enumerate() {
            self.at(BEGAN + planned.at, TrialEvent::FaultBegins(place));
        }
        self.at(BEGAN + plan.quiet_from, TrialEvent::QuietBegins);
        for service in self.services() {
            self.plan_arrival(service);
        }
    }

    fn place_for_owner(&self, owner: OwnerNumber) -> TrialOwner {
        TrialOwner {
            name: ReplicaName::new(&format!("autoscaler-{}", owner.0)),
            process: OwnerProcess { owner, life: 0 },
            state: ProcessState::Down,
            core: OwnerCore::new(None, CallLog::Forgotten),
            clock: DriftingClock::new(BEGAN, self.plan.drifts.owners[owner.0]),
            look: LookPlan::new(),
            links: BTreeMap::new(),
            facts: OrderedWay::default(),
            orders: OrderedWay::default(),
            cut_until: Timestamp::ZERO,
            late_facts: LateFacts::default(),
            wall_forward: Duration::ZERO,
        }
    }

    fn place_for_activator(&self, activator: ActivatorNumber) -> TrialActivator {
        let name = ReplicaName::new(&format!("activator-{}", activator.0));
        let identity = ActivatorIdentity { name: name.clone(), boot: BootId(0) };
        TrialActivator {
            name,
            process: ActivatorProcess { activator, boot: 0 },
            state: ProcessState::Down,
            life: Some(ActivatorLife::NotReady),
            core: ActivatorCore::new(identity, 0, None, BEGAN),
            clock: DriftingClock::new(BEGAN, self.plan.drifts.activators[activator.0]),
            looks: Vec::new(),
            waiting: BTreeMap::new(),
            is_synced: false,
            leaves_for: None,
            is_released: false,
        }
    }
}
