//! Which autoscalers get facts, and which of them may order what?
//!
//! Every autoscaler gets all facts, so that the one that has to take a bucket over knows its pods already.
//! Just before it gets a bucket it is sent the counts and routes that the former owner has ordered meanwhile,
//! which no other autoscaler gets.

use std::collections::BTreeMap;

use futures_util::future::select_all;
use orchestration::{Fence, OrderId, OrderOutcome};
use vocabulary::{Epoch, ReplicaName, Timestamp};

use super::fleet::{Changes, Fleet};
use super::leases::{Leases, SeatId};
use super::order_inbox::SeatArrival;
use super::outbox::{FactOutbox, PlatformStatus, PlatformTopic};

/// All autoscalers that have a seat.
#[derive(Debug)]
pub(crate) struct Subscribers {
    leases: Leases,
    autoscalers: BTreeMap<SeatId, SubscribedAutoscaler>,
}

#[derive(Debug)]
struct SubscribedAutoscaler {
    name: ReplicaName,
    outbox: FactOutbox,
}

impl Subscribers {
    /// No subscriber yet, and a bucket for each of these autoscalers.
    pub(crate) fn new(autoscalers: &[ReplicaName], now: Timestamp) -> Self {
        Self { leases: Leases::new(autoscalers, now), autoscalers: BTreeMap::new() }
    }

    /// Begins with epochs after this one, up to which another process obeyed orders.
    pub(crate) fn begin_after(&mut self, epoch: Epoch) {
        self.leases.begin_after(epoch);
    }

    /// The greatest epoch that was given to an owner.
    pub(crate) fn latest_epoch(&self) -> Epoch {
        self.leases.latest_epoch()
    }

    /// An autoscaler takes a seat. It gets all facts from the beginning, and a former seat of the same name
    /// is void.
    pub(crate) fn take_seat(&mut self, arrival: SeatArrival, fleet: &Fleet, now: Timestamp) {
        let SeatArrival { seat, name, facts } = arrival;
        self.autoscalers.retain(|_, autoscaler| autoscaler.name != name);
        self.leases.take_seat(seat, name.clone(), now);
        let outbox = FactOutbox::new(facts, self.leases.ownership(seat), fleet);
        self.autoscalers.insert(seat, SubscribedAutoscaler { name, outbox });
        self.publish_ownership(fleet);
    }

    /// Takes an autoscaler's seat away; its buckets go to another one.
    pub(crate) fn leave_seat(&mut self, seat: SeatId, fleet: &Fleet, now: Timestamp) {
        self.autoscalers.remove(&seat);
        self.leases.leave_seat(seat, now);
        self.publish_ownership(fleet);
    }

    /// Renews the leases of the autoscalers in these seats.
    pub(crate) fn renew(&mut self, seats: impl IntoIterator<Item = SeatId>, fleet: &Fleet, now: Timestamp) {
        self.leases.renew(seats, now);
        self.publish_ownership(fleet);
    }

    /// Moves buckets whose leases have run out.
    pub(crate) fn advance(&mut self, fleet: &Fleet, now: Timestamp) {
        self.leases.assign_vacant(now);
        self.publish_ownership(fleet);
    }

    /// When [`Subscribers::advance`] is due at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.leases.next_deadline()
    }

    fn publish_ownership(&mut self, fleet: &Fleet) {
        for (seat, autoscaler) in &mut self.autoscalers {
            let ownership = self.leases.ownership(*seat);
            if autoscaler.outbox.set_ownership(ownership, fleet) {
                let epochs = &self.leases.ownership(*seat).epochs;
                let buckets: Vec<String> = epochs.keys().map(|bucket| bucket.0.to_string()).collect();
                let buckets = buckets.join(",");
                tracing::info!(autoscaler = %autoscaler.name, buckets, "buckets have moved");
            }
        }
    }

    /// Whether at least one autoscaler still receives what is sent to it.
    pub(crate) fn any_connected(&self) -> bool {
        self.autoscalers.values().any(|autoscaler| autoscaler.outbox.is_connected())
    }

    /// Whether the autoscaler in this seat may give an order with this fence.
    pub(crate) fn is_in_force(&self, seat: SeatId, fence: Fence) -> bool {
        self.leases.is_in_force(seat, fence)
    }

    /// Tells the autoscaler that gave an order how it ended, if that autoscaler is still there.
    pub(crate) fn order_ended(&mut self, seat: SeatId, order: OrderId, outcome: OrderOutcome) {
        if let Some(autoscaler) = self.autoscalers.get_mut(&seat) {
            autoscaler.outbox.order_ended(order, outcome);
        }
    }

    /// Notes a change of what holds for the whole platform.
    pub(crate) fn note_topic(&mut self, topic: PlatformTopic) {
        self.autoscalers.values_mut().for_each(|autoscaler| autoscaler.outbox.note_topic(topic));
    }

    /// Notes changes for every autoscaler.
    pub(crate) fn note_changes(&mut self, changes: &Changes) {
        self.autoscalers.values_mut().for_each(|autoscaler| autoscaler.outbox.note_changes(changes));
    }

    /// Sends each autoscaler as many facts as fit; true if facts are left for which there was no room.
    pub(crate) fn deliver(&mut self, fleet: &Fleet, status: &PlatformStatus) -> bool {
        let left = self.autoscalers.values_mut().map(|autoscaler| autoscaler.outbox.deliver(fleet, status));
        left.fold(false, |any, more| any | more)
    }

    /// Returns when an autoscaler that had no room has some again.
    pub(crate) async fn wait_for_room(&self) {
        let full = self.autoscalers.values().filter(|autoscaler| autoscaler.outbox.is_full());
        let rooms: Vec<_> = full.map(|autoscaler| Box::pin(autoscaler.outbox.wait_for_room())).collect();
        if !rooms.is_empty() {
            select_all(rooms).await;
        }
    }
}
