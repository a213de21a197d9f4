//! In which order do facts go to the autoscaler, and which has it received? Changes wait in the index as
//! topics. First go the objects that are there, then how orders ended, then which buckets are ours: an
//! autoscaler must know everything of a bucket before it decides there.

use std::collections::VecDeque;

use orchestration::{OrderId, OrderOutcome, PlatformFact};
use tokio::sync::mpsc;
use vocabulary::{Ownership, Timestamp};

use crate::cluster_inbox::{NewSeat, SeatNumber};
use crate::index::Index;

/// The facts of the one autoscaler of this process, for as long as it keeps its seat.
#[derive(Debug)]
pub(crate) struct FactFeed {
    pub(crate) seat: SeatNumber,
    facts: mpsc::Sender<PlatformFact>,
    /// One entry for each order that was given, at most two while it is tried again.
    ended_orders: VecDeque<(OrderId, OrderOutcome)>,
    /// The ownership that was sent last.
    sent_ownership: Option<Ownership>,
    /// The ownership for which counts and routes were sent again, ahead of the ownership itself.
    prepared_ownership: Option<Ownership>,
    is_synced: bool,
}

impl FactFeed {
    pub(crate) fn new(new_seat: NewSeat, index: &mut Index) -> Self {
        index.resend_everything();
        let NewSeat { seat, facts } = new_seat;
        Self {
            seat,
            facts,
            ended_orders: VecDeque::new(),
            sent_ownership: None,
            prepared_ownership: None,
            is_synced: false,
        }
    }

    pub(crate) fn order_ended(&mut self, order: OrderId, outcome: OrderOutcome) {
        self.ended_orders.push_back((order, outcome));
    }

    /// Sends as many facts as the channel has room for.
    pub(crate) fn send_facts(&mut self, index: &mut Index, ownership: &Ownership, now: Timestamp) {
        while let Ok(room) = self.facts.clone().try_reserve_owned() {
            let Some(fact) = self.next_fact(index, ownership, now) else { return };
            room.send(fact);
        }
    }

    fn next_fact(
        &mut self,
        index: &mut Index,
        ownership: &Ownership,
        now: Timestamp,
    ) -> Option<PlatformFact> {
        if self.sent_ownership.as_ref() != Some(ownership)
            && self.prepared_ownership.as_ref() != Some(ownership)
        {
            index.resend_counts_and_routes();
            self.prepared_ownership = Some(ownership.clone());
        }
        if let Some(fact) = index.next_fact(now) {
            return Some(fact);
        }
        if let Some((order, outcome)) = self.ended_orders.pop_front() {
            return Some(PlatformFact::OrderEnded { order, outcome });
        }
        if self.sent_ownership.as_ref() != Some(ownership) {
            self.sent_ownership = Some(ownership.clone());
            return Some(PlatformFact::OwnershipChanged(ownership.clone()));
        }
        if !self.is_synced {
            self.is_synced = true;
            return Some(PlatformFact::Synced);
        }
        None
    }

    /// Returns when the channel has room again, or is closed.
    pub(crate) async fn wait_for_room(&self) {
        let _ = self.facts.reserve().await;
    }

    /// Whether facts may be waiting for room in the channel, and not for changes.
    pub(crate) fn is_full(&self) -> bool {
        self.facts.capacity() == 0
    }
}
