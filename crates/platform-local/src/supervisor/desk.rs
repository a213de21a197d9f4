//! Where orders are left until the supervisor looks. The latest about one subject wins, so what lies here is bounded by the number of pods and
//! revisions; whoever gave an order that was replaced is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ActivatorFacts, Entrance, Fence, Order, OrderId, PlatformFact, PlatformOrder, Subject};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use vocabulary::{PodName, RevisionName};

use super::Deletion;
use super::handover::Reply;
use super::process::Wish;

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
    pub(super) subscriber: Option<mpsc::Sender<PlatformFact>>,
    pub(super) activators: Option<Vec<ActivatorFacts>>,
    /// The latest order about each subject; states of pods first, so that what follows goes by them.
    pub(super) under_way: BTreeMap<Errand, PlatformOrder>,
    /// Orders that were replaced before anybody looked.
    pub(super) superseded: Vec<(Fence, OrderId)>,
    /// Somebody wants to take everything over.
    pub(super) hand_over: Option<Reply>,
    pub(super) delete: Vec<(RevisionName, oneshot::Sender<Deletion>)>,
    pub(super) end: Wish,
}

/// What an order is about: two about the same replace each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Errand {
    State(PodName),
    Route(RevisionName),
    Scale(RevisionName),
    Release(PodName),
    Entrance(RevisionName, Entrance),
    Tell(Subject),
}

impl Orders {
    pub(super) fn take_in(&mut self, order: PlatformOrder) {
        if let Some(replaced) = self.under_way.insert(Errand::of(&order.what), order) {
            self.superseded.push((replaced.fence, replaced.id));
        }
    }
}

impl Errand {
    fn of(order: &Order) -> Self {
        match order {
            Order::ScaleTo { revision, .. } => Self::Scale(revision.clone()),
            Order::Route { revision, .. } => Self::Route(revision.clone()),
            Order::ReleasePod { pod, .. } => Self::Release(pod.clone()),
            Order::ReleaseEntrance { revision, entrance } => {
                Self::Entrance(revision.clone(), entrance.clone())
            }
            Order::NotePodState { pod, .. } => Self::State(pod.clone()),
            Order::Tell { about, .. } => Self::Tell(about.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestration::ReleaseProof;
    use vocabulary::{Bucket, Epoch};

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
            orders.take_in(release(id, pod));
        }
        assert_eq!(orders.superseded, [(fence, OrderId(1))]);
        let left: Vec<OrderId> = orders.under_way.values().map(|order| order.id).collect();
        assert_eq!(left, [OrderId(3), OrderId(2)]);
    }
}
