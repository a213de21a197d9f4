//! What is known of one pod: its facts, its link, what was heard of it, and how far its leave has come.

use std::sync::Arc;

use scaling::{PodFact, PodPhase};
use serde::{Deserialize, Serialize};
use vocabulary::{AdoptionId, Departure, LinkAddress, PodId, PodSettings, PodState, Timestamp};

use crate::departures::LeaveTaking;
use crate::facts::PodFacts;
use crate::links::LinkId;
use crate::pod_start::StartSteps;
use crate::readiness::{HeardOfPod, LinkCondition, pod_state};

/// A pod: its facts, its link and what it said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PodRecord {
    pub(crate) facts: Arc<PodFacts>,
    pub(crate) heard: HeardOfPod,
    pub(crate) link: Option<PodLink>,
    pub(crate) leave: LeaveTaking,
    pub(crate) start: StartSteps,
    /// Whether the platform was told that no client reaches it.
    pub(crate) is_out: bool,
}

impl PodRecord {
    pub(crate) fn new(facts: Arc<PodFacts>, start: StartSteps) -> Self {
        let (heard, leave) = (HeardOfPod::default(), LeaveTaking::None);
        Self { facts, heard, link: None, leave, start, is_out: false }
    }

    /// A fact or a word may have brought its start a step further.
    pub(crate) fn note_start(&mut self, now: Timestamp) {
        let state = self.state();
        self.start.note(self.facts.phase, state, now);
    }

    pub(crate) fn state(&self) -> PodState {
        pod_state(&self.facts, &self.heard)
    }

    /// Whether it is ready and its address is known.
    pub(crate) fn takes_requests(&self) -> bool {
        self.state() == PodState::Ready && self.facts.requests.is_some()
    }

    pub(crate) fn is_linked(&self) -> bool {
        self.heard.connection == LinkCondition::Up
    }

    /// What the multiscaler hears of it. One that is to leave counts as leaving, even while it still answers.
    pub(crate) fn fact(&self, pod: PodId) -> PodFact {
        let phase = if self.facts.leaving { PodPhase::Terminating } else { self.facts.phase };
        PodFact {
            pod,
            phase,
            is_ready: self.state() == PodState::Ready,
            is_reachable: !self.is_out,
            is_outdated: self.facts.outdated,
        }
    }

    /// What its queue-proxy is told that concerns it alone.
    pub(crate) fn own_settings(&self) -> OwnPodSettings {
        OwnPodSettings { departure: self.departure(), adoption: self.facts.adoption }
    }

    /// What its queue-proxy is told of its end.
    fn departure(&self) -> Departure {
        match (self.facts.ends_in, self.leave) {
            // A platform that names no time ends a released pod by TERM, and that alone begins its drain.
            // This word would race with it: a queue-proxy that holds nothing would be gone before TERM comes,
            // as if it had failed.
            (None, _) => Departure::NotPlanned,
            // `LeaveTaking::Released` is not enough: the platform was told, but a route may name the pod for
            // a while.
            (Some(_), LeaveTaking::Gone) => Departure::Released,
            (Some(within), LeaveTaking::None | LeaveTaking::Announced { .. } | LeaveTaking::Released) => {
                Departure::Leaving { within }
            }
        }
    }
}

/// What one pod is told beside what all pods of its revision are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnPodSettings {
    pub(crate) departure: Departure,
    pub(crate) adoption: Option<AdoptionId>,
}

impl OwnPodSettings {
    /// The settings of all pods, and these.
    pub(crate) fn within(self, settings: &Arc<PodSettings>) -> Arc<PodSettings> {
        if self == Self::default() {
            return Arc::clone(settings);
        }
        let Self { departure, adoption } = self;
        Arc::new(PodSettings { departure, adoption, ..PodSettings::clone(settings) })
    }
}

/// A link that is kept to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PodLink {
    pub(crate) id: LinkId,
    pub(crate) address: LinkAddress,
}
