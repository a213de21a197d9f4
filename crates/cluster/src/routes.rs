//! Which revisions' slices are being written, and which orders wait for that?

use std::collections::{BTreeMap, BTreeSet};

use orchestration::OrderId;
use vocabulary::{PodName, RevisionName, Timestamp};

use crate::index::Index;
use crate::resources::ObjectKey;
use crate::seat::SeatNumber;
use crate::write_queue::WriteQueue;

/// An order, by the seat from which it was given and its number there.
pub(crate) type OrderKey = (SeatNumber, OrderId);

/// The slices of one revision.
#[derive(Debug, Default)]
pub(crate) struct RouteWork {
    pub(crate) queue: WriteQueue<()>,
    /// The order of the route that is to be written.
    pub(crate) ordered_by: Option<OrderKey>,
    /// Pods that no slice may name any more, with the orders that end when no slice names them.
    releases: BTreeMap<PodName, OrderKey>,
    /// Services whose adoption is announced once no slice of another writer is left on them.
    pub(crate) adopting: BTreeSet<ObjectKey>,
}

impl RouteWork {
    /// No slice may name this pod any more; returns an earlier order of the same.
    pub(crate) fn release(&mut self, pod: PodName, key: OrderKey) -> Option<OrderKey> {
        self.queue.put(());
        self.releases.insert(pod, key)
    }

    /// All slices are written: returns the order of the route, and the orders about pods that no slice names
    /// now.
    pub(crate) fn settle(&mut self, revision: &RevisionName, index: &Index) -> Vec<OrderKey> {
        let free = self.releases.extract_if(.., |pod, _| !index.is_pod_named(revision, pod));
        let mut settled: Vec<OrderKey> = free.map(|(_, key)| key).collect();
        settled.extend(self.ordered_by.take());
        settled
    }

    /// The bucket is not ours any more: returns all orders that wait.
    pub(crate) fn give_up(&mut self) -> Vec<OrderKey> {
        let releases = std::mem::take(&mut self.releases);
        releases.into_values().chain(self.ordered_by.take()).collect()
    }

    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.queue.is_idle(now)
            && self.ordered_by.is_none()
            && self.releases.is_empty()
            && self.adopting.is_empty()
    }
}
