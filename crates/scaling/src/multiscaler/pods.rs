//! Which pods of a revision are ready? The link's word first, the platform's as the fallback.

use std::collections::BTreeMap;

use vocabulary::{PodCount, PodId, PodState};

use super::{PodFact, PodPhase};

/// The pods of one revision.
#[derive(Clone, Debug, Default)]
pub(super) struct Pods {
    pods: BTreeMap<PodId, Pod>,
    /// Those of `pods` that are ready: asked for at every look, while it changes rarely.
    ready: Vec<PodId>,
}

#[derive(Clone, Copy, Debug)]
struct Pod {
    phase: PodPhase,
    platform_ready: Option<bool>,
    /// The last it said on a link.
    said: Option<PodState>,
    linked: bool,
}

/// How many pods are in which part of their lives (spec kpa §7.7): every pod but the ready ones counts as not ready too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PodCounts {
    pub(super) ready: PodCount,
    pub(super) not_ready: PodCount,
    pub(super) pending: PodCount,
    pub(super) terminating: PodCount,
}

impl Pod {
    /// A link that is up overrides the platform. Once it is lost, the platform's word counts again; where the platform has none,
    /// a lost link changes nothing.
    fn is_ready(self) -> bool {
        if self.phase != PodPhase::Running {
            return false;
        }
        let said_ready = self.said == Some(PodState::Ready);
        match self.said {
            Some(PodState::Starting | PodState::Ready | PodState::Unready | PodState::Draining)
                if self.linked =>
            {
                said_ready
            }
            Some(_) | None => self.platform_ready.unwrap_or(said_ready),
        }
    }
}

impl Pods {
    /// Takes in all pods; returns those that are gone.
    pub(super) fn replace(&mut self, facts: &[PodFact]) -> Vec<PodId> {
        let mut before = std::mem::take(&mut self.pods);
        for fact in facts {
            let (said, linked) = before.remove(&fact.pod).map_or((None, false), |pod| (pod.said, pod.linked));
            let pod = Pod { phase: fact.phase, platform_ready: fact.platform_ready, said, linked };
            self.pods.insert(fact.pod, pod);
        }
        self.note_ready();
        before.into_keys().filter(|pod| !self.pods.contains_key(pod)).collect()
    }

    /// What a pod said on its link; whether that changed its readiness.
    pub(super) fn heard_state(&mut self, pod: PodId, state: PodState) -> bool {
        self.change(pod, |pod| {
            pod.said = Some(state);
            pod.linked = true;
        })
    }

    /// A pod's link came up; what it says next counts.
    pub(super) fn linked(&mut self, pod: PodId) -> bool {
        self.change(pod, |pod| pod.linked = true)
    }

    /// A pod's link is gone.
    pub(super) fn unlinked(&mut self, pod: PodId) -> bool {
        self.change(pod, |pod| pod.linked = false)
    }

    fn change(&mut self, pod: PodId, change: impl FnOnce(&mut Pod)) -> bool {
        let Some(pod) = self.pods.get_mut(&pod) else { return false };
        let before = pod.is_ready();
        change(pod);
        let is_news = pod.is_ready() != before;
        if is_news {
            self.note_ready();
        }
        is_news
    }

    fn note_ready(&mut self) {
        self.ready.clear();
        self.ready.extend(self.pods.iter().filter(|(_, pod)| pod.is_ready()).map(|(&id, _)| id));
    }

    /// The ready pods, in the order of their ids.
    pub(super) fn ready(&self) -> &[PodId] {
        &self.ready
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = PodId> {
        self.pods.keys().copied()
    }

    pub(super) fn counts(&self) -> PodCounts {
        let count =
            |holds: fn(&Pod) -> bool| PodCount::of(self.pods.values().filter(|pod| holds(pod)).count());
        PodCounts {
            ready: PodCount::of(self.ready.len()),
            not_ready: count(|pod| !pod.is_ready()),
            pending: count(|pod| pod.phase == PodPhase::Pending),
            terminating: count(|pod| pod.phase == PodPhase::Terminating),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: PodId = PodId(7);

    fn pods(phase: PodPhase, platform_ready: Option<bool>) -> Pods {
        let mut pods = Pods::default();
        pods.replace(&[PodFact { pod: POD, phase, platform_ready }]);
        pods
    }

    fn is_ready(pods: &Pods) -> bool {
        pods.ready() == [POD]
    }

    #[test]
    fn the_link_overrides_the_platform_while_it_is_up() {
        let mut pods = pods(PodPhase::Running, Some(true));
        assert!(is_ready(&pods), "the platform's word is the fallback");
        assert!(pods.heard_state(POD, PodState::Unready));
        assert!(!is_ready(&pods));
        assert!(pods.unlinked(POD));
        assert!(is_ready(&pods));
    }

    #[test]
    fn a_lost_link_changes_no_readiness_where_the_platform_has_no_word() {
        let mut pods = pods(PodPhase::Running, None);
        assert!(!is_ready(&pods));
        pods.heard_state(POD, PodState::Ready);
        assert!(!pods.unlinked(POD));
        assert!(is_ready(&pods));
        assert!(!pods.linked(POD), "a new link that has said nothing changes nothing either");
        pods.replace(&[PodFact { pod: POD, phase: PodPhase::Terminating, platform_ready: None }]);
        assert!(!is_ready(&pods));
    }

    #[test]
    fn phases_count_as_in_spec_kpa_7_7() {
        let fact = |id, phase, platform_ready| PodFact { pod: PodId(id), phase, platform_ready };
        let mut pods = Pods::default();
        pods.replace(&[
            fact(0, PodPhase::Running, Some(true)),
            fact(1, PodPhase::Running, Some(false)),
            fact(2, PodPhase::Pending, None),
            fact(3, PodPhase::Terminating, Some(true)),
        ]);
        let (one, three) = (PodCount::ONE, PodCount::new(3));
        assert_eq!(pods.counts(), PodCounts { ready: one, not_ready: three, pending: one, terminating: one });
    }

    #[test]
    fn a_pod_that_is_gone_is_forgotten_so_that_its_id_can_be_reused() {
        let mut pods = pods(PodPhase::Running, None);
        pods.heard_state(POD, PodState::Ready);
        assert_eq!(pods.replace(&[]), [POD]);
        pods.replace(&[PodFact { pod: POD, phase: PodPhase::Running, platform_ready: None }]);
        assert!(!is_ready(&pods));
    }
}
