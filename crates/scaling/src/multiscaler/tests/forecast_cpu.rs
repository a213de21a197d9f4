//! Class hpa that scales on the use of processors: early pods take a part of it, and change nothing of what
//! the class asks for by itself.

use forecasting::{DemandMinutes, MinuteDemand, PastDemand as _};
use settings::DemandMetric;

use super::forecast::{HOUR, MONDAY, half_hourly_peak, on_monday_at, predicting, scheduled};
use super::hpa::{cpu, settings};
use super::*;
use crate::history::DemandDays;

const MINUTE: u64 = 60;

/// Settings by which half a core needs a pod, on pods that request one.
fn half_a_core() -> ScalingSpec {
    settings(1, 20, vec![cpu()])
}

/// Lets seconds pass in which all pods together use so many thousandths of a core; orders are carried out at
/// once.
fn share(world: &mut World, seconds: u32, milli_cores: u32) {
    for _ in 0..seconds {
        let wanted = world.status().wanted;
        if wanted != PodCount::of(world.linked.len()) {
            world.ready(wanted.value());
        }
        world.share_cores(wanted.value(), milli_cores);
        world.for_seconds(1);
    }
}

/// The count that is asked for, and how many of it the class does not ask for by itself.
fn counts_of(world: &World) -> (u32, u32) {
    let status = world.status();
    (status.wanted.value(), status.early_pods.value())
}

#[test]
fn pods_of_a_schedule_lower_no_average_that_the_class_goes_by() {
    let spec = scheduled("07:00-07:10 min=5", half_a_core());
    let mut world = on_monday_at(serving(spec), 7 * HOUR - 30);
    share(&mut world, 60, 400);
    assert_eq!(counts_of(&world), (5, 4));
    // Each of the five uses 96 % of its share: within the tolerance, and yet one pod could not do it.
    share(&mut world, 60, 2400);
    assert_eq!(counts_of(&world), (5, 0));
    share(&mut world, 520, 2400);
    assert_eq!(counts_of(&world), (5, 0), "the schedule has ended, and the load has not");
}

#[test]
fn the_class_asks_for_as_many_pods_as_it_would_alone() {
    let scheduled = scheduled("07:00-08:00 min=9", half_a_core());
    let worlds = [half_a_core(), scheduled].map(|spec| on_monday_at(serving(spec), 7 * HOUR - 30));
    let own = worlds.map(|mut world| {
        let seen = [300, 700, 1900, 2600, 900, 100].map(|milli_cores| {
            share(&mut world, 45, milli_cores);
            let (wanted, early) = counts_of(&world);
            wanted - early
        });
        share(&mut world, 90, 100);
        let (wanted, early) = counts_of(&world);
        (seen, wanted - early)
    });
    assert_eq!(own[0], own[1]);
    assert_eq!(own[0].1, 1);
}

#[test]
fn a_pause_of_another_client_is_ended_by_no_schedule() {
    let spec = scheduled("07:00-08:00 min=5", half_a_core());
    let mut world = on_monday_at(serving(spec), 7 * HOUR - 30);
    share(&mut world, 20, 400);
    world.create(0);
    share(&mut world, 100, 0);
    assert_eq!(counts_of(&world), (0, 0));
    world.create(1);
    share(&mut world, 40, 400);
    assert_eq!(counts_of(&world), (5, 4));
}

/// Lives on with peaks until so many seconds after ten o'clock, and returns the counts then.
fn counts_at(world: &mut World, end: u32) -> (u32, u32) {
    let begun = world.now.saturating_since(Timestamp::from_secs(1000)).as_secs();
    for second in u32::try_from(begun).expect("a short test")..end {
        share(world, 1, 100 * half_hourly_peak(MONDAY + 10 * HOUR + u64::from(second)));
    }
    counts_of(world)
}

#[test]
fn pods_are_asked_for_before_the_use_of_processors_rises() {
    let ten = (MONDAY + 10 * HOUR) / MINUTE;
    let mut minutes = DemandMinutes::beginning_at(ten - 8 * 24 * 60);
    while minutes.next_minute() < ten {
        let cores = f64::from(half_hourly_peak(minutes.next_minute() * MINUTE)) / 10.0;
        minutes.push(Some(MinuteDemand { mean: cores, maximum: cores }));
    }
    let demand = Arc::new(DemandDays::of(DemandMetric::Cpu, &minutes));
    let mut world = on_monday_at(serving(predicting(half_a_core())), 10 * HOUR);
    world.handle(Event::DemandImported { revision: REVISION, demand });
    assert_eq!(counts_at(&mut world, 29 * 60 + 30), (1, 0), "no rule was chosen yet");
    let history = world.multiscaler.history(REVISION).expect("it was used");
    let measured = history.demand().and_then(|days| days.minute(ten + 10)).expect("it has ended");
    assert!((measured.mean / 0.5 - 1.0).abs() < 0.03, "{measured:?}");
    let (late, _) = counts_at(&mut world, 32 * 60);
    assert!(late >= 9, "{late} pods for six cores");
    let (early, above) = counts_at(&mut world, 89 * 60 + 30);
    assert!(early >= 6, "{early} pods half a minute before demand rises");
    assert_eq!(above, early - 1, "the class itself asks for one");
    let reason = last_decision(&world).reasons.last().expect("something changed the number").text.to_string();
    assert!(reason.contains("cores in use expected within"), "{reason}");
    assert_eq!(counts_at(&mut world, 110 * 60), (1, 0), "what is expected no longer is left");
}
