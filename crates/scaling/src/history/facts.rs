//! What is known of one second of a revision.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::window::SecondSums;

/// The number of places at which raises of the count are counted apart: from none to one pod, from one to
/// two, and so on; the last stands for all further ones. The least counts for which the ledger says what they
/// would have brought are one fewer.
pub(super) const PLACES: usize = 6;

/// The pods of a revision, and how many there should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CapacityCounts {
    pub(crate) wanted: u32,
    pub(crate) ready: u32,
    pub(crate) starting: u32,
    pub(crate) ending: u32,
}

/// A revision as it is at one moment, and stays until something is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RevisionCondition {
    pub(crate) capacity: CapacityCounts,
    pub(crate) waiting: u32,
    /// Whether a reporter is heard: else the demand is not known, and is not zero.
    pub(crate) is_heard: bool,
    /// Thousandths of a core that all pods use together; `None` where that is not known, or no demand.
    pub(crate) cpu: Option<u32>,
}

/// Where the demand of a second is found.
pub(crate) struct DemandSeconds<'a> {
    /// The demand of a second since 1970.
    pub(crate) at: &'a dyn Fn(u64) -> SecondSums,
    /// The seconds that may have demand; no other has.
    pub(crate) reported: Range<u64>,
}

/// All that is known of one second but the demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SecondFacts {
    pub(super) condition: RevisionCondition,
    /// Pods that held a request at some moment of the second.
    pub(super) busy: u32,
    /// The raises of the count by the pods that were wanted before.
    pub(super) raises: [u32; PLACES],
    pub(super) wakes: WakeCounts,
    pub(super) replacements: ReplacementCounts,
    /// Requests that came to wait: by so many more wait than in the second before.
    pub(super) waited: u32,
}

/// Wakes that came to an end: the first pod of a revision without any became ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WakeCounts {
    pub(super) ended: u32,
    /// The milliseconds from the order to the ready pod, of all of them together.
    pub(super) wait_ms: u32,
    pub(super) wait_ms_max: u32,
}

/// Why a pod is started although the count was not raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplacementCause {
    /// Pods of a new template take the place of pods of an older one.
    Rollout,
    /// A pod failed, or was taken away by another.
    FailedPod,
}

/// Pods that were started in the place of others, without a raise of the count. Two bytes each: a history
/// has several of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplacementCounts {
    rollout: u16,
    failed_pod: u16,
}

impl ReplacementCounts {
    pub(super) fn note(&mut self, cause: ReplacementCause, pods: u32) {
        let count = match cause {
            ReplacementCause::Rollout => &mut self.rollout,
            ReplacementCause::FailedPod => &mut self.failed_pod,
        };
        *count = count.saturating_add(u16::try_from(pods).unwrap_or(u16::MAX));
    }

    pub(super) fn rollout(self) -> u32 {
        self.rollout.into()
    }

    pub(super) fn failed_pod(self) -> u32 {
        self.failed_pod.into()
    }
}

impl SecondFacts {
    pub(super) fn new(condition: RevisionCondition) -> Self {
        Self { condition, ..Self::default() }
    }

    /// Notes that the count was raised, once for each pod by which it was.
    pub(super) fn note_raise(&mut self, from: u32, to: u32) {
        let last = PLACES - 1;
        for (place, raises) in (0..).zip(&mut self.raises[..last]) {
            *raises = raises.saturating_add(u32::from((from..to).contains(&place)));
        }
        let beyond = to.saturating_sub(from.max(u32::try_from(last).unwrap_or(u32::MAX)));
        self.raises[last] = self.raises[last].saturating_add(beyond);
    }
}

impl WakeCounts {
    pub(super) fn note(&mut self, milliseconds: u32) {
        self.add(Self { ended: 1, wait_ms: milliseconds, wait_ms_max: milliseconds });
    }

    pub(super) fn add(&mut self, other: Self) {
        self.ended = self.ended.saturating_add(other.ended);
        self.wait_ms = self.wait_ms.saturating_add(other.wait_ms);
        self.wait_ms_max = self.wait_ms_max.max(other.wait_ms_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raise_counts_once_at_each_place_that_it_passes() {
        let raised = |from, to| {
            let mut facts = SecondFacts::default();
            facts.note_raise(from, to);
            facts.raises
        };
        assert_eq!(raised(0, 1), [1, 0, 0, 0, 0, 0]);
        assert_eq!(raised(0, 8), [1, 1, 1, 1, 1, 3]);
        assert_eq!(raised(3, 5), [0, 0, 0, 1, 1, 0]);
        assert_eq!(raised(7, 9), [0, 0, 0, 0, 0, 2]);
        assert_eq!(raised(4, 2), [0; PLACES]);
    }
}
