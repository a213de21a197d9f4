//! Is a revision active, as its `PodAutoscaler` says it? And how many ready pods does it need for that?
//! (Contract §2.3; the reference's table is in spec kpa §7.8.)

use vocabulary::PodCount;

use super::condition::{ConditionStatus, ConditionWords};

const QUEUED: &str = "Requests to the target are being buffered as resources are provisioned.";
const NO_TRAFFIC: &str = "The target is not receiving traffic.";
const TIMED_OUT: &str = "The target could not be activated.";

/// The bounds from which the number of ready pods follows that a revision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodNeed {
    /// The least count of the settings.
    pub min: PodCount,
    /// The count that a new revision has to reach once (`initial-scale`).
    pub initial: PodCount,
    /// Whether traffic can arrive. A revision without it keeps no least count.
    pub is_reachable: bool,
    /// Whether the revision ever had the pods that its initial scale asks for.
    pub is_initialized: bool,
}

impl PodNeed {
    /// The least number of ready pods with which the revision is active.
    pub fn pods(self) -> PodCount {
        let min = if self.is_reachable { self.min } else { PodCount::ZERO };
        min.max(if self.is_initialized { PodCount::ONE } else { self.initial })
    }
}

/// What the condition Active follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveState {
    /// The count that is wanted, within its bounds; `None` while none is known (Knative's −1).
    pub want: Option<PodCount>,
    /// The pods that Kubernetes calls ready.
    pub ready: PodCount,
    /// The pods that are needed, by [`PodNeed::pods`] before this handling.
    pub need: PodCount,
}

impl ActiveState {
    /// The words of Active, from the words before.
    pub fn words(self, former: &ConditionWords) -> ConditionWords {
        let zero = Some(PodCount::ZERO);
        let no_traffic = || ConditionWords::no("NoTraffic", NO_TRAFFIC);
        if self.want == zero || self.need == PodCount::ZERO {
            // While a revision that needs pods is starting, only the end of its time wants zero.
            let timed_out = former.status == ConditionStatus::Unknown && self.need > PodCount::ZERO;
            return if timed_out { ConditionWords::no("TimedOut", TIMED_OUT) } else { no_traffic() };
        }
        let is_at_rest = self.want.is_none() && former.status == ConditionStatus::False;
        match (self.ready >= self.need, is_at_rest) {
            (false, false) => ConditionWords::unknown("Queued", QUEUED),
            (false, true) => no_traffic(),
            (true, false) => ConditionWords::yes(),
            // Pods of a revision at rest, and nothing known: they are on their way out, or an autoscaler has
            // just begun. Neither makes it active.
            (true, true) => former.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Option<u32> = None;

    fn words(former: &str, reason: &str) -> ConditionWords {
        ConditionWords {
            status: ConditionStatus::read(former),
            reason: reason.to_owned(),
            message: String::new(),
        }
    }

    /// One row of the contract's table of §2.3, and of M10 to M17: the result as `STATUS reason`.
    fn check(row: &str, former: &str, (want, ready, need): (Option<u32>, u32, u32), expected: &str) {
        let state = ActiveState {
            want: want.map(PodCount::new),
            ready: PodCount::new(ready),
            need: PodCount::new(need),
        };
        let found = state.words(&words(former, ""));
        assert_eq!(format!("{} {}", found.status, found.reason).trim(), expected, "{row}");
    }

    #[test]
    fn active_is_as_each_row_of_the_table_says() {
        check("enough, wanted, was starting", "Unknown", (Some(1), 1, 1), "True");
        check("enough, nothing known, was active", "True", (NONE, 1, 1), "True");
        check("M10 enough, nothing known, was starting", "Unknown", (NONE, 1, 1), "True");
        check("M10 too few, nothing known, was starting", "Unknown", (NONE, 0, 1), "Unknown Queued");
        check("too few, nothing known, was active", "True", (NONE, 0, 1), "Unknown Queued");
        check("M15 too few, wanted", "True", (Some(5), 1, 3), "Unknown Queued");
        check("M15 enough, wanted", "True", (Some(5), 3, 3), "True");
        check("M12 wants zero, was active", "True", (Some(0), 1, 1), "False NoTraffic");
        check("M11 wants zero, was starting", "Unknown", (Some(0), 1, 1), "False TimedOut");
        check("wants zero, was at rest", "False", (Some(0), 0, 1), "False NoTraffic");
        check("needs none, was starting", "Unknown", (NONE, 0, 0), "False NoTraffic");
        check("M18 needs none, has a pod", "True", (Some(1), 1, 0), "False NoTraffic");
        check("M13 nothing known, was at rest, no pod", "False", (NONE, 0, 1), "False NoTraffic");
        check("M14 wanted, was at rest, no pod", "False", (Some(1), 0, 1), "Unknown Queued");
        check("M14 wanted, was at rest, a pod", "False", (Some(1), 1, 1), "True");
    }

    #[test]
    fn a_revision_at_rest_of_which_nothing_is_known_keeps_its_words() {
        let former = words("False", "TimedOut");
        let state = ActiveState { want: None, ready: PodCount::new(1), need: PodCount::new(1) };
        assert_eq!(state.words(&former), former, "M13 with a pod");
    }

    #[test]
    fn need_follows_from_the_least_count_and_from_the_initial_scale_until_that_was_reached() {
        let need = |min, initial, is_reachable, is_initialized| {
            let (min, initial) = (PodCount::new(min), PodCount::new(initial));
            PodNeed { min, initial, is_reachable, is_initialized }.pods().value()
        };
        assert_eq!(need(11, 20, true, false), 20, "M17");
        assert_eq!(need(3, 1, true, true), 3, "M15");
        assert_eq!(need(0, 20, true, true), 1);
        assert_eq!(need(0, 0, true, false), 0, "M18");
        assert_eq!(need(0, 0, true, true), 1, "once initialized a pod is needed to be active");
        assert_eq!(need(2, 1, false, false), 1, "M16: an unreachable revision has no least count");
    }
}
