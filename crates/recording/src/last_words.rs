//! What would each peer say on a new connection?
//!
//! A hello repeats what an owner has to know, with the last seconds that were measured. So the last words of
//! each peer are kept as the hello that it would say now: for a keyframe, and for a replay whose links stand
//! at other times than the recorded ones.

use std::collections::{BTreeMap, VecDeque};

use link::History;
use orchestration::{ControlEvent, LinkId};
use vocabulary::{
    ActivatorHello, ActivatorWord, AdoptedConnections, Load, PodHello, PodName, PodWord, ReplicaName,
    RevisionLoad, RevisionName, Routing, Sample, Version,
};

use crate::frame_fault::FrameFault;
use crate::frames::{word_in, word_out};
use crate::peers::PeerName;

/// The last words of each peer whose link is up.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWords {
    pods: BTreeMap<PodName, PodMemory>,
    activators: BTreeMap<ReplicaName, ActivatorMemory>,
}

/// A word of a peer of either kind.
#[derive(Clone, Debug)]
pub(crate) enum PeerWord {
    Pod(PodWord),
    Activator(ActivatorWord),
}

#[derive(Clone, Debug)]
struct PodMemory {
    /// The hello as it was said, with the latest state; its seconds are beside it.
    hello: PodHello,
    seconds: VecDeque<Sample>,
    settings: Option<Version>,
    adopted: Option<AdoptedConnections>,
}

#[derive(Clone, Debug)]
struct ActivatorMemory {
    /// The hello as it was said; all of its lists are beside it.
    hello: ActivatorHello,
    seconds: VecDeque<(u64, Vec<RevisionLoad>)>,
    present: BTreeMap<RevisionName, vocabulary::PresentCount>,
    routings: BTreeMap<RevisionName, Routing>,
    acknowledged: BTreeMap<RevisionName, Version>,
    is_draining: bool,
}

impl PeerWord {
    /// The word as its link encodes it.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        match self {
            Self::Pod(word) => word_out(word),
            Self::Activator(word) => word_out(word),
        }
    }

    /// A word of this peer that its link encoded.
    pub(crate) fn decoded(peer: &PeerName, bytes: &[u8]) -> Result<Self, FrameFault> {
        Ok(match peer {
            PeerName::Pod(_) => Self::Pod(word_in(bytes)?),
            PeerName::Activator(_) => Self::Activator(word_in(bytes)?),
        })
    }

    /// The event that the word is on this link.
    pub(crate) fn on(self, link: LinkId) -> ControlEvent {
        match self {
            Self::Pod(word) => ControlEvent::PodSpoke { link, word },
            Self::Activator(word) => ControlEvent::ActivatorSpoke { link, word },
        }
    }
}

impl LastWords {
    /// A pod said something on its link.
    pub(crate) fn pod_spoke(&mut self, name: &PodName, word: &PodWord) {
        if let PodWord::Hello(hello) = word {
            self.pods.insert(name.clone(), PodMemory::of(hello));
        } else if let Some(pod) = self.pods.get_mut(name) {
            pod.note(word);
        }
    }

    /// An activator said something on its link.
    pub(crate) fn activator_spoke(&mut self, name: &ReplicaName, word: &ActivatorWord) {
        if let ActivatorWord::Hello(hello) = word {
            self.activators.insert(name.clone(), ActivatorMemory::of(hello));
        } else if let Some(activator) = self.activators.get_mut(name) {
            activator.note(word);
        }
    }

    /// An activator was told how a revision is routed.
    pub(crate) fn assigned(&mut self, name: &ReplicaName, revision: &RevisionName, routing: Routing) {
        if let Some(activator) = self.activators.get_mut(name) {
            activator.routings.insert(revision.clone(), routing);
        }
    }

    /// An activator was told to forget a revision.
    pub(crate) fn unassigned(&mut self, name: &ReplicaName, revision: &RevisionName) {
        if let Some(activator) = self.activators.get_mut(name) {
            activator.routings.remove(revision);
            activator.acknowledged.remove(revision);
        }
    }

    /// The link to a peer is gone; its next word is a hello.
    pub(crate) fn forget(&mut self, peer: &PeerName) {
        match peer {
            PeerName::Pod(name) => drop(self.pods.remove(name)),
            PeerName::Activator(name) => drop(self.activators.remove(name)),
        }
    }

    /// What a peer would say on a new connection: its hello, and what no hello repeats. Nothing, if its link
    /// is not up.
    pub(crate) fn of(&self, peer: &PeerName) -> Vec<PeerWord> {
        match peer {
            PeerName::Pod(name) => {
                let words = self.pods.get(name).map(PodMemory::words).unwrap_or_default();
                words.into_iter().map(PeerWord::Pod).collect()
            }
            PeerName::Activator(name) => {
                let words = self.activators.get(name).map(ActivatorMemory::words).unwrap_or_default();
                words.into_iter().map(PeerWord::Activator).collect()
            }
        }
    }

    /// Takes in words that [`LastWords::of`] gave.
    pub(crate) fn note(&mut self, peer: &PeerName, word: &PeerWord) {
        match (peer, word) {
            (PeerName::Pod(name), PeerWord::Pod(word)) => self.pod_spoke(name, word),
            (PeerName::Activator(name), PeerWord::Activator(word)) => self.activator_spoke(name, word),
            (PeerName::Pod(_), PeerWord::Activator(_)) | (PeerName::Activator(_), PeerWord::Pod(_)) => {}
        }
    }
}

impl PodMemory {
    fn of(hello: &PodHello) -> Self {
        let seconds = hello.history.iter().copied().collect();
        let hello = PodHello { history: Vec::new(), ..hello.clone() };
        Self { hello, seconds, settings: None, adopted: None }
    }

    fn note(&mut self, word: &PodWord) {
        match word {
            PodWord::Load { sample, .. } => {
                push_second(&mut self.seconds, *sample);
                self.hello.current_second = self.hello.current_second.max(sample.second.saturating_add(1));
            }
            PodWord::State { state, detail } => {
                self.hello.state = *state;
                self.hello.detail.clone_from(detail);
            }
            PodWord::SettingsAcknowledged(version) => self.settings = Some(*version),
            PodWord::Adopted(connections) => self.adopted = Some(*connections),
            // What is present changes many times a second; a load says it again.
            PodWord::Present(_) | PodWord::Hello(_) => {}
        }
    }

    fn words(&self) -> Vec<PodWord> {
        let history = self.seconds.iter().copied().collect();
        let hello = PodWord::Hello(PodHello { history, ..self.hello.clone() });
        let settings = self.settings.map(PodWord::SettingsAcknowledged);
        let adopted = self.adopted.map(PodWord::Adopted);
        [Some(hello), settings, adopted].into_iter().flatten().collect()
    }
}

impl ActivatorMemory {
    fn of(hello: &ActivatorHello) -> Self {
        let alone = ActivatorHello {
            history: Vec::new(),
            present: Vec::new(),
            routings: Vec::new(),
            activator: hello.activator.clone(),
            ..*hello
        };
        Self {
            hello: alone,
            seconds: hello.history.iter().cloned().collect(),
            present: hello.present.iter().cloned().collect(),
            routings: hello.routings.iter().cloned().collect(),
            acknowledged: BTreeMap::new(),
            is_draining: false,
        }
    }

    fn note(&mut self, word: &ActivatorWord) {
        match word {
            ActivatorWord::Loads { second, loads } => {
                push_second(&mut self.seconds, (*second, loads.clone()));
                self.hello.current_second = self.hello.current_second.max(second.saturating_add(1));
                // A second says again what is held; of revisions that it does not name nothing is.
                self.present.clear();
            }
            ActivatorWord::Present { revision, count, .. } => {
                self.present.insert(revision.clone(), *count);
            }
            ActivatorWord::Acknowledged { revision, version } => {
                self.acknowledged.insert(revision.clone(), *version);
            }
            ActivatorWord::Draining => self.is_draining = true,
            ActivatorWord::Emptied { .. } | ActivatorWord::Hello(_) => {}
        }
    }

    fn words(&self) -> Vec<ActivatorWord> {
        let hello = ActivatorWord::Hello(ActivatorHello {
            history: self.seconds.iter().cloned().collect(),
            present: self.present.iter().map(|(name, count)| (name.clone(), *count)).collect(),
            routings: self.routings.iter().map(|(name, routing)| (name.clone(), *routing)).collect(),
            activator: self.hello.activator.clone(),
            ..self.hello
        });
        let acknowledged = self.acknowledged.iter().map(|(revision, version)| ActivatorWord::Acknowledged {
            revision: revision.clone(),
            version: *version,
        });
        let draining = self.is_draining.then_some(ActivatorWord::Draining);
        [hello].into_iter().chain(acknowledged).chain(draining).collect()
    }
}

/// As many seconds as a hello may name.
fn push_second<Second>(seconds: &mut VecDeque<Second>, second: Second) {
    if seconds.len() >= History::<Load>::SECONDS_MAX {
        seconds.pop_front();
    }
    seconds.push_back(second);
}

#[cfg(test)]
mod tests {
    use vocabulary::{BootId, Concurrency, LinkVersion, PodState, RequestTimeouts};

    use super::*;

    fn sample(second: u64) -> Sample {
        let load = Load { concurrency: Concurrency::clamped(2.0), ..Load::default() };
        Sample { second, load }
    }

    fn hello() -> PodHello {
        PodHello {
            speaks: LinkVersion::CURRENT,
            pod: PodName::new("a"),
            boot: BootId(7),
            state: PodState::Starting,
            detail: "starts".to_owned(),
            container_concurrency: 0,
            timeouts: RequestTimeouts::default(),
            current_second: 2,
            history: vec![sample(0), sample(1)],
        }
    }

    #[test]
    fn a_pod_repeats_its_latest_state_and_its_last_sixty_seconds() {
        let (mut last, name) = (LastWords::default(), PodName::new("a"));
        let peer = PeerName::Pod(name.clone());
        last.pod_spoke(&name, &PodWord::Present(vocabulary::PresentCount::default()));
        assert!(last.of(&peer).is_empty(), "the hello comes first");
        last.pod_spoke(&name, &PodWord::Hello(hello()));
        for second in 2..70 {
            let (sample, usage, late_bytes) = (sample(second), None, None);
            last.pod_spoke(&name, &PodWord::Load { sample, usage, late_bytes });
        }
        last.pod_spoke(&name, &PodWord::State { state: PodState::Ready, detail: String::new() });
        let words = last.of(&peer);
        let [PeerWord::Pod(PodWord::Hello(again))] = words.as_slice() else { panic!("one hello: {words:?}") };
        assert_eq!((again.state, again.current_second, again.history.len()), (PodState::Ready, 70, 60));
        // What is written is what its link takes, whatever was said before.
        let read = PeerWord::decoded(&peer, &words[0].encoded()).expect("a link takes it");
        let PeerWord::Pod(PodWord::Hello(read)) = read else { panic!("it is a hello") };
        assert_eq!(read, *again);
        last.forget(&peer);
        assert!(last.of(&peer).is_empty());
    }

    #[test]
    fn an_activator_repeats_what_it_acknowledged_and_how_it_routes() {
        let (mut last, name) = (LastWords::default(), ReplicaName::new("activator-1"));
        let revision = RevisionName::parse("default/service/hello").expect("three parts");
        let hello = ActivatorHello {
            speaks: LinkVersion::CURRENT,
            activator: name.clone(),
            boot: BootId(3),
            current_second: 0,
            history: Vec::new(),
            present: Vec::new(),
            routings: Vec::new(),
        };
        last.activator_spoke(&name, &ActivatorWord::Hello(hello));
        last.assigned(&name, &revision, Routing::Direct);
        let version = Version { counter: 4, ..Version::default() };
        last.activator_spoke(&name, &ActivatorWord::Acknowledged { revision: revision.clone(), version });
        let words = last.of(&PeerName::Activator(name.clone()));
        let [PeerWord::Activator(ActivatorWord::Hello(hello)), PeerWord::Activator(said)] = words.as_slice()
        else {
            panic!("a hello and an acknowledgement: {words:?}")
        };
        assert_eq!(hello.routings, [(revision.clone(), Routing::Direct)]);
        assert_eq!(*said, ActivatorWord::Acknowledged { revision: revision.clone(), version });
        last.unassigned(&name, &revision);
        assert_eq!(last.of(&PeerName::Activator(name)).len(), 1, "the hello alone");
    }
}
