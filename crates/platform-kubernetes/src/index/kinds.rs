//! Which kinds of workloads do Services name?
//!
//! Kubernetes' own are watched from when a Service names one, and stay so. Any other is looked for while a
//! Service names it, and for a minute more: a Service that is deleted and made anew finds its workload known.
//! How many of those are watched at once is decided where they are looked for, which alone knows whether they
//! are there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::{RevisionName, Timestamp};

use super::Index;
use crate::notice::Notice;
use crate::resources::kind::WorkloadKind;

/// How long a kind that no Service names any more stays known.
const UNNAMED_STAYS: Duration = Duration::from_mins(1);

/// The kinds that concern us.
#[derive(Debug)]
pub(super) struct KindBook {
    /// Those that Services name, with the revisions that are served.
    named: BTreeMap<WorkloadKind, BTreeSet<RevisionName>>,
    /// Kinds that are watched, or looked for.
    wanted: BTreeSet<WorkloadKind>,
    /// Those of them that the watches have not heard of.
    to_watch: Vec<WorkloadKind>,
    /// Those of them that no Service names any more, and since when that was noticed.
    unnamed: BTreeMap<WorkloadKind, Option<Timestamp>>,
    /// Kinds all of whose workloads are known.
    listed: BTreeSet<WorkloadKind>,
    /// Kinds that cannot be looked at, and why.
    refused: BTreeMap<WorkloadKind, Notice>,
}

impl Default for KindBook {
    fn default() -> Self {
        Self {
            named: BTreeMap::new(),
            wanted: [WorkloadKind::Deployment].into(),
            to_watch: Vec::new(),
            unnamed: BTreeMap::new(),
            listed: BTreeSet::new(),
            refused: BTreeMap::new(),
        }
    }
}

impl KindBook {
    /// A Service names a revision, so workloads of its kind are to be watched.
    pub(super) fn name(&mut self, revision: &RevisionName) {
        let Some(kind) = WorkloadKind::of(revision) else { return };
        self.named.entry(kind.clone()).or_default().insert(revision.clone());
        self.unnamed.remove(&kind);
        if self.wanted.insert(kind.clone()) {
            self.to_watch.push(kind);
        }
    }

    /// It is not any more.
    pub(super) fn unname(&mut self, revision: &RevisionName) {
        let Some(kind) = WorkloadKind::of(revision) else { return };
        let Some(revisions) = self.named.get_mut(&kind) else { return };
        revisions.remove(revision);
        if revisions.is_empty() {
            self.named.remove(&kind);
            if matches!(kind, WorkloadKind::Custom(_)) {
                self.unnamed.insert(kind, None);
            }
        }
    }

    /// Takes out what no Service has named for long enough.
    fn take_unnamed(&mut self, now: Timestamp) -> Vec<WorkloadKind> {
        let is_over = |_: &WorkloadKind, since: &mut Option<Timestamp>| {
            now >= *since.get_or_insert(now) + UNNAMED_STAYS
        };
        let over: Vec<WorkloadKind> = self.unnamed.extract_if(.., is_over).map(|(kind, _)| kind).collect();
        for kind in &over {
            self.wanted.remove(kind);
            self.to_watch.retain(|other| other != kind);
        }
        over
    }

    /// When [`Index::take_kinds_to_leave`] has something to say.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        // One that no look has seen yet is due at once: its time begins with that look.
        let due = |since: &Option<Timestamp>| since.map_or(Timestamp::ZERO, |since| since + UNNAMED_STAYS);
        self.unnamed.values().map(due).min()
    }

    pub(super) fn is_listed(&self, kind: &WorkloadKind) -> bool {
        self.listed.contains(kind)
    }

    /// Why workloads of a kind cannot be looked at.
    pub(super) fn refusal(&self, kind: &WorkloadKind) -> Option<&Notice> {
        self.refused.get(kind)
    }
}

impl Index {
    /// Kinds that the watches have not heard of.
    pub(crate) fn take_kinds_to_watch(&mut self) -> Vec<WorkloadKind> {
        std::mem::take(&mut self.kinds.to_watch)
    }

    /// Kinds that need not be watched any more.
    pub(crate) fn take_kinds_to_leave(&mut self, now: Timestamp) -> Vec<WorkloadKind> {
        self.kinds.take_unnamed(now)
    }

    /// Whether a kind is watched, or looked for.
    pub(crate) fn is_kind_wanted(&self, kind: &WorkloadKind) -> bool {
        self.kinds.wanted.contains(kind)
    }

    /// All workloads of a kind are known from now on.
    pub(crate) fn kind_listed(&mut self, kind: &WorkloadKind) {
        self.kinds.refused.remove(kind);
        self.kinds.listed.insert(kind.clone());
        self.notice_services_of_kind(kind);
    }

    pub(crate) fn is_kind_listed(&self, kind: &WorkloadKind) -> bool {
        self.kinds.is_listed(kind)
    }

    /// Workloads of a kind cannot be looked at.
    pub(crate) fn refuse_kind(&mut self, kind: &WorkloadKind, why: Notice) {
        if self.kinds.refused.insert(kind.clone(), why.clone()) != Some(why) {
            self.notice_services_of_kind(kind);
        }
    }

    /// Nothing is known of a kind any more.
    pub(crate) fn forget_kind(&mut self, kind: &WorkloadKind) {
        self.kinds.listed.remove(kind);
        self.kinds.refused.remove(kind);
    }

    fn notice_services_of_kind(&mut self, kind: &WorkloadKind) {
        for revision in self.kinds.named.get(kind).cloned().unwrap_or_default() {
            self.notice_services_of(&revision);
            self.notices.reroute(revision);
        }
    }
}
