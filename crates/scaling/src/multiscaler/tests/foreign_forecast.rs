//! What a store has of a forecast is under no check number: whatever its numbers are, they end no process,
//! and the count keeps its bounds.

use std::sync::LazyLock;

use forecasting::{BudgetRecord, ForecasterRecord, HourRecord, PredictionRecord, RULES, WarmRecord};
use proptest::prelude::*;

use super::forecast::{HOUR, MONDAY, eight_days_until, on_monday_at, predicting, written};
use super::*;
use crate::history::RevisionHistory;

/// Two minutes and an hour end within the time that is looked at.
const BEGINS: u64 = 10 * HOUR + 3_510;
const SECONDS: u32 = 130;
const PODS_MAX: u32 = 20;
/// The rules, and the forecast as it was in force.
const PLAYERS: usize = RULES + 1;

static PAST: LazyLock<RevisionHistory> = LazyLock::new(|| eight_days_until(MONDAY + BEGINS));

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..2_000, any::<u64>(), Just(u64::MAX)]
}

fn short_number() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..100, any::<u32>(), Just(u32::MAX)]
}

/// Most hours are of the last week, so that rules are chosen by them.
fn hour_record() -> impl Strategy<Value = HourRecord> {
    let past = (0_u64..170).prop_map(|ago| (MONDAY + BEGINS) / HOUR - ago);
    let hour = prop_oneof![3 => past, 1 => number()];
    let sums = || prop::collection::vec(number(), PLAYERS);
    (hour, number(), number(), number(), sums(), sums()).prop_map(
        |(hour, demand, reactive, used, late, extra)| HourRecord {
            hour,
            demand,
            reactive,
            used,
            late,
            extra,
        },
    )
}

fn budget_record() -> impl Strategy<Value = BudgetRecord> {
    let minutes = prop::collection::vec(prop::array::uniform2(short_number()), 0..20);
    let pair = || prop::array::uniform2(number());
    (number(), minutes, pair(), pair()).prop_map(|(minutes_before, minutes, since_on, running)| {
        BudgetRecord { minutes_before, minutes, since_on, running }
    })
}

fn forecaster_record() -> impl Strategy<Value = ForecasterRecord> {
    let rule = prop_oneof![0..PLAYERS, Just(usize::MAX)];
    let hours = prop::collection::vec(hour_record(), 0..6);
    let (since, open) = (prop::option::of(number()), prop::option::of(hour_record()));
    (rule, since, number(), number(), hours, open, budget_record()).prop_map(
        |(rule, rule_since, late, saved_max, hours, open, budget)| ForecasterRecord {
            rule,
            rule_since,
            late,
            saved_max,
            hours,
            open,
            budget,
        },
    )
}

fn warm_record() -> impl Strategy<Value = WarmRecord> {
    let gaps = prop::collection::vec(prop_oneof![0_u16..300, any::<u16>()], 0..40);
    let pair = || prop::array::uniform2(short_number());
    (gaps, prop::collection::vec(pair(), 0..30), pair(), short_number())
        .prop_map(|(gaps, hours, running, minutes_ended)| WarmRecord { gaps, hours, running, minutes_ended })
}

fn prediction_record() -> impl Strategy<Value = PredictionRecord> {
    let starts = prop::collection::vec(number(), 0..60);
    let forecaster = prop::option::weighted(0.9, forecaster_record());
    (short_number(), forecaster, warm_record(), starts).prop_map(|(reactive, forecaster, warm, starts_ms)| {
        PredictionRecord { reactive, forecaster, warm, starts_ms }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_stored_forecast_of_any_numbers_keeps_the_count_within_its_bounds(
        stored in prediction_record(),
        found in 1..=PODS_MAX,
    ) {
        let (min_scale, max_scale) = (PodCount::ONE, Some(PodCount::new(PODS_MAX)));
        let spec = ScalingSpec { min_scale, max_scale, ..predicting(spec()) };
        let mut world = on_monday_at(World::new(spec), BEGINS);
        world.create(found);
        let record = PAST.export().with_forecast(Some(stored));
        let history = RevisionHistory::restore(record).expect("the check number is of what was measured");
        world.handle(Event::HistoryRestored { revision: REVISION, history: Box::new(history) });
        world.activator_starts();
        world.acknowledged(true);
        world.ready(found);
        world.in_activator = 9;
        for second in 1..=SECONDS {
            world.run_until(f64::from(second));
            let wanted = world.status().wanted.value();
            prop_assert!((1..=PODS_MAX).contains(&wanted), "{} pods", wanted);
        }
        // The next owner reads what this one writes down.
        let _ = written(&world);
    }
}
