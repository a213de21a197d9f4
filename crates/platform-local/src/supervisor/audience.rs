//! Who listens, and by what right does each give orders?
//!
//! Every autoscaler hears everything, so that whoever has to take a bucket over knows its pods already. Just
//! before it hears that a bucket is its own it is told once more what others have changed there meanwhile:
//! counts and routes, which nobody else is told of.

use std::collections::BTreeMap;

use futures_util::future::select_all;
use orchestration::{Fence, OrderId, OrderOutcome};
use vocabulary::{Epoch, ReplicaName, Timestamp};

use super::fleet::{Changes, Fleet};
use super::leases::{Leases, SeatId};
use super::order_inbox::SeatArrival;
use super::outbox::{FactOutbox, PlatformTopic, Surface};

/// All autoscalers that have a seat.
#[derive(Debug)]
pub(crate) struct Audience {
    leases: Leases,
    listeners: BTreeMap<SeatId, ListeningAutoscaler>,
}

#[derive(Debug)]
struct ListeningAutoscaler {
    name: ReplicaName,
    outbox: FactOutbox,
}

impl Audience {
    /// Nobody yet, but room for these.
    pub(crate) fn new(autoscalers: &[ReplicaName], now: Timestamp) -> Self {
        Self { leases: Leases::new(autoscalers, now), listeners: BTreeMap::new() }
    }

    /// Another process obeyed orders up to this epoch.
    pub(crate) fn begin_after(&mut self, epoch: Epoch) {
        self.leases.begin_after(epoch);
    }

    /// The greatest that anybody was given.
    pub(crate) fn latest_epoch(&self) -> Epoch {
        self.leases.latest_epoch()
    }

    /// An autoscaler takes a seat. It hears everything from the beginning; a seat of the same name is
    /// nobody's any more.
    pub(crate) fn sit(&mut self, arrival: SeatArrival, fleet: &Fleet, now: Timestamp) {
        let SeatArrival { seat, name, facts } = arrival;
        self.listeners.retain(|_, listener| listener.name != name);
        self.leases.sit(seat, name.clone(), now);
        let outbox = FactOutbox::new(facts, self.leases.ownership(seat), fleet);
        self.listeners.insert(seat, ListeningAutoscaler { name, outbox });
        self.tell_who_owns(fleet);
    }

    /// An autoscaler has left.
    pub(crate) fn leave(&mut self, seat: SeatId, fleet: &Fleet, now: Timestamp) {
        self.listeners.remove(&seat);
        self.leases.leave(seat, now);
        self.tell_who_owns(fleet);
    }

    /// These are alive.
    pub(crate) fn renew(&mut self, seats: impl IntoIterator<Item = SeatId>, fleet: &Fleet, now: Timestamp) {
        self.leases.renew(seats, now);
        self.tell_who_owns(fleet);
    }

    /// Looks whose leases have run out.
    pub(crate) fn advance(&mut self, fleet: &Fleet, now: Timestamp) {
        self.leases.settle(now);
        self.tell_who_owns(fleet);
    }

    /// When [`Audience::advance`] is due at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.leases.next_deadline()
    }

    fn tell_who_owns(&mut self, fleet: &Fleet) {
        for (seat, listener) in &mut self.listeners {
            let ownership = self.leases.ownership(*seat);
            if listener.outbox.own(ownership, fleet) {
                let epochs = &self.leases.ownership(*seat).epochs;
                let buckets: Vec<u16> = epochs.keys().map(|bucket| bucket.0).collect();
                tracing::info!(autoscaler = %listener.name, ?buckets, "buckets have moved");
            }
        }
    }

    /// Whether anybody listens.
    pub(crate) fn is_there(&self) -> bool {
        self.listeners.values().any(|listener| listener.outbox.is_heard())
    }

    /// Whether an order is its giver's to give.
    pub(crate) fn is_in_force(&self, seat: SeatId, fence: Fence) -> bool {
        self.leases.is_in_force(seat, fence)
    }

    /// An order ended. Whoever gave it may be gone; then nobody else is told.
    pub(crate) fn ended(&mut self, seat: SeatId, order: OrderId, outcome: OrderOutcome) {
        if let Some(listener) = self.listeners.get_mut(&seat) {
            listener.outbox.ended(order, outcome);
        }
    }

    /// What holds for the whole platform changed.
    pub(crate) fn note_topic(&mut self, topic: PlatformTopic) {
        self.listeners.values_mut().for_each(|listener| listener.outbox.note_topic(topic));
    }

    /// Revisions or pods changed.
    pub(crate) fn note(&mut self, changes: &Changes) {
        self.listeners.values_mut().for_each(|listener| listener.outbox.note(changes));
    }

    /// Tells everybody as much as fits; true if something is left to be said when there is room.
    pub(crate) fn say(&mut self, fleet: &Fleet, surface: &Surface) -> bool {
        let left = self.listeners.values_mut().map(|listener| listener.outbox.say(fleet, surface));
        left.fold(false, |any, more| any | more)
    }

    /// Returns when there is room for more with somebody to whom something is left to be said.
    pub(crate) async fn room(&self) {
        let full = self.listeners.values().filter(|listener| listener.outbox.is_full());
        let rooms: Vec<_> = full.map(|listener| Box::pin(listener.outbox.room())).collect();
        if !rooms.is_empty() {
            select_all(rooms).await;
        }
    }
}
