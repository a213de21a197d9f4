//! From the count that a class asks for by itself to the count that the platform is asked for.
//!
//! A forecast only raises. What stands above the class's own count is left at once when nothing asks for it
//! any longer; rate limits and delays are the class's alone. A count of zero is never made here: where the
//! rules around zero do not ask for it, the last pods stay.

use forecasting::{ExpectationBasis, ExpectedFloor, Rule, RulePeriod, WarmAnswer};
use settings::ScalingSpec;
use vocabulary::{PodCount, ScheduledBounds};

use super::prediction::ExpectedCount;
use crate::decision::{BoundText, ForecastText, NearDemand, Stage};
use crate::reasons::Reasons;
use crate::scale_to_zero::{KeptBy, KeptPod, Plan};

/// All that a count may be raised by.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountRaise<'a> {
    pub(super) spec: &'a ScalingSpec,
    /// What the class asks for by itself.
    pub(super) reactive: PodCount,
    /// The count that the platform was last asked for.
    pub(super) present: PodCount,
    /// Whether the class has decided since this owner began.
    pub(super) is_decided: bool,
    /// What is expected, where that is acted upon.
    pub(super) expected: Option<ExpectedCount>,
    pub(super) scheduled: ScheduledBounds,
}

impl CountRaise<'_> {
    /// The plan of the class with what stands above it.
    pub(super) fn apply(&self, mut plan: Plan) -> Plan {
        let mut reasons = Reasons::continuing(plan.applied());
        if let Some(expected) = &self.expected {
            self.predict(expected, &mut reasons);
        }
        let text = ForecastText::ScheduledLeast { least: self.scheduled.min };
        self.raise_to(self.scheduled.min, Stage::Schedule, text, &mut reasons);
        self.leave_early_pods(&mut reasons);
        self.limit(&mut reasons);
        let number = reasons.number();
        let is_kept = plan.want == Some(PodCount::ZERO) && number > Some(self.reactive);
        let list = reasons.into_list();
        if let Some(last) = list.last().filter(|_| is_kept) {
            plan.kept = Some(KeptPod { rule: KeptBy::Expected, text: last.text });
        }
        plan.reasons.extend(list);
        if number.is_some() {
            plan.want = number;
            plan.apply = true;
        }
        plan
    }

    fn predict(&self, expected: &ExpectedCount, reasons: &mut Reasons) {
        if let Some(near) = &expected.floor.expected {
            if near.floor > self.number(reasons).max(expected.floor.floor) {
                reasons.note(Stage::PredictionBudget, ForecastText::BudgetSpent { floor: near.floor });
            }
            let text = self.sentence(near, expected);
            self.raise_to(expected.floor.floor, Stage::Prediction, text, reasons);
        } else {
            let count = expected.floor.floor;
            self.raise_to(count, Stage::Prediction, ForecastText::FormerOwner { count }, reasons);
        }
        match expected.warm {
            WarmAnswer::OnePod => {
                self.raise_to(PodCount::ONE, Stage::KeepWarm, ForecastText::WarmPod, reasons);
            }
            WarmAnswer::Spent | WarmAnswer::AsReactive => {}
        }
    }

    /// The class leaves the count alone, and means its own: pods above that were asked for early. Before it
    /// has decided, they may as well be those of a load that is not known yet.
    fn leave_early_pods(&self, reasons: &mut Reasons) {
        let is_above = PodCount::ZERO < self.reactive && self.reactive < self.present;
        if reasons.number().is_none() && is_above && self.is_decided {
            let text = ForecastText::NoLongerExpected { count: self.reactive };
            reasons.step(Stage::Prediction, Some(self.reactive), text);
        }
    }

    /// Neither bound asks for less than the class does by itself, but for the schedule's, which is meant for
    /// it too.
    fn limit(&self, reasons: &mut Reasons) {
        let Some(number) = reasons.number() else { return };
        if let Some(most) = self.spec.max_scale.map(|most| most.max(self.reactive))
            && number > most
        {
            reasons.step(Stage::MaxScale, Some(most), BoundText::MaxScale { most });
        }
        let most = self.scheduled.max.map(|most| most.max(self.spec.min_scale));
        if let (Some(most), Some(number)) = (most, reasons.number())
            && number > most
        {
            reasons.step(Stage::Schedule, Some(most), ForecastText::ScheduledMost { most });
        }
    }

    /// The count on its way; where the class leaves it alone, the class's last.
    fn number(&self, reasons: &Reasons) -> PodCount {
        reasons.number().unwrap_or(self.reactive)
    }

    fn raise_to(&self, count: PodCount, stage: Stage, text: ForecastText, reasons: &mut Reasons) {
        if count > self.number(reasons) {
            reasons.step(stage, Some(count), text);
        }
    }

    fn sentence(&self, near: &ExpectedFloor, expected: &ExpectedCount) -> ForecastText {
        let within = u32::try_from(near.look_ahead.time.as_secs()).unwrap_or(u32::MAX);
        let demand = NearDemand {
            demand: near.expected.demand,
            per_pod: near.expected.load_per_pod(expected.capacity),
            within,
            metric: self.spec.demand().metric,
        };
        let period = match near.rule.rule() {
            Rule::Rise { period, .. } | Rule::Profile { period, .. } => period,
            // It expects nothing.
            Rule::None => RulePeriod::Day,
        };
        match near.expected.basis {
            ExpectationBasis::Rise(rise) => ForecastText::Rise {
                near: demand,
                now: rise.base,
                rise: rise.rise,
                period,
                periods: small(rise.periods),
                periods_within: small(rise.periods_within),
            },
            ExpectationBasis::Profile { level, .. } => ForecastText::Profile { near: demand, level, period },
        }
    }
}

/// A number of periods, of which there are 24 at most.
fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
