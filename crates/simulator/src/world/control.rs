//! What the owner hears and orders: facts of the platform, counts, routes and the end of pods.

use std::sync::Arc;
use std::time::Duration;

use orchestration::{
    ActivatorFacts, ActivatorLife, ControlCommand, ControlEvent, Order, OrderOutcome, PlatformFact,
    PlatformOrder, RouteInForce, Unassignment,
};
use throttling::{ActivatorEvent, LinkNumber};
use vocabulary::{Ownership, PodCount, PodName, PodWord, ReplicaName, RevisionName};

use super::{DEPLOYED, World};
use crate::shared_cores::SharedCores;
use crate::simulated_pod::{PodDeparture, SimulatedPod};
use crate::tally::PodOccupation;
use crate::world_activator::ACTIVATOR;
use crate::world_event::{PodNumber, ServiceNumber, WorldEvent};
use crate::world_platform::StartedPod;

/// The name under which the owner speaks to the activator.
const OWNER: &str = "autoscaler";
/// The wall clock when the owner begins: a second before the first Monday of 1970, as a load begins that is
/// said by days of the week.
const FIRST_WALL_TIME: Duration = Duration::from_secs(4 * 86_400 - 1);
/// The address at which the activator takes a link: of no pod.
const ACTIVATOR_ADDRESS: PodNumber = PodNumber(0);
/// The time until another owner begins at the least: longer than facts and orders are under way.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

impl World {
    /// A process of the owner begins, and hears all that there is.
    pub(super) fn owner_begins(&mut self) {
        let epoch = self.owner.begin();
        let activator = ActivatorFacts {
            name: ReplicaName::new(ACTIVATOR),
            link: ACTIVATOR_ADDRESS.address().into(),
            life: ActivatorLife::Ready,
        };
        // As the program does at its start, before anything is told.
        let since_epoch = FIRST_WALL_TIME + self.now.saturating_since(DEPLOYED);
        self.tell_owner(ControlEvent::WallClockRead { since_epoch });
        self.state(PlatformFact::OwnershipChanged(Ownership::of_everything(epoch)));
        self.state(PlatformFact::ConfigChanged(Arc::clone(&self.cluster)));
        for service in (0..self.names.len()).map(ServiceNumber) {
            self.state(self.platform.fact_of_service(service));
            if let Some(route) = self.routes.get(&service).cloned() {
                let revision = self.names[service.0].clone();
                self.state(PlatformFact::RouteFound { revision, route });
            }
            self.state(self.platform.fact_of_pods(service));
        }
        self.state(PlatformFact::ActivatorsChanged(vec![activator]));
        self.state(PlatformFact::Synced);
    }

    /// The process of the owner is killed. After the pause another one begins, which may be that of an
    /// autoscaler that takes over.
    pub(super) fn owner_ends(&mut self, pause: Duration) {
        if self.owner.is_down() {
            return;
        }
        self.end_links();
        self.owner.end();
        // The platform remembers that the Services have had a ready pod; the next process does not.
        for service in std::mem::take(&mut self.ready_before) {
            self.platform.note_ready(service);
        }
        self.queue.push(self.now + pause.max(LEAST_PAUSE), WorldEvent::OwnerBegins);
    }

    /// The owner hears a fact after the delay of the platform.
    pub(super) fn state(&mut self, fact: PlatformFact) {
        let event = WorldEvent::OwnerHears(Box::new(ControlEvent::Platform(fact)));
        self.queue.push(self.now + self.delays.platform, event);
    }

    /// The owner takes in an event, and what follows from it is done.
    pub(super) fn tell_owner(&mut self, event: ControlEvent) {
        // What was under way to a process that was killed is lost.
        if self.owner.is_down() {
            return;
        }
        let commands = self.owner.hear(event, self.now);
        self.obey_owner(commands);
        self.settle_owner();
    }

    pub(super) fn owner_is_due(&mut self) {
        if self.owner.look_comes(self.now) {
            self.settle_owner();
        }
    }

    fn settle_owner(&mut self) {
        let commands = self.owner.settle(self.now);
        self.obey_owner(commands);
        if let Some(at) = self.owner.plan_look(self.now) {
            self.queue.push(at, WorldEvent::OwnerIsDue);
        }
    }

    fn obey_owner(&mut self, commands: Vec<ControlCommand>) {
        for command in commands {
            self.obey_owner_once(command);
        }
    }

    fn obey_owner_once(&mut self, command: ControlCommand) {
        match command {
            ControlCommand::OpenLink { link, peer, .. } => self.open_link(link, peer),
            ControlCommand::CloseLink { link } => self.close_link(link),
            ControlCommand::Sync { activator, ownership, assignments } => {
                let link = LinkNumber(activator.0);
                let owner = ReplicaName::new(OWNER);
                self.send_to_activator(activator, ActivatorEvent::SyncBegan { link, owner, ownership });
                for assignment in assignments {
                    self.send_to_activator(activator, ActivatorEvent::Assigned { link, assignment });
                }
                self.send_to_activator(activator, ActivatorEvent::SyncEnded { link });
            }
            // How soon matters to a writer that is busy: here every message leaves at once.
            ControlCommand::Assign { activator, assignment, .. } => {
                let link = LinkNumber(activator.0);
                self.send_to_activator(activator, ActivatorEvent::Assigned { link, assignment });
            }
            ControlCommand::Unassign { activator, revision, version, how } => {
                let link = LinkNumber(activator.0);
                let event = match how {
                    Unassignment::Removed => ActivatorEvent::Removed { link, revision, version },
                    Unassignment::Forgotten => ActivatorEvent::ForgettingAllowed { link, revision, version },
                };
                self.send_to_activator(activator, event);
            }
            ControlCommand::TellPod { pod, settings } => self.tell_pod(pod, settings),
            ControlCommand::ReleaseActivator { activator, buckets } => {
                let link = LinkNumber(activator.0);
                self.send_to_activator(activator, ActivatorEvent::Released { link, buckets });
            }
            ControlCommand::Order(order) => {
                let event = WorldEvent::PlatformHears(Box::new(order));
                self.queue.push(self.now + self.delays.platform, event);
            }
            // A scenario has no Service of class hpa, and why a count is ordered stands in its order.
            ControlCommand::AskMetrics { .. } | ControlCommand::Publish { .. } => {}
        }
    }

    pub(super) fn pod_starts(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        pod.start();
        let (state, service) = (pod.state(), pod.service);
        self.ready_before.insert(service);
        self.pod_says(number, PodWord::State { state, detail: String::new() });
        self.pod_changed(number);
    }

    pub(super) fn pod_second_ends(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        let mut sample = pod.close_second(self.now);
        let at = pod.second_ends_at();
        let (service, state) = (pod.service, pod.state());
        if let Some(load) = self.fluid_load_of_pod(service, state) {
            sample.load = load;
        }
        self.pod_says(number, PodWord::Load { sample, usage: None, late_bytes: None });
        self.queue.push(at, WorldEvent::PodSecondEnds(number));
    }

    pub(super) fn present_is_due(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        if let Some(count) = pod.take_present(self.now) {
            self.pod_says(number, PodWord::Present(count));
        }
        self.pod_changed(number);
    }

    /// The platform does as it is ordered, and says what changed and that it is done.
    pub(super) fn carry_out(&mut self, order: &PlatformOrder) {
        let is_known = match &order.what {
            Order::ScaleTo { revision, to, end_first, because, .. } => {
                let reason = because.reasons.iter().rev().find(|reason| reason.after == Some(*to));
                let why = reason.or(because.reasons.last()).map(|reason| reason.text.to_string());
                self.scale_as_ordered(revision, *to, end_first, &why.unwrap_or_default())
            }
            Order::ReleasePod { pod, .. } => self.drain(pod),
            Order::Route { revision, routing, activators } => {
                let route = RouteInForce { routing: *routing, activators: activators.clone() };
                self.write_route(revision, route)
            }
            Order::NoteDrained { .. }
            | Order::ReleaseEntrance { .. }
            | Order::NotePodState { .. }
            | Order::NotePodReach { .. }
            | Order::Tell { .. } => TargetExistence::Known,
        };
        let outcome = match is_known {
            TargetExistence::Known => OrderOutcome::Done,
            TargetExistence::Unknown => OrderOutcome::Gone,
        };
        self.state(PlatformFact::OrderEnded { order: order.id, outcome });
    }

    fn scale_as_ordered(
        &mut self,
        revision: &RevisionName,
        count: PodCount,
        end_first: &[PodName],
        why: &str,
    ) -> TargetExistence {
        let Some(service) = self.platform.service(revision) else { return TargetExistence::Unknown };
        self.scale(service, count, end_first, why);
        self.state(self.platform.fact_of_service(service));
        self.state(self.platform.fact_of_pods(service));
        TargetExistence::Known
    }

    /// Starts and ends pods so that there are as many as wanted.
    pub(super) fn scale(
        &mut self,
        service: ServiceNumber,
        count: PodCount,
        end_first: &[PodName],
        why: &str,
    ) {
        self.tallies[service.0].note_count(count, why.to_owned(), self.now);
        for StartedPod { pod, of_service } in self.platform.scale(service, count, end_first, self.now) {
            let factor = self.slow_starts[service.0].factor(self.now);
            let start_up = self.traffic[service.0].start_up(of_service) * factor;
            self.tallies[service.0].note_started_pod(self.now);
            self.queue.push(self.now + start_up, WorldEvent::PodStarts(pod));
            if let Some(started) = self.platform.pod(pod) {
                self.queue.push(started.second_ends_at(), WorldEvent::PodSecondEnds(pod));
            }
        }
    }

    fn write_route(&mut self, revision: &RevisionName, route: RouteInForce) -> TargetExistence {
        let Some(service) = self.platform.service(revision) else { return TargetExistence::Unknown };
        self.routes.insert(service, route);
        TargetExistence::Known
    }

    /// A pod is told to end: it takes what still comes until it holds nothing.
    fn drain(&mut self, name: &PodName) -> TargetExistence {
        let Some(pod) = self.platform.release(name) else { return TargetExistence::Unknown };
        let (number, state) = (pod.number, pod.state());
        self.pod_says(number, PodWord::State { state, detail: String::new() });
        self.end_if_drained(number);
        TargetExistence::Known
    }

    /// A pod that was told to end is gone once it holds nothing.
    pub(super) fn end_if_drained(&mut self, number: PodNumber) {
        let pod = self.platform.pod(number);
        if !pod.is_some_and(|pod| pod.departure == PodDeparture::Draining && pod.holds_nothing()) {
            return;
        }
        if let Some((pod, _)) = self.remove_pod(number) {
            self.state(self.platform.fact_of_pods(pod.service));
        }
    }

    /// A pod is gone. Returns it, with its cores if requests shared them.
    pub(super) fn remove_pod(&mut self, number: PodNumber) -> Option<(SimulatedPod, Option<SharedCores>)> {
        let pod = self.platform.remove(number)?;
        let occupation = if pod.is_counted_idle { PodOccupation::Idle } else { PodOccupation::Busy };
        self.tallies[pod.service.0].note_ended_pod(occupation, self.now);
        Some((pod, self.shared_cores.remove(&number)))
    }
}

/// Whether an order is about something that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetExistence {
    Known,
    Unknown,
}
