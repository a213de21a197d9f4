//! Every revision that this replica owns: events in, commands out.
//!
//! Each revision has its own state ([`revision`]): what its reporters measured, its pods, the decider's
//! memory, where it stands between zero and one. An event touches one revision, or all of them where an
//! activator reports for all. A revision is evaluated every two seconds from its creation, and at once when
//! demand grows; every other fact only runs the last answer through the bounds and the scale-to-zero rules
//! again (Knative: a reconcile), so that nothing waits for the next tick.
//!
//! Left out on purpose: the ownership of revisions, names, links and everything else that needs more than
//! numbers and time.

mod adopted;
mod algorithm;
mod beginning;
mod collectors;
mod count_forecast;
mod count_raise;
mod events;
mod forecast_report;
mod hpa;
mod journal;
mod outcome;
mod pod_starts;
mod pods;
mod prediction;
mod published_forecast;
mod reader_news;
mod routing;
mod scaled_revision;
mod schedule;
mod shadow;
mod start_book;
mod zone_book;
mod zones;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use forecasting::Scorecard;
use serde::{Deserialize, Serialize};
use vocabulary::{
    BootId, PodCount, PodId, ReplicaId, Reporter, RevisionId, Routing, Sample, SharedMap, Timestamp,
};

pub use self::events::{Command, Event, PodFact, PodPhase, RevisionOrigin, ScaleEnding};
pub use self::forecast_report::ForecastReport;
pub use self::journal::DecisionJournal;
pub use self::published_forecast::PublishedForecast;
pub use self::shadow::{ShadowDifference, ShadowStatus};

use self::beginning::RevisionBeginning;
use self::reader_news::NewsForReaders;
use self::scaled_revision::ScaledRevision;
use self::schedule::Schedule;
use self::zone_book::ZoneBook;
use crate::decision::{Decision, Sentence};
use crate::history::{PublishedHistory, RevisionHistory, WallClock};
use crate::hpa::HpaReport;

/// The state of a revision, as people and metrics see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RevisionStatus {
    /// The count that the platform was last asked for.
    pub wanted: PodCount,
    /// Of them, those that the class would not ask for by itself: demand is expected, a pod is kept warm, or
    /// the schedule asks for them.
    pub early_pods: PodCount,
    /// What prediction brought and cost in the last seven days; `None` where it is off.
    #[serde(skip)]
    pub scorecard: Option<Scorecard>,
    /// The count that the decider wants, before bounds; `None` before the first valid decision.
    pub desired: Option<PodCount>,
    /// Pods that pass their probes.
    pub ready_pods: PodCount,
    /// Pods that run or start but are not ready.
    pub not_ready_pods: PodCount,
    /// Pods that are not ready because they do not run yet.
    pub pending_pods: PodCount,
    /// Pods on their way out.
    pub terminating_pods: PodCount,
    /// Whether the revision is in panic mode.
    pub panicking: bool,
    /// The stable window's average now.
    pub stable_value: Option<f64>,
    /// The panic window's average now.
    pub panic_value: Option<f64>,
    /// The load per pod aimed at.
    pub target_per_pod: f64,
    /// Whether activators are in the request path.
    pub routing: Routing,
    /// Requests that wait, over all reporters.
    pub waiting: u32,
    /// Knative's Active condition: `active`, `activating`, `inactive`.
    pub activity: &'static str,
    /// How decisions compare with the present count; `None` unless in shadow.
    pub shadow: Option<ShadowStatus>,
    /// The last sentence of the last decision that changed something; `None` before the first.
    pub last_reason: Option<Sentence>,
    /// Why the count is not zero, in one sentence; `None` when it is.
    pub why_not_zero: Option<Sentence>,
}

/// Every revision that this replica owns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Multiscaler {
    revisions: BTreeMap<RevisionId, ScaledRevision>,
    /// The revision of each pod that is known.
    owners: BTreeMap<PodId, RevisionId>,
    activators: BTreeMap<ReplicaId, Option<ActivatorClock>>,
    schedule: Schedule,
    /// The wall clock beside our axis, as last read.
    clock: WallClock,
    zones: Arc<ZoneBook>,
    /// Taken after each event, so a keyframe has none.
    #[serde(skip)]
    commands: VecDeque<Command>,
    #[serde(skip)]
    news: NewsForReaders,
}

/// The place of an activator's seconds on our axis, for revisions that appear after its link came up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ActivatorClock {
    boot: BootId,
    second: u64,
    at: Timestamp,
}

impl ActivatorClock {
    fn second_at(self, now: Timestamp) -> u64 {
        self.second.saturating_add(now.saturating_since(self.at).as_secs())
    }
}

impl Multiscaler {
    /// How many decisions each revision remembers.
    pub const DECISIONS_KEPT: usize = 20;

    /// Takes in a fact that became known at `now`; what follows from it comes out of
    /// [`Multiscaler::next_command`].
    pub fn handle(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::RevisionChanged { revision, spec, wanted, origin } => {
                if self.revisions.contains_key(&revision) {
                    self.with(revision, |revision, commands| revision.changed(spec, wanted, now, commands));
                } else {
                    self.revision_appeared(
                        ScaledRevision::new(revision, spec, RevisionBeginning { wanted, origin, now }),
                        now,
                    );
                }
            }
            Event::RevisionRemoved { revision } => self.revision_removed(revision),
            Event::PodsChanged { revision, pods } => self.pods_changed(revision, &pods, now),
            Event::PodChanged { pod } => {
                self.with_owner(pod.pod, |revision, commands| revision.pod_changed(pod, now, commands));
            }
            Event::ReporterStarted { reporter, boot, current_second, history } => {
                let clock = ActivatorClock { boot, second: current_second, at: now };
                self.reporter_started(reporter, clock, &history);
            }
            Event::LoadReported { reporter, revision, sample } => {
                self.with(revision, |revision, commands| {
                    revision.load_reported(reporter, sample, now, commands);
                });
            }
            Event::UsageReported { pod, usage } => {
                self.with_owner(pod, |revision, _| revision.usage_reported(pod, usage, now));
            }
            Event::MetricsAnswered { revision, round, answers } => {
                self.with(revision, |revision, commands| {
                    revision.metrics_answered(round, answers, now, commands);
                });
            }
            Event::ScaleEnded { revision, ending } => {
                self.with(revision, |revision, _| revision.scale_ended(ending, now));
            }
            Event::ReporterHeard { reporter, second } => self.reporter_heard(reporter, second, now),
            Event::PresentReported { reporter, revision, count } => {
                self.with(revision, |revision, commands| {
                    revision.present_reported(reporter, count, now, commands);
                });
            }
            Event::AdoptedConnectionsReported { pod, connections } => {
                self.with_owner(pod, |revision, commands| {
                    revision.adopted_connections_reported(pod, connections, now, commands);
                });
            }
            Event::LinkLost { reporter } => self.link_lost(reporter, now),
            Event::ActivatorsChanged { activators } => self.activators_changed(&activators),
            Event::PathAcknowledged { revision, acknowledged } => {
                self.with(revision, |revision, commands| {
                    revision.path_acknowledged(acknowledged, now, commands);
                });
            }
            Event::RoutingObserved { revision, routing } => {
                self.with(revision, |revision, _| revision.routing_observed(routing, now));
            }
            Event::WallClockRead { since_epoch } => {
                self.wall_clock_read(WallClock::showing(since_epoch, now), now);
            }
            Event::ZoneRead { zone, offsets } => self.zone_read(zone, offsets),
            Event::HistoryRestored { revision, history } => {
                self.with(revision, |revision, _| revision.history_restored(history, now));
            }
            Event::DemandImported { revision, demand } => {
                self.with(revision, |revision, _| revision.demand_imported(&demand, now));
            }
        }
    }

    /// Does what is due at `now` (ticks, deadlines).
    pub fn advance(&mut self, now: Timestamp) {
        while let Some(id) = self.schedule.due(now) {
            let revision = self.revisions.get_mut(&id).expect("what is gone has no deadline");
            // The evaluation moves the deadline, so the same revision does not come first again and again.
            revision.advance(now, &mut self.commands);
            self.news.note(id, revision.take_news());
            self.schedule.plan(id, revision.deadline());
        }
    }

    /// The next order, if any.
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When [`Multiscaler::advance`] must be called at the latest; `None` if nothing is planned.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.schedule.first()
    }

    /// The state of a revision at `now`; `None` for a revision that this replica does not own.
    pub fn status(&self, revision: RevisionId, now: Timestamp) -> Option<RevisionStatus> {
        self.revisions.get(&revision).map(|revision| revision.status(now))
    }

    /// The count that the platform was last asked for, or that another client wrote since; `None` for a
    /// revision that this replica does not own.
    pub fn wanted(&self, revision: RevisionId) -> Option<PodCount> {
        self.revisions.get(&revision).map(ScaledRevision::wanted)
    }

    /// Each metric of a revision of class hpa beside its target, as the last sync knows it; `None` for class
    /// kpa.
    pub fn metrics_beside_targets(&self, revision: RevisionId) -> Option<String> {
        self.revisions.get(&revision)?.metrics_beside_targets()
    }

    /// The report of the last sync of a revision of class hpa; `None` for class kpa.
    pub fn hpa_report(&self, revision: RevisionId) -> Option<HpaReport> {
        self.revisions.get(&revision)?.hpa_report()
    }

    /// The decisions of a revision that changed something, and after them the latest one; oldest first, at
    /// most [`Self::DECISIONS_KEPT`].
    pub fn decisions(&self, revision: RevisionId) -> impl Iterator<Item = &Decision> {
        self.journal(revision).into_iter().flat_map(DecisionJournal::iter)
    }

    /// The same as a value that can be kept; `None` for a revision that this replica does not own.
    pub fn journal(&self, revision: RevisionId) -> Option<&DecisionJournal> {
        self.revisions.get(&revision).map(ScaledRevision::journal)
    }

    /// Revisions of which a decision went by other numbers than the one before, or whose history goes on,
    /// since this was last asked.
    pub fn take_changed(&mut self) -> BTreeSet<RevisionId> {
        self.news.take_changed()
    }

    /// When the latest decision of a revision was last made again with the same numbers and the same end.
    pub fn confirmed_at(&self) -> &SharedMap<RevisionId, Timestamp> {
        self.news.confirmed_at()
    }

    /// What was measured of a revision and decided about it; `None` for one that was never used, or that this
    /// replica does not own.
    pub fn history(&self, revision: RevisionId) -> Option<&RevisionHistory> {
        self.revisions.get(&revision)?.kept_history()
    }

    /// The same for readers: one more reference, which they can keep.
    pub fn published_history(&self, revision: RevisionId) -> Option<PublishedHistory> {
        self.revisions.get(&revision)?.published_history()
    }

    /// The forecast of a revision for readers; `None` where neither prediction nor a schedule is asked for.
    pub fn published_forecast(&self, revision: RevisionId) -> Option<PublishedForecast> {
        self.revisions.get(&revision)?.published_forecast()
    }

    /// Passes one revision to `act`, and replans its deadline if that changed.
    fn with(&mut self, id: RevisionId, act: impl FnOnce(&mut ScaledRevision, &mut VecDeque<Command>)) {
        if let Some(revision) = self.revisions.get_mut(&id) {
            let before = revision.deadline();
            act(revision, &mut self.commands);
            self.news.note(id, revision.take_news());
            let after = revision.deadline();
            if after != before {
                self.schedule.plan(id, after);
            }
        }
    }

    fn with_owner(&mut self, pod: PodId, act: impl FnOnce(&mut ScaledRevision, &mut VecDeque<Command>)) {
        if let Some(&owner) = self.owners.get(&pod) {
            self.with(owner, act);
        }
    }

    fn revision_appeared(&mut self, mut revision: ScaledRevision, now: Timestamp) {
        // Activators reported their clocks when their links came up, before this revision existed.
        for (&activator, clock) in &self.activators {
            if let Some(clock) = clock {
                let reporter = Reporter::Activator(activator);
                revision.reporter_started(reporter, clock.boot, clock.second_at(now), now);
            }
        }
        revision.set_zones(Arc::clone(&self.zones));
        revision.begin_history(self.clock, now);
        revision.created(now, &mut self.commands);
        self.news.note(revision.id(), revision.take_news());
        self.schedule.plan(revision.id(), revision.deadline());
        self.revisions.insert(revision.id(), revision);
    }

    fn wall_clock_read(&mut self, clock: WallClock, now: Timestamp) {
        if clock.differs_from(self.clock) {
            self.clock = clock;
            for (&id, revision) in &mut self.revisions {
                revision.set_clock(clock, now);
                self.news.note(id, revision.take_news());
            }
        }
    }

    fn revision_removed(&mut self, id: RevisionId) {
        if self.revisions.remove(&id).is_some() {
            self.schedule.remove(id);
            self.news.forget(id);
            self.owners.retain(|_, &mut owner| owner != id);
        }
    }

    fn pods_changed(&mut self, id: RevisionId, pods: &[PodFact], now: Timestamp) {
        let Some(revision) = self.revisions.get(&id) else { return };
        for pod in revision.pod_ids() {
            self.owners.remove(&pod);
        }
        for fact in pods {
            self.owners.insert(fact.pod, id);
        }
        self.with(id, |revision, commands| revision.pods_changed(pods, now, commands));
    }

    fn reporter_started(
        &mut self,
        reporter: Reporter,
        clock: ActivatorClock,
        history: &[(RevisionId, Sample)],
    ) {
        let now = clock.at;
        let start = |revision: &mut ScaledRevision| {
            revision.reporter_started(reporter, clock.boot, clock.second, now);
        };
        match reporter {
            Reporter::Activator(activator) => {
                self.activators.insert(activator, Some(clock));
                self.revisions.values_mut().for_each(start);
            }
            Reporter::Pod(pod) => self.with_owner(pod, |revision, _| start(revision)),
        }
        // Past seconds are no demand: nothing is decided by them before the next evaluation, and no deadline
        // moves.
        for &(id, sample) in history {
            if let Some(revision) = self.revisions.get_mut(&id) {
                revision.history(reporter, sample, now);
                self.news.note(id, revision.take_news());
            }
        }
    }

    fn reporter_heard(&mut self, reporter: Reporter, second: u64, now: Timestamp) {
        match reporter {
            Reporter::Activator(_) => {
                self.revisions
                    .values_mut()
                    .for_each(|revision| revision.reporter_heard(reporter, second, now));
            }
            Reporter::Pod(pod) => {
                self.with_owner(pod, |revision, _| revision.reporter_heard(reporter, second, now));
            }
        }
    }

    fn link_lost(&mut self, reporter: Reporter, now: Timestamp) {
        match reporter {
            Reporter::Activator(activator) => {
                // A revision that appears before the next hello must not be anchored by the seconds of a boot
                // that may be over.
                if let Some(clock) = self.activators.get_mut(&activator) {
                    *clock = None;
                }
                self.revisions.values_mut().for_each(|revision| revision.reporter_lost(reporter, now));
            }
            Reporter::Pod(pod) => {
                self.with_owner(pod, |revision, _| revision.reporter_lost(reporter, now));
            }
        }
    }

    fn activators_changed(&mut self, activators: &[ReplicaId]) {
        let present: BTreeSet<ReplicaId> = activators.iter().copied().collect();
        for &gone in self.activators.keys().filter(|activator| !present.contains(activator)) {
            for revision in self.revisions.values_mut() {
                revision.reporter_removed(Reporter::Activator(gone));
            }
        }
        self.activators.retain(|activator, _| present.contains(activator));
        for activator in present {
            // A new one has no clock: where its seconds lie only its hello says.
            self.activators.entry(activator).or_default();
        }
    }
}

#[cfg(test)]
mod tests;
