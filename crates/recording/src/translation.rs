//! How do recorded events reach an orchestrator that counts its links and orders otherwise?
//!
//! Links and orders are numbers of a process. An orchestrator that begins in the middle of a record, or
//! decides otherwise, gives other numbers to the same peers and errands, and opens its links at other times.
//! Here each number is replaced by the one of the same peer or errand, a link that is opened finds its peer's
//! last words, and an activator of which the record has no acknowledgement acknowledges after a while.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::{ControlCommand, ControlEvent, LinkId, LinkNews, OrderId, OrderOutcome, PlatformFact};
use vocabulary::{ActivatorWord, ReplicaName, RevisionName, Timestamp, Version};

use crate::keyframe::Keyframe;
use crate::last_words::LastWords;
use crate::outcome::{CommandOutcome, errand_hash};
use crate::peers::PeerName;

/// An activator acknowledges within milliseconds. One that has not after so long was never told, in the run
/// that was recorded, what it is told here.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(1);

/// Numbers of the recorded process, and those of the replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberTranslation {
    recorded_links: BTreeMap<LinkId, PeerName>,
    recorded_orders: BTreeMap<OrderId, u64>,
    last_words: LastWords,
    links: BTreeMap<PeerName, LinkId>,
    peers: BTreeMap<LinkId, PeerName>,
    /// The latest order of each errand.
    orders: BTreeMap<u64, OrderId>,
    /// The latest round of questions about each revision.
    rounds: BTreeMap<RevisionName, u64>,
    awaited: BTreeMap<(ReplicaName, RevisionName), AwaitedVersion>,
}

/// A version that an activator was told and has not acknowledged.
#[derive(Clone, Copy, Debug)]
struct AwaitedVersion {
    version: Version,
    told_at: Timestamp,
}

impl NumberTranslation {
    /// The translation from a keyframe on.
    pub(crate) fn from_keyframe(keyframe: &Keyframe) -> Self {
        Self {
            recorded_links: keyframe.links.iter().cloned().collect(),
            recorded_orders: keyframe.orders.iter().copied().collect(),
            last_words: keyframe.last_words.clone(),
            ..Self::default()
        }
    }

    /// The event with the numbers of the replay; `None` if it is about a link or an order that the replay
    /// does not have.
    pub(crate) fn translated(&mut self, event: ControlEvent) -> Option<ControlEvent> {
        match event {
            ControlEvent::PodSpoke { link, word } => {
                let peer = self.recorded_links.get(&link)?;
                if let PeerName::Pod(name) = peer {
                    self.last_words.pod_spoke(name, &word);
                }
                Some(ControlEvent::PodSpoke { link: *self.links.get(peer)?, word })
            }
            ControlEvent::ActivatorSpoke { link, word } => self.activator_spoke(link, word),
            ControlEvent::LinkChanged { link, news } => {
                let peer = self.recorded_links.get(&link)?;
                if matches!(news, LinkNews::Lost | LinkNews::Refused) {
                    self.last_words.forget(peer);
                }
                Some(ControlEvent::LinkChanged { link: *self.links.get(peer)?, news })
            }
            ControlEvent::MetricsAnswered { revision, round: _, answers } => {
                let round = *self.rounds.get(&revision)?;
                Some(ControlEvent::MetricsAnswered { revision, round, answers })
            }
            ControlEvent::Platform(PlatformFact::OrderEnded { order, outcome }) => {
                let order = self.order_ended(order, &outcome)?;
                Some(ControlEvent::Platform(PlatformFact::OrderEnded { order, outcome }))
            }
            ControlEvent::Platform(_)
            | ControlEvent::WallClockRead { .. }
            | ControlEvent::ZoneRead { .. }
            | ControlEvent::HistoryRestored { .. }
            | ControlEvent::DemandImported { .. } => Some(event),
        }
    }

    fn activator_spoke(&mut self, link: LinkId, word: ActivatorWord) -> Option<ControlEvent> {
        let peer = self.recorded_links.get(&link)?;
        let PeerName::Activator(name) = peer else { return None };
        self.last_words.activator_spoke(name, &word);
        if let ActivatorWord::Acknowledged { revision, version } = &word {
            let key = (name.clone(), revision.clone());
            if self.awaited.get(&key).is_some_and(|awaited| awaited.version <= *version) {
                self.awaited.remove(&key);
            }
        }
        Some(ControlEvent::ActivatorSpoke { link: *self.links.get(peer)?, word })
    }

    fn order_ended(&mut self, recorded: OrderId, outcome: &OrderOutcome) -> Option<OrderId> {
        match outcome {
            OrderOutcome::Retrying(_) => {
                let errand = self.recorded_orders.get(&recorded)?;
                self.orders.get(errand).copied()
            }
            // By a later order of the errand, which is the one that the replay has.
            OrderOutcome::Superseded => {
                self.recorded_orders.remove(&recorded);
                None
            }
            OrderOutcome::Done
            | OrderOutcome::Conflict { .. }
            | OrderOutcome::Gone
            | OrderOutcome::NotOwner
            | OrderOutcome::Refused(_)
            | OrderOutcome::Forbidden(_) => {
                let errand = self.recorded_orders.remove(&recorded)?;
                self.orders.remove(&errand)
            }
        }
    }

    /// Takes in the numbers that the recorded process gave.
    pub(crate) fn note_recorded(&mut self, outcome: &CommandOutcome) {
        for (link, peer) in &outcome.opened {
            // Words on an earlier link to the peer are late ones.
            self.recorded_links.retain(|_, other| other != peer);
            self.recorded_links.insert(*link, peer.clone());
        }
        self.recorded_orders.extend(outcome.orders.iter().copied());
    }

    /// Takes in a command of the replay. Returns what is heard because of it at once.
    pub(crate) fn note_own(&mut self, command: &ControlCommand, now: Timestamp) -> Vec<ControlEvent> {
        match command {
            ControlCommand::OpenLink { link, peer, .. } => {
                let peer = PeerName::from(peer);
                self.links.insert(peer.clone(), *link);
                let words = self.last_words.of(&peer);
                self.peers.insert(*link, peer);
                return words.into_iter().map(|word| word.on(*link)).collect();
            }
            ControlCommand::CloseLink { link } => {
                if let Some(peer) = self.peers.remove(link)
                    && self.links.get(&peer) == Some(link)
                {
                    self.links.remove(&peer);
                }
            }
            ControlCommand::Sync { activator, assignments, .. } => {
                for assignment in assignments {
                    self.await_version(*activator, &assignment.revision, assignment.version, now);
                }
            }
            ControlCommand::Assign { activator, assignment, .. } => {
                self.await_version(*activator, &assignment.revision, assignment.version, now);
            }
            ControlCommand::Unassign { activator, revision, version, .. } => {
                self.await_version(*activator, revision, *version, now);
            }
            ControlCommand::Order(order) => {
                self.orders.insert(errand_hash(&order.what.errand()), order.id);
            }
            ControlCommand::AskMetrics { revision, round, .. } => {
                self.rounds.insert(revision.clone(), *round);
            }
            ControlCommand::TellPod { .. }
            | ControlCommand::ReleaseActivator { .. }
            | ControlCommand::Publish { .. } => {}
        }
        Vec::new()
    }

    fn await_version(&mut self, link: LinkId, revision: &RevisionName, version: Version, now: Timestamp) {
        let Some(PeerName::Activator(name)) = self.peers.get(&link) else { return };
        let awaited = AwaitedVersion { version, told_at: now };
        self.awaited.insert((name.clone(), revision.clone()), awaited);
    }

    /// The next acknowledgement that the record does not have and that is due before `now`, with its time.
    pub(crate) fn due_acknowledgement(&mut self, now: Timestamp) -> Option<(Timestamp, ControlEvent)> {
        let due = self.awaited.iter().filter(|(_, awaited)| awaited.told_at + ACKNOWLEDGED_WITHIN < now);
        let (key, awaited) = due.min_by_key(|(_, awaited)| awaited.told_at)?;
        let (key, AwaitedVersion { version, told_at }) = (key.clone(), *awaited);
        self.awaited.remove(&key);
        let (name, revision) = key;
        let at = told_at + ACKNOWLEDGED_WITHIN;
        let link = self.links.get(&PeerName::Activator(name))?;
        let word = ActivatorWord::Acknowledged { revision, version };
        Some((at, ControlEvent::ActivatorSpoke { link: *link, word }))
    }
}
