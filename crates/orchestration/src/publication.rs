//! What of a snapshot is new since the last one?
//!
//! Each part of a revision that a reader sees is marked here when it changes, and only marked revisions are
//! written anew. There are two kinds of marks. Facts, orders and decisions are *news*, for which a reader may
//! wait. What is *measured* comes every second from every pod that has traffic; that is written when the
//! event loop sweeps, which it does seldom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scaling::{DecisionJournal, Multiscaler, RevisionStatus};
use vocabulary::{Ownership, PodName, RevisionId, RevisionName, SharedMap, Timestamp};

use crate::facts::Subject;
use crate::orders::Fence;
use crate::pod_lives::PodLives;
use crate::pod_record::PodRecord;
use crate::registry::{Registry, RevisionRecord};
use crate::snapshot::{DecidedState, HpaSnapshot, KnownPod, LastKnownValues, OldestWait, RevisionSnapshot};

/// The revisions as they were written last, and the marks of those that are others by now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Publication {
    pub(crate) revisions: SharedMap<RevisionName, Arc<RevisionSnapshot>>,
    /// What is wrong with things as they were written.
    problems: BTreeMap<Subject, Vec<String>>,
    /// All of these in one list, which snapshots share.
    problem_list: Arc<[String]>,
    news: BTreeSet<RevisionId>,
    measured: BTreeSet<RevisionId>,
    removed: BTreeSet<RevisionName>,
    /// Whether something that is of no revision has changed.
    is_other_news: bool,
}

/// What a revision is written from.
#[derive(Clone, Copy)]
pub(crate) struct SnapshotSources<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) multiscaler: &'a Multiscaler,
    pub(crate) ownership: &'a Ownership,
}

impl Publication {
    /// A fact, an order or a decision of a revision changed.
    pub(crate) fn note_changed(&mut self, id: RevisionId) {
        self.news.insert(id);
    }

    /// A measurement of a revision changed.
    pub(crate) fn note_measured(&mut self, id: RevisionId) {
        self.measured.insert(id);
    }

    /// A revision is gone, and its number may be given to another one.
    pub(crate) fn note_removed(&mut self, id: RevisionId, name: RevisionName) {
        self.news.remove(&id);
        self.measured.remove(&id);
        self.removed.insert(name);
    }

    /// A link to an activator, or a problem, changed.
    pub(crate) fn note_other(&mut self) {
        self.is_other_news = true;
    }

    /// All that is wrong with a thing as it was written; nothing if the list is empty.
    pub(crate) fn set_problems(&mut self, about: Subject, problems: Vec<String>) {
        if problems.is_empty() {
            self.problems.remove(&about);
        } else {
            self.problems.insert(about, problems);
        }
        self.problem_list = self.problems.values().flatten().cloned().collect();
        self.note_other();
    }

    pub(crate) fn problems(&self) -> Arc<[String]> {
        Arc::clone(&self.problem_list)
    }

    /// The same problems in a new list, and no revision.
    #[cfg(test)]
    pub(crate) fn with_problems_only(&self) -> Self {
        let problem_list = self.problems.values().flatten().cloned().collect();
        Self { problem_list, ..Self::default() }
    }

    pub(crate) fn has_news(&self) -> bool {
        self.is_other_news || !self.news.is_empty() || !self.removed.is_empty()
    }

    /// Writes anew what was marked as news.
    pub(crate) fn write_news(&mut self, sources: SnapshotSources<'_>, now: Timestamp) {
        self.is_other_news = false;
        for name in std::mem::take(&mut self.removed) {
            // A revision may have appeared again under its name.
            if sources.registry.named(&name).is_none() {
                self.revisions.remove(&name);
            }
        }
        for id in std::mem::take(&mut self.news) {
            self.write(id, sources, now);
        }
    }

    /// Writes anew what was measured.
    pub(crate) fn write_measured(&mut self, sources: SnapshotSources<'_>, now: Timestamp) {
        for id in std::mem::take(&mut self.measured) {
            self.write(id, sources, now);
        }
    }

    fn write(&mut self, id: RevisionId, sources: SnapshotSources<'_>, now: Timestamp) {
        let Some(record) = sources.registry.revisions.get(&id) else { return };
        let mut revision = snapshot_of(id, record, sources, now);
        let former = self.revisions.get(&record.facts.name);
        let former_decided = former.and_then(|former| former.decided.as_ref());
        if let (Some(decided), Some(former)) = (&mut revision.decided, former_decided) {
            decided.last_known = decided.last_known.or(former.last_known);
        }
        let former_lives = former.map(|former| Arc::clone(&former.lives)).unwrap_or_default();
        revision.lives = lives(former_lives, &revision, now);
        if moves_by_time(&revision) {
            self.measured.insert(id);
        }
        self.revisions.insert(record.facts.name.clone(), Arc::new(revision));
    }
}

/// Whether a measured value changes while nothing is said of the revision: an average falls, and an activator
/// that holds nothing of it does not name it. Everything else that changes by time is a decision.
fn moves_by_time(revision: &RevisionSnapshot) -> bool {
    revision.decided.as_ref().is_some_and(|DecidedState { status, .. }| {
        status.waiting > 0 || status.stable_value.is_some_and(|value| value > 0.0)
    })
}

/// One revision as it stands.
pub(crate) fn snapshot_of(
    id: RevisionId,
    record: &RevisionRecord,
    sources: SnapshotSources<'_>,
    now: Timestamp,
) -> RevisionSnapshot {
    let SnapshotSources { multiscaler, ownership, .. } = sources;
    let bucket = || ownership.bucket_of(&record.facts.name);
    let said = record.oldest_waits.values().filter(|(waited, _)| !waited.is_zero());
    RevisionSnapshot {
        id,
        written_at: now,
        facts: Arc::clone(&record.facts),
        spec: Arc::clone(&record.spec),
        decided: decided(id, multiscaler, now),
        fence: record.epoch.map(|epoch| Fence { bucket: bucket(), epoch }),
        pods: known_pods(record),
        lives: Arc::default(),
        order_trouble: record.order_trouble().cloned(),
        waits: said.map(|&(waited, said_at)| OldestWait { waited, said_at }).collect(),
        last_failure: record.last_failure.clone(),
        last_kill: record.last_kill.clone(),
    }
}

fn decided(id: RevisionId, multiscaler: &Multiscaler, now: Timestamp) -> Option<DecidedState> {
    let hpa = || {
        let (report, beside_targets) = (multiscaler.hpa_report(id)?, multiscaler.metrics_beside_targets(id)?);
        Some(Box::new(HpaSnapshot { report, beside_targets }))
    };
    let (status, journal) = (multiscaler.status(id, now)?, multiscaler.journal(id)?.clone());
    let hpa = hpa();
    let last_known = known_values(&status, &journal, hpa.as_deref());
    let (history, forecast) = (multiscaler.published_history(id), multiscaler.published_forecast(id));
    Some(DecidedState { status, journal, history, forecast: forecast.map(Box::new), hpa, last_known })
}

fn known_values(
    status: &RevisionStatus,
    journal: &DecisionJournal,
    hpa: Option<&HpaSnapshot>,
) -> LastKnownValues {
    let metrics = || hpa.into_iter().flat_map(|hpa| &hpa.report.metrics);
    let ratios = metrics().filter_map(|metric| metric.ratio).filter(|ratio| ratio.is_finite());
    LastKnownValues {
        desired: status.desired,
        stable_value: status.stable_value,
        panic_value: status.panic_value,
        excess_burst_capacity: journal.last_change().map(|decision| decision.excess_burst_capacity),
        hpa_asked: metrics().filter_map(|metric| metric.count).max(),
        hpa_ratio: ratios.reduce(f64::max),
    }
}

fn known_pods(record: &RevisionRecord) -> Vec<KnownPod> {
    let known = |(&id, pod): (_, &PodRecord)| KnownPod {
        id,
        facts: Arc::clone(&pod.facts),
        heard: pod.heard.clone(),
        start: pod.start,
    };
    let mut pods: Vec<KnownPod> = record.pods.iter().map(known).collect();
    pods.sort_by(|one, other| one.facts.name.cmp(&other.facts.name));
    pods
}

/// The lives of its pods until now. How a pod failed or was killed is known of the last one that did.
fn lives(former: Arc<PodLives>, revision: &RevisionSnapshot, now: Timestamp) -> Arc<PodLives> {
    let story = |name: &PodName| {
        let kill = revision.last_kill.as_ref().filter(|kill| kill.pod == *name);
        let failure = revision.last_failure.as_ref().filter(|failure| failure.pod == *name);
        kill.map(|kill| kill.reason.clone()).or_else(|| failure.map(|failure| failure.reason.clone()))
    };
    let pods = revision.pods.iter().map(|pod| (&*pod.facts, pod.start));
    PodLives::after(former, pods, story, now)
}
