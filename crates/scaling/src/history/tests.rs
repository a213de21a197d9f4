//! What must hold of a history: levels agree, gaps stay gaps, records return, memory is bounded.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use settings::Metric;
use vocabulary::Timestamp;

use super::revision::{HOUR, HOURS_KEPT, MINUTE, MINUTES_KEPT, SECONDS_KEPT};
use super::*;
use crate::window::SecondSums;

/// Midnight of a day in 2024, which is a whole hour and a whole day.
const MIDNIGHT: u64 = 19_800 * 24 * HOUR;

/// A history with the demand and the condition that the test has set.
struct Laboratory {
    history: RevisionHistory,
    second: u64,
    condition: RevisionCondition,
}

impl Laboratory {
    fn new() -> Self {
        Self::beginning_at(MIDNIGHT)
    }

    fn beginning_at(second: u64) -> Self {
        Self {
            history: RevisionHistory::beginning_at(second),
            second,
            condition: RevisionCondition { is_heard: true, ..RevisionCondition::default() },
        }
    }

    /// Lets seconds pass, with the same demand in each of them.
    fn pass(&mut self, seconds: u64, concurrency: f64, rate: f64) {
        for _ in 0..seconds {
            self.second += 1;
            let at = |_| SecondSums { concurrency, rate };
            self.history.advance(
                self.second,
                self.condition,
                &DemandSeconds { at: &at, reported: 0..u64::MAX },
            );
        }
    }

    /// Lets seconds pass at once, in which nothing is asked for.
    fn rest(&mut self, seconds: u64) {
        self.second += seconds;
        let quiet = DemandSeconds { at: &|_| SecondSums::default(), reported: 0..0 };
        self.history.advance(self.second, self.condition, &quiet);
    }

    fn have(&mut self, wanted: u32, ready: u32) {
        let starting = wanted.saturating_sub(ready);
        self.condition.capacity = CapacityCounts { wanted, ready, starting, ending: 0 };
    }

    fn spans(&self, range: SeriesRange) -> Vec<Option<HistorySpan>> {
        self.history.series(range).spans
    }

    fn restarted(&self, gap: u64) -> Self {
        let mut history = RevisionHistory::restore(self.history.export()).expect("it was just written");
        let second = self.second + gap;
        history.resume_at(second);
        Self { history, second, condition: self.condition }
    }
}

/// The demand and the pods of a run of seconds.
#[derive(Clone, Debug)]
struct Stretch {
    seconds: u64,
    concurrency: f64,
    rate: u32,
    wanted: u32,
    ready: u32,
    busy: u32,
}

fn stretch() -> impl Strategy<Value = Stretch> {
    let load = prop_oneof![2 => Just(0.0), 3 => 0.01..5000.0_f64];
    (1_u64..200, load, 0_u32..3000, 0_u32..300, 0_u32..300, 0_u32..4).prop_map(
        |(seconds, concurrency, rate, wanted, ready, busy)| Stretch {
            seconds,
            concurrency,
            rate,
            wanted,
            ready,
            busy,
        },
    )
}

fn lived(stretches: &[Stretch]) -> Laboratory {
    let mut lab = Laboratory::new();
    for stretch in stretches {
        lab.have(stretch.wanted, stretch.ready);
        for _ in 0..stretch.seconds {
            lab.pass(1, stretch.concurrency, f64::from(stretch.rate));
            (0..stretch.busy).for_each(|_| lab.history.note_busy_pod());
        }
    }
    lab
}

/// What several spans come to together.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    seconds: u32,
    counts: [u64; 6],
    in_flight_seconds: f64,
    requests: f64,
    concurrency_max: f64,
}

fn sum(spans: impl IntoIterator<Item = Option<HistorySpan>>) -> Sum {
    spans.into_iter().flatten().fold(Sum::default(), |mut sum, span| {
        let HistorySpan { wanted_seconds, ready_seconds, busy_seconds, starting_seconds, .. } = span;
        let raises: u32 = span.raises_from.iter().sum();
        let counts =
            [wanted_seconds, ready_seconds, busy_seconds, starting_seconds, span.waiting_seconds, raises];
        for (sum, count) in sum.counts.iter_mut().zip(counts) {
            *sum += u64::from(count);
        }
        sum.seconds += span.seconds;
        sum.in_flight_seconds += span.concurrency * f64::from(span.heard_seconds);
        sum.requests += span.requests;
        sum.concurrency_max = sum.concurrency_max.max(span.concurrency_max);
        sum
    })
}

fn agree(one: f64, other: f64, spans: u32) -> bool {
    // Both are rounded once, and requests of a minute to a whole number.
    (one - other).abs() <= one.max(other) / 60.0 + f64::from(spans)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn seconds_minutes_and_hours_tell_the_same(stretches in prop::collection::vec(stretch(), 1..8)) {
        let mut lab = lived(&stretches);
        let passed: u64 = stretches.iter().map(|stretch| stretch.seconds).sum();
        // Fewer than are kept by the second, so that all levels tell of all of them.
        prop_assume!(passed < SECONDS_KEPT.rows - 4);
        lab.pass(4, 0.0, 0.0);
        let [seconds, minutes, hours] = SeriesRange::ALL.map(|range| sum(lab.spans(range)));
        for other in [&minutes, &hours] {
            prop_assert_eq!(seconds.seconds, other.seconds);
            prop_assert_eq!(seconds.counts, other.counts);
            prop_assert!(agree(seconds.in_flight_seconds, other.in_flight_seconds, 1));
            prop_assert!(agree(seconds.requests, other.requests, 16));
            prop_assert_eq!(seconds.concurrency_max, other.concurrency_max);
        }
    }

    #[test]
    fn an_export_returns_as_the_same_history(stretches in prop::collection::vec(stretch(), 0..20)) {
        let mut lab = lived(&stretches);
        lab.history.keep_demand(Metric::Rps, DemandBin::Minute);
        lab.pass(130, 3.25, 7.0);
        let record = lab.history.export();
        let text = serde_json::to_string(&record).expect("a record can be written");
        let read: HistoryRecord = serde_json::from_str(&text).expect("a record can be read");
        prop_assert_eq!(&read, &record);
        let restored = RevisionHistory::restore(read).expect("it was just written");
        prop_assert_eq!(restored.export(), record);
        for range in SeriesRange::ALL {
            // The pending seconds are not part of the record, so the last step is a little older.
            let [one, other] = [&restored, &lab.history].map(|history| history.series(range));
            prop_assert_eq!(one.first_second, other.first_second);
            prop_assert!(one.spans == other.spans, "{range:?}");
        }
    }

    #[test]
    fn a_history_written_minute_by_minute_is_the_same(
        stretches in prop::collection::vec(stretch(), 1..20),
        lengths in prop::collection::vec(1_u64..200, 1..12),
    ) {
        let mut lab = lived(&stretches);
        lab.history.keep_demand(Metric::Concurrency, DemandBin::Minute);
        let mut written = restored(lab.history.export());
        for (place, length) in lengths.iter().enumerate() {
            lab.pass(*length, f64::from(u32::try_from(place % 7).expect("small")), 5.0);
            let tail = lab.history.export_since(written.end());
            written.extend(restored(tail.clone()));
            // Written twice, as where a process ended before it had noted that it wrote.
            written.extend(restored(tail));
        }
        prop_assert_eq!(written.end(), lab.history.end());
        prop_assert_eq!(written.demand(), lab.history.demand());
        for range in [SeriesRange::Day, SeriesRange::Month] {
            let [one, other] = [&written, &lab.history].map(|history| history.series(range));
            prop_assert!(one.spans == other.spans, "{range:?}");
        }
    }

    #[test]
    fn the_same_events_make_the_same_history(stretches in prop::collection::vec(stretch(), 0..12)) {
        prop_assert_eq!(lived(&stretches).history, lived(&stretches).history);
    }

    #[test]
    fn a_rest_told_at_once_is_the_rest_told_by_the_second(seconds in 1_u64..10_000, before in 0_u64..5000) {
        let [mut at_once, mut by_second] = [0, 1].map(|_| Laboratory::beginning_at(MIDNIGHT + before));
        for lab in [&mut at_once, &mut by_second] {
            lab.pass(5, 2.0, 1.0);
        }
        at_once.rest(seconds);
        (0..seconds).for_each(|_| by_second.rest(1));
        // What was asked for in the last three seconds is known to the one and not to the other.
        for range in SeriesRange::ALL {
            let [one, other] = [&at_once, &by_second].map(|lab| lab.spans(range));
            prop_assert_eq!(sum(one).seconds, sum(other).seconds);
        }
        prop_assert_eq!(at_once.history.running_second(), by_second.history.running_second());
    }

    #[test]
    fn a_damaged_record_is_refused_or_the_damage_is_none(
        stretches in prop::collection::vec(stretch(), 1..6),
        place in any::<prop::sample::Index>(),
        digit in b'0'..=b'9',
    ) {
        let record = lived(&stretches).history.export();
        let mut text = serde_json::to_string(&record).expect("a record can be written").into_bytes();
        let digits: Vec<usize> = (0..text.len()).filter(|&at| text[at].is_ascii_digit()).collect();
        text[digits[place.index(digits.len())]] = digit;
        if let Ok(read) = serde_json::from_slice::<HistoryRecord>(&text) {
            let is_whole = read == record;
            prop_assert_eq!(RevisionHistory::restore(read).is_ok(), is_whole);
        }
    }
}

fn restored(record: HistoryRecord) -> RevisionHistory {
    RevisionHistory::restore(record).expect("it was just written")
}

#[test]
fn minutes_that_a_clock_stamped_twice_keep_the_greater_demand_in_what_was_written() {
    let mut lab = Laboratory::new();
    lab.history.keep_demand(Metric::Rps, DemandBin::Minute);
    lab.pass(600, 1.0, 8.0);
    let mut written = restored(lab.history.export());
    // The clock is put back by five minutes, and asked for is less.
    lab.second -= 300;
    let at = |_| SecondSums::default();
    lab.history.clock_moved(lab.second, &DemandSeconds { at: &at, reported: 0..u64::MAX });
    lab.pass(400, 1.0, 2.0);
    written.extend(restored(lab.history.export_since(written.end())));
    let minute = |ago: u64| {
        use forecasting::PastDemand as _;
        written
            .demand()
            .and_then(|demand| demand.minute((MIDNIGHT + 600) / MINUTE - ago))
            .map(|demand| demand.mean)
    };
    assert!(minute(2) > Some(7.0) && minute(4) > Some(7.0), "{:?} {:?}", minute(2), minute(4));
}

#[test]
fn a_restart_leaves_a_gap_and_no_zeros() {
    let mut lab = Laboratory::new();
    lab.have(2, 2);
    lab.pass(90, 4.0, 2.0);
    let mut lab = lab.restarted(45);
    lab.have(2, 2);
    lab.pass(60, 4.0, 2.0);
    let seconds = lab.spans(SeriesRange::QuarterHour);
    let known: Vec<bool> = seconds.iter().map(Option::is_some).collect();
    // The pending seconds were not written down: 3 of 90, and 3 of the last 60 have not been closed.
    assert_eq!(known[900 - 57..], [true; 57]);
    assert_eq!(known[900 - 57 - 48..900 - 57], [false; 48]);
    assert_eq!(known[900 - 57 - 48 - 87..900 - 57 - 48], [true; 87]);
    let minutes: Vec<HistorySpan> = lab.spans(SeriesRange::Day).into_iter().flatten().collect();
    assert_eq!(minutes.iter().map(|minute| minute.seconds).collect::<Vec<_>>(), [60, 27, 45, 12]);
    // The averages are those of what was observed.
    assert!(minutes.iter().all(|minute| minute.concurrency == 4.0));
    let [Some(hour)] = lab.spans(SeriesRange::Month)[719..] else { panic!("the hour runs") };
    assert_eq!((hour.seconds, hour.ready_seconds, hour.requests), (144, 288, 288.0));
}

#[test]
fn seconds_without_a_reporter_have_capacity_and_no_demand() {
    let mut lab = Laboratory::new();
    lab.have(1, 1);
    lab.pass(30, 6.0, 0.0);
    lab.condition.is_heard = false;
    // The late reports of the seconds before, then silence.
    lab.pass(3, 6.0, 0.0);
    lab.pass(30, 0.0, 0.0);
    let minute = lab.spans(SeriesRange::Day).pop().flatten().expect("it was observed");
    assert_eq!((minute.seconds, minute.heard_seconds, minute.ready_seconds), (60, 30, 60));
    assert_eq!(minute.concurrency, 6.0);
}

#[test]
fn demand_that_comes_before_a_reporter_is_noted_as_heard_is_counted() {
    let mut lab = Laboratory::new();
    lab.condition.is_heard = false;
    lab.have(1, 1);
    lab.pass(5, 2.0, 3.0);
    lab.pass(58, 0.0, 0.0);
    let minute = lab.spans(SeriesRange::Day).pop().flatten().expect("it was observed");
    // Two of the five seconds are closed while the demand is told.
    assert_eq!((minute.seconds, minute.heard_seconds, minute.requests), (60, 2, 6.0));
}

#[test]
fn minutes_and_hours_begin_where_those_of_the_wall_clock_do() {
    let mut lab = Laboratory::beginning_at(MIDNIGHT + HOUR - 5);
    lab.pass(5, 1.0, 0.0);
    lab.pass(8, 9.0, 0.0);
    let series = lab.history.series(SeriesRange::Month);
    assert_eq!(series.first_second % HOUR, 0);
    let hours: Vec<HistorySpan> = series.spans.into_iter().flatten().collect();
    // The demand that is set when a second is closed is the one of the laboratory three seconds later.
    assert_eq!(hours.iter().map(|hour| hour.seconds).collect::<Vec<_>>(), [5, 5]);
    let newest = lab.history.hours().last().expect("it was observed");
    assert_eq!((newest.0 * HOUR, newest.1.concurrency_max), (MIDNIGHT + HOUR, 9.0));
}

#[test]
fn a_cold_start_is_counted_with_its_wait_and_the_ledger_knows_other_least_counts() {
    let mut lab = Laboratory::new();
    lab.pass(10, 0.0, 0.0);
    let began = Timestamp::from_secs(100);
    lab.history.note_count(0, 1, began);
    lab.have(1, 0);
    lab.pass(2, 1.0, 1.0);
    lab.history.note_ready(began + Duration::from_millis(1900));
    lab.have(1, 1);
    lab.pass(20, 1.0, 1.0);
    lab.history.note_count(1, 3, began);
    lab.have(3, 3);
    lab.pass(30, 1.0, 1.0);
    let hour = lab.spans(SeriesRange::Month).pop().flatten().expect("it runs");
    assert_eq!((hour.raises_from, hour.wakes_ended), ([1, 1, 1, 0, 0, 0], 1));
    assert_eq!((hour.wake_wait_ms, hour.wake_wait_ms_max), (1900, 1900));
    assert_eq!((hour.starting_seconds, hour.ready_seconds), (2, 20 + 3 * 27));
    // 10 seconds without a pod, 22 with one.
    assert_eq!([1, 2, 3].map(|count| hour.extra_seconds_with(count)), [10, 42, 74]);
    assert_eq!([0, 1, 2, 3].map(|count| hour.starts_spared_with(count)), [0, 1, 2, 3]);
}

#[test]
fn requests_that_come_to_wait_are_counted_once() {
    let mut lab = Laboratory::new();
    lab.have(1, 1);
    for (waiting, seconds) in [(0, 10), (3, 5), (2, 40), (6, 30), (0, 20), (1, 1), (0, 5)] {
        lab.condition.waiting = waiting;
        lab.pass(seconds, 1.0, 1.0);
    }
    let hour = lab.spans(SeriesRange::Month).pop().flatten().expect("it runs");
    assert_eq!((hour.waited, hour.waiting_max), (3 + 4 + 1, 6));
    assert_eq!(hour.waiting_seconds, 3 * 5 + 2 * 40 + 6 * 30 + 1);
    let minutes = lab.spans(SeriesRange::Day).into_iter().flatten();
    assert_eq!(minutes.map(|minute| minute.waited).sum::<u32>(), hour.waited);
}

#[test]
fn counters_only_grow_and_forget_no_hour() {
    let quiet = DemandSeconds { at: &|_| SecondSums::default(), reported: 0..0 };
    let mut lab = Laboratory::new();
    lab.have(2, 1);
    lab.history.note_count(1, 2, Timestamp::ZERO);
    lab.history.note_replacements(ReplacementCause::FailedPod, 1);
    lab.history.note_replacements(ReplacementCause::Rollout, 2);
    lab.pass(100, 0.0, 0.0);
    let before = lab.history.totals();
    let starts = ColdStarts { from_zero: 0, growth: 1, rollout: 2, failed_pod: 1 };
    assert_eq!((before.pod_seconds.starting, before.pod_seconds.idle, before.cold_starts), (97, 97, starts));
    // Longer than hours are kept, and then a clock that was wrong: what was counted stays.
    lab.rest(40 * 24 * HOUR);
    let rested = lab.history.totals().pod_seconds;
    // Four seconds had not been closed when the rest began.
    assert_eq!(rested.idle, 97 + 4 + HOURS_KEPT.rows * HOUR);
    lab.second -= 48 * HOUR;
    lab.history.clock_moved(lab.second, &quiet);
    // The clock moves with the seconds that are pending, which are closed.
    assert_eq!(lab.history.totals().pod_seconds.idle, rested.idle + 3);
    lab.pass(10, 0.0, 0.0);
    let restored = RevisionHistory::restore(lab.history.export()).expect("it was just written");
    assert_eq!(restored.totals(), LifeTotals::default(), "another process counted them");
}

#[test]
fn a_reader_counts_a_rest_as_the_history_does_once_it_is_told() {
    let mut lab = Laboratory::new();
    lab.have(2, 1);
    lab.pass(100, 2.0, 1.0);
    lab.pass(10, 0.0, 0.0);
    for is_told in [false, true] {
        if is_told {
            lab.history.rest(lab.condition);
        }
        let reader = published(&lab, Some(lab.condition));
        let totals = reader.totals(Timestamp::from_secs(5000));
        let ledger = reader.ledger(Duration::from_secs(7 * 24 * HOUR), Timestamp::from_secs(5000));
        assert_eq!(totals.pod_seconds, ledger.pod_seconds);
        assert_eq!((totals.pod_seconds.idle, ledger.seconds), (4997, 4997), "{is_told}");
        assert_eq!((ledger.first_second, ledger.first_ago), (MIDNIGHT, Duration::from_secs(5000)));
    }
    let hour = published(&lab, Some(lab.condition)).ledger(Duration::ZERO, Timestamp::from_secs(5000));
    assert_eq!((hour.first_second, hour.seconds), (MIDNIGHT + HOUR, 4997 - HOUR), "the hour that runs");
}

#[test]
fn a_clock_that_leaps_leaves_a_gap_and_one_that_was_wrong_loses_its_stamps() {
    let quiet = DemandSeconds { at: &|_| SecondSums::default(), reported: 0..0 };
    let mut lab = Laboratory::new();
    lab.have(1, 1);
    lab.pass(100, 0.0, 0.0);
    lab.second += 600;
    lab.history.clock_moved(lab.second, &quiet);
    lab.pass(10, 0.0, 0.0);
    assert_eq!(sum(lab.spans(SeriesRange::QuarterHour)).seconds, 107);
    // A minute back: its seconds are not measured again.
    lab.history.clock_moved(lab.second - 60, &quiet);
    lab.pass(3, 0.0, 0.0);
    assert_eq!(sum(lab.spans(SeriesRange::QuarterHour)).seconds, 110);
    // Two days back: the hours that are still to come are not kept.
    let wrong = lab.second;
    lab.second -= 48 * HOUR;
    lab.history.clock_moved(lab.second, &quiet);
    lab.pass(10, 0.0, 0.0);
    assert!(lab.history.hours().all(|(hour, _)| hour < wrong / HOUR));
    assert_eq!(sum(lab.spans(SeriesRange::Month)).seconds, 7);
}

/// What readers are given of a history whose wall clock showed midnight at the beginning of the axis.
fn published(lab: &Laboratory, rest: Option<RevisionCondition>) -> PublishedHistory {
    let clock = WallClock::showing(Duration::from_secs(MIDNIGHT), Timestamp::ZERO);
    PublishedHistory::new(Arc::new(lab.history.clone()), clock, rest)
}

#[test]
fn a_reader_adds_a_rest_until_now_and_no_other_time() {
    let mut lab = Laboratory::new();
    lab.have(1, 1);
    lab.pass(100, 2.0, 1.0);
    let now = Timestamp::from_secs(400);
    for (rest, seconds) in [(None, 97), (Some(lab.condition), 397)] {
        let series = published(&lab, rest).series(SeriesRange::QuarterHour, now);
        let age = MIDNIGHT + 400 - series.first_second;
        assert_eq!(series.first_ago, Duration::from_secs(age));
        let seen = sum(series.spans);
        assert_eq!((seen.seconds, seen.counts[1]), (seconds, u64::from(seconds)), "{rest:?}");
        assert_eq!(seen.requests, 97.0, "nothing was asked for during the rest");
    }
}

#[test]
fn a_rest_that_is_known_changes_no_second_and_takes_less_memory() {
    let [mut told, mut untold] = [0, 1].map(|_| Laboratory::new());
    for lab in [&mut told, &mut untold] {
        lab.have(1, 1);
        lab.pass(100, 2.0, 1.0);
        lab.pass(10, 0.0, 0.0);
    }
    told.history.rest(told.condition);
    assert!(told.history.bytes() < untold.history.bytes());
    for lab in [&mut told, &mut untold] {
        lab.rest(50);
        lab.pass(20, 3.0, 2.0);
    }
    assert_eq!(told.history, untold.history);
    // What happens in the second that runs is not rest.
    told.history.note_count(1, 2, Timestamp::ZERO);
    told.history.rest(told.condition);
    untold.history.note_count(1, 2, Timestamp::ZERO);
    assert_eq!(told.history, untold.history);
}

#[test]
fn a_record_has_the_rest_until_it_is_written() {
    let mut lab = Laboratory::new();
    lab.have(1, 1);
    lab.pass(100, 2.0, 1.0);
    let record = published(&lab, Some(lab.condition)).record(Timestamp::from_secs(400));
    let restored = RevisionHistory::restore(record).expect("it was just written");
    assert_eq!(sum(restored.series(SeriesRange::QuarterHour).spans).seconds, 397);
    let record = published(&lab, None).record(Timestamp::from_secs(400));
    assert_eq!(record, lab.history.export());
}

/// This much is copied for each revision that is measured, once a second.
#[test]
fn a_history_is_small_beside_its_blocks() {
    let bytes = size_of::<RevisionHistory>();
    assert!(bytes <= 592, "{bytes} bytes");
}

#[test]
fn a_record_of_another_version_and_a_damaged_one_name_the_place() {
    let mut lab = Laboratory::new();
    lab.pass(300, 1.5, 3.0);
    let written = serde_json::to_value(lab.history.export()).expect("a record can be written");
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = written.clone();
        change(&mut changed);
        let record: HistoryRecord = serde_json::from_value(changed).expect("it has the form of a record");
        RevisionHistory::restore(record).expect_err("it was changed").to_string()
    };
    assert_eq!(
        refused(&|record| record["version"] = 1.into()),
        "the history has version 1, and only version 2 is read"
    );
    // A record of a later version may have nothing but its version in common with ours.
    let later: HistoryRecord = serde_json::from_str(r#"{"version": 7, "spans": {}}"#).expect("a record");
    assert_eq!(RevisionHistory::restore(later), Err(HistoryFault::Version(7)));
    assert!(refused(&|record| record["next"] = 5.into()).contains("check number"));
}

/// A revision whose every number changes all the time, with raises and waits in each minute: the worst that a
/// series can be.
fn restless(lab: &mut Laboratory, seconds: u64, step: u64) {
    for index in 0..seconds {
        let noise = (lab.second.wrapping_mul(2_654_435_761) >> 7) % 97;
        let pods = u32::try_from(noise % 23).expect("it is small");
        lab.have(pods, pods.saturating_sub(1));
        lab.condition.waiting = pods * 3;
        if index % 7 == 0 {
            let now = Timestamp::from_secs(lab.second);
            lab.history.note_count(0, pods, now);
            lab.history.note_ready(now + Duration::from_millis(noise * 31));
        }
        let load = f64::from(pods) * 1.7 + 0.3;
        let at = |second: u64| SecondSums {
            concurrency: load + f64::from(u32::try_from(second % 11).expect("it is small")),
            rate: load * 5.0,
        };
        lab.second += step;
        lab.history.advance(lab.second, lab.condition, &DemandSeconds { at: &at, reported: 0..u64::MAX });
        (0..pods / 2).for_each(|_| lab.history.note_busy_pod());
    }
}

/// A revision that is busy at any hour: a load that follows the day, with noise, pods that follow the load,
/// and now and then a queue and a cold start.
fn busy(lab: &mut Laboratory, seconds: u64, step: u64) {
    for _ in 0..seconds {
        let noise = (lab.second.wrapping_mul(2_654_435_761) >> 9) % 41;
        let hour = (lab.second / HOUR) % 24;
        let load = f64::from(u32::try_from(hour.abs_diff(12) * 12 + noise).expect("it is small")) / 2.0 + 0.1;
        let pods = 1 + u32::try_from(hour.abs_diff(12) + noise / 20).expect("it is small");
        let is_wake = noise == 7;
        lab.have(pods, pods - u32::from(is_wake));
        lab.condition.waiting = if is_wake { pods } else { 0 };
        if is_wake {
            let now = Timestamp::from_secs(lab.second);
            lab.history.note_count(pods - 1, pods, now);
            lab.history.note_ready(now + Duration::from_millis(700 + lab.second % 1200));
        }
        let at = |second: u64| SecondSums {
            concurrency: load + f64::from(u32::try_from(second % 11).expect("it is small")) / 3.0,
            rate: (load * 5.0).floor(),
        };
        lab.second += step;
        lab.history.advance(lab.second, lab.condition, &DemandSeconds { at: &at, reported: 0..u64::MAX });
        (0..pods.min(7)).for_each(|_| lab.history.note_busy_pod());
    }
}

#[test]
fn a_full_history_is_small_and_complete() {
    let mut lab = Laboratory::new();
    // By the half minute for 34 days, then by the second: all levels are full.
    busy(&mut lab, 34 * 24 * 120, 30);
    busy(&mut lab, 27 * HOUR, 1);
    let full = lab.history.bytes();
    println!("full {full}, empty {}", RevisionHistory::beginning_at(0).bytes());
    assert!(full <= 80_000, "{full} bytes with 35 days of hours");
    let kept = SeriesRange::ALL.map(|range| lab.spans(range).iter().flatten().count());
    assert_eq!(kept, [900, 1440, 720]);
    assert!(lab.history.hours().count() >= 840, "{}", lab.history.hours().count());
    lab.history.keep_demand(Metric::Concurrency, DemandBin::Minute);
    busy(&mut lab, 16 * 24 * 60, 60);
    let more = lab.history.bytes() - full;
    assert!(more <= 100_000, "{more} bytes more with the demand of fifteen days");
}

#[test]
fn one_busy_hour_is_small_and_a_rest_costs_nothing() {
    let mut lab = Laboratory::new();
    busy(&mut lab, HOUR, 1);
    let hour = lab.history.bytes();
    println!("one busy hour {hour}");
    assert!(hour <= 10_000, "{hour} bytes with one busy hour");
    lab.have(0, 0);
    lab.condition.waiting = 0;
    lab.rest(30 * 24 * HOUR);
    let rested = lab.history.bytes();
    assert!(rested <= hour + 1500, "{rested} bytes after a rest, {hour} before");
}

#[test]
fn an_hour_of_constant_load_takes_no_more_than_its_first_rows() {
    let mut lab = Laboratory::new();
    lab.have(2, 2);
    lab.pass(HOUR, 3.0, 30.0);
    let bytes = lab.history.bytes();
    println!("one hour of constant load {bytes}");
    assert!(bytes <= RevisionHistory::beginning_at(0).bytes() + 800, "{bytes} bytes");
}

#[test]
fn no_numbers_take_more_memory_than_was_promised() {
    let mut lab = Laboratory::new();
    restless(&mut lab, 34 * 24 * 120, 30);
    restless(&mut lab, 26 * HOUR, 1);
    let wild = lab.history.bytes();
    assert!(wild <= 80_000, "{wild} bytes");
    let kept = SeriesRange::ALL.map(|range| lab.spans(range).iter().flatten().count());
    println!("wild {wild}, kept {kept:?} of 900 seconds, 1440 minutes, 720 hours");
    assert!(kept[0] > 450 && kept[1] > 720 && kept[2] > 360, "{kept:?}");
}

#[test]
fn no_more_is_kept_than_was_promised() {
    let mut lab = Laboratory::new();
    busy(&mut lab, 40 * 24 * 12, 300);
    let [seconds, minutes, hours] = SeriesRange::ALL.map(|range| lab.spans(range).len());
    assert_eq!([seconds, minutes, hours], [900, 1440, 720]);
    assert!(lab.history.hours().count() <= 841);
    assert!(lab.spans(SeriesRange::Month).iter().all(Option::is_some));
    let kept = [SECONDS_KEPT.rows, MINUTES_KEPT.rows * MINUTE, HOURS_KEPT.rows * HOUR];
    assert_eq!(kept, [900, 26 * HOUR, 35 * 24 * HOUR]);
}
