//! Where orders are left until the platform's task looks. The latest about one subject wins, so what lies here is bounded by the number of pods and revisions.

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
pub(crate) struct Desk {
    left: Mutex<Left>,
    pub(crate) something_new: Notify,
    /// The lease is nobody's or another's, and nothing of ours is under way.
    pub(crate) given_up: Notify,
}

/// What lies on it.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) arrival: Option<Arrival>,
    /// Whoever sat here last has left.
    pub(crate) departed: Option<SeatId>,
    pub(crate) renewed: Option<SeatId>,
    /// States of pods first, so that what follows goes by them.
    pub(crate) orders: BTreeMap<(Errand, SeatId), PlatformOrder>,
    pub(crate) superseded: Vec<(SeatId, OrderId)>,
    /// Which pods a revision has; at most two are under way for each.
    pub(crate) questions: Vec<(RevisionName, oneshot::Sender<Option<TargetRecord>>)>,
}

/// One seat of the autoscaler, which may be rebuilt; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeatId(pub(crate) u64);

/// The autoscaler takes a seat.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) seat: SeatId,
    pub(crate) facts: mpsc::Sender<PlatformFact>,
}

impl Desk {
    pub(crate) fn leave(&self, change: impl FnOnce(&mut Left)) {
        change(&mut self.left.lock());
        self.something_new.notify_one();
    }

    pub(crate) fn take(&self) -> Left {
        std::mem::take(&mut *self.left.lock())
    }
}

/// The autoscaler's way to the desk.
#[derive(Debug)]
pub(crate) struct KubernetesSeat {
    pub(crate) id: SeatId,
    pub(crate) desk: Arc<Desk>,
}

impl Seat for KubernetesSeat {
    fn execute(&self, order: PlatformOrder) {
        self.desk.leave(|left| {
            if let Some(replaced) = left.orders.insert((order.what.errand(), self.id), order) {
                left.superseded.push((self.id, replaced.id));
            }
        });
    }

    fn renew(&self) {
        self.desk.leave(|left| left.renewed = Some(self.id));
    }
}

impl Drop for KubernetesSeat {
    fn drop(&mut self) {
        self.desk.leave(|left| left.departed = Some(self.id));
    }
}
