//! Where orders are left until the supervisor looks. The latest about one subject wins, so what lies here is
//! bounded by the number of pods and revisions; whoever gave an order that was replaced is told.

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

/// The desk.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) orders: Mutex<Orders>,
    pub(super) something_new: Notify,
    /// Whoever watches the files is to read them.
    pub(super) reload: Arc<Notify>,
    /// Every pod has ended, and the supervisor with them.
    pub(super) ended: CancellationToken,
    /// The longest that a pod may drain, as the files were when they were last read.
    pub(super) longest_drain: Mutex<Duration>,
}

/// What lies on it.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Who came and who went, in that order: one each for every start of an autoscaler.
    pub(super) seats: Vec<SeatChange>,
    pub(super) renewals: BTreeSet<SeatId>,
    pub(super) activators: Option<Vec<ActivatorFacts>>,
    /// The latest order about each subject; states of pods first, so that what follows goes by them. What one
    /// autoscaler orders replaces nothing of another's, which alone may have the right to it.
    pub(super) under_way: BTreeMap<(Errand, SeatId), PlatformOrder>,
    /// Orders that were replaced before anybody looked.
    pub(super) superseded: Vec<(SeatId, OrderId)>,
    /// Somebody wants to take everything over.
    pub(super) hand_over: Option<Reply>,
    pub(super) delete: Vec<(RevisionName, oneshot::Sender<Deletion>)>,
    /// Somebody wants to know whether anybody looks.
    pub(super) calls: Vec<oneshot::Sender<()>>,
    pub(super) end: ProcessWish,
}

/// An autoscaler came or went.
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
    /// Where it is told facts.
    pub(super) facts: mpsc::Sender<PlatformFact>,
}

/// What became of the order to remove a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Its pods drain. It comes back when this file is written again and still holds it.
    Begun {
        /// The file.
        file: PathBuf,
    },
    /// There is no such Service, or everything ends anyway.
    Unknown,
}

impl Orders {
    pub(super) fn take_in(&mut self, seat: SeatId, order: PlatformOrder) {
        if let Some(replaced) = self.under_way.insert((order.what.errand(), seat), order) {
            self.superseded.push((seat, replaced.id));
        }
    }
}

impl Desk {
    /// Leaves something to be looked at.
    pub(super) fn leave(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut self.orders.lock());
        self.something_new.notify_one();
    }
}

/// One autoscaler's way to the desk.
#[derive(Debug)]
pub(super) struct LocalSeat {
    pub(super) id: SeatId,
    pub(super) desk: Arc<Desk>,
}

impl Seat for LocalSeat {
    fn execute(&self, order: PlatformOrder) {
        self.desk.leave(|orders| orders.take_in(self.id, order));
    }

    fn renew(&self) {
        self.desk.leave(|orders| {
            orders.renewals.insert(self.id);
        });
    }
}

impl Drop for LocalSeat {
    fn drop(&mut self) {
        self.desk.leave(|orders| orders.seats.push(SeatChange::Left(self.id)));
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
        let mut orders = Orders::default();
        for (id, pod) in [(1, "a"), (2, "b"), (3, "a")] {
            orders.take_in(SeatId(1), release(id, pod));
        }
        // Another's, who may or may not have the right to it.
        orders.take_in(SeatId(2), release(1, "a"));
        assert_eq!(orders.superseded, [(SeatId(1), OrderId(1))]);
        let left = orders.under_way.iter().map(|((_, seat), order)| (seat.0, order.id.0));
        assert_eq!(left.collect::<Vec<_>>(), [(1, 3), (2, 1), (1, 2)]);
    }
}
