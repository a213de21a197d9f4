//! How far one change may go: minimum and maximum, and how fast.

use settings::hpa::{Behavior, HpaSpec, PolicyAmount, ScalingPolicy, ScalingRules, SelectPolicy};
use vocabulary::{PodCount, Timestamp};

use super::conditions::ConditionReason;
use super::history::ScaleEvents;
use super::sentence::{HpaSentence, LimitText};
use super::steps::Steps;
use crate::decision::Stage;

/// Without `behavior`, a pass at most doubles the count, but may always go to this many (Kubernetes'
/// `scaleUpLimitMinimum`).
const DOUBLING_MIN: PodCount = PodCount::new(4);

/// The bounds and the past changes that limit one change of the count.
#[derive(Clone, Copy)]
pub(super) struct Limiter<'a> {
    pub(super) min: PodCount,
    pub(super) max: PodCount,
    pub(super) current: PodCount,
    pub(super) events: &'a ScaleEvents,
    pub(super) now: Timestamp,
}

/// A limited count, and the reason that condition `ScalingLimited` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitedCount {
    pub(super) count: PodCount,
    pub(super) reason: ConditionReason,
}

impl<'a> Limiter<'a> {
    pub(super) fn of(spec: &HpaSpec, current: PodCount, events: &'a ScaleEvents, now: Timestamp) -> Self {
        Self { min: spec.min, max: spec.max, current, events, now }
    }

    /// Limits a count under a document without `behavior`: by the bounds, and to a doubling at most.
    pub(super) fn without_behavior(&self, want: PodCount, steps: &mut Steps) -> LimitedCount {
        let doubled = PodCount::new(self.current.value().saturating_mul(2)).max(DOUBLING_MIN);
        if want < self.min {
            return self.at_min(steps);
        }
        if want > doubled.min(self.max) {
            // Whichever binds first is what the condition names, and of equals the maximum: it stays, and the
            // doubling is another one with the next pass.
            if self.max <= doubled {
                return self.at_max(steps);
            }
            steps.lead_to(
                doubled,
                Stage::ScalingPolicy,
                HpaSentence::Limited(LimitText::Doubling { limit: doubled }),
            );
            return LimitedCount { count: doubled, reason: ConditionReason::ScaleUpLimit };
        }
        LimitedCount { count: want, reason: ConditionReason::DesiredWithinRange }
    }

    /// Limits a count under a document with `behavior`: a rise by its policies and the maximum, a fall by its
    /// policies and the minimum, as in Kubernetes.
    pub(super) fn with_behavior(
        &self,
        behavior: &Behavior,
        want: PodCount,
        steps: &mut Steps,
    ) -> LimitedCount {
        if want > self.current {
            let bound = self.up_bound(&behavior.scale_up, steps);
            if want <= bound.min(self.max) {
                return LimitedCount { count: want, reason: ConditionReason::DesiredWithinRange };
            }
            if self.max <= bound {
                return self.at_max(steps);
            }
            let text = LimitText::UpBound { select: behavior.scale_up.select_policy, bound };
            steps.lead_to(bound, Stage::ScalingPolicy, HpaSentence::Limited(text));
            return LimitedCount { count: bound, reason: ConditionReason::ScaleUpLimit };
        }
        if want < self.current {
            let bound = self.down_bound(&behavior.scale_down, steps);
            if want >= bound.max(self.min) {
                return LimitedCount { count: want, reason: ConditionReason::DesiredWithinRange };
            }
            if self.min >= bound {
                return self.at_min(steps);
            }
            let text = LimitText::DownBound { select: behavior.scale_down.select_policy, bound };
            steps.lead_to(bound, Stage::ScalingPolicy, HpaSentence::Limited(text));
            return LimitedCount { count: bound, reason: ConditionReason::ScaleDownLimit };
        }
        LimitedCount { count: want, reason: ConditionReason::DesiredWithinRange }
    }

    fn at_min(&self, steps: &mut Steps) -> LimitedCount {
        let text = LimitText::Min { min: self.min };
        steps.lead_to(self.min, Stage::MinScale, HpaSentence::Limited(text));
        LimitedCount { count: self.min, reason: ConditionReason::TooFewReplicas }
    }

    fn at_max(&self, steps: &mut Steps) -> LimitedCount {
        let text = LimitText::Max { max: self.max };
        steps.lead_to(self.max, Stage::MaxScale, HpaSentence::Limited(text));
        LimitedCount { count: self.max, reason: ConditionReason::TooManyReplicas }
    }

    /// The most that the policies allow; never below the present count.
    pub(super) fn up_bound(&self, rules: &ScalingRules, steps: &mut Steps) -> PodCount {
        let bounds = rules.policies.iter().map(|policy| {
            let (start, bound) = self.up(*policy);
            let ScalingPolicy { amount, period } = *policy;
            let text = LimitText::UpPolicy { amount, period, start, bound };
            steps.note(Stage::ScalingPolicy, HpaSentence::Limited(text));
            bound
        });
        let bound = match rules.select_policy {
            SelectPolicy::Max => bounds.max(),
            SelectPolicy::Min => bounds.min(),
            SelectPolicy::Disabled => None,
        };
        bound.unwrap_or(self.current).max(self.current)
    }

    /// The least that the policies allow; never above the present count.
    fn down_bound(&self, rules: &ScalingRules, steps: &mut Steps) -> PodCount {
        let bounds = rules.policies.iter().map(|policy| {
            let (start, bound) = self.down(*policy);
            let ScalingPolicy { amount, period } = *policy;
            let text = LimitText::DownPolicy { amount, period, start, bound };
            steps.note(Stage::ScalingPolicy, HpaSentence::Limited(text));
            bound
        });
        // The policy that changes most is meant, and downwards that is the one that leaves the fewest.
        let bound = match rules.select_policy {
            SelectPolicy::Max => bounds.min(),
            SelectPolicy::Min => bounds.max(),
            SelectPolicy::Disabled => None,
        };
        bound.unwrap_or(self.current).min(self.current)
    }

    /// The count at the start of the policy's period, and the most it may be now.
    fn up(&self, ScalingPolicy { amount, period }: ScalingPolicy) -> (i32, PodCount) {
        let start = self.events.count_before(self.current, period, self.now);
        let bound = match amount {
            PolicyAmount::Pods(count) => count_from(i64::from(start) + i64::from(count)),
            // The factor first, then the product, as in Kubernetes: 110 % of 100 in doubles is a little more
            // than 110.
            PolicyAmount::Percent(percent) => {
                PodCount::ceil_from(f64::from(start) * (1.0 + f64::from(percent) / 100.0))
            }
        };
        (start, bound)
    }

    /// The count at the start of the policy's period, and the least it may be now. What would be below zero
    /// is zero: it makes no difference, because the minimum is not below zero either.
    fn down(&self, ScalingPolicy { amount, period }: ScalingPolicy) -> (i32, PodCount) {
        let start = self.events.count_before(self.current, period, self.now);
        let bound = match amount {
            PolicyAmount::Pods(count) => count_from(i64::from(start) - i64::from(count)),
            PolicyAmount::Percent(percent) => {
                PodCount::truncated_from(f64::from(start) * (1.0 - f64::from(percent) / 100.0))
            }
        };
        (start, bound)
    }
}

/// A count, of which there are no negative ones.
fn count_from(number: i64) -> PodCount {
    PodCount::new(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}
