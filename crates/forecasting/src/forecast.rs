//! A forecast as an input of the decision: it only raises the count, and says why.

use vocabulary::{PodCount, ScheduledBounds};

use crate::expectations::ExpectedDemand;
use crate::look_ahead::LookAhead;
use crate::rule::RuleNumber;

/// Whether a forecast is acted upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionMode {
    /// Floors and warm pods raise the count.
    Act,
    /// They are decided upon and shown, and change nothing.
    Observe,
}

/// Why a forecast raised a count, or why it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForecastReason {
    /// Demand is expected that needs more pods.
    Prediction,
    /// It is, and the budget of prediction is spent.
    PredictionBudget,
    /// One pod is kept warm for the next request.
    KeepWarm,
    /// A line of the schedule sets a bound.
    Schedule,
    /// The least or the greatest count that is set for the revision.
    Bounds,
}

/// One step from the count of class kpa to the count that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecastStep {
    /// Why the count changed, or did not.
    pub reason: ForecastReason,
    /// The count before the step.
    pub from: PodCount,
    /// The count after the step.
    pub to: PodCount,
}

/// The rule in force, and what it expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedFloor {
    /// The rule that is in force.
    pub rule: RuleNumber,
    /// The demand that the rule expects.
    pub expected: ExpectedDemand,
    /// The floor that follows, with its cap and without the budget.
    pub floor: PodCount,
    /// How long before demand comes a pod for it is asked for.
    pub look_ahead: LookAhead,
}

/// What is expected of the near future, as a decision takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Whether the forecast is acted upon. The schedule is in any case.
    pub mode: PredictionMode,
    /// The least number of pods that demand to come needs, as far as the budget goes.
    pub floor: PodCount,
    /// What the rule in force expects; `None` where no rule is, or nothing is known.
    pub expected: Option<ExpectedFloor>,
    /// One where a pod is kept warm.
    pub warm: PodCount,
    /// The bounds that the schedule sets now.
    pub scheduled: ScheduledBounds,
}

/// The least and the greatest count that are set for a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountBounds {
    /// The least number of pods.
    pub min: PodCount,
    /// The greatest number of pods; `None` for any.
    pub max: Option<PodCount>,
}

/// The count that is asked for, with the steps that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaisedCount {
    /// The count that is asked for.
    pub count: PodCount,
    /// The steps in their order: each begins with the count at which the one before ended.
    pub steps: Vec<ForecastStep>,
}

impl Forecast {
    /// Nothing is expected, and nothing is raised.
    pub const NONE: Self = Self {
        mode: PredictionMode::Act,
        floor: PodCount::ZERO,
        expected: None,
        warm: PodCount::ZERO,
        scheduled: ScheduledBounds { min: PodCount::ZERO, max: None },
    };

    /// The count from that of class kpa: the greatest of both, of a warm pod and of what the schedule asks
    /// for, within the bounds.
    pub fn raise(&self, reactive: PodCount, bounds: CountBounds) -> RaisedCount {
        let mut raised = RaisedCount { count: reactive, steps: Vec::new() };
        match self.mode {
            PredictionMode::Act => self.predict(&mut raised),
            PredictionMode::Observe => {}
        }
        let scheduled = raised.count.max(self.scheduled.min);
        raised.step(ForecastReason::Schedule, scheduled);
        let bounded = raised.count.max(bounds.min);
        raised.step(ForecastReason::Bounds, at_most(bounded, bounds.max));
        raised.step(ForecastReason::Schedule, at_most(raised.count, self.scheduled.max));
        raised
    }

    fn predict(&self, raised: &mut RaisedCount) {
        let wanted = self.expected.map_or(PodCount::ZERO, |expected| expected.floor);
        if wanted > raised.count.max(self.floor) {
            // The count stays, and a person may want to know why.
            let count = raised.count;
            raised.steps.push(ForecastStep {
                reason: ForecastReason::PredictionBudget,
                from: count,
                to: count,
            });
        }
        raised.step(ForecastReason::Prediction, raised.count.max(self.floor));
        raised.step(ForecastReason::KeepWarm, raised.count.max(self.warm));
    }
}

impl RaisedCount {
    /// Goes on to another count; a step that changes nothing is none.
    fn step(&mut self, reason: ForecastReason, to: PodCount) {
        let from = std::mem::replace(&mut self.count, to);
        if from != to {
            self.steps.push(ForecastStep { reason, from, to });
        }
    }
}

fn at_most(count: PodCount, max: Option<PodCount>) -> PodCount {
    max.map_or(count, |max| count.min(max))
}
