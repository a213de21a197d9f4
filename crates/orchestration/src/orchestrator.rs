//! The control loop as a value: events in, commands out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use scaling::RevisionStatus;
use settings::ClusterConfig;
use vocabulary::{RevisionId, RevisionName, Timestamp};

use crate::events::{ControlCommand, ControlEvent};
use crate::fact_intake::FactIntake;
use crate::facts::Subject;
use crate::links::LinkOpening;
use crate::orchestrator_settings::OrchestratorSettings;
use crate::settlement::Settlement;
use crate::state::ControlState;
use crate::view::{self, LinkTally, RevisionView};
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
        if settlement.state.opening != LinkOpening::Closed {
            settlement.settle();
        }
    }

    /// The next command, if any.
    pub fn next_command(&mut self) -> Option<ControlCommand> {
        self.state.commands.pop_front()
    }

    /// When [`Orchestrator::advance`] must be called at the latest; `None` if nothing is planned.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let state = &self.state;
        // The last acknowledgement of a removal touches no revision, for there is none any more: without the
        // fourth condition nothing would come back to release its entrances.
        let is_unsettled = !state.touched.is_empty()
            || !state.proven.is_empty()
            || !state.unsynced.is_empty()
            || state.removed.values().any(|removed| removed.known_to.is_empty());
        let opening = match state.opening {
            LinkOpening::Closed => self.may_open().then_some(Timestamp::ZERO),
            LinkOpening::Activators { until } => {
                Some(if state.activators.is_any_unheard() { until } else { Timestamp::ZERO })
            }
            LinkOpening::All => None,
        };
        // While nothing may be told yet, none of it is due: a time that is past would bring calls without end
        // that do nothing.
        let unsettled = (is_unsettled && state.opening != LinkOpening::Closed).then_some(Timestamp::ZERO);
        let due = state.deadlines.first().map(|&(at, _)| at);
        [state.multiscaler.next_deadline(), opening, unsettled, due].into_iter().flatten().min()
    }

    /// One revision as it stands, with its pods and decisions.
    pub fn view(&self, revision: &RevisionName, now: Timestamp) -> Option<RevisionView<'_>> {
        let (id, record) = self.state.registry.named(revision)?;
        RevisionView::of(id, record, &self.state, now)
    }

    /// All revisions as they stand, in the order of their numbers.
    pub fn views(&self, now: Timestamp) -> impl Iterator<Item = RevisionView<'_>> {
        let state = &self.state;
        let revisions = state.registry.revisions.iter();
        revisions.filter_map(move |(&id, record)| RevisionView::of(id, record, state, now))
    }

    /// Links to activators, and to pods.
    pub fn links(&self) -> (LinkTally, LinkTally) {
        view::links(&self.state)
    }

    /// What applies to all revisions.
    pub fn config(&self) -> &Arc<ClusterConfig> {
        &self.state.config
    }

    /// What is wrong with things as they were written.
    pub fn problems(&self) -> &BTreeMap<Subject, Vec<String>> {
        &self.state.problems
    }

    /// Revisions whose values may have changed since this was last asked, and those whose values change by
    /// time alone.
    pub fn take_changed(&mut self, now: Timestamp) -> Vec<(RevisionName, RevisionStatus)> {
        let (registry, multiscaler) = (&self.state.registry, &self.state.multiscaler);
        let mut changed = Vec::new();
        self.state.changed.retain(|id: &RevisionId| {
            let Some(record) = registry.revisions.get(id) else { return false };
            let Some(status) = multiscaler.status(*id, now) else { return false };
            // Metrics of class hpa move without requests.
            let moves = status.panicking
                || status.stable_value.is_some_and(|value| value > 0.0)
                || record.spec.hpa.is_some();
            changed.push((record.facts.name.clone(), status));
            moves
        });
        changed
    }

    /// Whether [`Orchestrator::take_changed`] has something to say.
    pub fn has_changed(&self) -> bool {
        !self.state.changed.is_empty()
    }

    fn may_open(&self) -> bool {
        self.state.is_platform_synced && !self.state.ownership.epochs.is_empty()
    }

    /// Activators first; pods follow once every activator has spoken, or has had its time.
    fn open_when_due(&mut self, now: Timestamp) {
        if self.state.opening == LinkOpening::Closed && self.may_open() {
            self.state.opening = LinkOpening::Activators { until: now + ACTIVATORS_FIRST_MAX };
            self.state.touched.extend(self.state.registry.revisions.keys());
        }
        let LinkOpening::Activators { until } = self.state.opening else { return };
        // The settings that a pod is told first say who is in the path. Before an activator has said it they
        // might name the wrong side, and a pod that serves directly would close its clients' connections.
        if now < until && self.state.activators.is_any_unheard() {
            return;
        }
        self.state.opening = LinkOpening::All;
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
    /// Who serves a revision, and whether the multiscaler was told that its path is acknowledged.
    pub(crate) fn path(&self, revision: &RevisionName) -> Option<(Vec<vocabulary::ReplicaName>, bool)> {
        let (_, record) = self.state.registry.named(revision)?;
        let members = self.state.activators.names(record.members.iter().copied());
        Some((members, record.is_path_acknowledged))
    }

    /// Whether a revision is ours and has a known route.
    pub(crate) fn is_settled(&self, revision: &RevisionName) -> bool {
        let named = self.state.registry.named(revision);
        named.is_some_and(|(_, record)| record.epoch.is_some() && record.routing.is_some())
    }

    /// What activators are to know of a revision, undivided.
    pub(crate) fn assignment(&self, revision: &RevisionName) -> Option<&vocabulary::Assignment> {
        self.state.registry.named(revision)?.1.assignment.as_deref()
    }

    /// The pods of a revision of ours that can take requests.
    pub(crate) fn ready_pods(&self, revision: &RevisionName) -> Vec<vocabulary::PodName> {
        let record = self.state.registry.named(revision).map(|(_, record)| record);
        let pods = record
            .filter(|record| record.epoch.is_some())
            .into_iter()
            .flat_map(|record| record.pods.values());
        pods.filter(|pod| pod.takes_requests()).map(|pod| pod.facts.name.clone()).collect()
    }

    pub(crate) fn has_ready_pod(&self, revision: &RevisionName) -> bool {
        self.state.registry.named(revision).is_some_and(|(_, record)| record.has_ready_pod())
    }

    pub(crate) fn living_activators(&self) -> Vec<vocabulary::ReplicaName> {
        let activators = &self.state.activators;
        activators.names(activators.ids().into_iter().filter(|id| activators.lives(*id)))
    }
}
