//! Which workloads are there, and what do they say of themselves?

use std::collections::BTreeSet;

use scaling::RevisionOrigin;
use vocabulary::{PodCount, PodName, REVISION_ANNOTATION, RevisionName};

use super::restraint::WriteScope;
use super::{Index, Workload};
use crate::count_writer::{CountSighting, ForeignCount, ShownCount};
use crate::deletion_hint::DeletionHint;
use crate::notice::{BAD_ANNOTATION, NO_WORKLOAD, Notice};
use crate::resources::kind::WorkloadKind;
use crate::resources::pod::DeletionCost;
use crate::resources::workload::WorkloadRecord;
use crate::resources::workload::objects::WorkloadReading;

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
            Ok(record) => {
                self.unscalable.remove(revision);
                let foreign = self.put_workload(*record, origin);
                foreign.filter(|_| was_ours && self.is_count_ours(revision))
            }
            Err(why) => {
                // Nothing is decided by what it said when it could still be read: that may be true no more.
                self.counts.object_unscalable(revision);
                self.forget_workload(revision);
                // Watches repeat an object whenever anything about it changes; people hear of each reason
                // once.
                if self.unscalable.insert(revision.clone(), why.clone()) != Some(why) {
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
        record: WorkloadRecord,
        origin: RevisionOrigin,
    ) -> Option<ForeignCount> {
        let revision = record.revision.clone();
        let former = self.workloads.remove(&revision);
        if let Some(former) = &former {
            self.workload_labels.remove(&former.record);
        }
        self.workload_labels.insert(&record);
        // Another object under the same name: deleted and made anew, perhaps between two looks. What was
        // known of the former one says nothing about it.
        let former = former.filter(|former| former.record.uid == record.uid);
        let is_known = former.as_ref().is_some_and(|former| former.record.says_the_same_as(&record));
        let selects_others = former.as_ref().is_none_or(|former| former.record.selector != record.selector);
        let is_there_anew = former.is_none();
        if is_there_anew {
            self.counts.object_replaced(&revision);
        }
        let shown = ShownCount { count: record.wanted, version: record.version };
        let CountSighting { is_news, foreign } = self.counts.show(&revision, shown);
        let workload = match former {
            Some(former) => Workload { record, ..former },
            None => Workload {
                // A workload with a ready pod serves clients. An autoscaler that sees it for the first time
                // must not take it for a new one, which begins with its initial scale.
                origin: if record.has_ready_pod { RevisionOrigin::Found } else { origin },
                record,
                settings: None,
                has_valid_subset_only: false,
                problems: Vec::new(),
                own_hooks: BTreeSet::new(),
                wait_refusal: None,
                last_failure: None,
            },
        };
        self.workloads.insert(revision.clone(), workload);
        if is_there_anew {
            self.review_hooks(&revision);
            self.find_pod_failure(&revision);
            self.notice_services_of(&revision);
        }
        // Its status changes with each pod that comes or goes, and that is no news of its own.
        if is_known && !is_news {
            return foreign;
        }
        self.read_settings(&revision);
        self.unsettle(&revision);
        if selects_others {
            self.pods_changed(&revision);
            self.review_overlaps(&revision);
        }
        foreign
    }

    pub(crate) fn remove_workload(&mut self, revision: &RevisionName) {
        self.counts.object_gone(revision);
        self.forget_workload(revision);
    }

    fn forget_workload(&mut self, revision: &RevisionName) {
        self.unscalable.remove(revision);
        if let Some(former) = self.workloads.remove(revision) {
            self.workload_labels.remove(&former.record);
            self.notices.put(orchestration::Subject::Revision(revision.clone()), Vec::new());
            self.notice_services_of(revision);
            self.routes.remove(revision);
            self.ordered_routes.remove(revision);
            self.revision_changed(revision);
            self.review_overlaps(revision);
        }
    }

    /// Pods of others may be this one's, or were.
    fn review_overlaps(&mut self, revision: &RevisionName) {
        if !self.is_listed {
            return;
        }
        let namespace = revision.namespace();
        let others = self.served.keys().filter(|other| other.namespace() == namespace && *other != revision);
        for other in others.cloned().collect::<Vec<_>>() {
            self.pods_changed(&other);
        }
    }

    /// Reads a workload's annotations anew; what was wrong with them, if anything, is a problem, and the last
    /// good ones stay. Where no valid settings were ever seen, as after a change of owner, the valid part
    /// counts: without it the workload would be out of reach at zero.
    pub(super) fn read_settings(&mut self, revision: &RevisionName) {
        let Some(workload) = self.workloads.get_mut(revision) else { return };
        let why = match workload.record.settings(&self.cluster) {
            Ok(settings) => {
                (workload.settings, workload.has_valid_subset_only) = (Some(settings), false);
                Vec::new()
            }
            Err(why) => {
                // Never over good ones: a slip of the pen in one annotation would change all that the others
                // have set.
                if workload.settings.is_none() || workload.has_valid_subset_only {
                    workload.settings = workload.record.valid_subset_of_settings(&self.cluster);
                    workload.has_valid_subset_only = true;
                }
                why
            }
        };
        workload.problems = why.into_iter().map(|text| Notice::new(BAD_ANNOTATION, text)).collect();
        self.revision_changed(revision);
    }

    /// The object that has a revision's count.
    pub(crate) fn record_of(&self, revision: &RevisionName) -> Option<&WorkloadRecord> {
        self.workloads.get(revision).map(|workload| &workload.record)
    }

    /// Whether a count may be written: facts that forbid it may be newer than the order.
    pub(crate) fn may_change(&self, revision: &RevisionName, from: PodCount, to: PodCount) -> bool {
        let Some(workload) = self.workloads.get(revision) else { return true };
        self.other_decider(revision, workload).is_none() && (to >= from || !self.stays_direct(revision))
    }

    /// Whether a workload's count is ours to write.
    fn is_count_ours(&self, revision: &RevisionName) -> bool {
        let served = self.workloads.get(revision).filter(|_| self.served.contains_key(revision));
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

    /// Whether a workload is not there, once its kind is listed.
    pub(super) fn is_missing(&self, revision: &RevisionName) -> bool {
        let is_known = WorkloadKind::of(revision).is_none_or(|kind| self.kinds.is_listed(&kind));
        self.is_listed && is_known && !self.workloads.contains_key(revision)
    }

    /// Why a workload that a Service names cannot be scaled.
    pub(super) fn missing_notice(&self, revision: &RevisionName) -> Option<Notice> {
        let kind = WorkloadKind::of(revision)?;
        let named = format!("annotation {REVISION_ANNOTATION} names {kind}/{}", revision.name());
        let because = |why: &Notice| Notice::new(why.reason, format!("{named}: {}", why.text));
        if let Some(why) = self.unscalable.get(revision).or_else(|| self.kinds.refusal(&kind)) {
            return Some(because(why));
        }
        self.is_missing(revision).then(|| {
            Notice::new(NO_WORKLOAD, format!("{named}, which is not there; make it, or name another"))
        })
    }
}
