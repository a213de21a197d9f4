//! Which rule is in force: the cheapest of those that would have saved nearly as much as the best one.

use serde::{Deserialize, Serialize};

use crate::budget::BudgetShare;
use crate::replay::ReplayTotals;
use crate::rule::RuleNumber;

/// Less than this part of the demand is not worth a forecast.
const LATE_MIN: f64 = 1e-5;
/// A rule that saves this part of the best saving does as well.
const NEARLY_BEST: f64 = 0.95;

/// When the rule is chosen anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChoiceTimes {
    /// At the beginning of each hour.
    #[default]
    EachHour,
    /// At midnight by local time.
    EachMidnight,
}

/// The rule that was chosen, and what there was to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleChoice {
    /// The rule in force from then on.
    pub rule: RuleNumber,
    /// Request-seconds that were late without a forecast, in the last seven days.
    pub late: f64,
    /// The greatest part of it, 0 … 1, that a rule within the budget would have saved.
    pub saved_max: f64,
}

/// What a rule within the budget would have done.
#[derive(Clone, Copy)]
struct RuleCandidate {
    number: RuleNumber,
    saved: f64,
    extra: u64,
}

impl RuleChoice {
    /// A rule has to save this part of what was late.
    pub const SAVED_MIN: f64 = 0.1;

    /// No rule is in force, and nothing was replayed yet.
    pub(crate) const NONE: Self = Self { rule: RuleNumber::NONE, late: 0.0, saved_max: 0.0 };

    /// The choice that follows from the last seven days.
    pub(crate) fn of(totals: &ReplayTotals, share: BudgetShare) -> Self {
        let late = totals.late_without();
        let within = || {
            let candidate = move |number: RuleNumber| RuleCandidate {
                number,
                saved: late - totals.late[number.place()],
                extra: totals.extra[number.place()],
            };
            let all = RuleNumber::all().filter(|number| *number != RuleNumber::NONE).map(candidate);
            all.filter(move |candidate| share.allows(candidate.extra, totals.reactive))
        };
        let best = within().map(|candidate| candidate.saved).fold(0.0, f64::max);
        let saved_max = if late > 0.0 { best / late } else { 0.0 };
        if late <= LATE_MIN * totals.demand || best < Self::SAVED_MIN * late {
            return Self { rule: RuleNumber::NONE, late, saved_max };
        }
        let admissible =
            within().filter(|candidate| candidate.saved >= (Self::SAVED_MIN * late).max(NEARLY_BEST * best));
        // Of equal costs the first stays.
        let cheapest = admissible.min_by_key(|candidate| (candidate.extra, candidate.number));
        Self { rule: cheapest.map_or(RuleNumber::NONE, |candidate| candidate.number), late, saved_max }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vocabulary::Percentage;

    use super::*;

    const TENTH: f64 = 10.0;

    fn share(percent: f64) -> BudgetShare {
        BudgetShare::of(Percentage::clamped(percent))
    }

    /// Totals of 1,000 pod-seconds in which every rule leaves 100 of 100 request-seconds late, but these.
    fn totals(rules: &[(usize, f64, u64)]) -> ReplayTotals {
        let mut totals = ReplayTotals { demand: 10_000.0, reactive: 1000, ..ReplayTotals::default() };
        totals.late.fill(100.0);
        for (place, late, extra) in rules {
            totals.late[*place] = *late;
            totals.extra[*place] = *extra;
        }
        totals
    }

    #[track_caller]
    fn check(rules: &[(usize, f64, u64)], expected: usize) {
        assert_eq!(RuleChoice::of(&totals(rules), share(TENTH)).rule.place(), expected);
    }

    #[test]
    fn the_cheapest_of_the_nearly_best_is_chosen() {
        let none = RuleNumber::NONE.place();
        check(&[], none);
        check(&[(3, 50.0, 40)], 3);
        check(&[(3, 50.0, 40), (7, 48.0, 90)], 3);
        check(&[(3, 50.0, 40), (7, 40.0, 90)], 7);
        check(&[(3, 52.0, 40), (7, 50.0, 40)], 3);
        // Ten of a hundred have to be saved, at a tenth of the pod-seconds.
        check(&[(3, 90.1, 0)], none);
        check(&[(3, 90.0, 0)], 3);
        check(&[(3, 0.0, 101)], none);
        check(&[(3, 0.0, 100)], 3);
        check(&[(3, 0.0, 101), (5, 70.0, 10)], 5);
    }

    #[test]
    fn a_little_that_is_late_is_not_worth_a_forecast() {
        let mut totals = totals(&[(3, 0.0, 0)]);
        totals.demand = 1e7;
        assert_eq!(RuleChoice::of(&totals, share(TENTH)).rule, RuleNumber::NONE);
        totals.demand = 0.99e7;
        assert_eq!(RuleChoice::of(&totals, share(TENTH)).rule.place(), 3);
    }

    #[test]
    fn the_best_saving_is_told_where_no_rule_is_chosen() {
        let choice = RuleChoice::of(&totals(&[(3, 96.0, 0), (4, 0.0, 500)]), share(TENTH));
        assert_eq!((choice.rule, choice.late), (RuleNumber::NONE, 100.0));
        assert!((choice.saved_max - 0.04).abs() < 1e-12);
        assert_eq!(RuleChoice::of(&ReplayTotals::default(), share(TENTH)), RuleChoice::NONE);
    }

    proptest! {
        #[test]
        fn a_chosen_rule_is_within_the_budget_and_saves_enough(
            rules in prop::collection::vec((0..20_usize, 0.0..120.0_f64, 0..300_u64), 0..30),
            percent in 0.0..40.0_f64,
        ) {
            let (totals, share) = (totals(&rules), share(percent));
            let rule = RuleChoice::of(&totals, share).rule;
            let saved = |place: usize| 100.0 - totals.late[place];
            if rule == RuleNumber::NONE {
                let is_admissible =
                    |place: usize| share.allows(totals.extra[place], 1000) && saved(place) >= 10.0;
                prop_assert!(!(0..20).any(is_admissible));
            } else {
                let place = rule.place();
                prop_assert!(share.allows(totals.extra[place], 1000) && saved(place) >= 10.0);
                let within = |place: &usize| share.allows(totals.extra[*place], 1000);
                let best = (0..20).filter(within).map(saved).fold(0.0, f64::max);
                prop_assert!(saved(place) >= 0.95 * best);
                for cheaper in (0..20).filter(|other| totals.extra[*other] < totals.extra[place]) {
                    prop_assert!(saved(cheaper) < 0.95 * best || saved(cheaper) < 10.0);
                }
            }
        }
    }
}
