use std::time::Duration;

use proptest::prelude::*;
use settings::{Aggregation, Metric};
use vocabulary::{PodCount, Timestamp};

use super::span::LAG;
use super::*;

/// One window of one metric.
struct Window(WindowHistory);

impl Window {
    fn new(span: Duration) -> Self {
        Self(WindowHistory::new(span, span))
    }

    fn add(&mut self, second: Second, value: f64) {
        self.0.add(second, SecondSums { concurrency: value, rate: 0.0 });
    }

    fn resize(&mut self, span: Duration, now: Second) {
        self.0.resize(span, span, now);
    }

    fn view(&self) -> View<'_> {
        self.0.stable(Metric::Concurrency)
    }
}

/// Scripts, in order: `2:5` adds 5 to second 2; `0..4:1,2,3` adds one of the list (or the only one) to each
/// second, `second` adds its own number; `@4=3` expects the average 3 at time 4; `empty@70` and `filled@69`
/// ask whether there is anything; `resize@5=10` resizes to 10 s at second 5.
const LINEAR: &str = "
    E1  | 60 | @0=0 empty@0
    E2  | 5  | 0:1 @0=1
    E3  | 5  | 0..4:1,2,3,4,5 @4=3 @3.6=3
    E4  | 5  | 0..4:1,2,3,4,5 @6=4
    E5  | 5  | 0..4:1,2,3,4,5 @10=0
    E6  | 5  | 0..4:1,2,3,4,5 6:91 @6=20.6
    E7  | 5  | 0..4:1,2,3,4,5 6:91 66:1984 @66=1984
    E8  | 5  | 0..4:1,2,3,4,5 6:91 66:1984 63:4 @66=497
    E9  | 5  | 0..4:1,2,3,4,5 6:91 66:1984 63:4 67:5 @67=398.6
    E10 | 5  | 0..4:1,2,3,4,5 6:91 66:1984 63:4 67:5 64:10 @67=400.6
    E11 | 5  | 0..4:1,2,3,4,5 6:91 66:1984 63:4 67:5 64:10 61:10 62:10 @67=400.6
    E12 | 5  | 0..4:1,2,3,4,5 6:91 66:1984 63:4 67:5 64:10 61:10 62:10 72:10 @72=10
    E13 | 60 | 0..9:10 @9=10 @10=10 @30=10 @68.9=10
    E14 | 60 | 0..9:10 @69=0 filled@69 @69.9=0 filled@69.9 @70=0 empty@70
    E15 | 60 | 0..99:second @99=69.5 @100=70 @109=74.5 @129=84.5 @158=99 @159=0
    E16 | 60 | 0..99:second 158:7 @158=1.766667
    E17 | 6  | 0:6 3:6 @3=3 @4=3 @5=3 @6=2 @7=3 @8=6 @9=0
    E18 | 6  | 0:10 0.99:10 2:10 @2=10
    E19 | 6  | 10:12 5:6 4:6 @10=3
    E20 | 6  | 0:6 5:6 @5=2 10:6 @10=2 16:6 @16=6
    E21 | 60 | 0:1 1:0 2:0 @2=0.333333
    E22 | 5  | 8:5 7:5 6:5 5:5 4:5 3:5 2:5 1:5 0:5 @8=5
    E23 | 6  | 0..9:5,6,7,8,9,10,11,12,13,14 @9=11.5
    E23 | 2  | 0..9:5,6,7,8,9,10,11,12,13,14 @9=13.5
    E24 | 5  | 0..5:1,2,3,4,5,6 resize@5=10 @5=4 6:7 @6=4.5
    E25 | 5  | 0..5:1,2,3,4,5,6 resize@5=10 6:7 resize@6=4 @6=5.5
    E26 | 5  | 0:10 resize@0=10 @0=2 1:10 @1=3.333333
    E27 | 10 | -9..0:1,2,3,4,5,6,7,8,9,10 resize@0=3 @0=9 resize@0=6 @0=9 1:11 @1=9.5
    E28 | 6  | 0..3:1,2,3,4 @1=2.5
    E29 | 60 | -70:100 0:10 @0=10
";

const WEIGHTED: &str = "
    F1  | 60 | 0:100 @0=20 1:100 @1=36 2:100 @2=48.8 3:100 @3=59.04 4:100 @4=67.232 5:100 @5=73.7856
    F1  | 60 | 0..9:100 @9=89.26258176 10..19:100 @19=98.847078 20..29:100 @29=99.876206 30..59:100 @59=99.999847
    F2  | 60 | 0..59:100 @60=79.999847 @61=63.999847 @64=32.767847 @69=10.737265 @118=0.000038 @119=0 filled@119 @120=0 empty@120
    F3  | 60 | 0..59:100 60:0 @60=79.999847 61..70:0 @70=8.589781 71..90:0 @90=0.098882 91..118:0 @118=0.000038 119:0 @119=0
    F4  | 6  | 0:100 @0=78.455653 1:100 @1=95.358411 2:100 @2=99 3:100 @3=99.784557 4:100 @4=99.953584 5:100 @5=99.99
    F5  | 6  | 0..5:100 @6=21.534347 @7=4.631589 @8=0.99 @10=0.036416 @11=0 filled@11 @12=0 empty@12
    F6  | 5  | 0..4:2,3,4,5,6 @4=5.811580
    F7  | 60 | 0..3:10,10,5,5 @3=4.104
";

#[test]
fn the_linear_window_averages_as_the_reference() {
    check_table(LINEAR, Aggregation::Linear, 30);
}

#[test]
fn the_weighted_window_averages_as_the_reference() {
    check_table(WEIGHTED, Aggregation::WeightedExponential, 8);
}

#[test]
fn short_windows_weigh_the_newest_second_more() {
    for (seconds, expected) in [
        (1, 0.9999),
        (5, 0.841_511),
        (6, 0.784_557),
        (10, 0.601_893),
        (30, 0.264_358),
        (40, 0.205_672),
        (41, 0.201_198),
        (42, 0.2),
        (3600, 0.2),
    ] {
        let coefficient = Window::new(Duration::from_secs(seconds)).view().window.coefficient;
        assert!((coefficient - expected).abs() < 5e-7, "{seconds}: {coefficient}");
    }
}

#[test]
fn the_weights_are_those_of_the_formula() {
    for seconds in 1..=100_u32 {
        let exact = (1.0 - 1e-4_f64.powf(1.0 / f64::from(seconds))).max(0.2);
        let coefficient = Window::new(Duration::from_secs(seconds.into())).view().window.coefficient;
        assert!((coefficient - exact).abs() < 1e-15, "{seconds}: {coefficient}, not {exact}");
    }
}

/// What Knative's own window says of second `s` holding `(7s mod 11) / 3`: the span, the seconds written, the
/// silence after them, the bits.
const WEIGHTED_BITS: &[(u64, Second, Second, u64)] = &[
    (6, 4, 0, 0x4006_f418_02f6_70f1),
    (6, 30, 0, 0x3ffd_c532_648c_5891),
    (6, 30, 3, 0x3f92_d4b5_4937_33fb),
    (10, 25, 0, 0x3ff4_2e93_9f27_2ae8),
    (10, 25, 7, 0x3f5e_25c8_67fd_054b),
    (37, 100, 11, 0x3fb5_9e3f_7ff1_83b9),
    (41, 200, 5, 0x3fe0_0b88_0858_c226),
    (60, 45, 0, 0x3ff5_8554_e4d4_9729),
    (60, 300, 0, 0x3ff6_f287_21cf_7a92),
    (60, 300, 20, 0x3f90_ede2_3e99_37b6),
    (360, 1000, 100, 0x3df8_c14f_7e9a_2fbb),
];

#[test]
fn the_weighted_window_agrees_with_the_reference_to_the_last_bit() {
    for &(span, seconds, silence, expected) in WEIGHTED_BITS {
        let mut window = Window::new(Duration::from_secs(span));
        for second in 0..seconds {
            window.add(second, f64::from(u32::try_from(second * 7 % 11).unwrap()) / 3.0);
        }
        let average = window.view().average(Aggregation::WeightedExponential, seconds - 1 + silence);
        assert_eq!(
            average.to_bits(),
            expected,
            "{span} s, {seconds} s written, {silence} s silent: {average}"
        );
    }
}

#[test]
fn an_exact_tie_of_the_weighted_window_is_no_pod_more() {
    // The newest of four seconds weighs 0.9.
    let mut window = Window::new(Duration::from_secs(4));
    window.add(0, 10.0);
    let average = window.view().average(Aggregation::WeightedExponential, 0);
    assert_eq!(average.ceil().to_bits(), 9.0_f64.to_bits(), "{average}");
}

#[test]
fn a_settled_average_ignores_the_newest_writes() {
    for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
        for span in [1, 3, 60] {
            let mut window = Window::new(Duration::from_secs(span));
            let mut said = Vec::new();
            for second in 0..100 {
                window.add(second, f64::from(u32::try_from(second * 7 % 11).unwrap()));
                said.push(window.view().average(aggregation, second));
            }
            for back in 0..=LAG {
                let expected = said[usize::try_from(99 - back).unwrap()];
                let settled = window.view().settled_average(aggregation, 99 - back);
                assert!(
                    (settled - expected).abs() < 1e-6,
                    "{aggregation:?} over {span} s, {back} s back: {settled}"
                );
            }
        }
    }
}

#[test]
fn a_share_is_the_average_of_a_load_of_one() {
    for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
        for from in [-5, 0, 50, 58, 59, 60] {
            let (mut known, mut with) =
                (Window::new(Duration::from_secs(10)), Window::new(Duration::from_secs(10)));
            for second in 0..60 {
                known.add(second, 0.0);
                with.add(second, if second >= from { 1.0 } else { 0.0 });
            }
            let (share, average) =
                (known.view().share_between(aggregation, from, 59), with.view().average(aggregation, 59));
            assert!((share - average).abs() < 1e-6, "{aggregation:?} from {from}: {share}, not {average}");
        }
    }
}

#[test]
fn a_growing_panic_window_counts_as_if_it_had_been_full_not_as_the_stable_one() {
    // As Knative: three seconds of a window of six, then of twelve. The stable window grows too and counts as
    // sixty.
    let seconds = Duration::from_secs;
    for stable in [60, 120] {
        let mut history = WindowHistory::new(seconds(60), seconds(6));
        for second in 0..3 {
            history.add(second, SecondSums { concurrency: 12.0, rate: 0.0 });
        }
        history.resize(seconds(stable), seconds(12), 2);
        let panic = history.panic(Metric::Concurrency).average(Aggregation::Linear, 2);
        assert!((panic - 36.0 / 6.0).abs() < 1e-9, "{stable}: {panic}");
    }
}

#[test]
fn a_growing_panic_window_finds_the_seconds_that_were_measured() {
    // Knative has forgotten all but six of them, and says the same here.
    let seconds = Duration::from_secs;
    for stable in [60, 120] {
        let mut history = WindowHistory::new(seconds(60), seconds(6));
        for second in 0..30 {
            history.add(second, SecondSums { concurrency: 12.0, rate: 0.0 });
        }
        history.resize(seconds(stable), seconds(12), 29);
        let panic = history.panic(Metric::Concurrency).average(Aggregation::Linear, 29);
        assert!((panic - 12.0).abs() < 1e-9, "{stable}: {panic}");
    }
}

#[test]
fn a_value_older_than_the_window_changes_no_average() {
    let mut window = Window::new(Duration::from_secs(6));
    for second in 20..24 {
        window.add(second, 9.0);
    }
    for late in (23 - 6 - LAG)..=(23 - 6) {
        window.add(late, 0.0);
        window.add(late, 50.0);
        for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
            let mut punctual = Window::new(Duration::from_secs(6));
            for second in 20..24 {
                punctual.add(second, 9.0);
            }
            let (with, without) =
                (window.view().average(aggregation, 23), punctual.view().average(aggregation, 23));
            assert_eq!(with.to_bits(), without.to_bits(), "{late}: {aggregation:?}: {with}, not {without}");
        }
    }
}

#[test]
fn a_correction_of_a_dropped_second_takes_no_average_below_zero() {
    for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
        let mut window = Window::new(Duration::from_secs(6));
        window.add(0, 10.0);
        // All of it is older than the window, so nothing stays.
        window.resize(Duration::from_secs(60), 20);
        window.add(0, -10.0);
        let average = window.view().average(aggregation, 0);
        assert_eq!(average.to_bits(), 0.0_f64.to_bits(), "{aggregation:?}: {average}");
        window.add(1, 3.0);
        assert!(window.view().average(aggregation, 1) > 0.0);
    }
}

#[test]
fn taking_everything_back_leaves_nothing() {
    let mut window = Window::new(Duration::from_secs(60));
    for value in [10.1, 5.3, 0.7] {
        window.add(0, value);
    }
    for value in [10.1, 5.3, 0.7] {
        window.add(0, -value);
    }
    let average = window.view().average(Aggregation::WeightedExponential, 0);
    assert_eq!(average.to_bits(), 0.0_f64.to_bits(), "{average}");
}

#[test]
fn absurd_seconds_neither_panic_nor_stay() {
    let mut window = Window::new(Duration::from_secs(6));
    for second in [Second::MAX / 4, 10, Second::MIN / 4] {
        window.add(second, 1.0);
    }
    let mut window = Window::new(Duration::from_secs(6));
    window.add(Second::MIN / 4, 5.0);
    assert!(window.view().is_empty(10));
    window.add(10, 3.0);
    assert!((window.view().average(Aggregation::Linear, 10) - 3.0).abs() < 1e-9);
}

const METRICS: [Metric; 2] = [Metric::Concurrency, Metric::Rps];

/// The stable and the panic window's.
fn spans() -> impl Strategy<Value = (Duration, Duration)> {
    (1_u64..70, 0.0..=1.0).prop_map(|(stable, share)| {
        let stable = Duration::from_secs(stable);
        (stable, stable.mul_f64(share))
    })
}

fn history((stable, panic): (Duration, Duration)) -> WindowHistory {
    WindowHistory::new(stable, panic)
}

/// From one second to the next: mostly a small step forward, sometimes backwards or over a gap.
fn step() -> impl Strategy<Value = Second> {
    (-8_i64..90).prop_map(|step| if step > 80 { step } else { step.min(2) })
}

proptest! {
    #[test]
    fn the_running_total_is_the_sum_of_the_slots(
        spans in spans(),
        steps in prop::collection::vec((step(), 0.0..1e6_f64, prop::option::weighted(0.02, spans())), 1..400),
    ) {
        let mut history = history(spans);
        let mut now = 0;
        for (step, value, resize) in steps {
            let second = now + step;
            now = now.max(second);
            history.add(second, SecondSums { concurrency: value, rate: 1e6 - value });
            if let Some((stable, panic)) = resize {
                history.resize(stable, panic, now);
            }
            for metric in METRICS {
                for view in [history.stable(metric), history.panic(metric)] {
                    let (total, span) = (view.total(), view.window.span);
                    // A window that became shorter than its age holds nothing.
                    let last = view.window.edges.map(|edges| edges.last);
                    let sum = last.map_or(0.0, |last| view.sum(last - span + 1, last));
                    prop_assert!((total - sum).abs() < 1e-4, "{metric:?} over {span} s: {total} is not {sum}");
                }
            }
        }
    }

    #[test]
    fn the_average_of_a_window_depends_on_no_other_window(
        (stable, panic) in spans(),
        steps in prop::collection::vec((step(), 0.0..100.0_f64), 1..200),
    ) {
        let mut shared = history((stable, panic));
        let [mut stable, mut panic] = [stable, panic].map(|span| history((span, span)));
        let mut now = 0;
        for (step, value) in steps {
            let second = now + step;
            now = now.max(second);
            shared.add(second, SecondSums { concurrency: value, rate: 100.0 - value });
            for (alone, value) in [(&mut stable, value), (&mut panic, 100.0 - value)] {
                alone.add(second, SecondSums { concurrency: value, rate: 0.0 });
            }
            for (shared, alone) in [
                (shared.stable(Metric::Concurrency), stable.stable(Metric::Concurrency)),
                (shared.panic(Metric::Rps), panic.stable(Metric::Concurrency)),
            ] {
                prop_assert_eq!(shared.window.edges, alone.window.edges);
                for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
                    for (shared, alone) in [
                        (shared.average(aggregation, now + 1), alone.average(aggregation, now + 1)),
                        (shared.settled_average(aggregation, now - 2), alone.settled_average(aggregation, now - 2)),
                    ] {
                        prop_assert!((shared - alone).abs() < 1e-5, "{aggregation:?}: {shared}, not {alone}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_window_of_zeros_averages_to_exactly_zero(values in prop::collection::vec(0.0..1e9_f64, 0..200)) {
        let mut window = Window::new(Duration::from_secs(60));
        let written = Second::try_from(values.len()).unwrap();
        for (second, value) in (0..).zip(values) {
            window.add(second, value);
        }
        for second in written..written + 60 {
            window.add(second, 0.0);
        }
        prop_assert_eq!(window.view().average(Aggregation::Linear, written + 59).to_bits(), 0.0_f64.to_bits());
    }
}

/// `time:raw→result` in order, of a delay in seconds.
const DELAYS: &str = "
    K5  | 30 | 0:4→4 2:3→4 10:6→6 12:2→6 28:1→6 30:1→6 32:1→6 34:1→6 36:1→6 38:1→6 40:1→2 42:1→1 44:0→1 72:0→0
    K9  | 10 | 0:5→5 2:8→8 4:5→8 6:7→8 8:5→8 10:5→8 12:1→7 14:4→7 16:4→5 18:4→5 20:4→4 22:9→9 24:3→9 26:4→9 28:2→9 30:1→9 32:0→4
    K10 | 10 | 0:6→6 2:5→6 4:2→6 12:1→2
    K11 | 10 | 0:7→7 0.5:6→7 1:5→7 1.9:4→7
";

#[test]
fn the_delay_remembers_peaks_as_the_reference() {
    for (id, delay, script) in rows(DELAYS) {
        let mut peaks = RecentMaximum::new(Duration::from_secs(delay.parse().unwrap())).unwrap();
        for step in script.split_whitespace() {
            let (time, (raw, expected)) =
                step.split_once(':').map(|(time, rest)| (time, rest.split_once('→').unwrap())).unwrap();
            assert_eq!(delayed(&mut peaks, pods(raw), time_of(time)), pods(expected), "{id} {step}");
        }
    }
}

#[test]
fn a_peak_is_held_for_whole_cells() {
    // The vector, the delay, and after how many seconds a peak on an even and on an odd second is forgotten.
    for (id, delay, even, odd) in
        [("K6", 1, 2, 1), ("K6", 2, 2, 1), ("K7", 3, 4, 3), ("K8", 10, 10, 9), ("K8", 60, 60, 59)]
    {
        for (start, expected) in [(100, even), (101, odd)] {
            let mut peaks = RecentMaximum::new(Duration::from_secs(delay)).unwrap();
            delayed(&mut peaks, PodCount::new(9), Timestamp::from_secs(start));
            let held = (1..100)
                .find(|after| {
                    let now = Timestamp::from_secs(start + after);
                    delayed(&mut peaks, PodCount::ONE, now) == PodCount::ONE
                })
                .unwrap();
            assert_eq!(held, expected, "{id}: delay {delay} from second {start}");
        }
    }
}

proptest! {
    #[test]
    fn the_delay_gives_the_maximum_of_the_counts_that_it_remembers(
        cells in 1_u64..20,
        steps in prop::collection::vec((0_u64..6, 0_u32..10), 1..100),
    ) {
        let mut peaks = RecentMaximum::new(Duration::from_secs(2 * cells)).unwrap();
        let mut all: Vec<(u64, u32)> = Vec::new();
        let mut second = 0;
        for (step, count) in steps {
            second += step;
            all.push((second / 2, count));
            let expected = all.iter().filter(|(cell, _)| second / 2 - cell < cells).map(|&(_, count)| count).max().unwrap();
            let largest = delayed(&mut peaks, PodCount::new(count), Timestamp::from_secs(second));
            prop_assert_eq!(largest, PodCount::new(expected));
        }
    }
}

fn delayed(peaks: &mut RecentMaximum, count: PodCount, now: Timestamp) -> PodCount {
    let largest = peaks.with(count, now);
    peaks.record(count, now);
    largest
}

fn check_table(table: &str, aggregation: Aggregation, expected_rows: usize) {
    let rows: Vec<_> = rows(table).collect();
    assert_eq!(rows.len(), expected_rows);
    for (id, span, script) in rows {
        let mut window = Window::new(Duration::from_secs(span.parse().unwrap()));
        for step in script.split_whitespace() {
            check_step(&mut window, aggregation, step)
                .unwrap_or_else(|problem| panic!("{id} {step}: {problem}"));
        }
    }
}

fn check_step(window: &mut Window, aggregation: Aggregation, step: &str) -> Result<(), String> {
    if let Some((time, span)) = step.strip_prefix("resize@").and_then(|rest| rest.split_once('=')) {
        window.resize(Duration::from_secs(span.parse().unwrap()), second_at(time));
    } else if let Some(time) = step.strip_prefix("empty@") {
        return window
            .view()
            .is_empty(second_at(time))
            .then_some(())
            .ok_or_else(|| "is not empty".to_owned());
    } else if let Some(time) = step.strip_prefix("filled@") {
        return (!window.view().is_empty(second_at(time))).then_some(()).ok_or_else(|| "is empty".to_owned());
    } else if let Some((time, expected)) = step.strip_prefix('@').and_then(|rest| rest.split_once('=')) {
        let average = window.view().average(aggregation, second_at(time));
        let off = (average - expected.parse::<f64>().unwrap()).abs();
        return (off < 5.001e-7).then_some(()).ok_or_else(|| format!("is {average}"));
    } else {
        let (times, values) = step.split_once(':').unwrap();
        let (from, to) = times.split_once("..").unwrap_or((times, times));
        let values: Vec<&str> = values.split(',').collect();
        for (index, second) in (second_at(from)..=second_at(to)).enumerate() {
            let value = *values.get(index).unwrap_or(&values[0]);
            let value = if value == "second" { second.to_string() } else { value.to_owned() };
            window.add(second, value.parse().unwrap());
        }
    }
    Ok(())
}

fn rows(table: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    table.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
        let mut cells = line.split('|').map(str::trim);
        (cells.next().unwrap(), cells.next().unwrap(), cells.next().unwrap())
    })
}

fn pods(text: &str) -> PodCount {
    PodCount::new(text.parse().unwrap())
}

fn time_of(seconds: &str) -> Timestamp {
    Timestamp::from_duration(Duration::from_secs_f64(seconds.parse().unwrap()))
}

/// The second in which a time lies, rounded down.
fn second_at(time: &str) -> Second {
    time.split('.').next().unwrap().parse().unwrap()
}
