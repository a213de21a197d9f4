//! In which order do facts go to the autoscaler, and which has it received? Changes wait in the index as
//! topics. First go the objects that are there, then how orders ended, then which buckets are ours: an
//! autoscaler must know everything of a bucket before it decides there.

use std::collections::VecDeque;

use orchestration::{OrderId, OrderOutcome, PlatformFact};
use vocabulary::{Ownership, Timestamp};

use crate::index::Index;
use crate::seat::SeatNumber;

/// The facts of the one autoscaler of this process, for as long as it keeps its seat.
#[derive(Debug)]
pub(crate) struct FactFeed {
    pub(crate) seat: SeatNumber,
    /// One entry for each order that was given, at most two while it is tried again.
    ended_orders: VecDeque<(OrderId, OrderOutcome)>,
    /// The ownership that was sent last.
    sent_ownership: Option<Ownership>,
    /// The ownership for which counts and routes were sent again, ahead of the ownership itself.
    prepared_ownership: Option<Ownership>,
    is_synced: bool,
}

impl FactFeed {
    pub(crate) fn new(seat: SeatNumber, index: &mut Index) -> Self {
        index.resend_everything();
        Self {
            seat,
            ended_orders: VecDeque::new(),
            sent_ownership: None,
            prepared_ownership: None,
            is_synced: false,
        }
    }

    pub(crate) fn order_ended(&mut self, order: OrderId, outcome: OrderOutcome) {
        self.ended_orders.push_back((order, outcome));
    }

    /// The next fact, if anything has changed.
    pub(crate) fn next_fact(
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
}
