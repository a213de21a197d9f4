use std::fmt::Write;
use std::time::Duration;

use settings::{Aggregation, Metric};
use vocabulary::{BurstCapacity, PodCount, Timestamp};

use super::*;
use crate::surge;

mod properties;
mod traces;

/// `id | settings | ready stable panic -> want [ebc|_] [mode]; …` (evaluations of one decider, 2 s apart).
/// `panicking=30 most=25` is the state it starts from.
const DECISIONS: &str = "
    G1  | | 1 0 0 -> 0 -111
    G2  | | 2 0 0 -> 1 -11
    G3  | | 3 0 0 -> 1 89
    G4  | | 5 0 0 -> 2 289
    G5  | unreachable | 5 0 0 -> 0 289
    G6  | down=1.1 | 5 0 0 -> 4 289
    G7  | down=1.1 | 1 0 0 -> 0 -111
    G8  | | 100 0 0 -> 50; 50 0 0 -> 25; 25 0 0 -> 12; 12 0 0 -> 6; 6 0 0 -> 3; 3 0 0 -> 1; 1 0 0 -> 0
    G9  | up=2 | 3 2100 400 -> 6 -311 panic
    G10 | up=1.001 | 3 2100 400 -> 4 -311 panic
    G11 | | 0 100000 100000 -> 1000 -100211 panic
    G12 | | 0 0.000001 0 -> 1 -211
    G13 | activation=5 | 0 0.000001 0 -> 5 -211
    G13 | activation=5 up=2 | 0 0.000001 0 -> 5 -211
    G14 | activation=5 | 0 0 0.000001 -> 0 -212
    G15 | activation=5 | 10 0 0 -> 5 789
    G16 | activation=5 | 5 1 1 -> 5 288
    G17 | activation=1 | 0 1 1 -> 1 -212
    G18 | rps target=140 total=200 | 1 141 0 -> 2 -11
    G19 | target=0.01 total=0.01 | 1 1 1 -> 100 -212 panic
    G20 | target=6*0.7 | 1 4.2 4.2 -> 2
    G21 | | 3 89 89 -> 2 0
    G22 | | 3 89.5 89.5 -> 2 -1
    G23 | | 0 0 5 -> 0 -216
    G24 | tbc=0 | 3 89 1000 -> 15 0 panic
    G25 | tbc=-1 | 3 89 89 -> 2 -1
    G26 | tbc=10.5 total=10 target=7 | 3 12 12.2 -> 2 7
    G27 | panicking=30 most=25 | 10 1 1 -> 25 788 panic
    G28 | panicking=60 most=25 | 10 1 1 -> 25 788 panic
    G29 | panicking=60.001 most=25 | 10 1 1 -> 5 788 stable
    G30 | panicking=30 most=15 | 10 1400 700 -> 20 89 panic
    G31 | target=1 up=1.1 | 2 3 3.1 -> 3
    G32 | target=10 down=1.1 | 100 1 1 -> 90
    G33 | target=10 down=1.1 unreachable | 100 1 1 -> 1
    G34 | target=10 up=10 | 1 1000 1001 -> 10; 10 1000 1001 -> 100
    G35 | target=10 down=10 | 100 1 1 -> 10; 10 1 1 -> 1
    G38 | target=10 up=10 | 0 1000 888 -> 10
    G39 | target=10 | 1 1 0 -> 1; 1 0 0 -> 0
    H1  | | 0 10 70 -> 1 _ stable
    H2  | | 0 10 70.000001 -> 2 _ panic
    H3  | | 1 10 70 -> 1 _ stable
    H4  | | 1 10 71 -> 2 _ panic
    H5  | | 2 10 210 -> 1 _ stable
    H6  | | 2 10 211 -> 4 _ panic
    H7  | | 3 10 350 -> 1 _ stable
    H8  | | 3 10 351 -> 6 _ panic
    H9  | | 10 10 1330 -> 5 _ stable
    H10 | | 10 10 1331 -> 20 _ panic
";

#[test]
fn single_decisions_are_those_of_the_reference() {
    let rows: Vec<&str> = DECISIONS.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 48);
    for row in rows {
        check_decisions(row);
    }
}

/// Where Knative's would add a pod for every moment above the average, though nothing but a restart has
/// happened.
#[test]
fn the_panic_of_a_start_only_holds_until_there_is_an_alarm() {
    let spec = spec("target=14 total=20");
    let now = Timestamp::from_secs(1000);
    for (ready, stable, panic, expected) in [
        // A noisy moment, before and after the pods were heard.
        ("3", "36", "43", 3),
        ("0", "36", "43", 3),
        // The stable window pushes it, as in any panic.
        ("3", "50", "43", 4),
        // Twice what is there is an alarm.
        ("3", "36", "71", 6),
    ] {
        let mut decider = Decider::new(&spec, PodCount::new(3), now);
        let verdict = decider.decide(&spec, &observed(ready, stable, panic), now + Duration::from_secs(2));
        assert_eq!(verdict.desired, PodCount::new(expected), "{ready} {stable} {panic}: {verdict:?}");
    }
}

fn check_decisions(row: &str) {
    let [id, settings, evaluations] = row.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
    let spec = spec(settings);
    let mut now = Timestamp::from_secs(1000);
    let mut decider = Decider::new(&spec, PodCount::ZERO, now);
    if let (Some(panicking), Some(most)) = (setting(settings, "panicking"), setting(settings, "most")) {
        let since = now - Duration::from_secs_f64(panicking.parse().unwrap());
        decider.panic = PanicState::starting(pods(most), since);
        decider.panic.alarm(since);
    }
    for evaluation in evaluations.split(';') {
        let (given, expected) = evaluation.split_once("->").unwrap();
        let given: Vec<&str> = given.split_whitespace().collect();
        let expected: Vec<&str> = expected.split_whitespace().collect();
        let verdict = decider.decide(&spec, &observed(given[0], given[1], given[2]), now);
        assert_eq!(verdict.desired, pods(expected[0]), "{id}: {verdict:?}");
        if let Some(room) = expected.get(1).filter(|&&room| room != "_") {
            assert_eq!(verdict.excess_burst_capacity.to_string(), **room, "{id}");
        }
        let panicking = expected.get(2).map(|&mode| mode == "panic");
        assert!(
            panicking.is_none_or(|panicking| panicking == decider.panic.is_panicking()),
            "{id}: {:?}",
            verdict.mode
        );
        assert_linked(&verdict);
        now += Duration::from_secs(2);
    }
}

#[test]
fn a_fresh_decider_panics_only_with_more_than_one_pod() {
    // I1, by the count that the platform was asked for.
    let now = Timestamp::from_secs(5);
    for (count, mode) in [(0, Mode::Stable), (1, Mode::Stable), (2, Mode::Panic { since: now })] {
        let mut decider = Decider::new(&ScalingSpec::default(), PodCount::new(count), now);
        assert_eq!(decider.mode(), mode, "I1 with {count}");
        assert_eq!(decider.panic.hold(PodCount::ZERO), PodCount::new(count), "I1 with {count}");
    }
}

/// `id | settings | time [unreachable] ready target-count→result …`: the load is chosen so that the raw count
/// is what stands there.
const DELAYED: &str = "
    K1 | delay=300 | 2:4→4 300:0→4 302:0→0
    K2 | delay=300 | 2:4→4 300:0→4 302:0→0 540:4→4 600:3→4 660:0→4 840:0→3 900:0→0
    K3 | delay=300 | 2:4→4 60:0→4 60!:0→0
    K4 | delay=0   | 0:4→4 0.5:2→2
";

#[test]
fn the_scale_down_delay_holds_peaks_while_reachable() {
    for row in DELAYED.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [id, settings, steps] = row.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        // With this threshold panic never starts.
        let mut spec = spec(&format!("{settings} target=10 threshold=10"));
        let mut decider = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
        for step in steps.split_whitespace() {
            let (time, (raw, expected)) =
                step.split_once(':').map(|(time, rest)| (time, rest.split_once('→').unwrap())).unwrap();
            spec.reachable = !time.ends_with('!');
            let load = (pods(raw).as_f64() * 10.0).to_string();
            let verdict = decider.decide(&spec, &observed("0", &load, &load), at(time.trim_end_matches('!')));
            assert_eq!(verdict.desired, pods(expected), "{id} {step}");
            assert_linked(&verdict);
        }
    }
}

#[test]
fn the_delay_follows_the_configuration() {
    // D8: turned on, lengthened, shortened and off, live.
    let without = spec("target=10 threshold=10");
    let mut decider = Decider::new(&without, PodCount::ZERO, Timestamp::ZERO);
    let mut want = |settings: &str, time: &str, load: &str| {
        let spec = spec(&format!("target=10 threshold=10 {settings}"));
        decider.update(&spec, at(time));
        decider.decide(&spec, &observed("0", load, load), at(time)).desired.value()
    };
    assert_eq!(want("", "0", "50"), 5);
    assert_eq!(want("delay=60", "2", "20"), 5, "a new delay begins with the present answer");
    assert_eq!(want("delay=120", "90", "20"), 5, "a longer one keeps the peak");
    assert_eq!(want("delay=10", "92", "20"), 2, "a shorter one forgets it");
    assert_eq!(want("", "94", "10"), 1, "none holds nothing");
}

#[test]
fn a_restart_holds_the_count_for_the_delay() {
    let spec = spec("target=10 window=6 delay=120");
    let mut decider = Decider::new(&spec, PodCount::new(8), Timestamp::ZERO);
    assert_eq!(decider.decide(&spec, &observed("8", "10", "10"), at("118")).desired, PodCount::new(8));
    assert_eq!(decider.decide(&spec, &observed("8", "10", "10"), at("120")).desired, PodCount::new(4));
}

#[test]
fn the_room_is_judged_by_the_load_that_unheard_pods_may_have() {
    let spec = ScalingSpec::default();
    let averages = Averages {
        stable: 20.0,
        panic: 20.0,
        stable_at_most: 90.0,
        panic_at_most: 90.0,
        unheard: PodCount::ONE,
        ..Averages::default()
    };
    let observation = Observation { averages, ..observed("3", "0", "0") };
    let verdict = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO).decide(&spec, &observation, at("2"));
    assert_eq!(verdict.excess_burst_capacity.value(), -1);
}

/// Load as measured and as it is if the unheard pods are on target; pods ready and wanted; what comes out.
/// Target 10.
#[test]
fn the_count_moves_only_as_far_as_both_answers_agree() {
    let more_even_without = (95.0, 115.0, 8, 8, 10, None);
    let fewer_even_with = (15.0, 35.0, 8, 8, 4, None);
    let between = (45.0, 85.0, 8, 8, 8, Some(Stage::MissingData));
    let both_say_the_same = (75.0, 80.0, 8, 8, 8, None);
    let more_if_with = (75.0, 95.0, 8, 8, 8, None);
    let fewer_if_without = (71.0, 79.0, 8, 8, 8, None);
    let wanted_are_starting = (20.0, 30.0, 3, 8, 3, None);
    for (low, high, ready, wanted, expected, stage) in [
        more_even_without,
        fewer_even_with,
        between,
        both_say_the_same,
        more_if_with,
        fewer_if_without,
        wanted_are_starting,
    ] {
        let spec = spec("target=10");
        let averages = Averages {
            stable: low,
            panic: low,
            stable_at_most: high,
            panic_at_most: high,
            unheard: PodCount::ONE,
            ..Averages::default()
        };
        let observation = Observation {
            ready: PodCount::new(ready),
            reachable: PodCount::new(ready),
            wanted: PodCount::new(wanted),
            averages,
            present_count: None,
        };
        let mut decider = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
        let verdict = decider.decide(&spec, &observation, at("2"));
        assert_eq!(verdict.desired, PodCount::new(expected), "{observation:?}: {verdict:?}");
        let said = verdict.reasons.iter().find(|reason| reason.stage == Stage::MissingData);
        assert_eq!(said.map(|reason| reason.stage), stage, "{verdict:?}");
        assert_linked(&verdict);
    }
}

#[test]
fn missing_data_neither_starts_nor_ends_panic() {
    let spec = spec("target=10 window=6");
    let straddling = |low: f64, high: f64| Observation {
        averages: Averages {
            stable: 10.0,
            panic: low,
            stable_at_most: 40.0,
            panic_at_most: high,
            unheard: PodCount::ONE,
            ..Averages::default()
        },
        ..observed("4", "0", "0")
    };
    // Only if the silent pods had load is this an alarm: not a reason to panic, nor to hold more than was
    // wanted.
    let mut calm = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
    let verdict = calm.decide(&spec, &straddling(10.0, 80.0), at("2"));
    assert_eq!((verdict.desired, verdict.mode), (PodCount::new(4), Mode::Stable));
    // Whether the alarm is over is not known: panic goes on, and with it the count.
    let mut panicking = Decider::new(&spec, PodCount::new(4), Timestamp::ZERO);
    let verdict = panicking.decide(&spec, &straddling(10.0, 80.0), at("8"));
    assert_eq!((verdict.desired, verdict.mode), (PodCount::new(4), Mode::Panic { since: Timestamp::ZERO }));
    // Calm either way: it is over.
    let verdict = panicking.decide(&spec, &straddling(10.0, 40.0), at("10"));
    assert_eq!((verdict.desired, verdict.mode), (PodCount::new(4), Mode::Stable));
}

#[test]
fn from_zero_the_queue_decides_at_once() {
    let spec = ScalingSpec::default();
    let mut decider = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
    let first = decider.decide(&spec, &queued("0", 1.0), at("0.3"));
    assert_eq!((first.desired.value(), first.mode), (1, Mode::Stable));
    let burst = decider.decide(&spec, &queued("0", 500.0), at("0.32"));
    assert_eq!((burst.desired.value(), burst.mode), (8, Mode::Panic { since: at("0.32") }));
    assert_eq!(burst.reasons.last().unwrap().stage, Stage::Surge);
    assert_eq!(burst.inputs.present_count, Some(500.0));
    assert_linked(&burst);
}

#[test]
fn a_queue_obeys_the_rate_limit_and_the_panic_threshold() {
    let spec = spec("target=10 up=2");
    let mut decider = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
    // From one ready pod at most to two, however long the queue is.
    assert_eq!(decider.decide(&spec, &queued("1", 500.0), at("2")).desired.value(), 2);
    // Three pods' worth of queue with two ready pods is below the threshold of 200 %.
    let mut decider = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
    let verdict = decider.decide(&spec, &queued("2", 30.0), at("2"));
    assert_eq!((verdict.desired.value(), verdict.mode), (1, Mode::Stable));
}

#[test]
fn between_ticks_the_count_never_falls() {
    let spec = spec("target=10 window=6");
    let mut decider = Decider::new(&spec, PodCount::new(8), Timestamp::ZERO);
    let verdict = decider.decide(&spec, &queued("8", 1.0), at("60"));
    assert_eq!((verdict.desired.value(), verdict.mode), (8, Mode::Panic { since: Timestamp::ZERO }));
    assert_linked(&verdict);
    let verdict = decider.decide(&spec, &observed("8", "1", "1"), at("62"));
    assert_eq!((verdict.desired.value(), verdict.mode), (4, Mode::Stable));
}

#[test]
fn with_a_rate_any_queue_asks_for_one_pod() {
    let spec = spec("rps target=140");
    for (present, expected) in [(0.0, 0), (1.0, 1), (5000.0, 1)] {
        assert_eq!(surge::need(&spec, present, PodCount::ZERO).value(), expected);
    }
}

#[test]
fn requests_that_the_ready_pods_can_take_are_no_surge() {
    for (settings, present, ready, expected) in [
        // One request at a limit of one: the windows may call for a second pod, a single request does not.
        ("target=0.7 total=1", 1.0, 1, 0),
        ("target=0.7 total=1", 2.0, 1, 3),
        ("target=0.7 total=1", 1.0, 0, 2),
        ("target=7 total=10", 20.0, 2, 0),
        ("target=7 total=10", 50.0, 2, 8),
    ] {
        let need = surge::need(&spec(settings), present, PodCount::new(ready));
        assert_eq!(need, PodCount::new(expected), "{settings}: {present} at {ready}");
    }
}

#[test]
fn the_report_threshold_of_a_pod_is_the_start_of_panic() {
    for (settings, ready, expected) in [
        ("", 0, Some(101)),
        ("", 1, Some(101)),
        ("", 2, Some(106)),
        ("", 10, Some(134)),
        ("target=7 total=10", 1, Some(11)),
        ("target=7 total=10 threshold=1.1", 1, Some(11)),
        ("target=140 rps", 1, None),
        ("nosurge", 1, None),
    ] {
        let spec = spec(settings);
        assert_eq!(
            surge::pod_threshold(&spec, PodCount::new(ready)),
            expected,
            "{settings} with {ready} ready"
        );
        // One less in each pod is calm, this many are not.
        if let Some(threshold) = expected {
            let pods = PodCount::new(ready).as_f64().max(1.0);
            let over = |each: u32| {
                let need = surge::need(&spec, f64::from(each) * pods, PodCount::truncated_from(pods));
                need.as_f64() / pods >= spec.panic_threshold
            };
            assert!(over(threshold) && !over(threshold - 1), "{settings} with {ready} ready");
        }
    }
}

#[test]
fn reasons_read_as_sentences() {
    let spec = spec("activation=5 delay=60");
    let mut decider = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
    let mut lines = String::new();
    for (time, ready, stable, panic) in [
        ("0", "1", "10", "10"),
        ("2", "1", "400", "500.5"),
        ("4", "1", "90000", "100000"),
        ("60", "1000", "0", "0"),
        ("66", "1000", "0", "0"),
    ] {
        let verdict = decider.decide(&spec, &observed(ready, stable, panic), at(time));
        for Reason { stage, before, after, text } in &verdict.reasons {
            let before = before.map_or("?".to_owned(), |count| count.to_string());
            writeln!(lines, "{time} {stage:?} {before} → {}: {text}", after.unwrap()).unwrap();
        }
    }
    insta::assert_snapshot!(lines);
}

/// The settings of the reference's base spec, changed as the words say.
fn spec(settings: &str) -> ScalingSpec {
    let mut spec = ScalingSpec::default();
    for word in settings.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, "0"));
        let number = value.split('*').map(|factor| factor.parse::<f64>().unwrap()).product();
        let duration = || Duration::from_secs_f64(number);
        match key {
            "up" => spec.max_scale_up_rate = number,
            "down" => spec.max_scale_down_rate = number,
            "target" => spec.target_per_pod = number,
            "total" => spec.total_per_pod = number,
            "threshold" => spec.panic_threshold = number,
            "tbc" => spec.target_burst_capacity = BurstCapacity::new(number).unwrap(),
            "activation" => spec.activation_scale = PodCount::ceil_from(number),
            "window" => spec.stable_window = duration(),
            "delay" => spec.scale_down_delay = duration(),
            "rps" => spec.metric = Metric::Rps,
            "weighted" => spec.aggregation = Aggregation::WeightedExponential,
            "unreachable" => spec.reachable = false,
            "nosurge" => spec.surge_evaluation = false,
            "panicking" | "most" => {}
            unknown => panic!("no setting {unknown}"),
        }
    }
    spec
}

fn setting<'a>(settings: &'a str, key: &str) -> Option<&'a str> {
    settings
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .find(|(known, _)| *known == key)
        .map(|(_, value)| value)
}

#[test]
fn a_pod_that_clients_do_not_reach_is_no_room_for_a_burst_and_changes_no_count() {
    // Two pods for ten requests each, 12 of which are to be spare.
    let spec = ScalingSpec {
        total_per_pod: 10.0,
        target_per_pod: 7.0,
        target_burst_capacity: vocabulary::BurstCapacity::new(12.0).unwrap(),
        ..ScalingSpec::default()
    };
    let now = Timestamp::from_secs(100);
    let decide = |reachable: &str| {
        let observation = Observation { reachable: pods(reachable), ..observed("2", "4", "4") };
        let verdict = Decider::new(&spec, PodCount::ONE, now).decide(&spec, &observation, now);
        (verdict.excess_burst_capacity.value(), verdict.desired)
    };
    assert_eq!(decide("2"), (4, PodCount::ONE));
    assert_eq!(decide("1"), (-6, PodCount::ONE));
}

/// A tick at which every pod was heard.
fn observed(ready: &str, stable: &str, panic: &str) -> Observation {
    Observation {
        ready: pods(ready),
        reachable: pods(ready),
        wanted: pods(ready),
        averages: Averages::complete(stable.parse().unwrap(), panic.parse().unwrap()),
        present_count: None,
    }
}

/// An evaluation between ticks, with windows that know nothing of it yet.
fn queued(ready: &str, present: f64) -> Observation {
    Observation { present_count: Some(present), ..observed(ready, "0", "0") }
}

fn pods(text: &str) -> PodCount {
    PodCount::new(text.parse().unwrap())
}

fn at(seconds: &str) -> Timestamp {
    Timestamp::from_duration(Duration::from_secs_f64(seconds.parse().unwrap()))
}

/// The reasons lead from nothing to the answer without a gap, and each is a change.
fn assert_linked(verdict: &Verdict) {
    let mut number = None;
    for reason in &verdict.reasons {
        assert_eq!(reason.before, number, "{verdict:?}");
        assert_ne!(reason.before, reason.after, "{verdict:?}");
        number = reason.after;
    }
    assert_eq!(number, Some(verdict.desired), "{verdict:?}");
}
