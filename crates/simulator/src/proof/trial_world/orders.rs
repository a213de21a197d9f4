//! The platform does as it is ordered: by the owner of the bucket alone, at once or later, or not at all.

use orchestration::{
    ControlEvent, Errand, Order, OrderId, OrderOutcome, PlatformFact, PlatformOrder, RouteInForce,
};
use vocabulary::{PodCount, PodName, RevisionName, Timestamp};

use super::{PendingOrder, TrialWorld};
use crate::proof::reached_state::ReachedState;
use crate::proof::trial_event::{OwnerProcess, TrialEvent};
use crate::world_event::ServiceNumber;

impl TrialWorld<'_> {
    pub(super) fn platform_hears(&mut self, process: OwnerProcess, mut order: PlatformOrder) {
        if !self.leases.allows(process.owner, order.fence) {
            self.checks.reached(ReachedState::OrderFenced);
            return self.tell_outcome(process, order.id, OrderOutcome::NotOwner);
        }
        let errand = order.what.errand();
        if let Some(replaced) = self.pending.remove(&errand) {
            order.what.supersede(&replaced.order.what);
            self.checks.reached(ReachedState::OrderSuperseded);
            self.tell_outcome(replaced.process, replaced.order.id, OrderOutcome::Superseded);
        }
        match self.retried_until(&order.what) {
            Some(until) => {
                self.checks.reached(ReachedState::OrderRetried);
                let why = "the platform does not answer".to_owned();
                self.tell_outcome(process, order.id, OrderOutcome::Retrying(why));
                self.at(until, TrialEvent::OrderIsTried(Box::new(errand.clone()), process, order.id));
                self.pending.insert(errand, PendingOrder { process, order });
            }
            None => self.carry_out(process, &order),
        }
    }

    /// Until when an order cannot be carried out; `None` if it can.
    fn retried_until(&self, order: &Order) -> Option<Timestamp> {
        let (Order::ScaleTo { revision, .. } | Order::Route { revision, .. }) = order else { return None };
        let service = self.platform.service(revision)?;
        Some(self.troubles[service.0].retried_until).filter(|until| *until > self.now)
    }

    pub(super) fn order_is_tried(&mut self, errand: &Errand, process: OwnerProcess, id: OrderId) {
        let is_same = |pending: &PendingOrder| pending.order.id == id && pending.process == process;
        if !self.pending.get(errand).is_some_and(is_same) {
            return;
        }
        let Some(PendingOrder { process, order }) = self.pending.remove(errand) else { return };
        if self.leases.allows(process.owner, order.fence) {
            self.carry_out(process, &order);
        } else {
            self.checks.reached(ReachedState::OrderFenced);
            self.tell_outcome(process, order.id, OrderOutcome::NotOwner);
        }
    }

    fn tell_outcome(&mut self, process: OwnerProcess, order: OrderId, outcome: OrderOutcome) {
        if self.is_gone(process) {
            return;
        }
        let fact = PlatformFact::OrderEnded { order, outcome };
        let owner = &mut self.owners[process.owner.0];
        let at = owner.facts.arrival(self.now, self.delays.platform);
        self.at(at, TrialEvent::OwnerHears(process, Box::new(ControlEvent::Platform(fact))));
    }

    fn carry_out(&mut self, process: OwnerProcess, order: &PlatformOrder) {
        let outcome = match &order.what {
            Order::ScaleTo { revision, from, to, end_first, .. } => {
                let decided = DecidedCount { from: *from, to: *to };
                self.scale_as_ordered(revision, decided, end_first)
            }
            Order::Route { revision, routing, activators } => {
                let route = RouteInForce { routing: *routing, activators: activators.clone() };
                self.write_route(revision, route)
            }
            Order::ReleasePod { pod, .. } => self.drain(pod),
            Order::NoteDrained { .. }
            | Order::ReleaseEntrance { .. }
            | Order::NotePodState { .. }
            | Order::NotePodReach { .. }
            | Order::Tell { .. } => OrderOutcome::Done,
        };
        self.tell_outcome(process, order.id, outcome);
    }

    fn scale_as_ordered(
        &mut self,
        revision: &RevisionName,
        decided: DecidedCount,
        end_first: &[PodName],
    ) -> OrderOutcome {
        let Some(service) = self.platform.service(revision) else { return OrderOutcome::Gone };
        let trouble = &mut self.troubles[service.0];
        if std::mem::take(&mut trouble.count_is_refused) {
            self.checks.reached(ReachedState::OrderRefused);
            return OrderOutcome::Refused("the platform refuses this count".to_owned());
        }
        let found = self.platform.facts(service).wanted;
        if found != decided.from && found != decided.to {
            self.checks.reached(ReachedState::CountConflict);
            return OrderOutcome::Conflict { found };
        }
        self.write_count(service, decided.to, end_first);
        OrderOutcome::Done
    }

    /// The count of a Service is another one from now on, by an owner's order or by another client.
    pub(super) fn write_count(&mut self, service: ServiceNumber, count: PodCount, end_first: &[PodName]) {
        self.scale(service, count, end_first);
        let fact = self.platform.fact_of_service(service);
        self.state(&fact);
        self.state_pods(service);
    }

    fn write_route(&mut self, revision: &RevisionName, route: RouteInForce) -> OrderOutcome {
        let Some(service) = self.platform.service(revision) else { return OrderOutcome::Gone };
        let routing = route.routing;
        let former = self.routes.insert(service, route).map(|former| former.routing);
        self.note_route(former, routing);
        OrderOutcome::Done
    }

    /// A pod is told to end: it takes what still comes until it holds nothing.
    fn drain(&mut self, name: &PodName) -> OrderOutcome {
        let Some(number) = self.platform.release(name).map(|pod| pod.number) else {
            return OrderOutcome::Gone;
        };
        self.pod_says_its_state(number);
        self.end_if_drained(number);
        OrderOutcome::Done
    }
}

/// A count, and the one that it was decided upon.
#[derive(Clone, Copy, Debug)]
struct DecidedCount {
    from: PodCount,
    to: PodCount,
}
