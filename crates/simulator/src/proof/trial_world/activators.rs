//! Activators begin, end, stall and leave; what their ends of the protocol say is done.

use std::time::Duration;

use orchestration::ActivatorLife;
use throttling::{ActivatorCommand, ActivatorEvent, ActivatorIdentity, ActivatorRevision, LinkNumber};
use vocabulary::{ActivatorWord, BootId, RevisionName, Routing, Timestamp};

use super::TrialWorld;
use crate::look_plan::LookPlan;
use crate::proof::activator_core::ActivatorCore;
use crate::proof::check_failure::RequestEnd;
use crate::proof::fault::ActivatorNumber;
use crate::proof::reached_state::ReachedState;
use crate::proof::trial_event::{ActivatorProcess, ConnectionNumber, RequestNumber, TrialEvent, WordToOwner};
use crate::proof::trial_parts::{FarEnd, ProcessState, QueuePlace, TrialRequest};
use crate::random::RandomStream;
use crate::world_event::ServiceNumber;

/// An activator that was told to end has so long until it is killed.
const LEAVES_WITHIN: Duration = Duration::from_secs(50);

impl TrialWorld<'_> {
    pub(super) fn activator_starts(&mut self, activator: ActivatorNumber) {
        if !self.activators[activator.0].state.is_down() {
            return;
        }
        self.processes_made += 1;
        let process = ActivatorProcess { activator, boot: self.processes_made };
        let services = self.names.len();
        let known = &mut self.activators[activator.0];
        let identity = ActivatorIdentity { name: known.name.clone(), boot: BootId(process.boot) };
        let entity = format!("{}/{}", known.name, process.boot);
        let seed = RandomStream::of(self.plan.seed, &entity, "choices").seed();
        let shown = known.clock.read(self.now);
        known.core = ActivatorCore::new(identity, seed, self.defect, shown);
        known.process = process;
        known.state = ProcessState::Runs;
        known.life = Some(ActivatorLife::Ready);
        known.looks = vec![LookPlan::new(); services];
        known.waiting.clear();
        (known.is_synced, known.is_released, known.leaves_for) = (false, false, None);
        self.plan_activator_second(process);
        self.state_activators();
    }

    /// Seconds of an activator are whole seconds of its clock.
    fn plan_activator_second(&mut self, process: ActivatorProcess) {
        let clock = self.activators[process.activator.0].clock;
        let next = Timestamp::from_secs(clock.read(self.now).whole_secs() + 1);
        self.at(clock.moment_of(next), TrialEvent::ActivatorSecondEnds(process));
    }

    /// The process of an activator is gone, with all that it held; another one begins after the pause.
    pub(super) fn activator_ends(
        &mut self,
        activator: ActivatorNumber,
        life: Option<ActivatorLife>,
        pause: Duration,
    ) {
        if self.activators[activator.0].state.is_down() {
            return;
        }
        self.lose_connections(|connection| connection.far_end == FarEnd::Activator(activator));
        let known = &mut self.activators[activator.0];
        known.life = life;
        let held = match std::mem::replace(&mut known.state, ProcessState::Down) {
            ProcessState::Stalls { held } => held,
            ProcessState::Runs | ProcessState::Down => Vec::new(),
        };
        // A connection that was not accepted yet holds no request: its client tries again.
        for event in held {
            if matches!(event, TrialEvent::RequestReachesActivator(..)) {
                self.at(self.now, event);
            }
        }
        let lost = self.requests.iter().filter(|(_, request)| request.place.activator() == Some(activator));
        let lost: Vec<RequestNumber> = lost.map(|(&number, _)| number).collect();
        for number in lost {
            self.end_request(number, RequestEnd::LostWithActivator);
        }
        if self.activators.iter().all(|known| known.state.is_down()) {
            self.checks.reached(ReachedState::AllActivatorsGone);
        }
        self.at(self.now + pause, TrialEvent::ActivatorStarts(activator));
        self.state_activators();
    }

    pub(super) fn activator_is_killed(&mut self, activator: ActivatorNumber, pause: Duration) {
        self.checks.reached(ReachedState::ActivatorRestarted);
        self.activator_ends(activator, Some(ActivatorLife::NotReady), pause);
    }

    pub(super) fn activator_stalls(&mut self, activator: ActivatorNumber, length: Duration) {
        let known = &mut self.activators[activator.0];
        if known.state.stall() {
            let process = known.process;
            self.at(self.now + length, TrialEvent::ActivatorResumes(process));
        }
    }

    pub(super) fn activator_resumes(&mut self, process: ActivatorProcess) {
        let known = &mut self.activators[process.activator.0];
        if known.process != process {
            return;
        }
        let Some(held) = known.state.resume() else { return };
        self.checks.reached(ReachedState::ActivatorStalled);
        for event in held {
            self.at(self.now, event);
        }
    }

    /// An activator is told to end: it serves until its owners have said that no route names it.
    pub(super) fn activator_leaves(&mut self, activator: ActivatorNumber, pause: Duration) {
        let known = &mut self.activators[activator.0];
        if !matches!(known.state, ProcessState::Runs) || known.leaves_for.is_some() {
            return;
        }
        known.leaves_for = Some(pause);
        known.life = Some(ActivatorLife::Terminating);
        let process = known.process;
        self.tell_activator(process, ActivatorEvent::LeavingBegan);
        self.state_activators();
        self.at(self.now + LEAVES_WITHIN, TrialEvent::ActivatorMustEnd(process));
    }

    pub(super) fn activator_must_end(&mut self, process: ActivatorProcess) {
        let known = &self.activators[process.activator.0];
        if let Some(pause) = known.leaves_for.filter(|_| !self.has_ended(process)) {
            self.activator_ends(process.activator, None, pause);
        }
    }

    fn end_if_released(&mut self, process: ActivatorProcess) {
        let known = &self.activators[process.activator.0];
        let Some(pause) = known.leaves_for.filter(|_| known.is_released) else { return };
        let mut places = self.requests.values().map(|request| request.place.activator());
        if !places.any(|activator| activator == Some(process.activator)) {
            self.checks.reached(ReachedState::ActivatorReleased);
            self.activator_ends(process.activator, None, pause);
        }
    }

    pub(super) fn has_ended(&self, process: ActivatorProcess) -> bool {
        let known = &self.activators[process.activator.0];
        known.process != process || known.state.is_down()
    }

    pub(super) fn activator_hears_order(&mut self, connection: ConnectionNumber, event: ActivatorEvent) {
        if let Some(activator) = self.activator_of(connection) {
            self.tell_activator(self.activators[activator.0].process, event);
        }
    }

    /// Something happened at an activator, which does what follows.
    pub(super) fn tell_activator(&mut self, process: ActivatorProcess, event: ActivatorEvent) {
        if self.has_ended(process) {
            return;
        }
        self.hand_to_activator(process, event);
        for service in self.services() {
            self.plan_look(process, service);
        }
    }

    /// The same of one Service alone, which brings no deadline of another one nearer.
    pub(super) fn tell_of_service(
        &mut self,
        process: ActivatorProcess,
        service: ServiceNumber,
        event: ActivatorEvent,
    ) {
        if !self.has_ended(process) {
            self.hand_to_activator(process, event);
            self.plan_look(process, service);
        }
    }

    fn hand_to_activator(&mut self, process: ActivatorProcess, event: ActivatorEvent) {
        let revision = revision_ordered(&event).cloned();
        let order =
            (revision.is_some() || matches!(event, ActivatorEvent::SyncBegan { .. })).then(|| event.clone());
        let version = |world: &Self| {
            let known = &world.activators[process.activator.0];
            revision.as_ref().and_then(|revision| known.core.version_of(revision))
        };
        let before = version(self);
        let known = &mut self.activators[process.activator.0];
        let shown = known.clock.read(self.now);
        known.core.handle(event, shown);
        if let Some(order) = order {
            let after = version(self);
            self.checks.activator_ordered(process, &order, before, after);
        }
        while let Some(command) = self.activators[process.activator.0].core.next_command() {
            self.obey_activator(process, command);
        }
    }

    fn plan_look(&mut self, process: ActivatorProcess, service: ServiceNumber) {
        let known = &mut self.activators[process.activator.0];
        let revision = known.core.revision(&self.names[service.0]);
        let Some(due) = revision.and_then(ActivatorRevision::next_deadline) else { return };
        let moment = known.clock.moment_of(due).max(self.now);
        if let Some(at) = known.looks[service.0].plan(moment) {
            self.at(at, TrialEvent::ActivatorLooks(process, service));
        }
    }

    pub(super) fn activator_looks(&mut self, process: ActivatorProcess, service: ServiceNumber) {
        if self.has_ended(process) || !self.activators[process.activator.0].looks[service.0].comes(self.now) {
            return;
        }
        let known = &self.activators[process.activator.0];
        let shown = known.clock.read(self.now);
        let revision = known.core.revision(&self.names[service.0]);
        let due = revision.and_then(ActivatorRevision::next_deadline);
        if due.is_some_and(|due| due <= shown) {
            let revision = self.names[service.0].clone();
            self.tell_of_service(process, service, ActivatorEvent::RevisionIsDue { revision });
        } else {
            self.plan_look(process, service);
        }
    }

    pub(super) fn activator_second_ends(&mut self, process: ActivatorProcess) {
        if self.has_ended(process) {
            return;
        }
        self.tell_activator(process, ActivatorEvent::TimePassed);
        self.plan_activator_second(process);
        self.end_if_released(process);
    }

    fn obey_activator(&mut self, process: ActivatorProcess, command: ActivatorCommand) {
        match command {
            ActivatorCommand::Grant { revision, dispatch } => self.grant(process, &revision, dispatch),
            ActivatorCommand::Refuse { revision, ticket, refusal } => {
                let Some(service) = self.platform.service(&revision) else { return };
                let place = QueuePlace { service, ticket };
                if let Some(number) = self.activators[process.activator.0].waiting.remove(&place) {
                    self.end_request(number, RequestEnd::Refused(refusal));
                }
            }
            ActivatorCommand::CarryOut { upkeep, .. } => {
                // There are neither idle connections nor ports to close. All commands are drained before
                // the next event, so this is one of its own.
                let ended = ActivatorEvent::UpkeepEnded { upkeep };
                self.at(self.now, TrialEvent::ActivatorHears(process, Box::new(ended)));
            }
            ActivatorCommand::Write { link } => self.write_words(process, link),
            ActivatorCommand::CloseLink { link } => self.lose(ConnectionNumber(link.0)),
            ActivatorCommand::NoteSynced => self.activators[process.activator.0].is_synced = true,
            ActivatorCommand::NoteReleased => self.activators[process.activator.0].is_released = true,
            ActivatorCommand::CountStaleOrder => self.checks.reached(ReachedState::StaleOrderIgnored),
            ActivatorCommand::LeadHost { .. }
            | ActivatorCommand::ReleaseHost { .. }
            | ActivatorCommand::LimitHeads { .. } => {}
        }
    }

    /// A link of an activator can always be written to.
    fn write_words(&mut self, process: ActivatorProcess, link: LinkNumber) {
        loop {
            let known = &mut self.activators[process.activator.0];
            let shown = known.clock.read(self.now);
            let words = known.core.next_words(link, shown);
            if words.is_empty() {
                return;
            }
            let connection = ConnectionNumber(link.0);
            for word in words {
                self.check_word(process, connection, &word);
                self.say_to_owner(connection, WordToOwner::OfActivator(word));
            }
        }
    }

    fn check_word(&mut self, process: ActivatorProcess, connection: ConnectionNumber, word: &ActivatorWord) {
        let about = match word {
            ActivatorWord::Present { revision, .. }
            | ActivatorWord::Acknowledged { revision, .. }
            | ActivatorWord::Emptied { revision } => Some(revision),
            ActivatorWord::Hello(_) | ActivatorWord::Loads { .. } | ActivatorWord::Draining => None,
        };
        let core = &self.activators[process.activator.0].core;
        let known = about.and_then(|revision| core.revision(revision));
        let version = known.map(|known| known.assignment().version);
        let held = known.map_or(0, ActivatorRevision::held);
        self.checks.activator_said(connection, word, version, held);
    }

    /// The activator for a request: one that the route names, if any of those is there.
    pub(super) fn receiver(&self, request: &TrialRequest) -> Option<ActivatorNumber> {
        let all = (0..self.activators.len()).map(ActivatorNumber);
        let there = all.filter(|activator| !self.activators[activator.0].state.is_down());
        let named = there.clone().filter(|activator| self.is_named(request.service, *activator));
        in_turn(named, request.of_service).or_else(|| in_turn(there, request.of_service))
    }

    /// Whether the route of a Service names an activator.
    pub(super) fn is_named(&self, service: ServiceNumber, activator: ActivatorNumber) -> bool {
        let name = &self.activators[activator.0].name;
        self.routes.get(&service).is_some_and(|route| route.activators.contains(name))
    }

    pub(super) fn note_route(&mut self, former: Option<Routing>, routing: Routing) {
        match (former, routing) {
            (None | Some(Routing::ThroughActivator), Routing::Direct) => {
                self.checks.reached(ReachedState::RouteTurnedDirect);
            }
            (Some(Routing::Direct), Routing::ThroughActivator) => {
                self.checks.reached(ReachedState::RouteTurnedToActivators);
            }
            (None | Some(Routing::ThroughActivator), Routing::ThroughActivator)
            | (Some(Routing::Direct), Routing::Direct) => {}
        }
    }
}

/// The one of some activators whose turn it is; `None` if there are none.
fn in_turn(
    mut activators: impl Iterator<Item = ActivatorNumber> + Clone,
    turn: usize,
) -> Option<ActivatorNumber> {
    let count = activators.clone().count();
    activators.nth(turn.checked_rem(count)?)
}

/// The revision that an order of an owner is about.
fn revision_ordered(event: &ActivatorEvent) -> Option<&RevisionName> {
    match event {
        ActivatorEvent::Assigned { assignment, .. } => Some(&assignment.revision),
        ActivatorEvent::Removed { revision, .. } | ActivatorEvent::ForgettingAllowed { revision, .. } => {
            Some(revision)
        }
        ActivatorEvent::LinkOpened { .. }
        | ActivatorEvent::LinkClosed { .. }
        | ActivatorEvent::SyncBegan { .. }
        | ActivatorEvent::SyncEnded { .. }
        | ActivatorEvent::Released { .. }
        | ActivatorEvent::UpkeepEnded { .. }
        | ActivatorEvent::RevisionIsDue { .. }
        | ActivatorEvent::Request { .. }
        | ActivatorEvent::LeavingBegan
        | ActivatorEvent::TimePassed => None,
    }
}
