//! Which revisions are on a page of metrics?
//!
//! The event loop sets no value of a revision: a page of ten thousand revisions costs the reader that asks
//! for it. Several autoscalers of one process share a page, and a revision that two of them know for a
//! moment, while its bucket changes hands, is that of the later owner.

use std::sync::{Arc, Mutex, PoisonError};

use orchestration::{ControlSnapshot, DecidedState, RevisionSnapshot};
use settings::DemandMetric;
use vocabulary::{RevisionName, Timestamp};

use crate::snapshot::{Snapshot, SnapshotReader};

/// The autoscalers of a process, as far as they run.
#[derive(Clone, Debug, Default)]
pub(super) struct ShownAutoscalers(Arc<Mutex<Vec<SnapshotReader>>>);

impl ShownAutoscalers {
    /// Shows one more autoscaler, until it ends.
    pub(super) fn add(&self, reader: SnapshotReader) {
        let mut readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|known| known.latest().is_some());
        readers.push(reader);
    }

    pub(super) fn snapshots(&self) -> Vec<Arc<Snapshot>> {
        let readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readers.iter().filter_map(SnapshotReader::latest).collect()
    }
}

/// A revision of a page, as its latest owner published it.
pub(super) struct ShownRevision<'s> {
    pub(super) name: &'s RevisionName,
    pub(super) decided: &'s DecidedState,
    pub(super) metric: DemandMetric,
    pub(super) published_at: Timestamp,
}

/// All revisions of these snapshots, each as its latest owner knows it.
pub(super) fn revisions(snapshots: &[Arc<Snapshot>]) -> impl Iterator<Item = ShownRevision<'_>> {
    snapshots.iter().flat_map(move |snapshot| {
        let owned = snapshot.control.revisions().iter();
        let latest = owned.filter(move |(name, revision)| {
            let is_later = |other: &Arc<Snapshot>| epoch_in(&other.control, name) > epoch(revision);
            !snapshots.iter().any(is_later)
        });
        latest.filter_map(move |(name, revision)| {
            let decided = revision.decided.as_ref()?;
            let metric = revision.spec.demand().metric;
            Some(ShownRevision { name, decided, metric, published_at: snapshot.at })
        })
    })
}

fn epoch_in(control: &ControlSnapshot, name: &RevisionName) -> Option<u64> {
    epoch(control.revisions().get(name)?)
}

fn epoch(revision: &RevisionSnapshot) -> Option<u64> {
    revision.fence.map(|fence| fence.epoch.0)
}
