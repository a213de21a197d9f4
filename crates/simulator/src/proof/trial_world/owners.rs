//! Owners begin, end, stall, and get and lose buckets; what they order is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{
    ActivatorFacts, ControlCommand, ControlEvent, LinkId, Order, PlatformFact, PlatformOrder, Unassignment,
};
use throttling::{ActivatorEvent, LinkNumber};
use vocabulary::{Bucket, Ownership, PodName, PodState, ReplicaName, Timestamp};

use super::TrialWorld;
use crate::look_plan::LookPlan;
use crate::proof::bucket_leases::BucketMove;
use crate::proof::checks::CommandScene;
use crate::proof::fault::{ActivatorNumber, OwnerNumber};
use crate::proof::owner_core::OwnerCore;
use crate::proof::reached_state::ReachedState;
use crate::proof::trial_event::{OwnerProcess, TrialEvent};
use crate::proof::trial_parts::{ProcessState, RequestPosition};
use crate::world_event::{PodNumber, ServiceNumber};

/// How long an owner may do nothing before the other one gets its buckets.
const LEASE: Duration = Duration::from_secs(5);
/// More rounds than a control loop needs that comes to rest.
const ROUNDS_MAX: usize = 1_000;
/// When a deadline that stays due is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// The wall clock when the world begins.
const FIRST_WALL_TIME: Duration = Duration::from_secs(4 * 86_400);
/// The addresses at which activators take links: of no pod.
const ACTIVATOR_ADDRESS: u32 = u32::MAX - 10;

impl TrialWorld<'_> {
    pub(super) fn owner_starts(&mut self, owner: OwnerNumber) {
        if !self.owners[owner.0].state.is_down() {
            return;
        }
        self.processes_made += 1;
        let process = OwnerProcess { owner, life: self.processes_made };
        self.end_life(owner);
        let known = &mut self.owners[owner.0];
        known.process = process;
        known.state = ProcessState::Runs;
        known.core = OwnerCore::new(self.defect, self.calls.clone());
        known.look = LookPlan::new();
        known.links.clear();
        let moves = self.leases.take_seat(owner);
        self.announce(&moves, Some(owner));
        self.tell_everything(process);
        let other = other_than(owner);
        if self.owners[other.0].state.is_down() {
            self.at(self.now + LEASE, TrialEvent::LeaseEnds(other));
        }
    }

    /// An owner that begins hears all that there is, as from the program that it runs in.
    fn tell_everything(&mut self, process: OwnerProcess) {
        let owner = process.owner;
        let since_epoch = self.wall_time(owner);
        self.tell_owner(process, ControlEvent::WallClockRead { since_epoch });
        let ownership = self.leases.ownership(owner);
        self.state_to(owner, PlatformFact::OwnershipChanged(ownership));
        self.state_to(owner, PlatformFact::ConfigChanged(Arc::clone(&self.plan.cluster)));
        for service in self.services() {
            self.state_service_to(owner, service);
        }
        let activators = self.activator_facts();
        self.state_to(owner, PlatformFact::ActivatorsChanged(activators));
        self.state_to(owner, PlatformFact::Synced);
    }

    /// All that the platform has of a Service, with the route that was written last.
    fn state_service_to(&mut self, owner: OwnerNumber, service: ServiceNumber) {
        self.state_to(owner, self.platform.fact_of_service(service));
        if let Some(route) = self.routes.get(&service).cloned() {
            let revision = self.names[service.0].clone();
            self.state_to(owner, PlatformFact::RouteFound { revision, route });
        }
        self.state_to(owner, self.platform.fact_of_pods(service));
    }

    pub(super) fn wall_time(&self, owner: OwnerNumber) -> Duration {
        let passed = self.now.saturating_since(super::BEGAN);
        FIRST_WALL_TIME + passed + self.owners[owner.0].wall_forward
    }

    /// All owners that are there hear a fact.
    pub(super) fn state(&mut self, fact: &PlatformFact) {
        for owner in (0..self.owners.len()).map(OwnerNumber) {
            self.state_to(owner, fact.clone());
        }
    }

    pub(super) fn state_to(&mut self, owner: OwnerNumber, fact: PlatformFact) {
        self.state_late(owner, fact, Duration::ZERO);
    }

    fn state_late(&mut self, owner: OwnerNumber, fact: PlatformFact, notice: Duration) {
        let known = &mut self.owners[owner.0];
        if known.state.is_down() {
            return;
        }
        let late = if known.late_facts.until > self.now { known.late_facts.delay } else { Duration::ZERO };
        let at = known.facts.arrival(self.now, self.delays.platform + late + notice);
        let event = TrialEvent::OwnerHears(known.process, Box::new(ControlEvent::Platform(fact)));
        self.at(at, event);
    }

    /// Buckets have changed hands. An owner that does not begin just now hears what the former one has
    /// ordered last, and then that the bucket is its own.
    fn announce(&mut self, moves: &[BucketMove], begins: Option<OwnerNumber>) {
        for moved in moves {
            self.checks.epoch_granted(moved.bucket, moved.epoch, moved.to);
            self.note_takeover(moved.bucket);
            if Some(moved.to) != begins {
                self.state_bucket_to(moved.to, moved.bucket);
            }
        }
        for owner in (0..self.owners.len()).map(OwnerNumber).filter(|owner| Some(*owner) != begins) {
            self.state_to(owner, PlatformFact::OwnershipChanged(self.leases.ownership(owner)));
        }
    }

    fn state_bucket_to(&mut self, owner: OwnerNumber, bucket: Bucket) {
        for service in self.services() {
            if self.bucket_of(service) == bucket {
                self.state_service_to(owner, service);
            }
        }
    }

    pub(super) fn bucket_of(&self, service: ServiceNumber) -> Bucket {
        let all = Ownership { epochs: BTreeMap::new(), buckets: self.leases.buckets() };
        all.bucket_of(&self.names[service.0])
    }

    fn note_takeover(&mut self, bucket: Bucket) {
        let is_of = |service: ServiceNumber| self.bucket_of(service) == bucket;
        let drains = self.platform.pods().any(|pod| pod.is_leaving() && is_of(pod.service));
        let waits = self
            .requests
            .values()
            .any(|request| matches!(request.place, RequestPosition::Waits { .. }) && is_of(request.service));
        if drains {
            self.checks.reached(ReachedState::TookOverWhileDraining);
        }
        if waits {
            self.checks.reached(ReachedState::TookOverWhileWaiting);
        }
    }

    /// A bucket goes to the other owner, if that one is there. The former one hears of that late.
    pub(super) fn bucket_moves(&mut self, bucket: Bucket, notice: Duration) {
        let Some(former) = self.leases.holder(bucket) else { return };
        let to = other_than(former);
        if !matches!(self.owners[to.0].state, ProcessState::Runs) {
            return;
        }
        let Some(moved) = self.leases.give(bucket, to) else { return };
        self.checks.epoch_granted(moved.bucket, moved.epoch, moved.to);
        self.note_takeover(bucket);
        self.state_bucket_to(to, bucket);
        self.state_to(to, PlatformFact::OwnershipChanged(self.leases.ownership(to)));
        let left = self.leases.ownership(former);
        self.state_late(former, PlatformFact::OwnershipChanged(left), notice);
    }

    pub(super) fn lease_ends(&mut self, owner: OwnerNumber) {
        match self.owners[owner.0].state {
            ProcessState::Runs => return,
            ProcessState::Stalls { .. } => self.checks.reached(ReachedState::LeaseRanOutInStall),
            ProcessState::Down => {}
        }
        let other = other_than(owner);
        if matches!(self.owners[other.0].state, ProcessState::Runs) {
            let moves = self.leases.run_out(owner, other);
            self.announce(&moves, None);
        }
    }

    /// The process of an owner is killed; another one of its name begins after the pause.
    pub(super) fn owner_ends(&mut self, owner: OwnerNumber, pause: Duration) {
        if self.owners[owner.0].state.is_down() {
            return;
        }
        self.owners[owner.0].state = ProcessState::Down;
        self.owners[owner.0].links.clear();
        self.close_connections(|connection| connection.process.owner == owner);
        self.checks.owner_gone(owner);
        self.checks.reached(ReachedState::OwnerRestarted);
        if self.owners.iter().all(|owner| owner.state.is_down()) {
            self.checks.reached(ReachedState::AllOwnersGone);
        }
        self.at(self.now + LEASE, TrialEvent::LeaseEnds(owner));
        self.at(self.now + pause, TrialEvent::OwnerStarts(owner));
    }

    pub(super) fn owner_stalls(&mut self, owner: OwnerNumber, length: Duration) {
        let known = &mut self.owners[owner.0];
        if known.state.stall() {
            let process = known.process;
            self.at(self.now + LEASE, TrialEvent::LeaseEnds(owner));
            self.at(self.now + length, TrialEvent::OwnerResumes(process));
        }
    }

    pub(super) fn owner_resumes(&mut self, process: OwnerProcess) {
        let known = &mut self.owners[process.owner.0];
        if known.process != process {
            return;
        }
        let Some(held) = known.state.resume() else { return };
        for event in held {
            self.at(self.now, event);
        }
    }

    pub(super) fn is_gone(&self, process: OwnerProcess) -> bool {
        let known = &self.owners[process.owner.0];
        known.process != process || known.state.is_down()
    }

    /// The owner takes in an event, and what follows from it is done.
    pub(super) fn tell_owner(&mut self, process: OwnerProcess, event: ControlEvent) {
        if self.is_gone(process) {
            return;
        }
        let known = &mut self.owners[process.owner.0];
        let shown = known.clock.read(self.now);
        known.core.handle(event, shown);
        self.obey_owner(process);
        self.settle_owner(process);
    }

    pub(super) fn owner_looks(&mut self, process: OwnerProcess) {
        if !self.is_gone(process) && self.owners[process.owner.0].look.comes(self.now) {
            self.settle_owner(process);
        }
    }

    fn settle_owner(&mut self, process: OwnerProcess) {
        let mut rounds = 0;
        loop {
            let known = &mut self.owners[process.owner.0];
            let shown = known.clock.read(self.now);
            let Some(due) = known.core.next_deadline() else { return };
            if due > shown {
                let moment = known.clock.moment_of(due).max(self.now);
                return self.plan_owner_look(process, moment);
            }
            if rounds == ROUNDS_MAX {
                self.checks.owner_restless(process);
                return self.plan_owner_look(process, self.now + LOOK_AGAIN);
            }
            rounds += 1;
            known.core.advance(shown);
            self.obey_owner(process);
        }
    }

    fn plan_owner_look(&mut self, process: OwnerProcess, at: Timestamp) {
        if let Some(at) = self.owners[process.owner.0].look.plan(at) {
            self.at(at, TrialEvent::OwnerLooks(process));
        }
    }

    fn obey_owner(&mut self, process: OwnerProcess) {
        while let Some(command) = self.owners[process.owner.0].core.next_command() {
            let scene = self.scene_of(&command);
            self.checks.owner_commanded(process, &command, &scene);
            self.obey_owner_once(process, command);
        }
    }

    fn scene_of(&self, command: &ControlCommand) -> CommandScene {
        let (mut senders, mut activators) = (Vec::new(), Vec::new());
        if let ControlCommand::Order(PlatformOrder { what, .. }) = command {
            if let Order::ReleasePod { pod, .. } = what {
                senders = self.senders_to(pod);
            }
            if matches!(what, Order::Route { .. }) {
                activators = self.activators.iter().map(|known| known.name.clone()).collect();
            }
        }
        CommandScene { now: self.now, senders, activators }
    }

    /// The activators that act upon an assignment in which a pod may be picked.
    fn senders_to(&self, pod: &PodName) -> Vec<ReplicaName> {
        let service = self.platform.pod_named(pod).and_then(|number| self.platform.pod(number));
        let Some(service) = service.map(|known| known.service) else { return Vec::new() };
        let revision = &self.names[service.0];
        let may_send = self.activators.iter().filter(|known| {
            let assigned = known.core.revision(revision).filter(|_| !known.state.is_down());
            let mut pods = assigned.into_iter().flat_map(|known| &known.assignment().pods);
            pods.any(|known| known.pod == *pod && known.state != PodState::Draining)
        });
        may_send.map(|known| known.name.clone()).collect()
    }

    fn obey_owner_once(&mut self, process: OwnerProcess, command: ControlCommand) {
        match command {
            ControlCommand::OpenLink { link, peer, .. } => self.open_link(process, link, peer),
            ControlCommand::CloseLink { link } => self.close_link(process, link),
            ControlCommand::Sync { activator, ownership, assignments } => {
                let owner = self.owners[process.owner.0].name.clone();
                self.order_activator(process, activator, |link| {
                    let assigned = assignments
                        .into_iter()
                        .map(|assignment| ActivatorEvent::Assigned { link, assignment });
                    let began = ActivatorEvent::SyncBegan { link, owner, ownership };
                    let mut events = vec![began];
                    events.extend(assigned);
                    events.push(ActivatorEvent::SyncEnded { link });
                    events
                });
            }
            // How soon matters to a writer that is busy: here every message leaves at once.
            ControlCommand::Assign { activator, assignment, .. } => {
                self.mix(assignment.version.counter);
                self.order_activator(process, activator, |link| {
                    vec![ActivatorEvent::Assigned { link, assignment }]
                });
            }
            ControlCommand::Unassign { activator, revision, version, how } => {
                self.order_activator(process, activator, |link| {
                    vec![match how {
                        Unassignment::Removed => ActivatorEvent::Removed { link, revision, version },
                        Unassignment::Forgotten => {
                            ActivatorEvent::ForgettingAllowed { link, revision, version }
                        }
                    }]
                });
            }
            ControlCommand::TellPod { pod, settings } => self.tell_pod(process, pod, settings),
            ControlCommand::ReleaseActivator { activator, buckets } => {
                self.order_activator(process, activator, |link| {
                    vec![ActivatorEvent::Released { link, buckets }]
                });
            }
            ControlCommand::Order(order) => {
                if let Order::ScaleTo { to, .. } = &order.what {
                    self.mix(u64::from(to.value()));
                }
                let at = self.owners[process.owner.0].orders.arrival(self.now, self.delays.platform);
                self.at(at, TrialEvent::PlatformHears(process, Box::new(order)));
            }
            // No Service is of class hpa, and why a count is ordered stands in its order.
            ControlCommand::AskMetrics { .. } | ControlCommand::Publish { .. } => {}
        }
    }

    /// Sends orders on the link to an activator, if it stands.
    fn order_activator(
        &mut self,
        process: OwnerProcess,
        link: LinkId,
        orders: impl FnOnce(LinkNumber) -> Vec<ActivatorEvent>,
    ) {
        let kept = self.owners[process.owner.0].links.get(&link);
        let Some(connection) = kept.and_then(|kept| kept.connection) else { return };
        for order in orders(LinkNumber(connection.0)) {
            let event = TrialEvent::ActivatorHearsOrder(connection, Box::new(order));
            self.send_to_far_end(connection, event);
        }
    }

    pub(super) fn activator_facts(&self) -> Vec<ActivatorFacts> {
        let stated = self.activators.iter().filter_map(|known| {
            let place = u32::try_from(known.process.activator.0).unwrap_or_default();
            let link = PodNumber(ACTIVATOR_ADDRESS + place).address().into();
            Some(ActivatorFacts { name: known.name.clone(), link, life: known.life? })
        });
        stated.collect()
    }

    pub(super) fn state_activators(&mut self) {
        let activators = self.activator_facts();
        self.state(&PlatformFact::ActivatorsChanged(activators));
    }

    pub(super) fn activator_named(&self, name: &ReplicaName) -> Option<ActivatorNumber> {
        self.activators.iter().position(|known| known.name == *name).map(ActivatorNumber)
    }
}

fn other_than(owner: OwnerNumber) -> OwnerNumber {
    OwnerNumber(1 - owner.0)
}
