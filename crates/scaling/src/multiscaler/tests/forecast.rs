//! Pods before demand: schedules, a warm pod, and a rise that the past tells of.

use forecasting::{DemandMinutes, MinuteDemand, PredictionRecord, ZoneOffsets};
use settings::hpa::MetricSpec;
use settings::{Metric, PredictionSettings, read_count_schedule};
use vocabulary::{MilliValue, Percentage, ScaleUpForward, TimeZoneName};

use super::*;
use crate::history::{DemandBin, DemandDays, DemandSeconds, RevisionCondition, RevisionHistory};
use crate::window::SecondSums;

/// A Monday, at midnight by UTC, in seconds since 1970.
pub(super) const MONDAY: u64 = 20_003 * 86_400;
pub(super) const HOUR: u64 = 3600;
const MINUTE: u64 = 60;

pub(super) fn predicting(spec: ScalingSpec) -> ScalingSpec {
    let prediction = PredictionSettings {
        observes_only: false,
        budget: Percentage::clamped(50.0),
        cold_start_worth: Duration::from_mins(20),
        scale_up_forward: ScaleUpForward::Measured,
        bin: Duration::from_secs(60),
    };
    ScalingSpec { prediction: Some(prediction), ..spec }
}

pub(super) fn scheduled(lines: &str, spec: ScalingSpec) -> ScalingSpec {
    let schedule = read_count_schedule("the test", lines).expect("the test's schedule is valid");
    ScalingSpec { schedule: Some(Arc::new(schedule)), ..spec }
}

/// The world's clock shows this second of a Monday now.
pub(super) fn on_monday_at(mut world: World, second: u64) -> World {
    world.handle(Event::WallClockRead { since_epoch: Duration::from_secs(MONDAY + second) });
    world
}

/// The last reason of the last decision: its stage and its words.
fn last_reason(world: &World) -> (Stage, String) {
    let decision = last_decision(world);
    let reason = decision.reasons.last().expect("something changed the number");
    (reason.stage, reason.text.to_string())
}

/// Lets time pass, by the second, with as many ready pods as are asked for.
fn live_until(world: &mut World, seconds: u32) {
    let begun = world.now.saturating_since(Timestamp::from_secs(1000)).as_secs();
    let mut pods = u32::MAX;
    for second in u32::try_from(begun).expect("a short test")..seconds {
        world.run_until(f64::from(second + 1));
        let wanted = world.status().wanted.value();
        if wanted != pods {
            pods = wanted;
            world.ready(pods);
        }
    }
}

#[test]
fn a_schedule_raises_the_count_with_its_minute_and_ends_with_it() {
    let world = serving(scheduled("Mon 07:00-07:02 min=5", spec()));
    let mut world = on_monday_at(world, 7 * HOUR - 30);
    world.in_pods.insert(PodId(0), 10);
    world.run_until(29.0);
    assert_eq!(world.status().wanted.value(), 1);
    world.run_until(31.0);
    assert_eq!(world.status().wanted.value(), 5);
    assert_eq!(last_reason(&world), (Stage::Schedule, "at least 5 at this time (schedule)".to_owned()));
    world.ready(5);
    world.run_until(149.0);
    assert_eq!(world.status().wanted.value(), 5, "the load needs one");
    world.run_until(151.0);
    assert_eq!(world.status().wanted.value(), 1, "no rate limit holds what a schedule asked for");
}

#[test]
fn a_schedule_limits_the_count_that_the_load_needs() {
    let world = serving(scheduled("07:00-08:00 max=2", spec()));
    let mut world = on_monday_at(world, 7 * HOUR + 30);
    world.in_pods.insert(PodId(0), 400);
    live_until(&mut world, 60);
    assert_eq!(world.status().wanted.value(), 2);
    assert_eq!(last_reason(&world), (Stage::Schedule, "at most 2 at this time (schedule)".to_owned()));
    assert!(world.status().desired.is_some_and(|desired| desired.value() >= 6), "the class wants more");
}

#[test]
fn a_schedule_goes_by_the_local_time_once_that_is_known() {
    let zone = TimeZoneName::new("Asia/Tokyo");
    let spec = ScalingSpec { time_zone: zone.clone(), ..scheduled("Mon 16:00-17:00 min=3", spec()) };
    let mut world = on_monday_at(serving(spec), 7 * HOUR + 30);
    world.run_until(10.0);
    assert_eq!(world.status().wanted.value(), 1);
    assert_eq!(world.multiscaler.zones_in_use(), BTreeSet::from([zone.clone()]));
    world.handle(Event::ZoneRead { zone, offsets: ZoneOffsets::fixed(9 * 60) });
    world.run_until(13.0);
    assert_eq!(world.status().wanted.value(), 3);
}

#[test]
fn a_schedule_keeps_pods_at_rest_and_lets_them_go_behind_the_activators() {
    let world = at_zero(scheduled("07:00-07:02 min=2", spec()));
    let mut world = on_monday_at(world, 7 * HOUR);
    live_until(&mut world, 60);
    assert_eq!(world.status().wanted.value(), 2);
    assert_eq!(world.status().routing, Routing::ThroughActivator, "no load needs a pod");
    let why = world.status().why_not_zero.expect("there are pods").to_string();
    assert_eq!(why, "at least 2 at this time (schedule)");
    live_until(&mut world, 130);
    assert_eq!(world.status().wanted, PodCount::ZERO);
}

#[test]
fn a_schedule_raises_the_count_of_class_hpa_and_its_end_is_no_event_of_that() {
    let own = MetricSpec::Own { metric: Metric::Concurrency, target: MilliValue::new(10_000) };
    let spec = super::hpa::settings(1, 20, vec![own]);
    let mut world = on_monday_at(serving(scheduled("07:00-07:02 min=5", spec)), 7 * HOUR - 30);
    world.in_pods.insert(PodId(0), 8);
    live_until(&mut world, 20);
    assert_eq!(world.status().wanted.value(), 1);
    live_until(&mut world, 60);
    assert_eq!((world.status().wanted.value(), world.status().early_pods.value()), (5, 4));
    live_until(&mut world, 151);
    assert_eq!(world.status().wanted.value(), 1, "no stabilization window holds what a schedule asked for");
}

#[test]
fn a_revision_without_a_past_has_the_count_of_class_kpa() {
    let unscheduled = serving(spec());
    assert_eq!(unscheduled.multiscaler.zones_in_use(), BTreeSet::new());
    let mut plain = on_monday_at(serving(spec()), 7 * HOUR);
    let mut expecting = on_monday_at(serving(predicting(spec())), 7 * HOUR);
    for world in [&mut plain, &mut expecting] {
        world.in_pods.insert(PodId(0), 200);
        world.run_until(20.0);
        world.ready(3);
        world.in_pods.clear();
        world.run_until(200.0);
    }
    assert_eq!(plain.scale_orders(), expecting.scale_orders(), "nothing is known of the past");
}

#[test]
fn a_timer_finds_a_pod_that_is_warm() {
    let mut world = on_monday_at(at_zero(predicting(spec())), 0);
    let mut found = Vec::new();
    for round in 1..=9 {
        live_until(&mut world, 600 * round);
        found.push(world.status().wanted.value());
        world.present(1, 1);
        live_until(&mut world, 600 * round + 1);
        world.present(0, 0);
    }
    assert_eq!(found[..6], [0; 6], "fewer than six rests tell nothing");
    assert_eq!(found[8], 1);
    live_until(&mut world, 600 * 9 + 8 * 60);
    assert_eq!(
        last_reason(&world),
        (Stage::KeepWarm, "a pod waits for the next request (cold-start-worth)".to_owned())
    );
    live_until(&mut world, 600 * 9 + 14 * 60);
    assert_eq!(world.status().wanted, PodCount::ZERO, "the timer has ended");
}

/// Requests in flight in a second since 1970: many in the ten minutes from each half hour on.
pub(super) fn half_hourly_peak(second: u64) -> u32 {
    if (30 * MINUTE..40 * MINUTE).contains(&(second % HOUR)) { 60 } else { 5 }
}

/// The history of eight days until this second, with that demand.
pub(super) fn eight_days_until(end: u64) -> RevisionHistory {
    let mut history = RevisionHistory::beginning_at(end - 8 * 24 * HOUR);
    history.keep_demand(Metric::Concurrency, DemandBin::Minute);
    let demand = |second| {
        let concurrency = f64::from(half_hourly_peak(second));
        SecondSums { concurrency, rate: concurrency }
    };
    let demand = DemandSeconds { at: &demand, reported: 0..u64::MAX };
    let condition = RevisionCondition { is_heard: true, ..RevisionCondition::default() };
    history.advance(end, condition, &demand);
    history
}

/// Settings by which each pod serves seven requests, and one pod always stands.
fn for_peaks(spec: ScalingSpec) -> ScalingSpec {
    ScalingSpec {
        target_per_pod: 7.0,
        total_per_pod: 10.0,
        min_scale: PodCount::ONE,
        target_burst_capacity: BurstCapacity::new(0.0).expect("it is no negative number"),
        ..spec
    }
}

/// A revision that has had a peak in each hour of eight days, at ten o'clock.
fn with_hourly_peaks(spec: ScalingSpec) -> World {
    let mut world = on_monday_at(serving(for_peaks(spec)), 10 * HOUR);
    let history = Box::new(eight_days_until(MONDAY + 10 * HOUR));
    world.handle(Event::HistoryRestored { revision: REVISION, history });
    world
}

/// Lives on with these peaks until so many seconds after ten o'clock, and returns the count then.
fn wanted_at(world: &mut World, end: u32) -> u32 {
    let first = world.now.saturating_since(Timestamp::from_secs(1000)).as_secs();
    for second in u32::try_from(first).expect("a short test")..end {
        world.in_activator = half_hourly_peak(MONDAY + 10 * HOUR + u64::from(second));
        live_until(world, second + 1);
    }
    world.status().wanted.value()
}

#[test]
fn pods_are_asked_for_before_demand_that_comes_every_hour() {
    let mut world = with_hourly_peaks(predicting(spec()));
    assert_eq!(wanted_at(&mut world, 29 * 60 + 30), 1, "no rule was chosen yet");
    let late = wanted_at(&mut world, 32 * 60);
    assert!(late >= 9, "{late} pods for 60 requests");
    let early = wanted_at(&mut world, 89 * 60 + 30);
    assert!(early >= 6, "{early} pods half a minute before demand rises");
    let words = "58.93 requests in flight expected within 10s (4.96 now; on 7 of the last 7 days it rose by 53.98 or less), 10 per pod";
    assert_eq!(last_reason(&world), (Stage::Prediction, words.to_owned()));
    assert_eq!(wanted_at(&mut world, 110 * 60), 1, "what is expected no longer is left");
}

#[test]
fn class_hpa_asks_for_pods_before_demand_and_leaves_them_without_a_window() {
    let own = MetricSpec::Own { metric: Metric::Concurrency, target: MilliValue::new(7_000) };
    let mut world = with_hourly_peaks(predicting(super::hpa::settings(1, 20, vec![own])));
    assert_eq!(wanted_at(&mut world, 29 * 60 + 30), 1, "no rule was chosen yet");
    let early = wanted_at(&mut world, 89 * 60 + 30);
    assert!(early >= 6, "{early} pods half a minute before demand rises");
    assert_eq!(world.status().early_pods.value(), early - 1, "the class itself asks for one");
    assert_eq!(last_reason(&world).0, Stage::Prediction);
    assert_eq!(wanted_at(&mut world, 110 * 60), 1, "what is expected no longer is left");
}

#[test]
fn demand_that_was_measured_elsewhere_is_the_past_of_a_forecast() {
    let mut minutes = DemandMinutes::beginning_at((MONDAY + 10 * HOUR - 8 * 24 * HOUR) / MINUTE);
    while minutes.next_minute() < (MONDAY + 10 * HOUR) / MINUTE {
        let demand = f64::from(half_hourly_peak(minutes.next_minute() * MINUTE));
        minutes.push(Some(MinuteDemand { mean: demand, maximum: demand }));
    }
    let demand = Arc::new(DemandDays::of(Metric::Concurrency, &minutes));
    let imported = Event::DemandImported { revision: REVISION, demand };
    let mut world = on_monday_at(serving(for_peaks(predicting(spec()))), 10 * HOUR);
    world.handle(imported.clone());
    assert_eq!(wanted_at(&mut world, 29 * 60 + 30), 1, "no rule was chosen yet");
    let early = wanted_at(&mut world, 89 * 60 + 30);
    assert!(early >= 6, "{early} pods half a minute before demand rises");
    // Without a forecast nothing is kept of it.
    let mut plain = on_monday_at(serving(spec()), 10 * HOUR);
    plain.handle(imported);
    let history = plain.multiscaler.history(REVISION).expect("it was used");
    assert_eq!(history.demand(), None);
}

#[test]
fn a_forecast_that_is_only_observed_asks_for_no_pod() {
    let observing = predicting(spec());
    let prediction = observing.prediction.map(|asked| PredictionSettings { observes_only: true, ..asked });
    let mut world = with_hourly_peaks(ScalingSpec { prediction, ..observing });
    assert_eq!(wanted_at(&mut world, 89 * 60 + 30), 1);
}

#[test]
fn a_forecast_stays_below_the_greatest_count() {
    let max_scale = Some(PodCount::new(4));
    let mut world = with_hourly_peaks(ScalingSpec { max_scale, ..predicting(spec()) });
    assert_eq!(wanted_at(&mut world, 89 * 60 + 30), 4);
    assert_eq!(last_reason(&world), (Stage::MaxScale, "never above 4 (max-scale)".to_owned()));
}

#[test]
fn prediction_that_is_switched_off_forgets_the_past() {
    let mut world = with_hourly_peaks(predicting(spec()));
    wanted_at(&mut world, 60);
    let is_kept =
        |world: &World| world.multiscaler.history(REVISION).is_some_and(|kept| kept.demand().is_some());
    assert!(is_kept(&world));
    world.edit(|spec| spec.prediction = None);
    assert!(!is_kept(&world));
}

/// The history of a world as a store would write it, with the forecast.
pub(super) fn written(world: &World) -> Box<RevisionHistory> {
    written_with(world, |_| {})
}

/// The same, where the store has changed what is kept of the forecast.
pub(super) fn written_with(
    world: &World,
    change: impl FnOnce(&mut PredictionRecord),
) -> Box<RevisionHistory> {
    let history = world.multiscaler.published_history(REVISION).expect("it was used");
    let forecast = world.multiscaler.published_forecast(REVISION).expect("it is predicted");
    let mut stored = forecast.record();
    change(&mut stored);
    let record = history.record(world.now).with_forecast(Some(stored));
    Box::new(RevisionHistory::restore(record).expect("the check number is of what was measured"))
}

#[test]
fn the_next_owner_goes_on_with_the_forecast_of_the_former_one() {
    let mut former = with_hourly_peaks(predicting(spec()));
    let early = wanted_at(&mut former, 89 * 60 + 30);
    assert!(early >= 6, "{early} pods half a minute before demand rises");
    let history = written(&former);
    let told = former.multiscaler.published_forecast(REVISION).expect("it is predicted").record();
    // The next process finds these pods, and another axis of time.
    let mut next = on_monday_at(World::new(for_peaks(predicting(spec()))), 10 * HOUR + 89 * 60 + 32);
    next.create(early);
    next.handle(Event::HistoryRestored { revision: REVISION, history });
    let read = next.multiscaler.published_forecast(REVISION).expect("it is predicted").record();
    let [told, read] = [&told, &read].map(|record| record.forecaster.clone().expect("it is predicted"));
    assert_eq!((&told.hours, told.rule, told.rule_since), (&read.hours, read.rule, read.rule_since));
    assert_eq!(told.budget.minutes, read.budget.minutes);
    assert!(told.rule < forecasting::RULES - 1, "a rule is in force: {}", told.rule);
    next.activator_starts();
    next.in_activator = 5;
    next.ready(early);
    next.run_until(20.0);
    let status = next.status();
    assert!(status.wanted.value() >= early && status.early_pods.value() > 0, "{status:?}");
}

#[test]
fn a_history_without_a_forecast_takes_the_count_of_the_platform_for_demand() {
    let spec = predicting(spec());
    let mut next = on_monday_at(World::new(spec), 10 * HOUR);
    next.create(5);
    let history = Box::new(eight_days_until(MONDAY + 10 * HOUR));
    next.handle(Event::HistoryRestored { revision: REVISION, history });
    assert_eq!((next.status().wanted.value(), next.status().early_pods.value()), (5, 0));
}
