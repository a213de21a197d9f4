//! A revision that rests: how many cold starts are left, and what a warm pod costs.

use crate::goals;
use crate::quantile;
use crate::ready_pods::{ReadyPods, counts_by_second};
use crate::rows::{RowFile, RowNumbers, Rows};
use crate::simulated::SimulatedRevision;
use crate::sparse_load::{SparseLoad, seconds};
use crate::traces::TraceFolder;
use crate::warm_table::share;

/// What a pod takes to start, in seconds.
const START_UP: usize = 10;
/// Fewer rests than this tell nothing to the rule of percentiles.
const RESTS_MIN: usize = 6;
const MINUTE: usize = 60;

/// The ways to keep a pod warm, in the order of the table.
const WAYS: [&str; 9] =
    ["kpa", "20m", "5m", "fixed-5m", "fixed-10m", "fixed-20m", "p5-to-p99", "always-on", "oracle"];
/// The greatest parts of class kpa's cold starts and pod-minutes, of the second and third way.
const GOALS: [(usize, [f64; 2]); 2] = [(1, [0.10, 1.35]), (2, [0.20, 1.22])];

/// Prints the table. Returns whether the goals are met that say something of these series.
pub(crate) fn run(traces: &TraceFolder, rows: &mut RowFile) -> bool {
    let apps: Vec<SparseLoad> = traces.apps().iter().map(SparseLoad::of_app).collect();
    let mut are_met = print_group("100 apps", &apps, rows);
    for series in traces.sparse() {
        are_met &= print_group(&series.name, &[SparseLoad::of_five_minutes(&series)], rows);
    }
    are_met || !traces.are_real()
}

/// Prints the sums over loads that belong together.
fn print_group(group: &str, loads: &[SparseLoad], rows: &mut RowFile) -> bool {
    let mut sums = [RowNumbers::default(); WAYS.len()];
    for load in loads {
        for (sum, found) in sums.iter_mut().zip(rows_of(load, rows)) {
            sum.late += found.late;
            sum.pod_seconds += found.pod_seconds;
        }
    }
    println!("\n{group}, the second half; start-up {START_UP} s");
    println!("{:<12} {:>11} {:>12} {:>8} {:>8}", "way", "cold starts", "pod-minutes", "of kpa", "of kpa");
    let parts =
        |found: &RowNumbers| [share(found.late, sums[0].late), share(found.pod_seconds, sums[0].pod_seconds)];
    for (way, found) in WAYS.iter().zip(&sums) {
        let [cold, pods] = parts(found);
        println!("{way:<12} {:>11} {:>12.0} {cold:>8.3} {pods:>8.3}", found.late, found.pod_seconds / 60.0);
    }
    let mut are_met = true;
    for (place, most) in GOALS {
        are_met &= goals::print_sparse(WAYS[place], group, parts(&sums[place]), most);
    }
    are_met
}

/// The rows of a load in the order of the ways, measured unless they were before.
fn rows_of(load: &SparseLoad, rows: &mut RowFile) -> Vec<RowNumbers> {
    let names = WAYS.map(|way| format!("sparse {} {way}", load.name));
    if let Some(found) = names.iter().map(|name| rows.get(name)).collect::<Option<Vec<_>>>() {
        return found;
    }
    let kpa = counts(load, "kpa", "0s");
    let nothing = vec![0; load.seconds];
    let found = WAYS.map(|way| match way {
        "kpa" => judged(load, &kpa, &nothing),
        "20m" | "5m" => judged(load, &counts(load, "ahpa", way), &nothing),
        "fixed-5m" => judged(load, &kpa, &kept_for(load, 5 * MINUTE)),
        "fixed-10m" => judged(load, &kpa, &kept_for(load, 10 * MINUTE)),
        "fixed-20m" => judged(load, &kpa, &kept_for(load, 20 * MINUTE)),
        "p5-to-p99" => judged(load, &kpa, &kept_by_percentiles(load)),
        "always-on" => judged(load, &kpa, &vec![1; load.seconds]),
        _ => oracle(load),
    });
    rows.keep(names.into_iter().zip(found).collect::<Rows>());
    found.into()
}

/// The counts of the real control loop, second by second.
fn counts(load: &SparseLoad, class: &str, worth: &str) -> Vec<u32> {
    let annotations = [
        ("autoscaling.knative.dev/class", format!("{class}.autoscaling.knative.dev")),
        ("autoscaling.knative.dev/target", "1".to_owned()),
        ("ebb.dev/cold-start-worth", worth.to_owned()),
    ];
    let revision = SimulatedRevision {
        annotations: &annotations,
        load: load.file(),
        service_time: "1s",
        start_up: START_UP,
        length: seconds(load.seconds),
    };
    counts_by_second(&revision.counts(), load.seconds)
}

/// Cold starts and pod-seconds of the second half, if floors stand above these counts.
fn judged(load: &SparseLoad, counts: &[u32], floors: &[u32]) -> RowNumbers {
    let (mut ready_pods, mut numbers) = (ReadyPods::new(START_UP), RowNumbers::default());
    let mut groups = load.groups.iter().map(|(second, _)| *second).peekable();
    let mut starts_until = 0;
    for (second, (count, floor)) in counts.iter().zip(floors).enumerate() {
        let is_judged = second >= load.seconds / 2;
        let asked = (*count).max(*floor);
        let ready = ready_pods.next(asked);
        while groups.next_if_eq(&second).is_some() {
            // A request that comes while another one waits for the same pod causes no start of its own.
            let is_cold = ready == 0 && second >= starts_until;
            if is_cold {
                starts_until = second + START_UP;
            }
            numbers.late += f64::from(u8::from(is_judged && is_cold));
        }
        numbers.pod_seconds += if is_judged { f64::from(asked) } else { 0.0 };
    }
    numbers
}

/// The last pod stays for so many seconds after the last request.
fn kept_for(load: &SparseLoad, kept: usize) -> Vec<u32> {
    let mut floors = vec![0; load.seconds];
    for (begin, end) in load.rests() {
        keep(&mut floors, begin, end.min(begin + kept));
    }
    floors
}

/// A pod is there from the 5th to the 99th percentile of the rests that were seen.
fn kept_by_percentiles(load: &SparseLoad) -> Vec<u32> {
    let mut floors = vec![0; load.seconds];
    let mut seen: Vec<f64> = Vec::new();
    for (begin, end) in load.rests() {
        if seen.len() >= RESTS_MIN {
            let [from, to] = [5, 99].map(|hundredths| whole(quantile::of_hundred(&mut seen, hundredths)));
            keep(&mut floors, begin + from.saturating_sub(START_UP), end.min(begin + to));
        }
        seen.push(f64::from(u32::try_from(end - begin).unwrap_or(u32::MAX)));
    }
    floors
}

/// The row of the oracle: as many pods as requests run, each started just in time.
fn oracle(load: &SparseLoad) -> RowNumbers {
    let mut asked = vec![0; load.seconds];
    for (second, number) in &load.groups {
        let until = (second + load.lasts).min(load.seconds);
        for count in &mut asked[second.saturating_sub(START_UP)..until] {
            *count = (*number).max(*count);
        }
    }
    judged(load, &asked, &vec![0; load.seconds])
}

fn keep(floors: &mut [u32], from: usize, until: usize) {
    if let Some(kept) = floors.get_mut(from..until) {
        kept.fill(1);
    }
}

fn whole(number: f64) -> usize {
    usize::try_from(vocabulary::PodCount::ceil_from(number).value()).unwrap_or(usize::MAX)
}
