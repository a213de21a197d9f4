//! The orders that wait until the supervisor looks. The latest order about a subject replaces the former one,
//! so their number is bounded by that of pods and revisions; the giver of a replaced order is told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ActivatorFacts, Errand, OrderId, PlatformFact, PlatformOrder};
use parking_lot::Mutex;
use platform::Seat;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use vocabulary::{ReplicaName, RevisionName};

use super::handover::Reply;
use super::leases::SeatId;
use super::process::ProcessWish;

/// The orders that wait for the supervisor, and the signals between it and all that give them.
#[derive(Debug, Default)]
pub(super) struct OrderInbox {
    /// Held only while orders are added or taken out, never across an `await`.
    pub(super) orders: Mutex<PendingOrders>,
    /// Wakes the supervisor after each addition.
    pub(super) changed: Notify,
    /// Wakes the watch over the files, to read them.
    pub(super) reload: Arc<Notify>,
    /// Every pod has ended, and the supervisor with them.
    pub(super) ended: CancellationToken,
    /// The longest that a pod may drain, as the files were when they were last read.
    pub(super) longest_drain: Mutex<Duration>,
}

/// The orders since the supervisor looked last.
#[derive(Debug, Default)]
pub(super) struct PendingOrders {
    /// Seats that were taken and left, in their order: one of each for every start of an autoscaler.
    pub(super) seats: Vec<SeatChange>,
    /// Seats whose autoscalers have renewed their leases.
    pub(super) renewals: BTreeSet<SeatId>,
    /// All activators, if they have changed.
    pub(super) activators: Option<Vec<ActivatorFacts>>,
    /// The latest order about each subject; states of pods first, so that later orders go by them. An
    /// autoscaler's order never replaces that of another autoscaler, which alone may own the revision.
    pub(super) under_way: BTreeMap<(Errand, SeatId), PlatformOrder>,
    /// Orders that were replaced before the supervisor looked: their givers are told so.
    pub(super) superseded: Vec<(SeatId, OrderId)>,
    /// The answer goes to the process that wants to take everything over.
    pub(super) hand_over: Option<Reply>,
    /// Services that a person removes, each with the channel for the answer.
    pub(super) delete: Vec<(RevisionName, oneshot::Sender<Deletion>)>,
    /// Answered as soon as the supervisor looks, as a sign that it does not hang.
    pub(super) calls: Vec<oneshot::Sender<()>>,
    /// Whether all pods are to end, and how; it only ever grows.
    pub(super) end: ProcessWish,
}

/// An autoscaler took its seat or left it.
#[derive(Debug)]
pub(super) enum SeatChange {
    Taken(SeatArrival),
    Left(SeatId),
}

/// An autoscaler that takes a seat.
#[derive(Debug)]
pub(super) struct SeatArrival {
    pub(super) seat: SeatId,
    pub(super) name: ReplicaName,
    /// Facts of the platform for this autoscaler.
    pub(super) facts: mpsc::Sender<PlatformFact>,
}

/// What became of the order to remove a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Its pods drain. It comes back when this file is written again and still holds it.
    Begun {
        /// The manifest from which the Service was read last.
        file: PathBuf,
    },
    /// There is no such Service, or everything ends anyway.
    Unknown,
}

impl PendingOrders {
    pub(super) fn add_order(&mut self, seat: SeatId, order: PlatformOrder) {
        if let Some(replaced) = self.under_way.insert((order.what.errand(), seat), order) {
            self.superseded.push((seat, replaced.id));
        }
    }
}

impl OrderInbox {
    /// Adds to the orders, and wakes the supervisor.
    pub(super) fn update(&self, change: impl FnOnce(&mut PendingOrders)) {
        change(&mut self.orders.lock());
        self.changed.notify_one();
    }
}

/// The inbox as one autoscaler uses it.
#[derive(Debug)]
pub(super) struct LocalSeat {
    pub(super) id: SeatId,
    pub(super) inbox: Arc<OrderInbox>,
}

impl Seat for LocalSeat {
    fn execute(&self, order: PlatformOrder) {
        self.inbox.update(|orders| orders.add_order(self.id, order));
    }

    fn renew(&self) {
        self.inbox.update(|orders| {
            orders.renewals.insert(self.id);
        });
    }
}

impl Drop for LocalSeat {
    fn drop(&mut self) {
        self.inbox.update(|orders| orders.seats.push(SeatChange::Left(self.id)));
    }
}

#[cfg(test)]
mod tests {
    use orchestration::{Fence, Order, ReleaseProof};
    use vocabulary::{Bucket, Epoch, PodName};

    use super::*;

    #[test]
    fn the_latest_order_about_a_subject_wins_and_the_replaced_one_is_known() {
        let fence = Fence { bucket: Bucket(0), epoch: Epoch(1) };
        let release = |id, pod: &str| {
            let what = Order::ReleasePod { pod: PodName::new(pod), proof: ReleaseProof::Acknowledged };
            PlatformOrder { id: OrderId(id), fence, what }
        };
        let mut orders = PendingOrders::default();
        for (id, pod) in [(1, "a"), (2, "b"), (3, "a")] {
            orders.add_order(SeatId(1), release(id, pod));
        }
        // The order of another autoscaler, which may own the revision or not.
        orders.add_order(SeatId(2), release(1, "a"));
        assert_eq!(orders.superseded, [(SeatId(1), OrderId(1))]);
        let left = orders.under_way.iter().map(|((_, seat), order)| (seat.0, order.id.0));
        assert_eq!(left.collect::<Vec<_>>(), [(1, 3), (2, 1), (1, 2)]);
    }
}
