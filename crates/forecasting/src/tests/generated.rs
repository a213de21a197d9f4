//! Made-up series of the shapes that forecasts are judged by.

use std::time::Duration;

use vocabulary::{PodCount, Timestamp};

use crate::tests::made_up_past::scattered;
use crate::tests::world::{DAY, FIRST, World};
use crate::{ForecastPace, IdleGaps, KeepWarm, RuleNumber, Scorecard, WarmAnswer, WarmTerms};

/// Two pods at night, and from nine to six thirteen.
fn office_hours(local_minute: u64) -> f64 {
    if (9 * 60..18 * 60).contains(&(local_minute % DAY)) { 90.0 } else { 8.0 }
}

/// The day since the beginning of the world, from 0.
fn day_of(minute: u64) -> u64 {
    (minute - FIRST) / DAY
}

/// The scorecard of the world, which holds together in itself.
fn scorecard(world: &World) -> Scorecard {
    let scorecard = world.forecaster.scorecard();
    assert!(scorecard.late_with <= scorecard.late_without);
    assert!(scorecard.used_pod_seconds <= scorecard.extra_pod_seconds);
    scorecard
}

#[test]
fn every_morning_but_the_first_ones_finds_its_pods() {
    let mut world = World::new();
    world.run_days(3, |minute| Some(office_hours(minute)));
    assert_eq!(world.extra_share(3), 0.0, "three days are too few for a rule");
    world.run_days(11, |minute| Some(office_hours(minute)));
    world.check_budget();
    assert!(world.late_share(7) <= 0.05, "{}", world.late_share(7));
    assert!(world.extra_share(7) <= 0.03, "{}", world.extra_share(7));
    let scorecard = scorecard(&world);
    assert_ne!(scorecard.rule, RuleNumber::NONE);
    assert!(scorecard.late_without > 0.0 && scorecard.late_with <= 0.05 * scorecard.late_without);
    assert!(scorecard.used_pod_seconds > 0 && scorecard.wasted_pod_seconds() < scorecard.extra_pod_seconds);
    assert!(scorecard.budget_left_pod_seconds > 0);
}

#[test]
fn a_holiday_costs_no_more_than_the_budget() {
    let mut world = World::new();
    world.run_days(10, |minute| Some(office_hours(minute)));
    world.run_days(2, |_| Some(8.0));
    world.check_budget();
    assert!(world.extra_share(1) <= 0.1, "{}", world.extra_share(1));
    world.run_days(3, |minute| Some(office_hours(minute)));
    world.check_budget();
    assert!(world.late_share(2) <= 0.35, "{}", world.late_share(2));
}

#[test]
fn a_level_that_shifts_is_right_again_within_two_days() {
    let mut world = World::new();
    world.run_days(9, |minute| Some(0.5 * office_hours(minute)));
    world.run_days(5, |minute| Some(office_hours(minute)));
    world.check_budget();
    assert!(world.late_share(3) <= 0.35, "{}", world.late_share(3));
}

#[test]
fn a_demand_that_grows_day_by_day_is_followed() {
    let mut world = World::new();
    let growth = |minute| (0..day_of(minute)).fold(1.0, |level: f64, _| level * 1.03);
    world.run_days(14, |minute| Some(growth(minute) * office_hours(minute)));
    world.check_budget();
    assert!(world.late_share(7) <= 0.35, "{}", world.late_share(7));
}

#[test]
fn days_that_were_not_observed_are_no_days_without_demand() {
    let mut world = World::new();
    let is_missing = |minute| matches!(day_of(minute), 5 | 6);
    world.run_days(12, |minute| Some(office_hours(minute)).filter(|_| !is_missing(minute)));
    world.check_budget();
    assert!(world.late_share(4) <= 0.35, "{}", world.late_share(4));
}

#[test]
fn mornings_are_local_when_clocks_change() {
    let mut world = World::new();
    let change = FIRST + 9 * DAY + 60;
    world.zone.change_at(FIRST, 60);
    world.zone.change_at(change, 120);
    let offset = |minute| if minute < change { 60 } else { 120 };
    world.run_days(13, |minute| Some(office_hours(minute + offset(minute))));
    world.check_budget();
    assert!(world.late_share(4) <= 0.05, "{}", world.late_share(4));
    let mut world = World::new();
    world.zone.change_at(FIRST, 120);
    world.zone.change_at(change, 60);
    let offset = |minute| if minute < change { 120 } else { 60 };
    world.run_days(13, |minute| Some(office_hours(minute + offset(minute))));
    world.check_budget();
    assert!(world.late_share(4) <= 0.05, "{}", world.late_share(4));
}

#[test]
fn a_launch_finds_no_forecast_and_costs_nothing() {
    let mut world = World::new();
    world.run_days(2, |_| Some(0.0));
    let ramp =
        |minute: u64| f64::from(u32::try_from(minute - FIRST - 2 * DAY).expect("two days have passed"));
    world.run_days(1, |minute| Some(ramp(minute)));
    assert_eq!(world.extra_share(3), 0.0);
    world.run_days(3, |_| Some(1440.0));
    world.check_budget();
    assert!(world.extra_share(3) <= 0.1, "{}", world.extra_share(3));
}

#[test]
fn a_constant_demand_needs_no_rule() {
    let mut world = World::new();
    world.run_days(10, |_| Some(50.0));
    assert_eq!(scorecard(&world).rule, RuleNumber::NONE);
    assert_eq!(world.extra_share(10), 0.0);
}

#[test]
fn pure_noise_has_no_rule_or_costs_little() {
    // Sums of twelve numbers without a pattern: the deviation is that of one of them.
    let noise = |minute: u64, width: f64| {
        let parts = (0..12).map(|part| width * scattered(minute * 12 + part));
        60.0 - 6.0 * width + parts.sum::<f64>()
    };
    let mut world = World::new();
    world.run_days(12, |minute| Some(noise(minute, 5.0)));
    world.check_budget();
    let rule = scorecard(&world).rule;
    assert!(rule == RuleNumber::NONE || world.extra_share(7) <= 0.03, "{}", world.extra_share(7));
    // So much noise that minutes are late all the time may cost what a person allows, and no more.
    let mut world = World::new();
    world.run_days(12, |minute| Some(noise(minute, 10.0)));
    world.check_budget();
}

/// Which starts of a timer, each of a request of a second, found a pod that was kept warm.
fn warm_starts(period: Duration, starts: u64) -> Vec<bool> {
    let terms = WarmTerms { worth: 20.0, look_ahead: 2, kept_anyway: 1 };
    let mut keep = KeepWarm::new(ForecastPace::USUAL, Timestamp::ZERO);
    let mut found = Vec::new();
    for start in 1..=starts {
        let begins = Timestamp::from_duration(period * u32::try_from(start).expect("few starts"));
        keep.decide(begins, PodCount::ZERO, &terms);
        let before = keep.avoided();
        keep.note_request(begins, &terms);
        found.push(keep.avoided() > before);
        keep.decide(begins, PodCount::ONE, &terms);
        let ends = begins + Duration::from_secs(1);
        keep.note_idle(ends);
        // Class kpa keeps its pod for a minute.
        keep.decide(ends, PodCount::ONE, &terms);
        let next = begins + period;
        let mut at = ends + Duration::from_secs(60);
        while at < next {
            let answer = keep.decide(at, PodCount::ZERO, &terms);
            assert_ne!(answer, WarmAnswer::Spent, "a timer pays for itself");
            at = keep.next_deadline().min(at + Duration::from_secs(2));
        }
    }
    found
}

#[test]
fn every_start_of_a_timer_is_warm_after_six_gaps() {
    for minutes in [5, 10, 15, 30, 60, 240] {
        let found = warm_starts(Duration::from_secs(minutes * 60), 30);
        let warm = found.iter().skip(7).filter(|is_warm| **is_warm).count();
        assert_eq!(warm, 23, "every {minutes} minutes: {found:?}");
        assert!(found.iter().take(7).all(|is_warm| !is_warm), "six gaps have to be seen first");
    }
}

#[test]
fn gaps_without_a_pattern_that_are_long_are_as_with_class_kpa() {
    let mut gaps = IdleGaps::default();
    for number in 0..100 {
        let minutes = PodCount::floor_from(scattered(number) * 5000.0).value();
        gaps.note(u64::from(minutes));
    }
    let terms = WarmTerms { worth: 5.0, look_ahead: 2, kept_anyway: 1 };
    assert_eq!(gaps.interval(&terms), None);
}

#[test]
fn the_memory_of_a_revision_is_bounded() {
    let mut world = World::new();
    world.run_days(16, |minute| Some(office_hours(minute) + scattered(minute)));
    // With the 47,000 bytes of the bytes of 16 days there are less than 100,000.
    assert!(world.forecaster.bytes() <= 53_000, "{} bytes", world.forecaster.bytes());
}
