//! Who listens, and what have they been told? What has changed waits in the index as topics; this is the
//! order in which it goes out: what is there, then how orders ended, then what is owned, for whoever owns
//! something must know it.

use std::collections::VecDeque;

use orchestration::{OrderId, OrderOutcome, PlatformFact};
use tokio::sync::mpsc;
use vocabulary::{Ownership, Timestamp};

use crate::cluster_inbox::{NewSeat, SeatNumber};
use crate::index::Index;

/// The one autoscaler of this process, as long as it sits there.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) seat: SeatNumber,
    facts: mpsc::Sender<PlatformFact>,
    /// One entry for each order that was given, at most two while it is tried again.
    ended: VecDeque<(OrderId, OrderOutcome)>,
    told: Option<Ownership>,
    /// What it gains and has heard all about, but not that it is its own.
    prepared: Option<Ownership>,
    is_synced: bool,
}

impl Listener {
    pub(crate) fn new(arrival: NewSeat, index: &mut Index) -> Self {
        index.tell_everything();
        let NewSeat { seat, facts } = arrival;
        Self { seat, facts, ended: VecDeque::new(), told: None, prepared: None, is_synced: false }
    }

    pub(crate) fn ended(&mut self, order: OrderId, outcome: OrderOutcome) {
        self.ended.push_back((order, outcome));
    }

    /// Tells as much as there is room for.
    pub(crate) fn say(&mut self, index: &mut Index, ownership: &Ownership, now: Timestamp) {
        while let Ok(room) = self.facts.clone().try_reserve_owned() {
            let Some(fact) = self.next(index, ownership, now) else { return };
            room.send(fact);
        }
    }

    fn next(&mut self, index: &mut Index, ownership: &Ownership, now: Timestamp) -> Option<PlatformFact> {
        if self.told.as_ref() != Some(ownership) && self.prepared.as_ref() != Some(ownership) {
            index.tell_what_others_change();
            self.prepared = Some(ownership.clone());
        }
        if let Some(fact) = index.next_fact(now) {
            return Some(fact);
        }
        if let Some((order, outcome)) = self.ended.pop_front() {
            return Some(PlatformFact::OrderEnded { order, outcome });
        }
        if self.told.as_ref() != Some(ownership) {
            self.told = Some(ownership.clone());
            return Some(PlatformFact::OwnershipChanged(ownership.clone()));
        }
        if !self.is_synced {
            self.is_synced = true;
            return Some(PlatformFact::Synced);
        }
        None
    }

    /// Returns when there is room again, or nobody listens any more.
    pub(crate) async fn room(&self) {
        let _ = self.facts.reserve().await;
    }

    /// Whether it waits for room, not for news.
    pub(crate) fn is_full(&self) -> bool {
        self.facts.capacity() == 0
    }
}
