//! What waits until the supervisor looks: orders of autoscalers, on the desk that all platforms have, and
//! wishes of other parts of `ebb up`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ActivatorFacts, PlatformFact, PlatformOrder};
use parking_lot::Mutex;
use platform::{OrderDesk, Seat};
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
    /// All problems of this process that no file mends, if they have changed.
    pub(super) standing_problems: Option<Vec<String>>,
    /// Orders of autoscalers; those of its seat are each autoscaler's own.
    pub(super) desk: OrderDesk<SeatId>,
    /// The answer goes to the process that wants to take everything over.
    pub(super) hand_over: Option<Reply>,
    /// Services that a person removes, each with the channel for the answer.
    pub(super) delete: Vec<(RevisionName, oneshot::Sender<Deletion>)>,
    /// What a person orders of pods of Services, each with the channel for the answer.
    pub(super) rollouts: Vec<(RevisionName, RolloutWish, oneshot::Sender<RolloutAnswer>)>,
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

/// Which pods are to take over from those of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RolloutWish {
    /// New ones of the same template.
    Restart,
    /// Pods of the template before the last edit.
    Rollback,
}

/// What became of the order that other pods take over from those of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutAnswer {
    /// They do, without losing a request. After a rollback the template of this file comes back when it is
    /// written again.
    Begun {
        /// The manifest from which the Service was read last.
        file: PathBuf,
    },
    /// The template was not edited since this process read it.
    NothingBefore,
    /// There is no such Service, or everything ends anyway.
    Unknown,
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
        self.inbox.update(|orders| orders.desk.put(self.id, order));
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
