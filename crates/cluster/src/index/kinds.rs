//! Which kinds of workloads do Services name?
//!
//! Kubernetes' own are watched from when a Service names one, and stay so. Any other is looked for while a
//! Service names it, and for a minute more: a Service that is deleted and made anew finds its workload known.
//! How many of those are watched at once is decided where they are looked for, which alone knows whether they
//! are there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::{RevisionName, Timestamp};

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

    /// Takes the kinds that the watches have not heard of.
    pub(super) fn take_to_watch(&mut self) -> Vec<WorkloadKind> {
        std::mem::take(&mut self.to_watch)
    }

    /// Takes out what no Service has named for long enough.
    pub(super) fn take_unnamed(&mut self, now: Timestamp) -> Vec<WorkloadKind> {
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

    /// When [`KindBook::take_unnamed`] has something to say.
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

    /// Whether a kind is watched, or looked for.
    pub(super) fn is_wanted(&self, kind: &WorkloadKind) -> bool {
        self.wanted.contains(kind)
    }

    /// All workloads of a kind are known from now on.
    pub(super) fn list(&mut self, kind: &WorkloadKind) {
        self.refused.remove(kind);
        self.listed.insert(kind.clone());
    }

    /// Workloads of a kind cannot be looked at; returns whether that is news.
    pub(super) fn refuse(&mut self, kind: &WorkloadKind, why: Notice) -> bool {
        self.refused.insert(kind.clone(), why.clone()) != Some(why)
    }

    /// Nothing is known of a kind any more.
    pub(super) fn forget(&mut self, kind: &WorkloadKind) {
        self.listed.remove(kind);
        self.refused.remove(kind);
    }

    /// The revisions of a kind that are served.
    pub(super) fn revisions_of(&self, kind: &WorkloadKind) -> BTreeSet<RevisionName> {
        self.named.get(kind).cloned().unwrap_or_default()
    }
}
