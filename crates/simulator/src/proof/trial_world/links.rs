//! Links between owners and activators or pods: dialled, standing, lost, cut, slow.
//!
//! A link is what an owner asked to keep. A connection is one time that it stands: words that are under way
//! belong to their connection, and are lost with it.

use std::sync::Arc;
use std::time::Duration;

use orchestration::{ControlEvent, LinkId, LinkNews, Peer};
use throttling::{ActivatorEvent, LinkNumber};
use vocabulary::{ActivatorWord, PodSettings, PodWord};

use super::TrialWorld;
use crate::link_disturbance::{LinkDisturbance, LinkDisturbanceKind};
use crate::ordered_way::OrderedWay;
use crate::proof::fault::{ActivatorNumber, OwnerNumber};
use crate::proof::reached_state::ReachedState;
use crate::proof::trial_event::{ConnectionNumber, OwnerProcess, TrialEvent, WordToOwner};
use crate::proof::trial_parts::{FarEnd, OwnerLink, ProcessState, TrialConnection};

/// The pause before a lost link is dialled again.
const DIAL_SOON: Duration = Duration::from_millis(50);
/// The pause after an attempt that found no process.
const DIAL_LATER: Duration = Duration::from_millis(200);
/// The pause after an attempt without an answer.
const DIAL_MUCH_LATER: Duration = Duration::from_secs(1);
/// A link that stood, and was refused so often, is called refused.
const REFUSALS: u32 = 2;

/// What an attempt to dial finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DialOutcome {
    Accepted,
    /// No process listens at the far end.
    Refused,
    NoAnswer,
}

impl TrialWorld<'_> {
    pub(super) fn open_link(&mut self, process: OwnerProcess, link: LinkId, peer: Peer) {
        let (far_end, settings) = match peer {
            Peer::Pod { name, settings } => {
                let Some(pod) = self.platform.pod_named(&name) else { return };
                (FarEnd::Pod(pod), Some(settings))
            }
            Peer::Activator { name } => {
                let Some(activator) = self.activator_named(&name) else { return };
                (FarEnd::Activator(activator), None)
            }
        };
        let kept = OwnerLink { far_end, settings, connection: None, has_stood: false, refusals: 0 };
        self.owners[process.owner.0].links.insert(link, kept);
        self.at(self.now + self.delays.link, TrialEvent::LinkIsDialled(process, link));
    }

    pub(super) fn close_link(&mut self, process: OwnerProcess, link: LinkId) {
        let kept = self.owners[process.owner.0].links.remove(&link);
        if let Some(connection) = kept.and_then(|kept| kept.connection) {
            self.disconnect(connection);
        }
    }

    pub(super) fn link_is_dialled(&mut self, process: OwnerProcess, link: LinkId) {
        if self.is_gone(process) {
            return;
        }
        let Some(kept) = self.owners[process.owner.0].links.get(&link) else { return };
        if kept.connection.is_some() {
            return;
        }
        match self.dial(process.owner, kept) {
            DialOutcome::Accepted => self.connect(process, link),
            DialOutcome::Refused => self.note_refusal(process, link),
            DialOutcome::NoAnswer => {
                self.at(self.now + DIAL_MUCH_LATER, TrialEvent::LinkIsDialled(process, link));
            }
        }
    }

    fn dial(&self, owner: OwnerNumber, kept: &OwnerLink) -> DialOutcome {
        let is_cut = self.owners[owner.0].cut_until > self.now
            || self.disturbances.lost_until((owner, kept.far_end), self.now).is_some();
        if is_cut {
            return DialOutcome::NoAnswer;
        }
        match kept.far_end {
            FarEnd::Activator(activator) => match self.activators[activator.0].state {
                ProcessState::Runs | ProcessState::Stalls { .. } => DialOutcome::Accepted,
                ProcessState::Down => DialOutcome::Refused,
            },
            FarEnd::Pod(pod) => match self.platform.pod(pod) {
                None => DialOutcome::Refused,
                // A pod lets no earlier owner take its link.
                Some(known) => {
                    let epoch = kept.settings.as_ref().map(|settings| settings.version.epoch);
                    let is_late = epoch < Some(known.settings_version().epoch);
                    if is_late { DialOutcome::NoAnswer } else { DialOutcome::Accepted }
                }
            },
        }
    }

    fn note_refusal(&mut self, process: OwnerProcess, link: LinkId) {
        let Some(kept) = self.owners[process.owner.0].links.get_mut(&link) else { return };
        kept.refusals += 1;
        let is_news = kept.has_stood && kept.refusals == REFUSALS;
        if is_news {
            self.tell_of_link(process, link, LinkNews::Refused);
        }
        self.at(self.now + DIAL_LATER, TrialEvent::LinkIsDialled(process, link));
    }

    fn tell_of_link(&mut self, process: OwnerProcess, link: LinkId, news: LinkNews) {
        let event = ControlEvent::LinkChanged { link, news };
        let at = self.now + self.delays.link;
        self.at(at, TrialEvent::OwnerHears(process, Box::new(event)));
    }

    fn connect(&mut self, process: OwnerProcess, link: LinkId) {
        let Some(kept) = self.owners[process.owner.0].links.get_mut(&link) else { return };
        self.connections_made += 1;
        let number = ConnectionNumber(self.connections_made);
        kept.connection = Some(number);
        (kept.has_stood, kept.refusals) = (true, 0);
        let (far_end, settings) = (kept.far_end, kept.settings.clone());
        let connection = TrialConnection {
            process,
            link,
            far_end,
            to_owner: OrderedWay::default(),
            to_far_end: OrderedWay::default(),
            delay: self.network.span(Duration::from_micros(100), Duration::from_millis(5)),
        };
        self.connections.insert(number, connection);
        match far_end {
            FarEnd::Activator(_) => {
                let opened = ActivatorEvent::LinkOpened { link: LinkNumber(number.0) };
                self.send_to_far_end(number, TrialEvent::ActivatorHearsOrder(number, Box::new(opened)));
            }
            FarEnd::Pod(_) => {
                if let Some(settings) = settings {
                    self.send_to_far_end(number, TrialEvent::PodHears(number, settings));
                }
            }
        }
    }

    /// The connection of a link is lost: the owner hears of that, and dials again.
    pub(super) fn lose(&mut self, number: ConnectionNumber) {
        let Some(connection) = self.connections.get(&number) else { return };
        let (process, link) = (connection.process, connection.link);
        self.checks.reached(match connection.far_end {
            FarEnd::Activator(_) => ReachedState::ActivatorLinkLost,
            FarEnd::Pod(_) => ReachedState::PodLinkLost,
        });
        self.disconnect(number);
        if self.is_gone(process) {
            return;
        }
        let kept = self.owners[process.owner.0].links.get_mut(&link);
        if let Some(kept) = kept.filter(|kept| kept.connection == Some(number)) {
            kept.connection = None;
            self.tell_of_link(process, link, LinkNews::Lost);
            self.at(self.now + DIAL_SOON, TrialEvent::LinkIsDialled(process, link));
        }
    }

    /// A connection ends, with all that is under way on it. Its far end notices.
    fn disconnect(&mut self, number: ConnectionNumber) {
        let Some(connection) = self.connections.remove(&number) else { return };
        match connection.far_end {
            FarEnd::Activator(activator) => {
                let process = self.activators[activator.0].process;
                let closed = ActivatorEvent::LinkClosed { link: LinkNumber(number.0) };
                let at = self.now + self.delays.link;
                self.at(at, TrialEvent::ActivatorHears(process, Box::new(closed)));
            }
            FarEnd::Pod(pod) => {
                let known = self.pods.get_mut(&pod).filter(|known| known.connection == Some(number));
                if let Some(known) = known {
                    known.connection = None;
                    if let Some(pod) = self.platform.pod_mut(pod) {
                        pod.link = None;
                    }
                }
            }
        }
    }

    fn connections_that(&self, are_meant: impl Fn(&TrialConnection) -> bool) -> Vec<ConnectionNumber> {
        let meant = self.connections.iter().filter(|(_, connection)| are_meant(connection));
        meant.map(|(&number, _)| number).collect()
    }

    /// The connections of an owner that is gone end.
    pub(super) fn close_connections(&mut self, are_meant: impl Fn(&TrialConnection) -> bool) {
        for number in self.connections_that(are_meant) {
            self.disconnect(number);
        }
    }

    pub(super) fn lose_connections(&mut self, are_meant: impl Fn(&TrialConnection) -> bool) {
        for number in self.connections_that(are_meant) {
            self.lose(number);
        }
    }

    pub(super) fn lose_connections_between(&mut self, owner: OwnerNumber, far_end: FarEnd) {
        self.lose_connections(|connection| {
            connection.process.owner == owner && connection.far_end == far_end
        });
    }

    /// The links between an owner and a far end are lost or slow for a while.
    pub(super) fn disturb(
        &mut self,
        owner: OwnerNumber,
        far_end: FarEnd,
        kind: LinkDisturbanceKind,
        length: Duration,
    ) {
        let until = self.now + length;
        self.disturbances.add(LinkDisturbance { group: (owner, far_end), kind, until }, self.now);
        if kind == LinkDisturbanceKind::Lost {
            self.lose_connections_between(owner, far_end);
        }
    }

    pub(super) fn send_to_far_end(&mut self, number: ConnectionNumber, event: TrialEvent) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let slowness = self.disturbances.slowness(connection.group(), self.now);
        let at = connection.to_far_end.arrival(self.now, connection.delay + slowness);
        self.at(at, event);
    }

    pub(super) fn say_to_owner(&mut self, number: ConnectionNumber, word: WordToOwner) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let slowness = self.disturbances.slowness(connection.group(), self.now);
        let at = connection.to_owner.arrival(self.now, connection.delay + slowness);
        self.at(at, TrialEvent::OwnerHearsWord(number, Box::new(word)));
    }

    pub(super) fn owner_hears_word(&mut self, number: ConnectionNumber, word: WordToOwner) {
        let Some(connection) = self.connections.get(&number) else { return };
        let (process, link, far_end) = (connection.process, connection.link, connection.far_end);
        let event = match word {
            WordToOwner::OfPod(word) => {
                self.note_word_of_pod(process.owner, far_end, &word);
                ControlEvent::PodSpoke { link, word }
            }
            WordToOwner::OfActivator(word) => {
                self.note_word_of_activator(process.owner, &word);
                ControlEvent::ActivatorSpoke { link, word }
            }
        };
        self.tell_owner(process, event);
    }

    fn note_word_of_pod(&mut self, owner: OwnerNumber, far_end: FarEnd, word: &PodWord) {
        let FarEnd::Pod(number) = far_end else { return };
        let Some(pod) = self.platform.pod(number) else { return };
        let state = match word {
            PodWord::Hello(hello) => Some(hello.state),
            PodWord::State { state, .. } => Some(*state),
            PodWord::Load { .. }
            | PodWord::Present(_)
            | PodWord::SettingsAcknowledged(_)
            | PodWord::Adopted(_) => None,
        };
        if let Some(state) = state {
            self.checks.pod_heard(owner, &pod.name, state);
        }
        self.checks.load_heard(owner, &self.names[pod.service.0], self.now);
    }

    fn note_word_of_activator(&mut self, owner: OwnerNumber, word: &ActivatorWord) {
        match word {
            ActivatorWord::Hello(_) | ActivatorWord::Loads { .. } | ActivatorWord::Present { .. } => {
                self.checks.loads_heard(owner, self.now);
            }
            ActivatorWord::Acknowledged { .. } | ActivatorWord::Emptied { .. } | ActivatorWord::Draining => {}
        }
    }

    /// An owner tells a pod its settings, if the link stands; else the next connection begins with them.
    pub(super) fn tell_pod(&mut self, process: OwnerProcess, link: LinkId, settings: Arc<PodSettings>) {
        let Some(kept) = self.owners[process.owner.0].links.get_mut(&link) else { return };
        kept.settings = Some(Arc::clone(&settings));
        if let Some(number) = kept.connection {
            self.send_to_far_end(number, TrialEvent::PodHears(number, settings));
        }
    }

    pub(super) fn activator_of(&self, number: ConnectionNumber) -> Option<ActivatorNumber> {
        match self.connections.get(&number)?.far_end {
            FarEnd::Activator(activator) => Some(activator),
            FarEnd::Pod(_) => None,
        }
    }
}
