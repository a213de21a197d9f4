//! Was a pod started because the count was raised, or in the place of another pod?
//!
//! The history counts raises of the count. A pod that appears while no raise waits for its pods stands in for
//! another one: for a pod of an older template during a rollout, else for one that failed or was taken away.
//! The pods with which a revision is found, or is made, are none of these.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

use super::beginning::RevisionBeginning;
use super::{PodFact, PodPhase};
use crate::history::ReplacementCause;

/// The starts that were ordered, and for which no pod has appeared yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct PodStarts {
    ordered: PodCount,
    /// A rollout goes on from the first outdated pod until a pod is ready and none is outdated: there may be
    /// no pod at all in between.
    is_rollout: bool,
}

/// Pods that appeared in the place of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PodReplacements {
    pub(super) cause: ReplacementCause,
    pub(super) pods: PodCount,
}

impl PodStarts {
    pub(super) fn of(beginning: RevisionBeginning) -> Self {
        Self { ordered: beginning.wanted, is_rollout: false }
    }

    /// The count changes; what was raised and is lowered again is started for nothing any more.
    pub(super) fn note_count(&mut self, from: PodCount, to: PodCount) {
        let ordered = self.ordered.value().saturating_add(to.value()).saturating_sub(from.value());
        self.ordered = PodCount::new(ordered);
    }

    /// All pods as they now are, of which some `appeared`. Returns those that no raise asked for.
    pub(super) fn note_pods(
        &mut self,
        facts: &[PodFact],
        appeared: PodCount,
        wanted: PodCount,
    ) -> Option<PodReplacements> {
        let is_outdated = facts.iter().any(|pod| pod.is_outdated);
        let is_any_ready = facts.iter().any(|pod| pod.is_ready);
        self.is_rollout = is_outdated || (self.is_rollout && !is_any_ready);
        let by_order = self.ordered.min(appeared);
        // Where pods came back that had been given up, or an order was lost, no further pod will come for it.
        let staying = PodCount::of(facts.iter().filter(|pod| stays(**pod)).count());
        let missing = wanted.value().saturating_sub(staying.value());
        self.ordered = PodCount::new(self.ordered.value().saturating_sub(by_order.value()).min(missing));
        let pods = PodCount::new(appeared.value().saturating_sub(by_order.value()));
        let cause = if self.is_rollout { ReplacementCause::Rollout } else { ReplacementCause::FailedPod };
        (pods > PodCount::ZERO).then_some(PodReplacements { cause, pods })
    }
}

/// Whether a pod was not told to end.
pub(super) fn stays(pod: PodFact) -> bool {
    match pod.phase {
        PodPhase::Pending | PodPhase::Running => true,
        PodPhase::Terminating => false,
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::{PodId, Timestamp};

    use super::*;

    /// A revision that was found with pods, and the number of the pod that was started last.
    struct Laboratory {
        starts: PodStarts,
        wanted: PodCount,
    }

    fn found_with(wanted: u32) -> Laboratory {
        let wanted = PodCount::new(wanted);
        let starts = PodStarts::of(RevisionBeginning::found_with(wanted, Timestamp::ZERO));
        Laboratory { starts, wanted }
    }

    fn pods(outdated: u32, present: u32) -> Vec<PodFact> {
        let fact = |(id, is_outdated)| PodFact {
            pod: PodId(id),
            phase: PodPhase::Running,
            is_ready: true,
            is_reachable: true,
            is_outdated,
        };
        let all = (0..outdated).map(|id| (id, true)).chain((100..100 + present).map(|id| (id, false)));
        all.map(fact).collect()
    }

    impl Laboratory {
        fn order(&mut self, wanted: u32) {
            let wanted = PodCount::new(wanted);
            self.starts.note_count(self.wanted, wanted);
            self.wanted = wanted;
        }

        /// The replacements among the pods that appeared: those of a rollout, and those of failed pods.
        fn see(&mut self, facts: &[PodFact], appeared: u32) -> [u32; 2] {
            match self.starts.note_pods(facts, PodCount::new(appeared), self.wanted) {
                None => [0, 0],
                Some(PodReplacements { cause: ReplacementCause::Rollout, pods }) => [pods.value(), 0],
                Some(PodReplacements { cause: ReplacementCause::FailedPod, pods }) => [0, pods.value()],
            }
        }
    }

    #[test]
    fn pods_that_a_raise_ordered_or_that_were_found_replace_none() {
        let mut lab = found_with(2);
        assert_eq!(lab.see(&pods(0, 1), 1), [0, 0]);
        assert_eq!(lab.see(&pods(0, 2), 1), [0, 0]);
        lab.order(5);
        assert_eq!(lab.see(&pods(0, 4), 2), [0, 0]);
        assert_eq!(lab.see(&pods(0, 5), 1), [0, 0]);
    }

    #[test]
    fn a_pod_in_the_place_of_one_that_is_gone_is_counted_as_failed() {
        let mut lab = found_with(3);
        lab.see(&pods(0, 3), 3);
        assert_eq!(lab.see(&pods(0, 2), 0), [0, 0]);
        assert_eq!(lab.see(&pods(0, 3), 1), [0, 1]);
        // One that fails while a raise waits for its pods.
        lab.order(4);
        assert_eq!(lab.see(&pods(0, 4), 2), [0, 1]);
    }

    #[test]
    fn a_raise_that_was_taken_back_orders_no_pod() {
        let mut lab = found_with(1);
        lab.see(&pods(0, 1), 1);
        lab.order(3);
        lab.order(1);
        assert_eq!(lab.see(&pods(0, 0), 0), [0, 0]);
        assert_eq!(lab.see(&pods(0, 1), 1), [0, 1]);
    }

    #[test]
    fn a_rollout_goes_on_until_a_pod_is_ready_and_none_is_outdated() {
        let mut lab = found_with(2);
        lab.see(&pods(0, 2), 2);
        assert_eq!(lab.see(&pods(2, 1), 1), [1, 0]);
        assert_eq!(lab.see(&pods(1, 2), 1), [1, 0]);
        // All old pods end before the first new one begins.
        assert_eq!(lab.see(&pods(2, 0), 0), [0, 0]);
        assert_eq!(lab.see(&pods(0, 0), 0), [0, 0]);
        let starting: Vec<_> = pods(0, 2).into_iter().map(|pod| PodFact { is_ready: false, ..pod }).collect();
        assert_eq!(lab.see(&starting, 2), [2, 0]);
        assert_eq!(lab.see(&pods(0, 2), 0), [0, 0]);
        assert_eq!(lab.see(&pods(0, 2), 1), [0, 1]);
    }
}
