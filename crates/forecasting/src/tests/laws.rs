//! Laws over random worlds: the two promises about costs, and what no past can break.

use std::time::Duration;

use proptest::prelude::*;
use vocabulary::{Percentage, PodCount, ScheduledBounds, Timestamp};

use crate::expectations::{Expectations, RuleMemory};
use crate::minute_view::MinuteView;
use crate::replay::{IN_FORCE, PLAYERS, PlayedMinute, RuleReplay};
use crate::rule::ProfileScale;
use crate::tests::made_up_past::ScatteredPast;
use crate::{
    BudgetAnswer, BudgetShare, CountBounds, Forecast, ForecastPace, KeepWarm, PredictionBudget,
    PredictionMode, Rule, RuleNumber, WarmAnswer, WarmTerms, ZoneOffsets,
};

/// Minutes of a second, so that a day lasts 24 minutes.
fn fast() -> ForecastPace {
    ForecastPace::with_minute(Duration::from_secs(1))
}

/// A day of that pace, in milliseconds.
const DAY: u64 = 24 * 60 * 1000;
const NOW: u64 = 20_000 * 1440;

/// What rates add up to over time. Rates are told in the order of time.
#[derive(Default)]
struct Integral {
    times: Vec<u64>,
    sums: Vec<u64>,
}

impl Integral {
    fn add(&mut self, from: u64, until: u64, rate: u32) {
        if self.times.is_empty() {
            self.times.push(from);
            self.sums.push(0);
        }
        let sum = self.sums.last().copied().unwrap_or_default();
        self.times.push(until);
        self.sums.push(sum + (until - from) * u64::from(rate));
    }

    /// The sum from the beginning to this moment, which lies on a straight line between two that were told.
    fn until(&self, time: u64) -> u64 {
        let place = self.times.partition_point(|told| *told <= time);
        let (Some(before), Some(after)) = (place.checked_sub(1), self.times.get(place)) else {
            return if place == 0 { 0 } else { self.sums.last().copied().unwrap_or_default() };
        };
        let (begin, sum) = (self.times[before], self.sums[before]);
        sum + (self.sums[place] - sum) / (after - begin) * (time - begin)
    }

    fn of_the_day_before(&self, time: u64) -> u64 {
        self.until(time) - self.until(time.saturating_sub(DAY))
    }
}

/// A time in which counts stay as they are.
#[derive(Clone, Copy, Debug)]
struct SteadyTime {
    millis: u64,
    reactive: u32,
    floor: u32,
}

fn steady_times() -> impl Strategy<Value = Vec<SteadyTime>> {
    let steady = (1..30_000_u64, 0..6_u32, 0..12_u32);
    let steady = steady.prop_map(|(millis, reactive, floor)| SteadyTime { millis, reactive, floor });
    prop::collection::vec(steady, 50..250)
}

/// A random world of requests that come alone.
#[derive(Clone, Copy, Debug)]
struct LoneRequest {
    gap_millis: u64,
    serving_millis: u64,
}

fn lone_requests() -> impl Strategy<Value = Vec<LoneRequest>> {
    let about_ten = (8_000..12_000_u64, 1..2_000_u64);
    let whenever = (1..60_000_u64, 1..20_000_u64);
    let request = prop_oneof![about_ten, whenever];
    let request = request.prop_map(|(gap_millis, serving_millis)| LoneRequest { gap_millis, serving_millis });
    prop::collection::vec(request, 20..200)
}

/// Decides about a warm pod until a moment, and notes the time for which one is asked for. Returns when each
/// such time ended.
fn keep_until(keep: &mut KeepWarm, span: [u64; 2], terms: &WarmTerms, spent: &mut Integral) -> Vec<u64> {
    let [mut at, end] = span;
    let mut ends = Vec::new();
    while at < end {
        let is_warm = keep.decide(Timestamp::from_millis(at), PodCount::ZERO, terms) == WarmAnswer::OnePod;
        let due = keep.next_deadline().as_nanos() / 1_000_000;
        let until = end.min(due.max(at + 1));
        spent.add(at, until, u32::from(is_warm));
        if is_warm {
            ends.push(until);
        }
        at = until;
    }
    ends
}

/// What the rules that look at the level of today expect is left out: the level has a memory of half an hour.
fn without_levels(expected: &Expectations) -> Expectations {
    let mut expected = *expected;
    for number in RuleNumber::all() {
        if matches!(number.rule(), Rule::Profile { scale: ProfileScale::Level, .. }) {
            expected[number.place()] = None;
        }
    }
    expected
}

fn counts() -> impl Strategy<Value = PodCount> {
    (0..40_u32).prop_map(PodCount::new)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn extra_pod_seconds_of_a_day_stay_within_the_budget(times in steady_times(), percent in 0.0..60.0_f64) {
        let mut budget = PredictionBudget::new(
            BudgetShare::of(Percentage::clamped(percent)), fast(), Timestamp::ZERO,
        );
        let mut extra = Integral::default();
        let mut reactive = Integral::default();
        let mut at = 0;
        for time in times {
            let end = at + time.millis;
            while at < end {
                let [wanted, floor] = [time.reactive, time.floor].map(PodCount::new);
                let answer = budget.decide(Timestamp::from_millis(at), wanted, floor);
                let until = end.min(budget.next_deadline().as_nanos() / 1_000_000);
                let spent = match answer {
                    BudgetAnswer::Within => time.floor.saturating_sub(time.reactive),
                    BudgetAnswer::Spent => 0,
                };
                extra.add(at, until, spent);
                reactive.add(at, until, time.reactive);
                if spent > 0 {
                    for moment in [at + (until - at) / 2, until] {
                        let limit = f64_of(reactive.of_the_day_before(moment)) * percent / 100.0;
                        prop_assert!(f64_of(extra.of_the_day_before(moment)) <= limit);
                        let limit = f64_of(reactive.until(moment)) * percent / 100.0;
                        prop_assert!(f64_of(extra.until(moment)) <= limit, "since it was switched on");
                    }
                }
                at = until;
            }
        }
    }

    #[test]
    fn pod_minutes_of_warm_pods_stay_within_what_they_are_worth(
        requests in lone_requests(),
        worth in 0.0..8.0_f64,
        look_ahead in 0..4_usize,
    ) {
        let terms = WarmTerms { worth, look_ahead, kept_anyway: 0 };
        let mut keep = KeepWarm::new(fast(), Timestamp::ZERO);
        let mut spent = Integral::default();
        let mut avoided: Vec<u64> = Vec::new();
        let mut at = 0;
        for request in requests {
            let comes = at + request.gap_millis;
            for end in keep_until(&mut keep, [at, comes], &terms, &mut spent) {
                let paid_for = avoided.iter().filter(|when| **when + DAY > end).count() + 3;
                let limit = worth * PodCount::of(paid_for).as_f64() * 1000.0;
                prop_assert!(f64_of(spent.of_the_day_before(end)) <= limit);
            }
            let now = Timestamp::from_millis(comes);
            keep.decide(now, PodCount::ZERO, &terms);
            let before = keep.avoided();
            keep.note_request(now, &terms);
            if keep.avoided() > before {
                avoided.push(comes);
            }
            keep.decide(now, PodCount::ONE, &terms);
            at = comes + request.serving_millis;
            spent.add(comes, at, 0);
            keep.note_idle(Timestamp::from_millis(at));
        }
    }

    #[test]
    fn rules_know_nothing_of_the_minute_that_begins(seed in any::<u64>(), horizon in 1..62_u64) {
        let zone = ZoneOffsets::default();
        let mut past = ScatteredPast::new(seed);
        let expectations = |past: &ScatteredPast| {
            let view = MinuteView { past, zone: &zone, minute: NOW, horizon };
            RuleMemory::default().expectations(&view)
        };
        let open = expectations(&past);
        past.known_until = NOW;
        let closed = expectations(&past);
        prop_assert_eq!(open, closed);
    }

    #[test]
    fn a_memory_of_rules_changes_no_expectation(
        seed in any::<u64>(),
        minutes in 1..90_u64,
        horizons in prop::collection::vec(1..12_u64, 90),
        change in prop::option::of((0..90_u64, -120..120_i32)),
    ) {
        let past = ScatteredPast::new(seed);
        let mut zone = ZoneOffsets::fixed(60);
        let mut memory = RuleMemory::default();
        for (minute, horizon) in (NOW..NOW + minutes).zip(horizons) {
            if let Some((_, offset)) = change.filter(|(after, _)| NOW + after == minute) {
                zone.change_at(minute, offset);
            }
            let view = MinuteView { past: &past, zone: &zone, minute, horizon };
            let remembered = without_levels(&memory.expectations(&view));
            let anew = without_levels(&RuleMemory::default().expectations(&view));
            prop_assert_eq!(remembered, anew);
        }
    }

    #[test]
    fn a_minute_asks_for_few_minutes_of_the_past(seed in any::<u64>()) {
        let past = ScatteredPast::new(seed);
        let zone = ZoneOffsets::default();
        let mut memory = RuleMemory::default();
        let view = |minute| MinuteView { past: &past, zone: &zone, minute, horizon: 5 };
        memory.expectations(&view(NOW));
        past.asked.set(0);
        memory.expectations(&view(NOW + 1));
        // 33 periods and now of three minutes before and five from then on; three pools of minutes.
        prop_assert!(past.asked.get() <= 33 * 8 + 3 + 2 * 35 + 10 + 1, "{} minutes", past.asked.get());
    }

    #[test]
    fn no_floor_makes_requests_later_than_they_were(
        minutes in prop::collection::vec(
            (0.0..200.0_f64, 0..20_u32, prop::collection::vec(counts(), PLAYERS)), 1..200,
        ),
        look_ahead in 0..12_usize,
    ) {
        let mut replay = RuleReplay::default();
        for ((demand, reactive, floors), minute) in minutes.into_iter().zip(0_u64..) {
            let mut floors: [PodCount; PLAYERS] = floors.try_into().expect("as many as players");
            floors[RuleNumber::NONE.place()] = PodCount::ZERO;
            replay.play(&PlayedMinute {
                hour: minute / 60,
                demand: Some(demand),
                reactive: PodCount::new(reactive),
                floors,
                total_per_pod: 10.0,
                look_ahead,
            });
        }
        replay.open_hour(10);
        let totals = replay.totals();
        prop_assert!(totals.late.iter().all(|late| *late <= totals.late_without()));
        prop_assert!(totals.used <= totals.extra[IN_FORCE]);
        prop_assert_eq!(totals.extra[RuleNumber::NONE.place()], 0);
    }

    #[test]
    fn a_forecast_only_raises_the_count(
        (reactive, floor, warm) in (counts(), counts(), 0..2_u32),
        (min, max) in (counts(), prop::option::of(counts())),
        (least, greatest) in (counts(), prop::option::of(counts())),
        mode in prop_oneof![Just(PredictionMode::Act), Just(PredictionMode::Observe)],
    ) {
        let bounds = CountBounds { min, max };
        let scheduled = ScheduledBounds { min: least, max: greatest };
        let forecast = Forecast { mode, floor, warm: PodCount::new(warm), scheduled, ..Forecast::NONE };
        let twin = Forecast { scheduled, ..Forecast::NONE }.raise(reactive, bounds);
        let raised = forecast.raise(reactive, bounds);
        prop_assert!(raised.count >= twin.count);
        if mode == PredictionMode::Observe {
            prop_assert_eq!(&raised, &twin);
        }
        let mut count = reactive;
        for step in &raised.steps {
            prop_assert_eq!(step.from, count);
            count = step.to;
        }
        prop_assert_eq!(count, raised.count);
        prop_assert!(greatest.is_none_or(|greatest| raised.count <= greatest));
        let higher = forecast.raise(PodCount::new(reactive.value() + 1), bounds);
        prop_assert!(higher.count >= raised.count, "more demand never ends in fewer pods");
    }
}

/// Sums of these worlds are far below what a double tells exactly.
fn f64_of(sum: u64) -> f64 {
    f64::from(u32::try_from(sum).expect("the worlds are small"))
}
