//! The control loop as a value: events in, commands out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use settings::ClusterConfig;
use vocabulary::{RevisionId, RevisionName, TimeZoneName, Timestamp};

use crate::events::{ControlCommand, ControlEvent};
use crate::exact_state::{ExactState, StateSize};
use crate::fact_intake::FactIntake;
use crate::links::LinkOpening;
use crate::orchestrator_settings::OrchestratorSettings;
use crate::publication::Publication;
use crate::settlement::Settlement;
use crate::snapshot::{ControlSnapshot, LinkTally};
use crate::state::ControlState;
use crate::word_intake::WordIntake;

/// How long pods wait for the activators' first word at start, which says what routing is in force.
const ACTIVATORS_FIRST_MAX: Duration = Duration::from_secs(1);

/// Everything that the control loop knows, decides and waits for.
#[derive(Debug)]
pub struct Orchestrator {
    state: ControlState,
}

impl Orchestrator {
    /// An orchestrator that knows no revision, no pod and no activator.
    pub fn new(settings: OrchestratorSettings) -> Self {
        Self { state: ControlState::new(settings) }
    }

    /// An orchestrator that goes on as the one would have done of which this is the state. Readers find each
    /// revision in its next snapshot, without the decisions that were made before.
    pub fn restored(exact: ExactState) -> Self {
        let mut state = exact.into_state();
        state.multiscaler.share_zones();
        for &id in state.registry.revisions.keys() {
            state.publication.note_changed(id);
        }
        Self { state }
    }

    /// The state between two calls, once every command was taken: one that waits is not part of it.
    pub fn exact_state(&self) -> ExactState {
        ExactState::of(&self.state)
    }

    /// How large the state is now, before any copy of it is made.
    pub fn state_size(&self) -> StateSize {
        let registry = &self.state.registry;
        StateSize { revisions: registry.revisions.len(), pods: registry.pod_count() }
    }

    /// Takes in what happened. Some of what follows is done by [`Orchestrator::advance`], for which
    /// [`Orchestrator::next_deadline`] asks at once: so events that come together are answered together.
    pub fn handle(&mut self, event: ControlEvent, now: Timestamp) {
        let state = &mut self.state;
        match event {
            ControlEvent::Platform(fact) => FactIntake { state, now }.take(fact),
            ControlEvent::PodSpoke { link, word } => WordIntake { state, now }.pod_spoke(link, word),
            ControlEvent::ActivatorSpoke { link, word } => {
                WordIntake { state, now }.activator_spoke(link, word);
            }
            ControlEvent::MetricsAnswered { revision, round, answers } => {
                if let Some(revision) = state.registry.revision_id(&revision) {
                    state.tell(scaling::Event::MetricsAnswered { revision, round, answers }, now);
                }
            }
            ControlEvent::LinkChanged { link, news } => WordIntake { state, now }.link_changed(link, news),
            ControlEvent::WallClockRead { since_epoch } => {
                state.tell(scaling::Event::WallClockRead { since_epoch }, now);
            }
            ControlEvent::ZoneRead { zone, offsets } => {
                state.tell(scaling::Event::ZoneRead { zone, offsets }, now);
            }
            ControlEvent::HistoryRestored { revision, history } => {
                if let Some(revision) = state.registry.revision_id(&revision) {
                    state.tell(scaling::Event::HistoryRestored { revision, history }, now);
                }
            }
            ControlEvent::DemandImported { revision, demand } => {
                if let Some(revision) = state.registry.revision_id(&revision) {
                    state.tell(scaling::Event::DemandImported { revision, demand }, now);
                }
            }
        }
    }

    /// Does what is due at `now`: decisions, links that may be opened, assignments that changed, releases.
    pub fn advance(&mut self, now: Timestamp) {
        // Decisions first: what they change for activators is then told by the settlement below, not by the
        // next one.
        if self.state.multiscaler.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.state.multiscaler.advance(now);
            self.state.perform_commands();
        }
        self.open_when_due(now);
        let mut settlement = Settlement { state: &mut self.state, now };
        // A deadline may change what activators hear (a pod has refused its link for long), so it comes
        // before that is sent.
        settlement.keep_deadlines();
        // Before the platform has said everything, what we do not name activators would retire.
        if settlement.state.links.opening() != LinkOpening::Closed {
            settlement.settle();
        }
    }

    /// The next command, if any.
    pub fn next_command(&mut self) -> Option<ControlCommand> {
        self.state.outbox.take_next()
    }

    /// When [`Orchestrator::advance`] must be called at the latest; `None` if nothing is planned.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let state = &self.state;
        // The last acknowledgement of a removal touches no revision, for there is none any more: without the
        // second condition nothing would come back to release its entrances.
        let is_unsettled = !state.unsettled.is_empty() || state.removed.has_forgotten();
        let opening = match state.links.opening() {
            LinkOpening::Closed => self.may_open().then_some(Timestamp::ZERO),
            LinkOpening::Activators { until } => {
                Some(if state.activators.is_any_unheard() { until } else { Timestamp::ZERO })
            }
            LinkOpening::All => None,
        };
        // While nothing may be told yet, none of it is due: a time that is past would bring calls without end
        // that do nothing.
        let unsettled =
            (is_unsettled && state.links.opening() != LinkOpening::Closed).then_some(Timestamp::ZERO);
        let planned = state.deadlines.next();
        [state.multiscaler.next_deadline(), opening, unsettled, planned].into_iter().flatten().min()
    }

    /// The zones of local time that revisions go by, but UTC. [`ControlEvent::ZoneRead`] tells of each.
    pub fn zones_in_use(&self) -> BTreeSet<TimeZoneName> {
        self.state.multiscaler.zones_in_use()
    }

    /// Whether a revision is one of ours, so that what a store has of it is taken in.
    pub fn decides_about(&self, revision: &RevisionName) -> bool {
        let id = self.state.registry.revision_id(revision);
        id.is_some_and(|id| self.state.multiscaler.journal(id).is_some())
    }

    /// Everything that readers may ask for. Revisions of which there is no news are those of the snapshot
    /// before; measurements are as [`Orchestrator::sweep`] found them last.
    pub fn snapshot(&mut self, now: Timestamp) -> ControlSnapshot {
        self.state.write_news(now);
        self.snapshot_with(&self.state.publication)
    }

    fn snapshot_with(&self, publication: &Publication) -> ControlSnapshot {
        let state = &self.state;
        let staying = state.activators.iter().filter(|(_, record)| !record.is_leaving());
        let links = staying
            .map(|(_, record)| (record.facts.name.as_str(), record.is_told() && record.host.is_trusted()));
        ControlSnapshot {
            revisions: publication.revisions.clone(),
            heard_at: state.registry.heard_at.clone(),
            confirmed_at: state.multiscaler.confirmed_at().clone(),
            activators: LinkTally::of(links),
            problems: publication.problems(),
            buckets: state.ownership.present().buckets,
            prices: state.config.prices,
            cold_start_worth: state.config.prediction.cold_start_worth,
        }
    }

    /// Takes in for the next snapshot what was measured since this was last called, the numbers of decisions
    /// that changed nothing, and what changes by time alone.
    pub fn sweep(&mut self, now: Timestamp) {
        self.state.write_measured(now);
    }

    /// Whether the next [`Orchestrator::snapshot`] has facts, orders or decisions that the last one had not.
    pub fn has_news(&self) -> bool {
        self.state.publication.has_news()
    }

    /// What applies to all revisions.
    pub fn config(&self) -> &Arc<ClusterConfig> {
        &self.state.config
    }

    fn may_open(&self) -> bool {
        self.state.registry.is_platform_synced && self.state.ownership.any_fence().is_some()
    }

    /// Activators first; pods follow once every activator has spoken, or has had its time.
    fn open_when_due(&mut self, now: Timestamp) {
        if self.state.links.opening() == LinkOpening::Closed && self.may_open() {
            self.state.links.set_opening(LinkOpening::Activators { until: now + ACTIVATORS_FIRST_MAX });
            self.state.touch_all();
        }
        let LinkOpening::Activators { until } = self.state.links.opening() else { return };
        // The settings that a pod is told first name the route. Before an activator has said it they
        // might name the wrong side, and a pod that serves directly would close its clients' connections.
        if now < until && self.state.activators.is_any_unheard() {
            return;
        }
        self.state.links.set_opening(LinkOpening::All);
        let all: Vec<RevisionId> = self.state.registry.revisions.keys().copied().collect();
        // Facts about these pods came while no link to a pod might be opened, and are not told again.
        for id in all {
            FactIntake { state: &mut self.state, now }.link_pods(id);
        }
    }
}

/// What laws look at besides commands.
#[cfg(test)]
impl Orchestrator {
    /// The route of a revision, and whether the multiscaler was told that its path is acknowledged.
    pub(crate) fn path(
        &self,
        revision: &vocabulary::RevisionName,
    ) -> Option<(Vec<vocabulary::ReplicaName>, bool)> {
        let (_, record) = self.state.registry.named(revision)?;
        let members = self.state.activators.names(record.members.iter().copied());
        Some((members, record.is_path_acknowledged))
    }

    /// Whether a revision is ours and has a known route.
    pub(crate) fn is_settled(&self, revision: &vocabulary::RevisionName) -> bool {
        let named = self.state.registry.named(revision);
        named.is_some_and(|(_, record)| record.epoch.is_some() && record.routing.is_some())
    }

    /// What activators are to know of a revision, undivided.
    pub(crate) fn assignment(&self, revision: &vocabulary::RevisionName) -> Option<&vocabulary::Assignment> {
        self.state.registry.named(revision)?.1.assignment.as_deref()
    }

    /// The pods of a revision of ours that can take requests.
    pub(crate) fn ready_pods(&self, revision: &vocabulary::RevisionName) -> Vec<vocabulary::PodName> {
        let record = self.state.registry.named(revision).map(|(_, record)| record);
        let pods = record
            .filter(|record| record.epoch.is_some())
            .into_iter()
            .flat_map(|record| record.pods.values());
        pods.filter(|pod| pod.takes_requests()).map(|pod| pod.facts.name.clone()).collect()
    }

    /// The snapshot as it would be if every revision were written anew.
    pub(crate) fn rewritten(&self, now: Timestamp) -> ControlSnapshot {
        let state = &self.state;
        let (registry, multiscaler) = (&state.registry, &state.multiscaler);
        let ownership = state.ownership.present();
        let mut publication = state.publication.with_problems_only();
        for &id in registry.revisions.keys() {
            publication.note_changed(id);
        }
        publication.write_news(crate::publication::SnapshotSources { registry, multiscaler, ownership }, now);
        self.snapshot_with(&publication)
    }

    pub(crate) fn has_ready_pod(&self, revision: &vocabulary::RevisionName) -> bool {
        self.state.registry.named(revision).is_some_and(|(_, record)| record.has_ready_pod())
    }

    pub(crate) fn living_activators(&self) -> Vec<vocabulary::ReplicaName> {
        let activators = &self.state.activators;
        activators.names(activators.ids().into_iter().filter(|id| activators.lives(*id)))
    }
}
