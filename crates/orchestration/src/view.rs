//! A revision of a snapshot, as it is read at one point in time, for people and metrics.
//!
//! All that only readers need is worked out here, at their expense: ages, states, and why a revision waits.

use std::sync::Arc;
use std::time::Duration;

use scaling::hpa::HpaReport;
use scaling::{
    Decision, DemandDays, ForecastReport, HistoryRecord, PublishedHistory, RevisionLedger, RevisionStatus,
    Series, SeriesRange,
};
use settings::{HourlyPrice, ScalingSpec};
use vocabulary::{LateBytes, PodCount, PodName, PodState, RevisionName, Timestamp};

use crate::facts::{AppOutput, PodFacts, PodFailure, PodKill, RevisionFacts};
use crate::orders::Fence;
use crate::pod_lives::{EndedPod, RecentPod};
use crate::readiness::{pod_trouble, trouble_beside_start, waiting_for};
use crate::snapshot::{ControlSnapshot, DecidedState, LinkTally, RevisionSnapshot};

/// One revision of ours in a snapshot, as it is read at one point in time.
#[derive(Clone, Copy, Debug)]
pub struct RevisionView<'a> {
    snapshot: &'a ControlSnapshot,
    revision: &'a RevisionSnapshot,
    decided: &'a DecidedState,
    now: Timestamp,
    /// The state of its decisions.
    pub status: &'a RevisionStatus,
}

/// One pod at one point in time.
#[derive(Clone, Debug)]
pub struct PodSnapshot<'a> {
    /// As the platform knows it.
    pub facts: &'a PodFacts,
    /// The pod's state: whether it starts, takes requests or drains.
    pub state: PodState,
    /// Whether its link is up.
    pub is_linked: bool,
    /// Requests in it, averaged over its last second.
    pub in_flight: f64,
    /// Those that waited at the end of that second.
    pub queued: u32,
    /// What its app sent behind whole responses, while its connections are not used again for that.
    pub late_bytes: Option<LateBytes>,
    /// When it was last heard.
    pub heard_at: Option<Timestamp>,
    /// Why it is in trouble or not ready, for people.
    pub trouble: Option<String>,
}

impl ControlSnapshot {
    /// A revision of ours, as it is read at `now`.
    pub fn view(&self, name: &RevisionName, now: Timestamp) -> Option<RevisionView<'_>> {
        self.view_of(self.revisions.get(name)?, now)
    }

    /// All revisions of ours, in the order of their names.
    pub fn views(&self, now: Timestamp) -> impl Iterator<Item = RevisionView<'_>> {
        self.revisions.values().filter_map(move |revision| self.view_of(revision, now))
    }

    /// The revisions of ours that are others than in a former snapshot; all of them without one. What is the
    /// same in both is shared, so this compares references.
    pub fn changed_views<'a>(
        &'a self,
        former: Option<&'a Self>,
        now: Timestamp,
    ) -> impl Iterator<Item = RevisionView<'a>> {
        let is_same = move |revision: &Arc<RevisionSnapshot>| {
            let known = former.and_then(|former| former.revisions.get(&revision.facts.name));
            known.is_some_and(|known| Arc::ptr_eq(known, revision))
        };
        let changed = self.revisions.values().filter(move |revision| !is_same(revision));
        changed.filter_map(move |revision| self.view_of(revision, now))
    }

    /// The revisions of ours that are others than they were at a point in time, in the order of their names.
    pub fn views_since(&self, then: Timestamp, now: Timestamp) -> impl Iterator<Item = RevisionView<'_>> {
        let changed = self.revisions.values().filter(move |revision| revision.written_at > then);
        changed.filter_map(move |revision| self.view_of(revision, now))
    }

    /// The history of each revision of ours that was ever used, as it is written down at `now`, in the order
    /// of their names. Each record is made when the iterator comes to it, so a store that writes one after
    /// the other needs the memory of one, and the event loop does nothing for it.
    pub fn history_records(&self, now: Timestamp) -> impl Iterator<Item = (&RevisionName, HistoryRecord)> {
        self.history_records_since(now, |_| None)
    }

    /// The same records. Where `known` returns a second (counted since 1970) for a revision, its record has
    /// only the part of the history that has come since then. No part of the forecast is left out.
    pub fn history_records_since(
        &self,
        now: Timestamp,
        known: impl Fn(&RevisionName) -> Option<u64>,
    ) -> impl Iterator<Item = (&RevisionName, HistoryRecord)> {
        self.revisions.iter().filter_map(move |(name, revision)| {
            let decided = revision.decided.as_ref()?;
            let history = decided.history.as_ref()?;
            let record =
                known(name).map_or_else(|| history.record(now), |second| history.record_since(second, now));
            Some((name, record.with_forecast(decided.forecast.as_ref().map(|forecast| forecast.record()))))
        })
    }

    fn view_of<'a>(&'a self, revision: &'a RevisionSnapshot, now: Timestamp) -> Option<RevisionView<'a>> {
        let decided = revision.decided.as_ref()?;
        Some(RevisionView { snapshot: self, revision, decided, now, status: &decided.status })
    }
}

impl<'a> RevisionView<'a> {
    /// By what right we decide about it.
    pub fn fence(&self) -> Option<Fence> {
        self.revision.fence
    }

    /// How many buckets there are.
    pub fn buckets(&self) -> u16 {
        self.snapshot.buckets
    }

    /// The point in time at which the revision is read.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// As the platform knows it.
    pub fn facts(&self) -> &'a RevisionFacts {
        &self.revision.facts
    }

    /// Its settings with the cluster's defaults resolved.
    pub fn spec(&self) -> &'a ScalingSpec {
        &self.revision.spec
    }

    /// Its pods, in the order of their names.
    pub fn pods(&self, output: AppOutput) -> Vec<PodSnapshot<'a>> {
        let (heard_at, now) = (&self.snapshot.heard_at, self.now);
        let pods = self.revision.pods.iter().map(|pod| PodSnapshot {
            facts: &pod.facts,
            state: pod.state(),
            is_linked: pod.is_linked(),
            in_flight: pod.heard.load.concurrency.value(),
            queued: pod.heard.load.queued,
            late_bytes: pod.heard.late_bytes.and_then(|late| late.at(now)),
            heard_at: heard_at.get(&pod.id).copied(),
            trouble: pod_trouble(&pod.facts, &pod.heard, output),
        });
        pods.collect()
    }

    /// The life of one of its pods.
    pub fn pod_life(&self, name: &PodName) -> Option<RecentPod> {
        self.revision.lives.of(name)
    }

    /// Its pods that ended last, at most 20, the first of them first.
    pub fn ended_pods(&self) -> impl Iterator<Item = &'a EndedPod> + use<'a> {
        self.revision.lives.ended()
    }

    /// Links to those of its pods that are ready.
    pub fn links(&self) -> LinkTally {
        let ready = self
            .revision
            .pods
            .iter()
            .filter(|pod| pod.state() == PodState::Ready && pod.facts.requests.is_some());
        LinkTally::of(ready.map(|pod| (pod.facts.name.as_str(), pod.is_linked())))
    }

    /// How a pod of it failed last, if one has.
    pub fn last_failure(&self) -> Option<&'a PodFailure> {
        self.revision.last_failure.as_deref()
    }

    /// How a pod of it was killed last, if one was.
    pub fn last_kill(&self) -> Option<&'a PodKill> {
        self.revision.last_kill.as_deref()
    }

    /// The last decisions about it, oldest first.
    pub fn decisions(&self) -> impl Iterator<Item = &'a Decision> + use<'a> {
        self.decided.journal.iter()
    }

    /// When the latest decision was made again with the same end from the same numbers; `None` if it was not.
    pub fn confirmed_at(&self) -> Option<Timestamp> {
        let confirmed_at = self.snapshot.confirmed_at.get(&self.revision.id).copied();
        confirmed_at.filter(|_| self.decided.journal.ends_unchanged())
    }

    /// Each of its metrics beside its target; `None` for class kpa.
    pub fn metrics_beside_targets(&self) -> Option<&'a str> {
        self.decided.hpa.as_ref().map(|hpa| hpa.beside_targets.as_str())
    }

    /// What the last sync says of itself; `None` for class kpa.
    pub fn hpa_report(&self) -> Option<&'a HpaReport> {
        self.decided.hpa.as_ref().map(|hpa| &hpa.report)
    }

    /// The newest part of its history; `None` if it was never used.
    pub fn series(&self, range: SeriesRange) -> Option<Series> {
        self.decided.history.as_ref().map(|history| history.series(range, self.now))
    }

    /// What is expected of it; `None` where prediction is off.
    pub fn forecast(&self) -> Option<ForecastReport> {
        let history = self.decided.history.as_ref();
        let minute = history.map_or(0, |history| history.second_at(self.now) / 60);
        self.decided.forecast.as_ref()?.report(history.and_then(PublishedHistory::demand), minute)
    }

    /// The demand that is kept for a forecast, and the second since 1970 that runs.
    pub fn demand(&self) -> Option<(&DemandDays, u64)> {
        let history = self.decided.history.as_ref()?;
        Some((history.demand()?, history.second_at(self.now)))
    }

    /// The first minute since 1970 whose demand is known for a forecast, and the one that runs.
    pub fn demand_known_since(&self) -> Option<[u64; 2]> {
        let history = self.decided.history.as_ref()?;
        Some([history.demand()?.first_minute()?, history.second_at(self.now) / 60])
    }

    /// What it came to in the hours that lie within `since`; `None` if it was never used.
    pub fn ledger(&self, since: Duration) -> Option<RevisionLedger> {
        self.decided.history.as_ref().map(|history| history.ledger(since, self.now))
    }

    /// The price of one of its pods for an hour; `None` if nothing that its pods request has a price.
    pub fn pod_price(&self) -> Option<HourlyPrice> {
        self.snapshot.prices.of_pod(&self.facts().settings.requests)
    }

    /// The pod-time that one avoided cold start may cost.
    pub fn cold_start_worth(&self) -> Duration {
        self.facts().settings.cold_start_worth.unwrap_or(self.snapshot.cold_start_worth)
    }

    /// How long the oldest request that waits has waited; `None` if none does, or no reporter said so lately.
    pub fn oldest_wait(&self) -> Option<Duration> {
        self.revision.waits.iter().filter_map(|wait| wait.at(self.now)).max()
    }

    /// The pods whose starts wait until starts of others use less of the machine's cores.
    pub fn awaiting_core_pods(&self) -> PodCount {
        let pods = self.revision.pods.iter().filter(|pod| pod.facts.awaits_core);
        PodCount::new(u32::try_from(pods.count()).unwrap_or(u32::MAX))
    }

    /// Trouble of any pod is worth a word even while others serve; then why the platform does not do as it
    /// was told; beyond that, what the revision waits for if a pod is wanted. Starts that wait for a core
    /// are counted by themselves; while some do, what starting pods say of their probes is no trouble.
    pub fn why_not_ready(&self, output: AppOutput) -> Option<String> {
        let revision = self.revision;
        let is_short_of_cores = self.awaiting_core_pods() > PodCount::ZERO;
        let trouble_of = if is_short_of_cores { trouble_beside_start } else { pod_trouble };
        let pods = || revision.pods.iter().map(|pod| (&*pod.facts, &pod.heard));
        let trouble = pods()
            .find_map(|(pod, heard)| Some(format!("pod {}: {}", pod.name, trouble_of(pod, heard, output)?)));
        let waits = || {
            let text = waiting_for(self.status.wanted, output, pods());
            let is_said = self.status.wanted > PodCount::ZERO && !is_short_of_cores;
            (is_said && !text.is_empty()).then(|| format!("waits for {text}"))
        };
        trouble.or_else(|| revision.order_trouble.clone()).or_else(waits)
    }
}
