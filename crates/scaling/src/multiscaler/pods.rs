//! How many pods of a revision are in which part of their lives?

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, PodId};

use super::pod_starts::stays;
use super::{PodFact, PodPhase};

/// The pods of one revision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RevisionPods {
    pods: BTreeMap<PodId, PodFact>,
    /// Those of `pods` that are ready: asked for at every look, while it changes rarely.
    ready: Vec<PodId>,
}

/// How many pods are in which part of their lives (spec kpa §7.7): every pod but the ready ones counts as not
/// ready too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PodCounts {
    pub(super) ready: PodCount,
    pub(super) not_ready: PodCount,
    pub(super) pending: PodCount,
    pub(super) terminating: PodCount,
}

/// A pod on its way out counts as not ready, even while it still answers.
fn is_ready(pod: PodFact) -> bool {
    pod.is_ready && pod.phase != PodPhase::Terminating
}

impl RevisionPods {
    /// Takes in all pods; returns those that are gone.
    pub(super) fn replace(&mut self, facts: &[PodFact]) -> Vec<PodId> {
        let before = std::mem::take(&mut self.pods);
        self.pods.extend(facts.iter().map(|fact| (fact.pod, *fact)));
        self.note_ready();
        before.into_keys().filter(|pod| !self.pods.contains_key(pod)).collect()
    }

    /// How many of these pods are new here, and were not told to end.
    pub(super) fn appearing(&self, facts: &[PodFact]) -> PodCount {
        let appears = |fact: &&PodFact| stays(**fact) && !self.pods.contains_key(&fact.pod);
        PodCount::of(facts.iter().filter(appears).count())
    }

    /// Whether there is none, be it on its way out.
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// One pod as it now is; whether that changed a count.
    pub(super) fn change(&mut self, fact: PodFact) -> bool {
        let Some(pod) = self.pods.get_mut(&fact.pod) else { return false };
        let before = std::mem::replace(pod, fact);
        if is_ready(before) != is_ready(fact) {
            self.note_ready();
        }
        before != fact
    }

    fn note_ready(&mut self) {
        self.ready.clear();
        self.ready.extend(self.pods.iter().filter(|(_, pod)| is_ready(**pod)).map(|(&id, _)| id));
    }

    /// The ready pods, in the order of their ids.
    pub(super) fn ready(&self) -> &[PodId] {
        &self.ready
    }

    pub(super) fn ready_count(&self) -> PodCount {
        PodCount::of(self.ready.len())
    }

    /// How many of the ready pods clients reach.
    pub(super) fn reachable(&self) -> PodCount {
        let reached = |pod: &&PodId| self.pods.get(pod).is_some_and(|pod| pod.is_reachable);
        PodCount::of(self.ready.iter().filter(reached).count())
    }

    pub(super) fn is_ready(&self, pod: PodId) -> bool {
        self.ready.binary_search(&pod).is_ok()
    }

    /// Whether the pod exists, be it on its way out.
    pub(super) fn contains(&self, pod: PodId) -> bool {
        self.pods.contains_key(&pod)
    }

    /// Whether the pod exists and was not told to end.
    pub(super) fn stays(&self, pod: PodId) -> bool {
        self.pods.get(&pod).is_some_and(|pod| pod.phase != PodPhase::Terminating)
    }

    /// All of them, in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = PodFact> {
        self.pods.values().copied()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = PodId> {
        self.pods.keys().copied()
    }

    pub(super) fn counts(&self) -> PodCounts {
        let count =
            |holds: fn(PodFact) -> bool| PodCount::of(self.pods.values().filter(|pod| holds(**pod)).count());
        PodCounts {
            ready: self.ready_count(),
            not_ready: count(|pod| !is_ready(pod)),
            pending: count(|pod| pod.phase == PodPhase::Pending && !is_ready(pod)),
            terminating: count(|pod| pod.phase == PodPhase::Terminating),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(id: u32, phase: PodPhase, is_ready: bool) -> PodFact {
        PodFact { pod: PodId(id), phase, is_ready, is_reachable: true, is_outdated: false }
    }

    #[test]
    fn phases_count_as_in_spec_kpa_7_7() {
        let mut pods = RevisionPods::default();
        pods.replace(&[
            fact(0, PodPhase::Running, true),
            fact(1, PodPhase::Running, false),
            fact(2, PodPhase::Pending, false),
            fact(3, PodPhase::Terminating, true),
        ]);
        let (one, three) = (PodCount::ONE, PodCount::new(3));
        assert_eq!(pods.counts(), PodCounts { ready: one, not_ready: three, pending: one, terminating: one });
    }

    #[test]
    fn only_a_real_change_of_a_known_pod_counts() {
        let mut pods = RevisionPods::default();
        pods.replace(&[fact(7, PodPhase::Running, false)]);
        assert!(!pods.change(fact(7, PodPhase::Running, false)));
        assert!(pods.change(fact(7, PodPhase::Running, true)));
        assert_eq!(pods.ready(), [PodId(7)]);
        assert!(!pods.change(fact(8, PodPhase::Running, true)));
        assert_eq!(pods.replace(&[]), [PodId(7)]);
        assert!(pods.ready().is_empty());
    }
}
