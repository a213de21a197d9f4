//! What a rest at zero leaves behind: nothing. An activator says of most revisions nothing at all, and that
//! must not count against them when their load comes back.

use super::*;
use crate::collector::Averages;
use crate::decider::{Decider, Observation};
use crate::decision::Mode;
use settings::Metric;

/// Knative's window and reporter, written down from their description alone: values by second, a first second
/// that only a whole window of silence resets, an early report of one request that the next report takes
/// back.
#[derive(Default)]
struct KnativeWindow {
    span: i64,
    values: BTreeMap<i64, f64>,
    first: i64,
}

impl KnativeWindow {
    fn new(span: i64) -> Self {
        Self { span, ..Self::default() }
    }

    fn record(&mut self, second: i64, value: f64) {
        let last = self.values.keys().next_back().copied();
        if last.is_none_or(|last| second - last >= self.span) {
            self.values.clear();
            self.first = second;
        }
        *self.values.entry(second).or_default() += value;
    }

    fn average(&self, now: i64) -> f64 {
        let Some(&last) = self.values.keys().next_back() else { return 0.0 };
        let silence = now - last;
        if silence >= self.span {
            return 0.0;
        }
        let sum: f64 = self.values.range(now - self.span + 1..).map(|(_, value)| value).sum();
        let seconds = (last - self.first + 1).min(self.span - silence);
        (sum / f64::from(u32::try_from(seconds).unwrap()) * 1e6).round() / 1e6
    }
}

/// The seconds after which Knative, and then a world of ours, asks for `need` pods for the first time, when
/// `load` comes to a revision that has rested for as long as its window, and then some. Nothing happens
/// between ticks.
fn ramps(spec: &ScalingSpec, load: u32, need: u32) -> (i64, i64) {
    let spec = ScalingSpec { surge_evaluation: false, ..spec.clone() };
    let window = i64::try_from(spec.stable_window.as_secs()).unwrap();
    let rest = window + 20;

    let mut world = at_zero(spec.clone());
    let start = u32::try_from(rest).unwrap();
    world.run_until(f64::from(start));
    world.forget();
    world.present(load, load);
    world.run_until(f64::from(start + 60));
    let ours = world.scale_orders().into_iter().find(|&(_, count)| count >= need);
    let ours = ours.map_or(60.0, |(at, _)| at - f64::from(start));

    let [mut stable, mut panic] = [spec.stable_window, spec.panic_window]
        .map(|span| KnativeWindow::new(i64::try_from(span.as_secs()).unwrap()));
    let mut decider = Decider::new(&spec, PodCount::ZERO, Timestamp::ZERO);
    let theirs = (0..60).find(|&second| {
        let value = if second == 0 { 1.0 } else { f64::from(load) - f64::from(u8::from(second == 1)) };
        stable.record(second, value);
        panic.record(second, value);
        // The poke of the first request, then the ticks.
        second % 2 == 0 && {
            let averages = Averages::complete(stable.average(second), panic.average(second));
            let observation = Observation {
                ready: PodCount::ZERO,
                reachable: PodCount::ZERO,
                wanted: PodCount::ZERO,
                averages,
                present_count: None,
            };
            let now = Timestamp::from_secs(u64::try_from(second).unwrap());
            decider.decide(&spec, &observation, now).desired >= PodCount::new(need)
        }
    });
    (theirs.unwrap_or(60), whole(ours))
}

fn whole(seconds: f64) -> i64 {
    i64::try_from(Duration::from_secs_f64(seconds).as_secs()).unwrap()
}

#[test]
fn a_load_after_a_rest_is_followed_no_later_than_by_knative() {
    for window in [60, 3600] {
        for metric in [Metric::Rps, Metric::Concurrency] {
            let window = Duration::from_secs(window);
            let spec = ScalingSpec {
                metric,
                target_per_pod: 140.0,
                stable_window: window,
                panic_window: window / 10,
                ..spec()
            };
            let (theirs, ours) = ramps(&spec, 1400, 10);
            assert!(theirs <= 20, "{metric:?} over {window:?}: Knative takes {theirs} s");
            assert!(ours <= theirs, "{metric:?} over {window:?}: {ours} s, Knative {theirs} s");
        }
    }
}

/// `time ready stable panic want ebc since`, the tables of J1 and J2, in seconds after the first request.
const J1: &str = "
    0.3   0  1           1           1  -212  -
    2.2   0  333.333333  333.333333  5  -545  2.2
    4.2   0  400         400         6  -611  4.2
    6.2   1  428.571429  499.833333  8  -611  6.2
    8.2   1  444.444444  500         8  -611  8.2
    10.2  8  454.545455  500         8  89    8.2
    20.2  8  476.190476  500         8  89    8.2
";
const J2: &str = "
    0.3   0  1           1           1  -212  -
    2.2   0  66.666667   66.666667   1  -278  -
    4.2   0  80          80          2  -291  4.2
    6.2   1  85.714286   99.833333   2  -211  6.2
    8.2   1  88.888889   100         2  -211  8.2
    10.2  2  90.909091   100         2  -111  8.2
    30.2  2  96.774194   100         2  -111  8.2
    68.2  2  100         100         2  -111  8.2
    70.2  2  100         100         2  -111  -
";

/// When the burst begins: a window of rest lies behind, and ticks fall on whole even seconds and 0.2.
const BURST_AT: u32 = 100;

/// What the activator says in its frame of this second. Knative stamps a report with the second in which it
/// comes; so does this activator, by counting its seconds from one ahead.
fn says(world: &mut World, load: Option<u32>) {
    let second = world.now.whole_secs() - 1;
    if let Some(load) = load {
        let sample = sample(second, f64::from(load), 0);
        world.handle(Event::LoadReported { reporter: ACTIVATOR, revision: REVISION, sample });
    }
    world.handle(Event::ReporterHeard { reporter: ACTIVATOR, second });
}

/// A rest of a hundred seconds in which the activator's frames do not name the revision, then the burst, all
/// of it as events.
fn check_burst(load: u32, table: &str) {
    let mut world = World::new(ScalingSpec { surge_evaluation: false, ..spec() });
    world.run_until(0.2);
    world.create(0);
    let Reporter::Activator(activator) = ACTIVATOR else { unreachable!("it is one") };
    world.handle(Event::ActivatorsChanged { activators: vec![activator] });
    let current_second = world.now.whole_secs() - 1;
    let history = Vec::new();
    world.handle(Event::ReporterStarted { reporter: ACTIVATOR, boot: BootId(1), current_second, history });
    for second in 1..=BURST_AT {
        world.run_until(f64::from(second) + 0.05);
        says(&mut world, None);
    }
    let mut rows = table.lines().map(str::trim).filter(|row| !row.is_empty());
    world.run_until(f64::from(BURST_AT) + 0.3);
    says(&mut world, Some(1));
    check_row(&world, rows.next().unwrap());
    let mut ready = 0;
    let mut second = 0;
    for row in rows {
        let cells: Vec<&str> = row.split_whitespace().collect();
        let at: f64 = cells[0].parse().unwrap();
        while f64::from(second + 1) < at {
            second += 1;
            world.run_until(f64::from(BURST_AT + second) + 0.05);
            // The second report takes the early one back.
            says(&mut world, Some(if second == 1 { load - 1 } else { load }));
        }
        if ready != cells[1].parse::<u32>().unwrap() {
            ready = cells[1].parse().unwrap();
            world.ready(ready);
        }
        world.run_until(f64::from(BURST_AT) + at);
        check_row(&world, row);
    }
}

fn check_row(world: &World, row: &str) {
    let cells: Vec<&str> = row.split_whitespace().collect();
    let decision = last_decision(world);
    let inputs = decision.inputs.expect("there is data");
    let close = |said: f64, cell: &str| (said - cell.parse::<f64>().unwrap()).abs() < 5.001e-7;
    assert!(close(inputs.stable_value, cells[2]) && close(inputs.panic_value, cells[3]), "{row}: {inputs:?}");
    assert_eq!(decision.desired.map(PodCount::value), cells[4].parse().ok(), "{row}: {decision:?}");
    assert_eq!(decision.excess_burst_capacity.to_string(), cells[5], "{row}");
    let since = match decision.mode {
        Mode::Stable => "-".to_owned(),
        Mode::Panic { since } => {
            let begun = Timestamp::from_secs(1000 + u64::from(BURST_AT));
            (since.saturating_since(begun).as_secs_f64()).to_string()
        }
    };
    assert_eq!(since, cells[6], "{row}");
}

#[test]
fn a_burst_after_a_rest_is_followed_as_in_j1_and_j2() {
    check_burst(500, J1);
    check_burst(100, J2);
}

/// When eight pods are wanted after a load of 1,000 requests per second has come to a revision that rested
/// with one ready pod for as long as its window, in seconds after the first report of it.
fn eight_pods_wanted_after(burst_capacity: f64, window: u32) -> f64 {
    let stable_window = Duration::from_secs(window.into());
    let mut world = World::new(ScalingSpec {
        metric: Metric::Rps,
        target_per_pod: 140.0,
        total_per_pod: 200.0,
        min_scale: PodCount::ONE,
        stable_window,
        panic_window: stable_window / 10,
        ..with_burst_capacity(burst_capacity)
    });
    let rest = f64::from(window + 20);
    // Ticks come 0.4 s after the reports.
    world.run_until(0.4);
    world.create(1);
    world.activator_starts();
    world.ready(1);
    world.run_until(rest - 0.5);
    world.forget();
    if burst_capacity == 0.0 {
        world.in_pods.insert(PodId(0), 1_000);
    } else {
        world.in_activator = 1_000;
    }
    world.run_until(rest + f64::from(window));
    let first = world.scale_orders().into_iter().find(|&(_, count)| count >= 8);
    first.map_or(f64::INFINITY, |(at, _)| ((at - rest) * 10.0).round() / 10.0)
}

#[test]
fn a_pods_rest_dilutes_no_load_while_activators_are_always_in_the_path() {
    for (burst_capacity, window, expected) in [
        // With the report itself, which pokes, and not later than the first tick.
        (-1.0, 60, 0.0),
        (-1.0, 600, 0.0),
        (-1.0, 3600, 0.0),
        (0.0, 60, 6.4),
        (0.0, 600, 58.4),
        (200.0, 60, 6.4),
        (200.0, 600, 58.4),
    ] {
        let at = eight_pods_wanted_after(burst_capacity, window);
        assert!((at - expected).abs() < 0.01, "{burst_capacity} over {window} s: after {at} s");
    }
}

/// An edit holds from the next second on; seconds before it stay what they were.
#[test]
fn a_pods_rest_becomes_silence_with_the_edit_and_zeros_again_with_the_next() {
    let mut world = serving(ScalingSpec { surge_evaluation: false, ..with_burst_capacity(211.0) });
    let unlimited = |value: f64| {
        move |spec: &mut ScalingSpec| {
            spec.target_burst_capacity = vocabulary::BurstCapacity::new(value).unwrap();
        }
    };
    world.run_until(20.0);
    world.edit(unlimited(-1.0));
    world.run_until(39.5);
    world.in_activator = 60;
    world.run_until(40.5);
    // Nineteen zeros until the edit, silence until second 39, and then the load.
    let stable = world.status().stable_value.unwrap();
    assert!((stable - 60.0 / 40.0).abs() < 1e-6, "{stable}");
    world.in_activator = 0;
    world.run_until(150.0);
    world.edit(unlimited(211.0));
    world.run_until(169.5);
    world.in_activator = 60;
    world.run_until(170.5);
    let stable = world.status().stable_value.unwrap();
    assert!((stable - 60.0 / 20.0).abs() < 1e-6, "{stable}");
}

#[test]
fn a_pods_own_load_counts_while_activators_are_always_in_the_path_and_its_end_is_zero_once() {
    let mut world = serving(ScalingSpec { surge_evaluation: false, ..with_burst_capacity(-1.0) });
    world.in_pods.insert(PodId(0), 30);
    world.run_until(10.0);
    assert_eq!(world.status().stable_value, Some(30.0));
    world.in_pods.clear();
    world.run_until(11.0);
    let after_zero = world.status().stable_value.unwrap();
    assert!((after_zero - 300.0 / 11.0).abs() < 1e-6, "{after_zero}");
    world.run_until(50.0);
    assert_eq!(world.status().stable_value, Some(after_zero), "silence does not lower the average");
}

#[test]
fn a_revision_missing_from_frames_is_zero_once_and_then_silent() {
    let mut world = at_zero(ScalingSpec { surge_evaluation: false, ..spec() });
    world.present(40, 0);
    world.run_until(20.0);
    world.in_activator = 0;
    world.run_until(21.0);
    let after_zero = world.status().stable_value.unwrap();
    assert!(after_zero < 40.0, "{after_zero}");
    world.run_until(60.0);
    assert_eq!(world.status().stable_value, Some(after_zero), "silence does not lower the average");
    world.run_until(81.0);
    assert_eq!(world.status().stable_value, Some(0.0), "until it has lasted for a window");
    world.run_until(300.0);
    assert_eq!(
        world.status().stable_value,
        Some(0.0),
        "an activator that is heard and says nothing says zero"
    );
}

/// The minimal case of an exception: Knative asks a pod that is not ready nothing, so its last load stays in
/// the average.
#[test]
fn a_pod_that_turns_unready_writes_one_zero() {
    let mut world = serving(ScalingSpec { surge_evaluation: false, ..spec() });
    world.in_pods.insert(PodId(0), 30);
    world.run_until(10.0);
    world.in_pods.clear();
    world.pod_is(PodId(0), PodState::Unready);
    world.run_until(11.0);
    let after_zero = world.status().stable_value.unwrap();
    assert!((after_zero - 300.0 / 11.0).abs() < 1e-6, "{after_zero}");
    world.run_until(40.0);
    assert_eq!(world.status().stable_value, Some(after_zero));
}

#[test]
fn a_pod_says_zeros_only_while_it_is_ready() {
    for (state, expected) in [(PodState::Starting, 70.0), (PodState::Ready, 70.0 / 31.0)] {
        let mut world = World::new(ScalingSpec { surge_evaluation: false, ..spec() });
        world.create(1);
        world.activator_starts();
        world.pods(1);
        world.pod_is(PodId(0), state);
        world.run_until(30.0);
        world.in_activator = 70;
        world.run_until(31.0);
        let stable = world.status().stable_value.unwrap();
        assert!((stable - expected).abs() < 1e-6, "{state:?}: {stable}");
    }
}

#[test]
fn a_silent_pod_may_be_on_target_however_long_the_activator_has_said_nothing() {
    let mut world = serving(spec());
    world.ready(2);
    world.in_activator = 140;
    world.run_until(20.0);
    world.in_activator = 0;
    for pod in 0..2 {
        world.linked.remove(&PodId(pod));
        world.handle(Event::LinkLost { reporter: Reporter::Pod(PodId(pod)) });
    }
    world.forget();
    world.run_until(300.0);
    assert_eq!(world.scale_orders(), [], "silence is not zero");
}
