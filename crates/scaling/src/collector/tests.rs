use std::time::Duration;

use proptest::prelude::*;
use vocabulary::{Concurrency, ReplicaId, RequestRate};

use super::*;

const POD: Reporter = Reporter::Pod(PodId(1));
const ANOTHER: Reporter = Reporter::Pod(PodId(2));
const ACTIVATOR: Reporter = Reporter::Activator(ReplicaId(1));
const OTHER_ACTIVATOR: Reporter = Reporter::Activator(ReplicaId(2));
const BOOT: BootId = BootId(7);

#[test]
fn d8_each_request_of_three_pods_counts_once() {
    for (metric, expected) in [(Metric::Concurrency, 3.0), (Metric::Rps, 3.0)] {
        let mut collector = collector(metric);
        for (pod, [concurrency, proxied, requests, proxied_requests]) in
            [[3.0, 2.0, 5.0, 4.0], [5.0, 4.0, 7.0, 6.0], [3.0, 2.0, 5.0, 4.0]].into_iter().enumerate()
        {
            let reporter = Reporter::Pod(PodId(u32::try_from(pod).unwrap()));
            collector.start_reporter(reporter, BOOT, 0, seconds(0.5));
            let load = load(concurrency, proxied, requests, proxied_requests);
            collector.record(reporter, Sample { second: 0, load }, seconds(1.5));
        }
        assert_close(collector.observe(&[], seconds(1.6)).unwrap().stable, expected);
    }
}

#[test]
fn e29_old_seconds_and_proxied_requests_do_not_count() {
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(POD, BOOT, 100, seconds(100.5));
    report(&mut collector, POD, 30, 100.0, 101.5);
    collector.record(POD, Sample { second: 100, load: load(20.0, 10.0, 0.0, 0.0) }, seconds(101.5));
    assert_close(stable(&collector, 101.6), 10.0);
}

#[test]
fn g37_without_a_heard_reporter_there_is_no_data() {
    let mut collector = collector(Metric::Concurrency);
    assert_eq!(collector.observe(&[], seconds(1.0)), None);
    collector.start_reporter(POD, BOOT, 0, seconds(1.5));
    assert_eq!(collector.observe(&[], seconds(1.6)), None, "heard, but nothing measured yet");
    report(&mut collector, POD, 0, 4.0, 2.5);
    assert_close(stable(&collector, 5.4), 4.0);
    assert_eq!(collector.observe(&[], seconds(5.5)), None, "silent for 3 s");
    // A reporter is heard again, but all that is known is older than the window.
    collector.start_reporter(ACTIVATOR, BOOT, 0, seconds(90.0));
    assert_eq!(collector.observe(&[], seconds(90.0)), None);
}

#[test]
fn requests_in_flight_are_those_of_the_newest_second_and_have_an_age() {
    let mut collector = started(POD);
    let in_flight = |collector: &Collector, at: f64| {
        let found = collector.in_flight(&[], seconds(at))?;
        Some((found.requests, found.age.as_secs()))
    };
    assert_eq!(in_flight(&collector, 1.0), None);
    for second in 0..40 {
        report(&mut collector, POD, second, 0.4, precisely(second) + 1.5);
    }
    assert_eq!(in_flight(&collector, 40.6), Some((1.0, 40)), "a part of a request is one");
    collector.start_reporter(ACTIVATOR, BOOT, 40, seconds(40.6));
    collector.present(ACTIVATOR, PresentCount { in_flight: 2, waiting: 0 }, seconds(40.7));
    assert_eq!(in_flight(&collector, 40.7), Some((3.0, 40)));
    // The pod's ended; its zero is the newest second, and a late one before it says nothing any more.
    collector.idle(PodId(1), 40, seconds(41.5));
    report(&mut collector, POD, 39, 0.4, 41.6);
    assert_eq!(in_flight(&collector, 41.6), Some((2.0, 1)));
    collector.heard(ACTIVATOR, 40, seconds(41.7));
    assert_eq!(in_flight(&collector, 41.7), None);
}

#[test]
fn requests_of_a_silent_reporter_stay_in_flight_until_it_is_removed() {
    for (reporter, ready, expected) in
        [(POD, vec![PodId(1)], true), (POD, vec![PodId(2)], false), (ACTIVATOR, vec![], true)]
    {
        let mut collector = started(reporter);
        report(&mut collector, reporter, 0, 1.0, 1.5);
        collector.lost(reporter, seconds(1.6));
        assert!(collector.in_flight(&[], seconds(4.4)).is_some(), "{reporter:?} is heard");
        assert_eq!(collector.in_flight(&ready, seconds(90.0)).is_some(), expected, "{reporter:?} {ready:?}");
        collector.remove(reporter);
        assert_eq!(collector.in_flight(&ready, seconds(90.0)), None);
    }
}

#[test]
fn a_repeat_of_a_second_replaces_it() {
    let mut collector = started(POD);
    report(&mut collector, POD, 0, 10.0, 1.5);
    report(&mut collector, POD, 1, 10.0, 2.5);
    report(&mut collector, POD, 1, 4.0, 2.6);
    report(&mut collector, POD, 0, 6.0, 2.7);
    assert_close(stable(&collector, 2.8), 5.0);
}

#[test]
fn a_second_without_a_word_is_zero_but_only_then() {
    let mut collector = started(ACTIVATOR);
    report(&mut collector, ACTIVATOR, 0, 10.0, 1.5);
    collector.heard(ACTIVATOR, 0, seconds(1.5));
    collector.heard(ACTIVATOR, 1, seconds(2.5));
    assert_close(stable(&collector, 2.6), 5.0);
    // The frame's end before its content: the content still counts.
    report(&mut collector, ACTIVATOR, 1, 2.0, 2.6);
    assert_close(stable(&collector, 2.7), 6.0);
}

#[test]
fn a_reconnect_fills_the_gap_and_repeats_nothing() {
    let mut collector = started(POD);
    for second in 0..10 {
        report(&mut collector, POD, second, 10.0, precisely(second) + 1.5);
    }
    collector.lost(POD, seconds(10.6));
    collector.start_reporter(POD, BOOT, 16, seconds(16.2));
    for second in 0..16 {
        report(&mut collector, POD, second, 10.0, 16.2);
    }
    report(&mut collector, POD, 16, 10.0, 17.5);
    let averages = collector.observe(&[], seconds(17.6)).unwrap();
    assert_close(averages.stable, 10.0);
    assert_close(averages.panic, 10.0);
}

#[test]
fn seconds_of_a_restarted_reporter_are_not_those_of_its_former_boot() {
    let mut collector = started(POD);
    for second in 0..10 {
        report(&mut collector, POD, second, 10.0, precisely(second) + 1.5);
    }
    collector.present(POD, PresentCount { in_flight: 500, waiting: 0 }, seconds(10.9));
    // Killed and started again: what it held died with it, its seconds count from zero, what was measured
    // stays.
    collector.start_reporter(POD, BootId(8), 0, seconds(11.2));
    assert_eq!(collector.present_total(), None);
    report(&mut collector, POD, 0, 30.0, 12.5);
    assert_close(stable(&collector, 12.6), 130.0 / 12.0);
}

#[test]
fn a_present_count_is_the_value_of_the_running_second_until_that_is_reported() {
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(ACTIVATOR, BOOT, 0, seconds(0.2));
    assert_eq!(collector.observe(&[], seconds(0.3)), None);
    collector.present(ACTIVATOR, present(1, 1), seconds(0.3));
    assert_close(stable(&collector, 0.3), 1.0);
    collector.present(ACTIVATOR, present(500, 500), seconds(0.4));
    assert_close(stable(&collector, 0.4), 500.0);
    assert_eq!((collector.present_total(), collector.waiting()), (Some(500.0), 500));
    report(&mut collector, ACTIVATOR, 0, 350.0, 1.2);
    assert_close(stable(&collector, 1.3), 350.0);
    assert_eq!((collector.present_total(), collector.waiting()), (None, 0), "expired with the frame");
    // The next second, before and after.
    collector.present(ACTIVATOR, present(600, 0), seconds(1.4));
    assert_close(stable(&collector, 1.4), 475.0);
    report(&mut collector, ACTIVATOR, 1, 450.0, 2.2);
    assert_close(stable(&collector, 2.3), 400.0);
}

/// An activator's history names no second in which it held nothing.
#[test]
fn a_present_count_after_a_hello_is_the_value_of_the_second_that_ran_then() {
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(ACTIVATOR, BOOT, 12, seconds(12.2));
    report(&mut collector, ACTIVATOR, 10, 6.0, 12.2);
    collector.present(ACTIVATOR, present(40, 0), seconds(12.3));
    report(&mut collector, ACTIVATOR, 12, 30.0, 13.1);
    assert_close(stable(&collector, 13.2), 12.0);
}

#[test]
fn a_frame_expires_only_the_present_count_of_its_reporter() {
    let mut collector = started(POD);
    collector.present(POD, present(3, 1), seconds(0.6));
    collector.present(ACTIVATOR, present(40, 38), seconds(0.7));
    assert_eq!((collector.present_total(), collector.waiting()), (Some(43.0), 39));
    collector.heard(POD, 0, seconds(1.5));
    assert_eq!((collector.present_total(), collector.waiting()), (Some(40.0), 38));
    collector.lost(ACTIVATOR, seconds(1.6));
    assert_eq!((collector.present_total(), collector.waiting()), (None, 0));
}

#[test]
fn with_a_rate_the_present_count_is_the_waiting_requests() {
    let mut collector = collector(Metric::Rps);
    collector.start_reporter(ACTIVATOR, BOOT, 0, seconds(0.2));
    collector.present(ACTIVATOR, present(7, 0), seconds(0.3));
    assert_eq!(collector.present_total(), Some(0.0));
    collector.present(ACTIVATOR, present(9, 2), seconds(0.4));
    assert_eq!(collector.present_total(), Some(2.0));
    assert_close(stable(&collector, 0.4), 1.0);
}

#[test]
fn waiting_requests_are_the_last_count_of_each_reporter() {
    let mut collector = started(POD);
    let queued = |queued| Load { queued, ..load(1.0, 0.0, 0.0, 0.0) };
    collector.record(POD, Sample { second: 0, load: queued(4) }, seconds(1.5));
    collector.record(ACTIVATOR, Sample { second: 0, load: queued(3) }, seconds(1.5));
    assert_eq!(collector.waiting(), 7);
    collector.heard(POD, 1, seconds(2.5));
    assert_eq!(collector.waiting(), 3);
    collector.remove(ACTIVATOR);
    assert_eq!(collector.waiting(), 0);
}

#[test]
fn counts_of_pods_and_of_activators_do_not_add_up_and_are_used_for_100_ms() {
    let mut collector = started(POD);
    let used = |collector: &Collector, at: f64| collector.surge_total(seconds(at)).unwrap();
    collector.present(POD, present(20, 0), seconds(0.60));
    collector.present(ANOTHER, present(4, 0), seconds(0.62));
    assert_close(used(&collector, 0.62), 24.0);
    collector.present(ACTIVATOR, present(20, 20), seconds(0.65));
    assert_close(used(&collector, 0.65), 24.0);
    collector.present(ACTIVATOR, present(30, 30), seconds(0.67));
    assert_close(used(&collector, 0.70), 30.0);
    assert_close(used(&collector, 0.77), 30.0);
    assert_close(used(&collector, 0.775), 0.0);
    collector.present(POD, present(12, 0), seconds(0.79));
    assert_close(used(&collector, 0.79), 12.0);
}

#[test]
fn an_activators_last_count_bounds_the_value_of_its_last_second() {
    let mut collector = started(POD);
    collector.start_reporter(ACTIVATOR, BOOT, 0, seconds(0.5));
    report(&mut collector, ACTIVATOR, 0, 40.0, 1.5);
    collector.present(ACTIVATOR, present(25, 0), seconds(1.6));
    collector.present(POD, present(6, 0), seconds(1.9));
    assert_close(collector.surge_total(seconds(1.9)).unwrap(), 25.0);
    report(&mut collector, ACTIVATOR, 1, 30.0, 2.5);
    collector.present(POD, present(6, 0), seconds(2.6));
    assert_close(collector.surge_total(seconds(2.6)).unwrap(), 25.0);
    // Its clients have gone to another activator.
    collector.present(ACTIVATOR, present(0, 0), seconds(2.7));
    report(&mut collector, ACTIVATOR, 2, 5.0, 3.5);
    collector.present(OTHER_ACTIVATOR, present(25, 0), seconds(3.6));
    assert_close(collector.surge_total(seconds(3.6)).unwrap(), 25.0);
}

/// The pod's second 10 and the activator's second 10 lie apart by nearly one: the same clients are in both.
#[test]
fn clients_that_change_the_path_count_once_and_at_most_twice() {
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(POD, BOOT, 0, seconds(0.05));
    collector.start_reporter(ACTIVATOR, BOOT, 0, seconds(0.95));
    for second in 0..=20 {
        let (in_pod, in_activator) = match second {
            0..=10 => (200.0, 0.0),
            11 => (200.0, 200.0),
            _ => (0.0, 200.0),
        };
        let at = precisely(second);
        report(&mut collector, POD, second, in_pod, at + 1.05);
        report(&mut collector, ACTIVATOR, second, in_activator, at + 1.95);
        let averages = collector.observe(&[], seconds(at + 1.96)).unwrap();
        assert_close(averages.stable, 200.0);
        assert_close(averages.panic, 200.0);
        if second >= 11 {
            let known = precisely(second) + 1.0;
            assert_close(averages.stable_at_most, 200.0 * (known + 1.0) / known);
            assert!(averages.is_open());
        }
    }
}

/// What a new owner hears of the past comes from one reporter after the other.
#[test]
fn the_order_in_which_reporters_say_their_seconds_makes_no_difference() {
    let value = |reporter: Reporter, second: u64| match reporter {
        Reporter::Pod(_) if second < 30 => 150.0 + precisely(second % 7),
        Reporter::Activator(_) if second >= 28 => 300.0 + precisely(second % 5),
        Reporter::Pod(_) | Reporter::Activator(_) => 0.0,
    };
    let heard = |words: &[(Reporter, u64)]| {
        let mut collector = collector(Metric::Concurrency);
        for reporter in [POD, ANOTHER, ACTIVATOR] {
            collector.start_reporter(reporter, BOOT, 40, seconds(40.5));
        }
        for &(reporter, second) in words {
            report(&mut collector, reporter, second, value(reporter, second), 40.5);
        }
        collector.observe(&[], seconds(40.6)).unwrap()
    };
    let by_second = |second: u64| [POD, ANOTHER, ACTIVATOR].map(|reporter| (reporter, second));
    let by_reporter = |reporter: Reporter| (0..40_u64).map(move |second| (reporter, second));
    let expected = heard(&(0..40).flat_map(by_second).collect::<Vec<_>>());
    assert!(expected.is_open());
    for order in [[POD, ANOTHER, ACTIVATOR], [ACTIVATOR, POD, ANOTHER], [POD, ACTIVATOR, ANOTHER]] {
        assert_eq!(
            heard(&order.into_iter().flat_map(by_reporter).collect::<Vec<_>>()),
            expected,
            "{order:?}"
        );
    }
}

#[test]
fn loads_that_stay_with_pods_and_with_activators_add_up() {
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(POD, BOOT, 0, seconds(0.1));
    collector.start_reporter(ACTIVATOR, BOOT, 0, seconds(0.1));
    for second in 0..=20 {
        let at = precisely(second);
        report(&mut collector, POD, second, 30.0, at + 1.1);
        report(&mut collector, ACTIVATOR, second, if second < 10 { 30.0 } else { 60.0 }, at + 1.1);
    }
    let averages = collector.observe(&[], seconds(21.2)).unwrap();
    assert_close(averages.panic, 90.0);
    assert_close(averages.panic_at_most, 90.0);
}

#[test]
fn silence_of_a_ready_pod_counts_as_zero_and_as_on_target() {
    // Two pods with 30 each; the second falls silent after second 9. Target 70, panic window 6 s.
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(POD, BOOT, 0, seconds(0.5));
    collector.start_reporter(ANOTHER, BOOT, 0, seconds(0.5));
    for second in 0..10 {
        report(&mut collector, POD, second, 30.0, precisely(second) + 1.5);
        report(&mut collector, ANOTHER, second, 30.0, precisely(second) + 1.5);
    }
    for second in 10..14 {
        report(&mut collector, POD, second, 30.0, precisely(second) + 1.5);
        if second < 13 {
            // Silent for less than 3 s: the average waits for it.
            let averages =
                collector.observe(&[PodId(1), PodId(2)], seconds(precisely(second) + 1.4)).unwrap();
            assert_eq!(averages, Averages::complete(60.0, 60.0), "{second}");
        }
    }
    let averages = collector.observe(&[PodId(1), PodId(2)], seconds(14.6)).unwrap();
    assert_eq!(averages.unheard, PodCount::ONE);
    assert_close(averages.stable, (10.0 * 60.0 + 4.0 * 30.0) / 14.0);
    assert_close(averages.panic, (2.0 * 60.0 + 4.0 * 30.0) / 6.0);
    assert_close(averages.stable_at_most, (10.0 * 60.0 + 4.0 * 100.0) / 14.0);
    assert_close(averages.panic_at_most, (2.0 * 60.0 + 4.0 * 100.0) / 6.0);
    // Not ready, it counts in neither.
    let without = collector.observe(&[PodId(1)], seconds(14.6)).unwrap();
    assert_eq!(without, Averages::complete(averages.stable, averages.panic));
    // Back, with its history: nothing is missing.
    collector.start_reporter(ANOTHER, BOOT, 15, seconds(15.2));
    for second in 0..15 {
        report(&mut collector, ANOTHER, second, 30.0, 15.2);
        report(&mut collector, POD, second, 30.0, 15.5);
    }
    assert_eq!(collector.observe(&[PodId(1), PodId(2)], seconds(15.6)), Some(Averages::complete(60.0, 60.0)));
}

#[test]
fn a_silent_activator_may_still_hold_its_last_requests() {
    // All 50 come through the activator, whose link is lost after second 19.
    let mut collector = started(ACTIVATOR);
    collector.start_reporter(POD, BOOT, 0, seconds(0.5));
    for second in 0..30 {
        if second < 20 {
            report(&mut collector, ACTIVATOR, second, 50.0, precisely(second) + 1.5);
        }
        collector.record(
            POD,
            Sample { second, load: load(50.0, 50.0, 0.0, 0.0) },
            seconds(precisely(second) + 1.5),
        );
    }
    collector.lost(ACTIVATOR, seconds(21.5));
    let averages = collector.observe(&[PodId(1)], seconds(30.6)).unwrap();
    assert_eq!((averages.unheard, averages.unheard_activators), (PodCount::ZERO, PodCount::ONE));
    assert_close(averages.stable, 20.0 * 50.0 / 30.0);
    assert_close(averages.panic, 0.0);
    assert_close(averages.stable_at_most, 50.0);
    assert_close(averages.panic_at_most, 50.0);
    // Known to be gone, it holds nothing.
    collector.remove(ACTIVATOR);
    assert!(!collector.observe(&[PodId(1)], seconds(30.6)).unwrap().is_open());
}

#[test]
fn a_ready_pod_that_was_never_heard_may_always_have_been_on_target() {
    let mut collector = started(ACTIVATOR);
    for second in 0..20 {
        report(&mut collector, ACTIVATOR, second, 5.0, precisely(second) + 1.5);
    }
    let averages = collector.observe(&[PodId(1), PodId(2)], seconds(20.6)).unwrap();
    assert_eq!(averages.unheard, PodCount::new(2));
    assert_close(averages.stable_at_most, 5.0 + 140.0);
    assert_close(averages.panic_at_most, 5.0 + 140.0);
}

#[test]
fn a_second_that_some_reporters_have_not_reported_lowers_nothing() {
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(POD, BOOT, 0, seconds(0.1));
    collector.start_reporter(ANOTHER, BOOT, 0, seconds(0.9));
    for second in 0..30 {
        report(&mut collector, POD, second, 30.0, precisely(second) + 1.1);
        if second > 0 {
            assert_eq!(
                collector.observe(&[], seconds(precisely(second) + 1.2)),
                Some(Averages::complete(60.0, 60.0))
            );
        }
        report(&mut collector, ANOTHER, second, 30.0, precisely(second) + 1.9);
        assert_eq!(
            collector.observe(&[], seconds(precisely(second) + 1.95)),
            Some(Averages::complete(60.0, 60.0))
        );
    }
    // More is believed at once.
    report(&mut collector, POD, 30, 90.0, 31.1);
    assert_close(collector.observe(&[], seconds(31.2)).unwrap().panic, (5.0 * 60.0 + 90.0) / 6.0);
}

#[test]
fn a_clock_that_runs_fast_or_slow_is_followed() {
    for pace in [0.999, 1.001] {
        let mut collector = collector(Metric::Concurrency);
        collector.start_reporter(POD, BOOT, 0, seconds(0.5));
        for second in 0..10_000_u64 {
            let at = 0.5 + (precisely(second) + 1.0) * pace;
            report(&mut collector, POD, second, 10.0, at);
            let averages = collector.observe(&[PodId(1)], seconds(at + 0.1)).unwrap();
            // Where the anchor moves, at most two seconds of the window are empty, and none counts twice.
            assert!(
                averages.stable <= 10.0 && averages.stable > 9.6,
                "{pace}: second {second}: {averages:?}"
            );
            assert_eq!(averages.unheard, PodCount::ZERO);
        }
    }
}

#[test]
fn a_stalled_link_that_catches_up_moves_no_second() {
    let mut collector = started(POD);
    for second in 0..30 {
        // From 10 on nothing comes until 22.5, then everything at once.
        let at = if (10..=22).contains(&second) { 23.5 } else { precisely(second) + 1.5 };
        report(&mut collector, POD, second, 10.0, at);
    }
    let averages = collector.observe(&[PodId(1)], seconds(30.6)).unwrap();
    assert_eq!(averages, Averages::complete(10.0, 10.0));
}

#[test]
fn settings_change_while_measuring() {
    let mut spec = ScalingSpec::default();
    let mut collector = Collector::new(&spec);
    collector.start_reporter(POD, BOOT, 0, seconds(0.5));
    for second in 0..20 {
        let load = load(if second < 10 { 10.0 } else { 40.0 }, 0.0, 100.0, 0.0);
        collector.record(POD, Sample { second, load }, seconds(precisely(second) + 1.5));
    }
    let now = seconds(20.6);
    assert_close(stable(&collector, 20.6), 25.0);
    spec.metric = Metric::Rps;
    collector.update(&spec, now);
    assert_close(stable(&collector, 20.6), 100.0);
    spec.metric = Metric::Concurrency;
    spec.aggregation = Aggregation::WeightedExponential;
    collector.update(&spec, now);
    assert!(stable(&collector, 20.6) > 35.0, "recent seconds weigh more");
    spec.aggregation = Aggregation::Linear;
    spec.stable_window = Duration::from_secs(6);
    collector.update(&spec, now);
    assert_close(stable(&collector, 20.6), 40.0);
    spec.target_per_pod = 7.0;
    collector.update(&spec, now);
    assert_close(collector.observe(&[PodId(9)], now).unwrap().stable_at_most, 47.0);
}

/// The minimal case of an exception: Knative has no data then, and what was wanted stays wanted.
#[test]
fn a_shorter_window_in_which_nothing_is_left_is_a_valid_zero_while_a_reporter_is_heard() {
    let mut spec = ScalingSpec::default();
    let mut collector = started(ACTIVATOR);
    report(&mut collector, ACTIVATOR, 0, 10.0, 1.5);
    for second in 1..30 {
        collector.heard(ACTIVATOR, second, seconds(precisely(second) + 1.5));
    }
    assert_close(stable(&collector, 30.6), 5.0);
    spec.stable_window = Duration::from_secs(6);
    collector.update(&spec, seconds(30.6));
    assert_eq!(collector.observe(&[], seconds(30.6)), Some(Averages::complete(0.0, 0.0)));
    assert_eq!(collector.observe(&[], seconds(33.6)), None, "no longer heard");
}

/// The minimal case of an exception: in Knative the late report and the next one fall into one second.
#[test]
fn a_report_that_comes_up_to_a_second_late_counts_in_its_own_second() {
    let panic_window = Duration::from_secs(1);
    let mut collector = Collector::new(&ScalingSpec { panic_window, ..ScalingSpec::default() });
    collector.start_reporter(POD, BOOT, 0, seconds(0.1));
    for second in 0..10 {
        let late = if second == 5 { 0.9 } else { 0.0 };
        report(&mut collector, POD, second, 10.0, precisely(second) + 1.1 + late);
        let averages = collector.observe(&[], seconds(precisely(second) + 1.1 + late)).unwrap();
        assert_eq!(averages, Averages::complete(10.0, 10.0), "{second}");
    }
}

#[test]
fn absurd_reports_harm_no_other_reporter() {
    let mut collector = started(POD);
    report(&mut collector, POD, 0, 10.0, 1.5);
    for (index, second) in [u64::MAX, 0, u64::MAX / 2, 3, u64::MAX].into_iter().enumerate() {
        let at = 1.6 + precisely(u64::try_from(index).unwrap()) / 10.0;
        collector.start_reporter(ANOTHER, BootId(second), second, seconds(at));
        report(&mut collector, ANOTHER, second, f64::MAX, at);
        collector.heard(ANOTHER, second, seconds(at));
        collector.present(ANOTHER, present(u32::MAX, u32::MAX), seconds(at));
    }
    collector.remove(ANOTHER);
    for second in 1..80 {
        report(&mut collector, POD, second, 10.0, precisely(second) + 1.5);
    }
    assert_eq!(collector.observe(&[PodId(1)], seconds(80.6)), Some(Averages::complete(10.0, 10.0)));
    for second in 80..140 {
        report(&mut collector, POD, second, 0.0, precisely(second) + 1.5);
    }
    assert_eq!(collector.observe(&[PodId(1)], seconds(140.6)), Some(Averages::complete(0.0, 0.0)));
}

proptest! {
    #[test]
    fn reconnects_change_nothing(
        loads in prop::collection::vec((0.0..100.0_f64, 0.0..100.0_f64), 1..80),
        reconnects in prop::collection::vec(any::<bool>(), 80),
        phases in (0.0..0.999_f64, 0.0..0.999_f64),
    ) {
        let reporters = [(POD, phases.0), (ACTIVATOR, phases.1)];
        let (mut steady, mut shaky) = (collector(Metric::Concurrency), collector(Metric::Concurrency));
        for (reporter, phase) in reporters {
            steady.start_reporter(reporter, BOOT, 0, seconds(phase));
            shaky.start_reporter(reporter, BOOT, 0, seconds(phase));
        }
        for (second, &reconnects) in reconnects.iter().enumerate().take(loads.len()) {
            for (reporter, phase) in reporters {
                let number = u64::try_from(second).unwrap();
                let at = precisely(number) + 1.0 + phase;
                let value = |second: usize| if reporter == POD { loads[second].0 } else { loads[second].1 };
                report(&mut steady, reporter, number, value(second), at);
                if reconnects {
                    // All that it remembers comes again, this second for the first time.
                    shaky.start_reporter(reporter, BOOT, number + 1, seconds(at));
                    for past in second.saturating_sub(59)..=second {
                        report(&mut shaky, reporter, u64::try_from(past).unwrap(), value(past), at);
                    }
                } else {
                    report(&mut shaky, reporter, number, value(second), at);
                }
            }
            let now = seconds(precisely(u64::try_from(second).unwrap()) + 2.0);
            let (expected, got) = (steady.observe(&[], now).unwrap(), shaky.observe(&[], now).unwrap());
            prop_assert!((expected.stable - got.stable).abs() < 1e-5, "{expected:?} {got:?}");
            prop_assert!((expected.panic - got.panic).abs() < 1e-5, "{expected:?} {got:?}");
        }
    }
}

fn collector(metric: Metric) -> Collector {
    Collector::new(&ScalingSpec { metric, ..ScalingSpec::default() })
}

/// Its second 0 begins at 0.5.
fn started(reporter: Reporter) -> Collector {
    let mut collector = collector(Metric::Concurrency);
    collector.start_reporter(reporter, BOOT, 0, seconds(0.5));
    collector
}

fn report(collector: &mut Collector, reporter: Reporter, second: u64, concurrency: f64, at: f64) {
    collector.record(reporter, Sample { second, load: load(concurrency, 0.0, 0.0, 0.0) }, seconds(at));
}

fn load(concurrency: f64, proxied_concurrency: f64, requests: f64, proxied_requests: f64) -> Load {
    Load {
        concurrency: Concurrency::clamped(concurrency),
        proxied_concurrency: Concurrency::clamped(proxied_concurrency),
        request_rate: RequestRate::clamped(requests),
        proxied_request_rate: RequestRate::clamped(proxied_requests),
        queued: 0,
    }
}

fn present(in_flight: u32, waiting: u32) -> PresentCount {
    PresentCount { in_flight, waiting }
}

fn stable(collector: &Collector, at: f64) -> f64 {
    collector.observe(&[], seconds(at)).unwrap().stable
}

fn seconds(seconds: f64) -> Timestamp {
    Timestamp::from_duration(Duration::from_secs_f64(seconds))
}

fn precisely(second: u64) -> f64 {
    f64::from(u32::try_from(second).unwrap())
}

fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-6, "{left} is not {right}");
}
