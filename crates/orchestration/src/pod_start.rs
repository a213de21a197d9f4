//! When did a pod go from one step of its start to the next?
//!
//! For people alone: nothing is decided by it. A cold start is slow for another reason where the platform is
//! late to make the pod, where the pod is late to run, and where its app is late to be ready.

use scaling::PodPhase;
use scaling::hpa::CountChange;
use serde::{Deserialize, Serialize};
use vocabulary::{PodState, Timestamp};

/// The steps of a pod's start, each with the time at which this owner heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartSteps {
    /// When a greater count was last ordered before the pod came; `None` for a pod that no order of this
    /// owner asked for: it was there before, or it took the place of another pod.
    pub asked_at: Option<Timestamp>,
    /// Since when this owner knows it.
    pub known_at: Timestamp,
    /// When it was first known to run: all its containers on a cluster, its queue-proxy on one machine.
    /// `None` while it did not.
    pub running_at: Option<Timestamp>,
    /// When it was first known to be ready; `None` while it was not.
    pub ready_at: Option<Timestamp>,
}

impl StartSteps {
    /// The start of a pod that is known from now on.
    pub(crate) fn known(asked_at: Option<Timestamp>, now: Timestamp) -> Self {
        Self { asked_at, known_at: now, running_at: None, ready_at: None }
    }

    /// The pod is in this phase and this state now.
    pub(crate) fn note(&mut self, phase: PodPhase, state: PodState, now: Timestamp) {
        if state == PodState::Ready {
            self.ready_at = self.ready_at.or(Some(now));
        }
        if phase == PodPhase::Running || state == PodState::Ready {
            self.running_at = self.running_at.or(Some(now));
        }
    }
}

/// The pods that were asked for and have not come.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AskedPods {
    count: u32,
    /// When a greater count was last ordered.
    asked_at: Option<Timestamp>,
}

impl AskedPods {
    /// Another count is ordered, for which pods come or are not waited for any more.
    pub(crate) fn ordered(&mut self, change: CountChange, now: Timestamp) {
        let (from, to) = (change.from.value(), change.to.value());
        if to > from {
            self.count = self.count.saturating_add(to - from);
            self.asked_at = Some(now);
        } else {
            self.count = self.count.saturating_sub(from - to);
        }
    }

    /// A pod has come; returns when it was asked for, if it was.
    pub(crate) fn came(&mut self) -> Option<Timestamp> {
        self.count = self.count.checked_sub(1)?;
        self.asked_at
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::PodCount;

    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::from_millis(milliseconds)
    }

    #[test]
    fn each_step_of_a_start_has_the_time_at_which_it_was_first_heard_of() {
        let mut start = StartSteps::known(Some(at(1)), at(3));
        start.note(PodPhase::Pending, PodState::Unheard, at(3));
        assert_eq!((start.asked_at, start.running_at, start.ready_at), (Some(at(1)), None, None));
        start.note(PodPhase::Running, PodState::Starting, at(20));
        start.note(PodPhase::Running, PodState::Ready, at(70));
        // It is not ready for a while, which is no second start.
        start.note(PodPhase::Running, PodState::Unready, at(900));
        start.note(PodPhase::Running, PodState::Ready, at(990));
        assert_eq!((start.known_at, start.running_at, start.ready_at), (at(3), Some(at(20)), Some(at(70))));
    }

    #[test]
    fn as_many_pods_were_asked_for_as_the_count_was_raised_by() {
        let mut asked = AskedPods::default();
        let change = |from, to| CountChange { from: PodCount::new(from), to: PodCount::new(to) };
        assert_eq!(asked.came(), None, "it was there before");
        asked.ordered(change(0, 1), at(10));
        asked.ordered(change(1, 4), at(20));
        asked.ordered(change(4, 2), at(30));
        assert_eq!([asked.came(), asked.came()], [Some(at(20)); 2]);
        assert_eq!(asked.came(), None, "it takes the place of another pod");
        asked.ordered(change(2, 0), at(40));
        asked.ordered(change(0, 1), at(50));
        assert_eq!([asked.came(), asked.came()], [Some(at(50)), None]);
    }
}
