//! Where orders are left until the platform's task looks. The latest about one subject wins, so what lies
//! here is bounded by the number of pods and revisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::{Errand, OrderId, PlatformFact, PlatformOrder};
use parking_lot::Mutex;
use platform::Seat;
use tokio::sync::{Notify, mpsc, oneshot};
use vocabulary::RevisionName;

use crate::target::TargetRecord;

/// The desk.
#[derive(Debug, Default)]
pub(crate) struct ClusterDesk {
    contents: Mutex<DeskContents>,
    pub(crate) something_new: Notify,
    /// The lease is nobody's or another's, and nothing of ours is under way.
    pub(crate) given_up: Notify,
}

/// What lies on it.
#[derive(Debug, Default)]
pub(crate) struct DeskContents {
    pub(crate) arrival: Option<NewSeat>,
    /// Whoever sat here last has left.
    pub(crate) departed: Option<SeatNumber>,
    pub(crate) renewed: Option<SeatNumber>,
    /// States of pods first, so that what follows goes by them.
    pub(crate) orders: BTreeMap<(Errand, SeatNumber), PlatformOrder>,
    pub(crate) superseded: Vec<(SeatNumber, OrderId)>,
    /// Which pods a revision has; at most two are under way for each.
    pub(crate) questions: Vec<(RevisionName, oneshot::Sender<Option<TargetRecord>>)>,
}

/// One seat of the autoscaler, which may be rebuilt; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeatNumber(pub(crate) u64);

/// The autoscaler takes a seat.
#[derive(Debug)]
pub(crate) struct NewSeat {
    pub(crate) seat: SeatNumber,
    pub(crate) facts: mpsc::Sender<PlatformFact>,
}

impl ClusterDesk {
    pub(crate) fn leave(&self, change: impl FnOnce(&mut DeskContents)) {
        change(&mut self.contents.lock());
        self.something_new.notify_one();
    }

    pub(crate) fn take(&self) -> DeskContents {
        std::mem::take(&mut *self.contents.lock())
    }
}

/// The autoscaler's way to the desk.
#[derive(Debug)]
pub(crate) struct KubernetesSeat {
    pub(crate) id: SeatNumber,
    pub(crate) desk: Arc<ClusterDesk>,
}

impl Seat for KubernetesSeat {
    fn execute(&self, mut order: PlatformOrder) {
        self.desk.leave(|contents| {
            let subject = (order.what.errand(), self.id);
            if let Some(replaced) = contents.orders.remove(&subject) {
                order.what.supersede(&replaced.what);
                contents.superseded.push((self.id, replaced.id));
            }
            contents.orders.insert(subject, order);
        });
    }

    fn renew(&self) {
        self.desk.leave(|contents| contents.renewed = Some(self.id));
    }
}

impl Drop for KubernetesSeat {
    fn drop(&mut self) {
        self.desk.leave(|contents| contents.departed = Some(self.id));
    }
}
