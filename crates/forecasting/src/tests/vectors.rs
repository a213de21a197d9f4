//! Vectors by their ids: F1 to F9 of the design of this class, and those of `spec/hpa.md` §10.8 that hold.
//!
//! F6, F7 and F9 stand in `idle_gaps`, F8 in `replay`. W4 to W7 and W12 are of a design that this one
//! replaced.

use std::time::Duration;

use vocabulary::{Percentage, PodCount, Timestamp};

use crate::expectations::RuleMemory;
use crate::local_time::MINUTES_OF_DAY;
use crate::minute_view::MinuteView;
use crate::tests::made_up_past::ExactPast;
use crate::{
    BudgetAnswer, BudgetShare, CountBounds, ExpectedFloor, FloorCap, Forecast, ForecastPace, ForecastReason,
    LookAhead, PodCapacity, PredictionBudget, PredictionMode, Quantile, RuleNumber, WeightedValue,
    ZoneOffsets, concurrency_of,
};

/// A minute far enough from the beginning of 1970.
const NOW: u64 = 20_000 * MINUTES_OF_DAY + 9 * 60;
/// The floors of the rise by day, at each quantile over the target and over the total.
type DayRiseFloors = [[u32; 2]; 4];

fn capacity() -> PodCapacity {
    PodCapacity::new(7.0, 10.0).expect("both are more than zero")
}

/// The floors of the first eight rules; `None` where a rule has none.
fn day_rise_floors(past: &ExactPast) -> [Option<u32>; 8] {
    let zone = ZoneOffsets::default();
    let view = MinuteView { past, zone: &zone, minute: NOW, horizon: 3 };
    let expected = RuleMemory::default().expectations(&view);
    std::array::from_fn(|place| expected[place].map(|expected| expected.floor(capacity()).value()))
}

/// Days on which so much was asked for before this minute, and so much in the three minutes from it on.
fn past_days(base: f64, greatest: &[f64]) -> ExactPast {
    let mut past = ExactPast::default();
    for (day, greatest) in (1_u64..).zip(greatest) {
        let minute = NOW - day * MINUTES_OF_DAY;
        past.put(minute - 3, &[base; 3]);
        past.put(minute, &[base, *greatest, base]);
    }
    past
}

#[track_caller]
fn check_day_rises(past: &ExactPast, expected: DayRiseFloors) {
    let floors = day_rise_floors(past);
    let expected: [Option<u32>; 8] = std::array::from_fn(|place| Some(expected[place / 2][place % 2]));
    assert_eq!(floors, expected);
}

const F1_GREATEST: [f64; 7] = [21.0, 12.0, 30.0, 15.0, 21.0, 18.0, 20.0];

#[test]
fn f1_the_rise_of_past_days_is_added_to_the_demand_of_now() {
    let mut past = past_days(9.0, &F1_GREATEST);
    past.put(NOW - 3, &[9.0; 3]);
    check_day_rises(&past, [[3, 2], [3, 3], [5, 3], [5, 3]]);
}

#[test]
fn f2_a_busier_day_expects_the_rise_on_top_of_its_own_demand() {
    let mut past = past_days(9.0, &F1_GREATEST);
    past.put(NOW - 3, &[30.0; 3]);
    // Rises of 11, 12 and 21: 41, 42 and 51 requests.
    check_day_rises(&past, [[6, 5], [6, 5], [8, 6], [8, 6]]);
}

#[test]
fn f3_a_fall_of_past_days_lowers_what_is_expected() {
    let mut past = ExactPast::default();
    for (day, greatest) in (1_u64..).zip([5.0, 6.0, 6.0, 7.0, 7.0, 8.0, 9.0]) {
        let minute = NOW - day * MINUTES_OF_DAY;
        past.put(minute - 3, &[10.0, 10.0, 10.0, 1.0, greatest, 2.0]);
    }
    past.put(NOW - 3, &[10.0; 3]);
    check_day_rises(&past, [[1, 1], [2, 1], [2, 1], [2, 1]]);
}

#[test]
fn f4_two_days_are_too_few_for_a_rule_by_days() {
    let mut past = past_days(9.0, &F1_GREATEST[..2]);
    past.put(NOW - 3, &[9.0; 3]);
    assert_eq!(day_rise_floors(&past), [None; 8]);
    let mut past = past_days(9.0, &F1_GREATEST[..3]);
    assert_eq!(day_rise_floors(&past), [None; 8], "the demand of now is not known");
    past.put(NOW - 2, &[9.0; 2]);
    assert!(day_rise_floors(&past).iter().all(Option::is_some), "two of three minutes are enough");
}

#[test]
fn f5_a_floor_rests_where_the_budget_would_be_exceeded() {
    let minute = |number: u64| Timestamp::from_secs(number * 60);
    let [two, three] = [2, 3].map(PodCount::new);
    let all = BudgetShare::of(Percentage::clamped(100.0));
    let mut budget = PredictionBudget::new(all, ForecastPace::USUAL, minute(0));
    // 500 minutes of two pods, with a third one in 99 of them.
    for number in 0..500 {
        let floor = if (1..100).contains(&number) { three } else { two };
        assert_eq!(budget.decide(minute(number), two, floor), BudgetAnswer::Within);
    }
    budget.set_share(BudgetShare::of(Percentage::clamped(10.0)));
    assert_eq!(budget.decide(minute(500), two, PodCount::new(4)), BudgetAnswer::Spent);
    assert_eq!(budget.seconds_left(), 60);
    assert_eq!(budget.decide(minute(500), two, three), BudgetAnswer::Within);
    assert_eq!(budget.decide(minute(501), two, three), BudgetAnswer::Spent);
}

fn weighted(values: &[f64], decay: f64) -> Vec<WeightedValue> {
    let mut weight = 1.0;
    let weigh = |value: &f64| {
        let weighted = WeightedValue { value: *value, weight };
        weight *= decay;
        weighted
    };
    values.iter().map(weigh).collect()
}

#[test]
fn w1_a_quantile_of_equal_weights_is_one_of_the_values() {
    let values = [10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0];
    let quantiles = [90, 50].map(Quantile::percent);
    assert_eq!(quantiles.map(|quantile| quantile.of(&values)), [Some(22.0), Some(16.0)]);
    let equal = weighted(&values, 1.0);
    assert_eq!(quantiles.map(|quantile| quantile.of_weighted(&equal)), [Some(22.0), Some(16.0)]);
}

#[test]
fn w2_older_values_may_count_less() {
    let values = weighted(&[100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 200.0], 0.8);
    let found = [50, 90, 95].map(|percent| Quantile::percent(percent).of_weighted(&values));
    assert_eq!(found, [Some(90.0), Some(100.0), Some(200.0)]);
}

#[test]
fn w3_nine_tenths_of_the_starts_take_no_longer() {
    let starts = [12, 14, 15, 15, 16, 18, 20, 22, 30, 75].map(Duration::from_secs);
    assert_eq!(Quantile::percent(90).of(&starts), Some(Duration::from_secs(30)));
}

#[test]
fn w8_too_little_weighs_as_the_quantile_and_too_much_as_the_rest() {
    let quantile = Quantile::percent(90);
    let loss = |[came, forecast]: [f64; 2]| quantile.loss(came, forecast);
    let pairs = [[100.0, 90.0], [100.0, 110.0], [50.0, 80.0], [80.0, 50.0]];
    assert_eq!(pairs.map(loss), [9.0, 1.0, 3.0, 27.0]);
}

/// A forecast of a floor that the budget allows.
fn forecast(floor: u32, mode: PredictionMode) -> Forecast {
    let mut past = past_days(9.0, &F1_GREATEST);
    past.put(NOW - 3, &[9.0; 3]);
    let zone = ZoneOffsets::default();
    let view = MinuteView { past: &past, zone: &zone, minute: NOW, horizon: 3 };
    let rule = RuleNumber::all().next().expect("there are 21");
    let expected = RuleMemory::default().expectations(&view)[rule.place()].expect("seven days are known");
    let floor = PodCount::new(floor);
    let look_ahead = LookAhead::of_minutes(2);
    Forecast {
        mode,
        floor,
        expected: Some(ExpectedFloor { rule, expected, floor, look_ahead }),
        ..Forecast::NONE
    }
}

const TWO_TO_SIX: CountBounds = CountBounds { min: PodCount::new(2), max: Some(PodCount::new(6)) };

#[test]
fn w9_a_floor_is_capped_by_the_count_of_class_kpa() {
    let limited =
        |floor, reactive| FloorCap::USUAL.limit(PodCount::new(floor), PodCount::new(reactive)).value();
    assert_eq!([limited(30, 4), limited(13, 4), limited(100, 20), limited(30, 0)], [14, 13, 60, 10]);
}

#[test]
fn w10_the_greatest_count_bounds_a_forecast() {
    let raised = forecast(7, PredictionMode::Act).raise(PodCount::new(4), TWO_TO_SIX);
    let steps: Vec<_> =
        raised.steps.iter().map(|step| (step.reason, step.from.value(), step.to.value())).collect();
    assert_eq!(steps, [(ForecastReason::Prediction, 4, 7), (ForecastReason::Bounds, 7, 6)]);
    assert_eq!(raised.count, PodCount::new(6));
}

#[test]
fn w11_an_observer_shows_a_forecast_and_changes_nothing() {
    let observed = forecast(7, PredictionMode::Observe);
    assert_eq!(observed.raise(PodCount::new(4), TWO_TO_SIX).count, PodCount::new(4));
    assert_eq!(observed.expected.map(|expected| expected.floor), Some(PodCount::new(7)));
}

#[test]
fn w13_invocations_and_their_duration_give_a_concurrency() {
    let millis = Duration::from_millis;
    assert_eq!([concurrency_of(600.0, millis(200)), concurrency_of(6000.0, millis(50))], [2.0, 5.0]);
}

/// The mode `upOnly` of that design is what class kpa's own delay and rates do here: its count is 8 as long
/// as they hold it there, whatever its windows ask for, and no forecast lowers that.
#[test]
fn w14_a_forecast_lowers_no_count_that_class_kpa_holds() {
    let raised = forecast(5, PredictionMode::Act).raise(PodCount::new(8), CountBounds::default());
    assert_eq!((raised.count, raised.steps.len()), (PodCount::new(8), 0));
}
