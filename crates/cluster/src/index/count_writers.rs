//! The counts of all workloads, each with a [`CountWriter`], which outlives its workload while an order or a
//! request is left.

use std::collections::{BTreeMap, BTreeSet};

use vocabulary::{PodCount, RevisionName, Timestamp};

use crate::count_writer::{CountSighting, CountWrite, CountWriter, EndedWrite, WriteEnding};
use crate::resources::workload::ShownCount;

/// The writers of all workloads' counts.
#[derive(Debug, Default)]
pub(super) struct CountWriters {
    writers: BTreeMap<RevisionName, CountWriter>,
    /// Workloads whose writers are not at rest, or may have to be forgotten. The others, which are nearly
    /// all, cost nothing when the task looks for what is due.
    unsettled: BTreeSet<RevisionName>,
}

impl CountWriters {
    /// The greatest count that the workload may have: a request under way may be done or not.
    pub(super) fn greatest_count(&self, revision: &RevisionName) -> Option<PodCount> {
        self.writers.get(revision)?.greatest_count()
    }

    /// The count that the workload is to have, with a write of ours that the watch has not shown.
    pub(super) fn wanted(&self, revision: &RevisionName) -> Option<PodCount> {
        self.writers.get(revision)?.wanted()
    }

    pub(super) fn show(&mut self, revision: &RevisionName, shown: ShownCount) -> CountSighting {
        self.writers.entry(revision.clone()).or_default().show(shown)
    }

    /// All counts are told once more, to an autoscaler that takes its seat or becomes the owner.
    pub(super) fn told_anew(&mut self) {
        for revision in &self.unsettled {
            if let Some(writer) = self.writers.get_mut(revision) {
                writer.told_anew();
            }
        }
    }

    pub(super) fn object_replaced(&mut self, revision: &RevisionName) {
        if let Some(writer) = self.writers.get_mut(revision) {
            writer.object_replaced();
        }
    }

    pub(super) fn object_unscalable(&mut self, revision: &RevisionName) {
        if let Some(writer) = self.writers.get_mut(revision) {
            writer.object_unscalable();
            self.unsettled.insert(revision.clone());
        }
    }

    pub(super) fn object_gone(&mut self, revision: &RevisionName) {
        if let Some(writer) = self.writers.get_mut(revision) {
            writer.object_gone();
            self.unsettled.insert(revision.clone());
        }
    }

    /// The autoscaler orders a count; returns the write that waited until now, whose place it takes.
    pub(super) fn want(&mut self, write: CountWrite) -> Option<CountWrite> {
        self.unsettled.insert(write.revision.clone());
        self.writers.entry(write.revision.clone()).or_default().want(write)
    }

    /// The workloads whose next write is due.
    pub(super) fn due(&self, now: Timestamp) -> Vec<RevisionName> {
        let is_due = |revision: &RevisionName| {
            self.writers.get(revision).is_some_and(|writer| writer.due(now).is_some())
        };
        self.unsettled.iter().filter(|revision| is_due(revision)).cloned().collect()
    }

    /// When the write of a count may begin.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let writers = self.unsettled.iter().filter_map(|revision| self.writers.get(revision));
        writers.filter_map(CountWriter::next_deadline).min()
    }

    /// The write of a workload's count that is due.
    pub(super) fn due_write(&self, revision: &RevisionName, now: Timestamp) -> Option<&CountWrite> {
        self.writers.get(revision)?.due(now)
    }

    /// The write that is due begins.
    pub(super) fn begin(&mut self, revision: &RevisionName, now: Timestamp) -> Option<CountWrite> {
        self.writers.get_mut(revision)?.begin(now)
    }

    /// The write that is due is not begun, and is not asked any more.
    pub(super) fn refuse(&mut self, revision: &RevisionName, now: Timestamp) -> Option<CountWrite> {
        self.writers.get_mut(revision)?.refuse(now)
    }

    /// The request of a count has ended; returns its write.
    pub(super) fn answered(
        &mut self,
        revision: &RevisionName,
        ending: WriteEnding,
        now: Timestamp,
    ) -> Option<EndedWrite> {
        self.writers.get_mut(revision)?.answered(ending, now)
    }

    /// Forgets the writers that are at rest and have no workload.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let writers = &mut self.writers;
        self.unsettled.retain(|revision| {
            let Some(writer) = writers.get(revision) else { return false };
            let is_at_rest = writer.is_at_rest(now);
            if is_at_rest && writer.shown().is_none() {
                writers.remove(revision);
            }
            !is_at_rest
        });
    }
}
