//! Where do orders, seats and questions wait for the platform's task? Orders lie on the desk that all
//! platforms have, so what waits here is bounded by the number of pods and revisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{SeatNumber, TargetRecord};
use orchestration::{PlatformFact, PlatformOrder};
use parking_lot::Mutex;
use platform::{OrderDesk, Seat};
use scaling::Decision;
use tokio::sync::{Notify, mpsc, oneshot};
use vocabulary::{PodCount, RevisionName};

/// What the autoscaler and its metric source leave for the platform's task, which takes all of it at once.
#[derive(Debug, Default)]
pub(crate) struct ClusterInbox {
    contents: Mutex<ClusterInboxContents>,
    /// Wakes the platform's task after [`ClusterInbox::update`].
    pub(crate) updated: Notify,
    /// Wakes the program on its way out: no Lease is ours, and no write of ours is under way.
    pub(crate) given_up: Notify,
}

/// Everything that was left since the platform's task took the contents last.
#[derive(Debug, Default)]
pub(crate) struct ClusterInboxContents {
    pub(crate) new_seat: Option<NewSeat>,
    /// The seat that the autoscaler left last.
    pub(crate) departed: Option<SeatNumber>,
    /// The seat that said last that its autoscaler still decides.
    pub(crate) renewed: Option<SeatNumber>,
    pub(crate) desk: OrderDesk<SeatNumber>,
    /// What was decided last about each revision, where the platform shows that.
    pub(crate) decided: BTreeMap<RevisionName, ShownDecision>,
    /// Questions of class hpa for the pods of a revision; at most two are under way for each revision.
    pub(crate) target_queries: Vec<(RevisionName, oneshot::Sender<Option<TargetRecord>>)>,
    /// Whether histories are kept, and if not, why.
    pub(crate) histories: Option<Result<(), String>>,
}

/// What was decided about a revision, as far as its objects say it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownDecision {
    pub(crate) seat: SeatNumber,
    pub(crate) intended: Option<PodCount>,
    pub(crate) activators: PodCount,
}

/// The autoscaler takes a seat, and receives facts from then on.
#[derive(Debug)]
pub(crate) struct NewSeat {
    pub(crate) seat: SeatNumber,
    pub(crate) facts: mpsc::Sender<PlatformFact>,
}

impl ClusterInbox {
    pub(crate) fn update(&self, change: impl FnOnce(&mut ClusterInboxContents)) {
        change(&mut self.contents.lock());
        self.updated.notify_one();
    }

    pub(crate) fn take(&self) -> ClusterInboxContents {
        std::mem::take(&mut *self.contents.lock())
    }
}

/// The autoscaler's end: orders and renewals go from here to the inbox.
#[derive(Debug)]
pub(crate) struct KubernetesSeat {
    pub(crate) id: SeatNumber,
    pub(crate) inbox: Arc<ClusterInbox>,
    /// Whether what is decided about a revision stands in one of its objects.
    pub(crate) shows_decisions: bool,
}

impl Seat for KubernetesSeat {
    fn execute(&self, order: PlatformOrder) {
        self.inbox.update(|contents| contents.desk.put(self.id, order));
    }

    fn renew(&self) {
        self.inbox.update(|contents| contents.renewed = Some(self.id));
    }

    fn decided(&self, revision: &RevisionName, decision: &Decision) {
        if !self.shows_decisions {
            return;
        }
        let (seat, intended, activators) = (self.id, decision.intended, decision.activators);
        let shown = ShownDecision { seat, intended, activators };
        self.inbox.update(|contents| {
            contents.decided.insert(revision.clone(), shown);
        });
    }
}

impl Drop for KubernetesSeat {
    fn drop(&mut self) {
        self.inbox.update(|contents| contents.departed = Some(self.id));
    }
}
