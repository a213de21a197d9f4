//! Which workloads are there, what do they say of themselves, and what else bears upon their counts?
//!
//! A workload is known by its name, by its uid and by what it selects, and always by all three. What is
//! remembered of it ends with the object: another one under the same name begins anew. Its count has a
//! [`CountWriters`] entry, which outlives it while an order or a request is left.

mod autoscalers;
mod ownership;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use orchestration::PodFailure;
use scaling::RevisionOrigin;
use settings::ClusterConfig;
use vocabulary::{HopKey, REVISION_ANNOTATION, RevisionName, Timestamp};

use super::count_writers::CountWriters;
use super::kinds::KindBook;
use super::labels::WorkloadLabels;
use super::pod_failures::WaitRefusal;
use crate::count_writer::{CountSighting, ForeignCount};
use crate::hop_keys::{HopKeys, KeyTurn};
use crate::notice::{BAD_ANNOTATION, NO_WORKLOAD, Notice};
use crate::port_book::WallSeconds;
use crate::resources::ObjectKey;
use crate::resources::autoscaler::AutoscalerRecord;
use crate::resources::kind::WorkloadKind;
use crate::resources::workload::{ShownWorkload, WorkloadRecord, WorkloadSettings};

/// A workload that can be scaled. It is read here, and changed by [`Workloads`] alone.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) record: WorkloadRecord,
    /// The last settings without a problem, or the valid part of those that are written; `None` if another
    /// autoscaler is meant.
    pub(super) settings: Option<WorkloadSettings>,
    /// Whether the settings are only what is valid of annotations that were never seen without a problem.
    pub(super) has_valid_subset_only: bool,
    /// The problems of the settings that are written.
    pub(super) problems: Vec<Notice>,
    /// Containers of its pods that end by a hook of their own.
    pub(super) own_hooks: BTreeSet<String>,
    /// Why requests are refused, and do not wait for pods, if so.
    pub(super) wait_refusal: Option<WaitRefusal>,
    /// How a pod of it failed last.
    pub(super) last_failure: Option<PodFailure>,
    pub(super) origin: RevisionOrigin,
}

impl Workload {
    fn new(record: WorkloadRecord, origin: RevisionOrigin) -> Self {
        Self {
            // A workload with a ready pod serves clients. An autoscaler that sees it for the first time must
            // not take it for a new one, which begins with its initial scale.
            origin: if record.has_ready_pod { RevisionOrigin::Found } else { origin },
            record,
            settings: None,
            has_valid_subset_only: false,
            problems: Vec::new(),
            own_hooks: BTreeSet::new(),
            wait_refusal: None,
            last_failure: None,
        }
    }
}

/// What a look at a workload has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkloadSighting {
    /// Whether this object was not known.
    pub(super) is_there_anew: bool,
    /// Whether it says something else than before, or has another count.
    pub(super) is_news: bool,
    /// Whether it selects other pods than before.
    pub(super) selects_others: bool,
    /// The count that it shows, if another client wrote that.
    pub(super) foreign: Option<ForeignCount>,
}

/// All workloads, by their names.
#[derive(Debug)]
pub(super) struct Workloads {
    by_name: BTreeMap<RevisionName, Workload>,
    labels: WorkloadLabels,
    /// Counts of workloads: asked, under way, written and shown.
    counts: CountWriters,
    /// Workloads that cannot be scaled, and why.
    unscalable: BTreeMap<RevisionName, Notice>,
    /// Kinds that Services name, and Deployments.
    kinds: KindBook,
    /// Kubernetes' own autoscalers, and what each scales.
    autoscalers: BTreeMap<ObjectKey, AutoscalerRecord>,
    cluster: Arc<ClusterConfig>,
    keys: HopKeys,
    /// The day of hop keys that is in force.
    key_turn: KeyTurn,
    /// When the next turn begins.
    keys_due: Option<Timestamp>,
    /// Whether every object is known that was there when the watches began.
    is_listed: bool,
}

impl Workloads {
    pub(super) fn new(keys: HopKeys) -> Self {
        Self {
            by_name: BTreeMap::new(),
            labels: WorkloadLabels::default(),
            counts: CountWriters::default(),
            unscalable: BTreeMap::new(),
            kinds: KindBook::default(),
            autoscalers: BTreeMap::new(),
            cluster: Arc::default(),
            keys,
            key_turn: KeyTurn::default(),
            keys_due: None,
            is_listed: false,
        }
    }

    pub(super) fn get(&self, revision: &RevisionName) -> Option<&Workload> {
        self.by_name.get(revision)
    }

    pub(super) fn contains(&self, revision: &RevisionName) -> bool {
        self.by_name.contains_key(revision)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &RevisionName> {
        self.by_name.keys()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&RevisionName, &Workload)> {
        self.by_name.iter()
    }

    /// A workload with its name, as it is stored here.
    pub(super) fn get_named(&self, revision: &RevisionName) -> Option<(&RevisionName, &Workload)> {
        self.by_name.get_key_value(revision)
    }

    /// Puts a workload in as the watch shows it. `origin` says whether it was there before we looked; it
    /// counts when the workload is first seen.
    pub(super) fn put(&mut self, shown: ShownWorkload, origin: RevisionOrigin) -> WorkloadSighting {
        let ShownWorkload { record, count } = shown;
        let revision = record.revision.clone();
        self.unscalable.remove(&revision);
        let former = self.by_name.remove(&revision);
        if let Some(former) = &former {
            self.labels.remove(&former.record);
        }
        self.labels.insert(&record);
        // Another object under the same name: deleted and made anew, perhaps between two looks. What was
        // known of the former one says nothing about it.
        let former = former.filter(|former| former.record.uid == record.uid);
        let is_known = former.as_ref().is_some_and(|former| former.record.says_the_same_as(&record));
        let selects_others = former.as_ref().is_none_or(|former| former.record.selector != record.selector);
        let is_there_anew = former.is_none();
        if is_there_anew {
            self.counts.object_replaced(&revision);
        }
        let CountSighting { is_news, shows_other, foreign } = self.counts.show(&revision, count);
        let workload = match former {
            Some(former) => Workload { record, ..former },
            None => Workload::new(record, origin),
        };
        self.by_name.insert(revision, workload);
        // Its status changes with each pod that comes or goes, and that is no news of its own.
        let is_news = !is_known || is_news || shows_other;
        WorkloadSighting { is_there_anew, is_news, selects_others, foreign }
    }

    /// Takes a workload out; returns whether it was there.
    pub(super) fn remove(&mut self, revision: &RevisionName) -> bool {
        self.unscalable.remove(revision);
        let Some(former) = self.by_name.remove(revision) else { return false };
        self.labels.remove(&former.record);
        true
    }

    /// A workload, which was taken out, cannot be scaled; returns whether that is news.
    pub(super) fn put_unscalable(&mut self, revision: &RevisionName, why: Notice) -> bool {
        self.unscalable.insert(revision.clone(), why.clone()) != Some(why)
    }

    pub(super) fn is_unscalable(&self, revision: &RevisionName) -> bool {
        self.unscalable.contains_key(revision)
    }

    /// The settings of the cluster from now on; those of workloads have to be read anew.
    pub(super) fn configure(&mut self, cluster: ClusterConfig) {
        self.cluster = Arc::new(cluster);
    }

    pub(super) fn cluster(&self) -> &Arc<ClusterConfig> {
        &self.cluster
    }

    /// Reads a workload's annotations anew; what was wrong with them, if anything, is a problem, and the last
    /// good ones stay. Where no valid settings were ever seen, as after a change of owner, the valid part
    /// counts: without it the workload would be out of reach at zero. Returns whether there is such a
    /// workload.
    pub(super) fn read_settings(&mut self, revision: &RevisionName) -> bool {
        let Some(workload) = self.by_name.get_mut(revision) else { return false };
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
        true
    }

    /// Containers of a workload's pods end by these hooks of their own; returns whether that is news.
    pub(super) fn put_hooks(&mut self, revision: &RevisionName, hooks: BTreeSet<String>) -> bool {
        let Some(workload) = self.by_name.get_mut(revision) else { return false };
        std::mem::replace(&mut workload.own_hooks, hooks) != workload.own_hooks
    }

    /// Why requests for a workload are refused now, if they are; returns whether that is news.
    pub(super) fn put_wait_refusal(
        &mut self,
        revision: &RevisionName,
        mut present: Option<WaitRefusal>,
    ) -> bool {
        let Some(workload) = self.by_name.get_mut(revision) else { return false };
        if let (Some(present), Some(former)) = (&mut present, &workload.wait_refusal)
            && present.notice.reason == former.notice.reason
        {
            present.notice = former.notice.clone();
        }
        std::mem::replace(&mut workload.wait_refusal, present) != workload.wait_refusal
    }

    /// A pod of a workload failed last in this way; returns whether that is news.
    pub(super) fn put_failure(&mut self, revision: &RevisionName, last: PodFailure) -> bool {
        let Some(workload) = self.by_name.get_mut(revision) else { return false };
        let is_news = workload.last_failure.as_ref() != Some(&last);
        workload.last_failure = Some(last);
        is_news
    }

    /// Workloads get other hop keys, each where its day ends; returns those that do.
    pub(super) fn turn_hop_keys(&mut self, now: Timestamp, wall: WallSeconds) -> Vec<RevisionName> {
        self.keys_due = Some(now + KeyTurn::rest_of(wall));
        let present = KeyTurn::at(wall);
        let former = std::mem::replace(&mut self.key_turn, present);
        if former == present {
            return Vec::new();
        }
        let day = |workload: &Workload, turn| self.keys.day(&workload.record.uid, turn);
        let is_over = |workload: &Workload| day(workload, former) != day(workload, present);
        let over = self.by_name.iter().filter(|(_, workload)| is_over(workload));
        over.map(|(revision, _)| revision.clone()).collect()
    }

    /// The hop keys of a workload that are in force.
    pub(super) fn hop_keys_of(&self, workload: &Workload) -> Vec<HopKey> {
        self.keys.of(&workload.record.uid, self.key_turn)
    }

    /// When something is due without any event.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        [self.keys_due, self.kinds.next_deadline()].into_iter().flatten().min()
    }

    pub(super) fn counts(&self) -> &CountWriters {
        &self.counts
    }

    pub(super) fn counts_mut(&mut self) -> &mut CountWriters {
        &mut self.counts
    }

    pub(super) fn kinds(&self) -> &KindBook {
        &self.kinds
    }

    pub(super) fn kinds_mut(&mut self) -> &mut KindBook {
        &mut self.kinds
    }

    /// Every object is known that was there when the watches began.
    pub(super) fn listed(&mut self) {
        self.is_listed = true;
    }

    pub(super) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether a workload is not there, once its kind is listed.
    pub(super) fn is_missing(&self, revision: &RevisionName) -> bool {
        let is_known = WorkloadKind::of(revision).is_none_or(|kind| self.kinds.is_listed(&kind));
        self.is_listed && is_known && !self.contains(revision)
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
            Notice::new(
                NO_WORKLOAD,
                format!("{named}, which is not there; make that workload, or name another"),
            )
        })
    }
}
