//! Which workloads are there, and what do they say of themselves?

use orchestration::Subject;
use scaling::RevisionOrigin;
use vocabulary::{PodCount, PodName, RevisionName, Timestamp};

use super::restraint::WriteScope;
use super::{Index, Topic};
use crate::count_writer::ForeignCount;
use crate::deletion_hint::DeletionHint;
use crate::port_book::WallSeconds;
use crate::resources::ObjectKey;
use crate::resources::autoscaler::AutoscalerRecord;
use crate::resources::kind::WorkloadKind;
use crate::resources::pod::DeletionCost;
use crate::resources::workload::objects::WorkloadReading;
use crate::resources::workload::{ShownWorkload, WorkloadRecord};

impl Index {
    /// What a workload says, or why it cannot be scaled. Returns a count that another client wrote over ours.
    pub(crate) fn read_workload(
        &mut self,
        revision: &RevisionName,
        reading: WorkloadReading,
        origin: RevisionOrigin,
    ) -> Option<ForeignCount> {
        let was_ours = self.is_count_ours(revision);
        match reading {
            Ok(shown) => {
                let foreign = self.put_workload(*shown, origin);
                foreign.filter(|_| was_ours && self.is_count_ours(revision))
            }
            Err(why) => {
                // Nothing is decided by what it said when it could still be read: that may be true no more.
                self.workloads.counts_mut().object_unscalable(revision);
                self.forget_workload(revision);
                // Watches repeat an object whenever anything about it changes; people hear of each reason
                // once.
                if self.workloads.put_unscalable(revision, why) {
                    self.notice_services_of(revision);
                }
                None
            }
        }
    }

    /// `origin` says whether it was there before we looked; it counts when the workload is first seen.
    /// Returns the count that it shows, if another client wrote that.
    pub(crate) fn put_workload(
        &mut self,
        shown: ShownWorkload,
        origin: RevisionOrigin,
    ) -> Option<ForeignCount> {
        let revision = shown.record.revision.clone();
        let sighting = self.workloads.put(shown, origin);
        if sighting.is_there_anew {
            self.review_hooks(&revision);
            self.find_pod_failure(&revision);
            self.notice_services_of(&revision);
        }
        if sighting.is_news {
            self.read_settings(&revision);
            self.unsettle(&revision);
            if sighting.selects_others {
                self.pods_changed(&revision);
                self.review_overlaps(&revision);
            }
        }
        sighting.foreign
    }

    pub(crate) fn remove_workload(&mut self, revision: &RevisionName) {
        self.workloads.counts_mut().object_gone(revision);
        self.forget_workload(revision);
    }

    fn forget_workload(&mut self, revision: &RevisionName) {
        if self.workloads.remove(revision) {
            self.notices.put(Subject::Revision(revision.clone()), Vec::new());
            self.notice_services_of(revision);
            self.services.drop_route(revision);
            self.revision_changed(revision);
            self.review_overlaps(revision);
        }
    }

    /// An autoscaler of Kubernetes', or `None` if it is gone.
    pub(crate) fn put_autoscaler(&mut self, key: ObjectKey, record: Option<AutoscalerRecord>) {
        for revision in self.workloads.put_autoscaler(key, record) {
            self.revision_changed(&revision);
        }
    }

    /// Workloads get other hop keys, each where its day ends.
    pub(crate) fn turn_hop_keys(&mut self, now: Timestamp, wall: WallSeconds) {
        let over = self.workloads.turn_hop_keys(now, wall);
        self.notices.tell_all(over.into_iter().map(Topic::Revision));
    }

    /// Pods of others may be this one's, or were.
    fn review_overlaps(&mut self, revision: &RevisionName) {
        if !self.workloads.is_listed() {
            return;
        }
        let namespace = revision.namespace();
        let others =
            self.services.served().filter(|other| other.namespace() == namespace && *other != revision);
        for other in others.cloned().collect::<Vec<_>>() {
            self.pods_changed(&other);
        }
    }

    /// Reads a workload's annotations anew.
    pub(super) fn read_settings(&mut self, revision: &RevisionName) {
        if self.workloads.read_settings(revision) {
            self.revision_changed(revision);
        }
    }

    /// The object that has a revision's count.
    pub(crate) fn record_of(&self, revision: &RevisionName) -> Option<&WorkloadRecord> {
        self.workloads.get(revision).map(|workload| &workload.record)
    }

    /// Whether a count may be written: facts that forbid it may be newer than the order.
    pub(crate) fn may_change(&self, revision: &RevisionName, from: PodCount, to: PodCount) -> bool {
        let Some(workload) = self.workloads.get(revision) else { return true };
        if self.is_served_only(revision) {
            return false;
        }
        let is_lower = to < from;
        let may_fall = || !self.stays_direct(revision) && to >= self.restraint(revision, workload).floor;
        if is_lower && to == PodCount::ZERO && !self.may_end_last_pod(revision) {
            return false;
        }
        self.other_decider(revision, workload).is_none() && (!is_lower || may_fall())
    }

    /// Whether a workload's count is ours to write.
    fn is_count_ours(&self, revision: &RevisionName) -> bool {
        if self.has_revision(revision) {
            return true;
        }
        let served = self.workloads.get(revision).filter(|_| self.services.is_served(revision));
        let Some(workload) = served else { return false };
        let Some(settings) = &workload.settings else { return false };
        settings.scaling.shadow != Some(true)
            && self.restraint(revision, workload).reach == WriteScope::Everything
    }

    /// What to write on its pods before the count becomes `to`, so that those end that disturb least. Nothing
    /// where all end, nor for a StatefulSet, which ends the newest whatever is written.
    pub(crate) fn deletion_hints(
        &self,
        revision: &RevisionName,
        to: PodCount,
        end_first: &[PodName],
    ) -> Vec<DeletionHint> {
        if to == PodCount::ZERO || WorkloadKind::of(revision) == Some(WorkloadKind::StatefulSet) {
            return Vec::new();
        }
        let pods = self.pods_of(revision).map(|pod| &pod.record);
        let hints = pods.filter_map(|pod| {
            let is_chosen = end_first.contains(&pod.pod_name());
            let is_news = match pod.deletion_cost {
                DeletionCost::None => is_chosen,
                // Chosen for an earlier order: the pod would still be the first to end when no order means it
                // any more.
                DeletionCost::EndsFirst => !is_chosen,
                // Another client wrote a cost on the pod, which goes before ours.
                DeletionCost::Others => false,
            };
            (is_news && pod.stays()).then(|| DeletionHint { pod: pod.name.clone(), is_chosen })
        });
        hints.collect()
    }
}
