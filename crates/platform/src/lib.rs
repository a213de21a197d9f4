//! Where pods live: the one seam that is chosen at start. A platform tells facts ([`PlatformFact`]) and takes
//! orders ([`PlatformOrder`]); the autoscaler holds an `Arc<dyn Platform>` and knows neither Kubernetes nor
//! processes. Facts and orders are `orchestration`'s words: what it must know, and what it wants done.
//!
//! Several autoscalers may share a platform. Each has a seat there, and each bucket of revisions is one
//! seat's at a time: a lease, which the task that decides renews itself, so that one that hangs loses it.

mod history_shelf;
mod metrics;
mod order_desk;

use std::sync::Arc;
use std::time::Duration;

use scaling::Decision;
use tokio::sync::mpsc;
use vocabulary::{ReplicaName, RevisionName};

pub use crate::history_shelf::{HistoryShelf, ShelfFault, ShelfFuture, ShelvedDay};
pub use crate::metrics::{MetricAnswer, MetricFuture, MetricQuestion, MetricReply, MetricSource};
pub use crate::order_desk::OrderDesk;
pub use orchestration::{PlatformFact, PlatformOrder};

/// What runs the pods: local processes or a Kubernetes cluster.
pub trait Platform: Send + Sync + 'static {
    /// Takes a seat for this autoscaler. One that it had before is lost (the autoscaler was rebuilt):
    /// each later order from there is refused.
    fn subscribe(&self, owner: &ReplicaName) -> Subscription;

    /// Where histories of revisions outlive autoscalers; `None` where the platform keeps none.
    fn history_shelf(&self) -> Option<Arc<dyn HistoryShelf>> {
        None
    }

    /// The source of metrics that pods do not report; `None` where there is none.
    fn metric_source(&self) -> Option<Arc<dyn MetricSource>> {
        None
    }
}

/// An autoscaler's place at a platform.
pub struct Subscription {
    /// First everything that is, closed by [`PlatformFact::Synced`], then changes.
    pub facts: mpsc::Receiver<PlatformFact>,
    /// Where orders are given. Dropping it gives up at once what is owned.
    pub seat: Box<dyn Seat>,
    /// How often [`Seat::renew`] is to be called; `None` where no other autoscaler could take over.
    pub renew_every: Option<Duration>,
}

/// Where one autoscaler gives its orders.
pub trait Seat: Send + 'static {
    /// Gives an order. Never blocks. The latest about one subject wins ([`OrderDesk`]); each ends in exactly
    /// one final [`PlatformFact::OrderEnded`], one that was replaced as superseded.
    fn execute(&self, order: PlatformOrder);

    /// Says that the autoscaler of this seat still decides.
    fn renew(&self);

    /// Says what was decided about a revision, also where no order follows from it. Most platforms keep
    /// nothing of that: what they have of a revision is its count and its route.
    fn decided(&self, _revision: &RevisionName, _decision: &Decision) {}
}
