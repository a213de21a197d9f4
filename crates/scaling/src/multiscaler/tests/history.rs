//! What the multiscaler tells the history of a revision.

use super::*;
use crate::history::{HistorySpan, RevisionHistory, SeriesRange};

/// The second since 1970 at the start of the world: half past the beginning of a minute and an hour.
const WALL: u64 = 1_700_002_830;

fn told_the_time(mut world: World) -> World {
    world.handle(Event::WallClockRead { since_epoch: Duration::from_secs(WALL) });
    world
}

fn spans(world: &World, range: SeriesRange) -> Vec<HistorySpan> {
    let history = world.multiscaler.published_history(REVISION).expect("it was used");
    history.series(range, world.now).spans.into_iter().flatten().collect()
}

#[test]
fn a_revision_that_was_never_used_has_no_history() {
    let mut world = told_the_time(at_zero(spec()));
    world.run_until(500.0);
    assert_eq!(world.multiscaler.history(REVISION), None);
    assert_eq!(world.multiscaler.published_history(REVISION), None);
}

#[test]
fn each_second_has_the_demand_and_the_pods_of_that_second() {
    let mut world = told_the_time(serving(spec()));
    world.in_pods.insert(PodId(0), 4);
    world.run_until(60.0);
    world.in_pods.insert(PodId(0), 9);
    world.run_until(100.0);
    let seconds = spans(&world, SeriesRange::QuarterHour);
    let of = |concurrency: f64| seconds.iter().filter(|span| span.concurrency == concurrency).count();
    // The demand before the first evaluation is there, too; the last three seconds are not closed.
    assert_eq!((of(4.0), of(9.0), seconds.len()), (60, 37, 97));
    let busy = &seconds[30];
    assert_eq!((busy.requests, busy.ready_seconds, busy.busy_seconds, busy.idle_seconds()), (4.0, 1, 1, 0));
    assert!(seconds.iter().skip(3).all(|span| span.heard_seconds == 1 && span.wanted_seconds == 1));
}

#[test]
fn a_wake_from_zero_is_a_cold_start_with_its_wait() {
    let mut world = told_the_time(at_zero(spec()));
    world.run_until(10.25);
    world.present(1, 1);
    world.pods(1);
    world.run_until(12.75);
    world.pod_is(PodId(0), PodState::Ready);
    (world.in_activator, world.waiting) = (1, 0);
    world.run_until(30.0);
    let [hour] = spans(&world, SeriesRange::Month)[..] else { panic!("one hour") };
    assert_eq!((hour.raises_from, hour.wakes_ended, hour.wake_wait_ms), ([1, 0, 0, 0, 0, 0], 1, 2500));
    assert!((2..=3).contains(&hour.starting_seconds) && hour.waiting_seconds >= 1, "{hour:?}");
    assert!(hour.seconds <= 20, "nothing was kept of the time before: {hour:?}");
}

#[test]
fn a_rest_is_measured_without_a_look_at_it() {
    let mut world = told_the_time(serving(spec()));
    world.in_pods.insert(PodId(0), 1);
    world.run_until(20.0);
    world.in_pods.clear();
    world.run_until(200.0);
    world.pods(0);
    assert_eq!(world.status().wanted, PodCount::ZERO);
    world.run_until(300.0);
    let before = world.multiscaler.history(REVISION).map(RevisionHistory::bytes);
    world.run_until(8000.0);
    assert_eq!(world.multiscaler.history(REVISION).map(RevisionHistory::bytes), before);
    let hours = spans(&world, SeriesRange::Month);
    assert!(hours.len() >= 2);
    assert!(hours[1..].iter().all(|hour| hour.wanted_seconds == 0 && hour.heard_seconds == hour.seconds));
    assert_eq!(hours.iter().map(|hour| hour.seconds).sum::<u32>(), 8000 - 3);
}

#[test]
fn silence_of_all_reporters_is_no_zero() {
    let mut world = told_the_time(serving(spec()));
    world.in_pods.insert(PodId(0), 5);
    world.run_until(100.0);
    world.falls_silent();
    world.run_until(200.0);
    let minutes = spans(&world, SeriesRange::Day);
    let heard: u32 = minutes.iter().map(|minute| minute.heard_seconds).sum();
    let seen: u32 = minutes.iter().map(|minute| minute.seconds).sum();
    assert!((90..=110).contains(&heard) && seen >= 197, "{heard} of {seen}");
}

#[test]
fn an_hour_means_the_same_after_a_restart() {
    let mut world = told_the_time(serving(spec()));
    world.in_pods.insert(PodId(0), 7);
    world.run_until(100.0);
    let record = world.multiscaler.history(REVISION).expect("it was used").export();
    // The next process has another axis, and begins 60 s later.
    let mut next = told_the_time(serving(spec()));
    let since_epoch = Duration::from_secs(WALL + 160);
    next.handle(Event::WallClockRead { since_epoch });
    let history = Box::new(RevisionHistory::restore(record).expect("it was just written"));
    next.handle(Event::HistoryRestored { revision: REVISION, history });
    next.in_pods.insert(PodId(0), 7);
    next.run_until(50.0);
    let history = next.multiscaler.published_history(REVISION).expect("it was used");
    let series = history.series(SeriesRange::QuarterHour, next.now);
    let first = usize::try_from(WALL - series.first_second).expect("it lies within");
    let known: Vec<bool> = series.spans[first..].iter().map(Option::is_some).collect();
    let gap = known.iter().filter(|known| !**known).count();
    assert_eq!((known[10], known[90], known[120], known[170]), (true, true, false, true));
    assert!((60..=65).contains(&gap), "{gap} seconds without data");
}

#[test]
fn the_same_events_make_the_same_history() {
    let live = || {
        let mut world = told_the_time(at_zero(spec()));
        for round in 0..5 {
            world.present(3 * round + 1, 1);
            world.pods(1 + round % 2);
            world.run_until(f64::from(20 * round) + 7.0);
            world.ready(1 + round % 2);
            world.run_until(f64::from(20 * round) + 20.0);
        }
        world.multiscaler.history(REVISION).cloned()
    };
    assert!(live().is_some());
    assert_eq!(live(), live());
}

/// A revision with one pod, which stays.
fn kept_warm() -> World {
    told_the_time(serving(ScalingSpec { min_scale: PodCount::ONE, ..spec() }))
}

#[test]
fn a_pod_that_rests_is_measured_without_a_look_and_published_once() {
    let mut world = kept_warm();
    world.in_pods.insert(PodId(0), 2);
    world.run_until(20.0);
    world.in_pods.clear();
    world.run_until(200.0);
    world.multiscaler.take_changed();
    let before = world.multiscaler.published_history(REVISION);
    world.run_until(1000.0);
    assert_eq!(world.multiscaler.take_changed(), BTreeSet::new());
    assert_eq!(world.multiscaler.published_history(REVISION), before);
    let seconds = spans(&world, SeriesRange::QuarterHour);
    assert_eq!(seconds.len(), 900, "a reader adds the rest");
    assert!(seconds.iter().all(|second| second.ready_seconds == 1 && second.heard_seconds == 1));
}

#[test]
fn the_past_that_a_reporter_remembers_ends_the_rest() {
    let mut world = kept_warm();
    world.run_until(100.0);
    world.multiscaler.take_changed();
    let past = vec![(REVISION, sample(world.now.whole_secs() - 5, 3.0, 0))];
    world.starts(Reporter::Pod(PodId(0)), past);
    assert!(world.multiscaler.take_changed().contains(&REVISION), "readers take it for rest");
}

#[test]
fn a_long_rest_gives_back_the_seconds_that_are_kept_no_longer() {
    let mut world = kept_warm();
    for second in 0..600_u32 {
        world.in_pods.insert(PodId(0), 1 + second * 7 % 13);
        world.run_until(f64::from(second + 1));
    }
    world.in_pods.clear();
    world.run_until(700.0);
    let bytes = |world: &World| world.multiscaler.history(REVISION).map(RevisionHistory::bytes);
    let before = bytes(&world);
    world.run_until(1700.0);
    assert!(bytes(&world) < before, "{:?} after {before:?}", bytes(&world));
    let minutes = spans(&world, SeriesRange::Day);
    assert!(minutes.iter().filter(|minute| minute.concurrency > 0.0).count() >= 10);
}

#[test]
fn a_reader_keeps_the_history_that_it_was_given() {
    let mut world = kept_warm();
    world.in_pods.insert(PodId(0), 2);
    world.run_until(60.0);
    let held = world.multiscaler.published_history(REVISION).expect("it was used");
    let now = world.now;
    let before = held.series(SeriesRange::QuarterHour, now);
    world.run_until(120.0);
    assert_eq!(held.series(SeriesRange::QuarterHour, now), before);
}

#[test]
fn a_rest_that_is_not_written_into_the_windows_is_a_rest() {
    // Where activators are always in the path, a rest is one zero in the windows, and nothing after it.
    let always_buffered = ScalingSpec { min_scale: PodCount::ONE, ..with_burst_capacity(-1.0) };
    let mut world = told_the_time(serving(always_buffered));
    world.in_activator = 2;
    world.run_until(20.0);
    world.in_activator = 0;
    world.run_until(200.0);
    world.multiscaler.take_changed();
    world.run_until(400.0);
    assert_eq!(world.multiscaler.take_changed(), BTreeSet::new());
    assert_eq!(spans(&world, SeriesRange::QuarterHour).len(), 397);
}

#[test]
fn a_history_begins_with_the_second_in_which_its_revision_appears() {
    let mut world = told_the_time(World::new(spec()));
    world.run_until(10.0);
    world.create(1);
    world.run_until(20.0);
    let [hour] = spans(&world, SeriesRange::Month)[..] else { panic!("one hour") };
    assert_eq!((hour.seconds, hour.wanted_seconds, hour.heard_seconds), (7, 7, 0));
}
