//! What one decision, one report and one tick of the multiscaler cost: time, instructions, allocations.
//!
//! `cargo bench -p tests --bench decide`. Time is the median of rounds. Instructions and allocations are
//! counted by valgrind on this executable, in the difference between few and many repetitions, so they are
//! the same on every run and show a change of one in a hundred from commit to commit. `cargo bench -p
//! scaling` takes the parts apart.

mod decide {
    pub(super) mod counted;
    pub(super) mod minutes;
    pub(super) mod passes;
    pub(super) mod ticks;
    pub(super) mod work;
}

use std::hint::black_box;

use anyhow::Context;
use tests::bench::plot::{self, Bar};
use tests::bench::{Goal, Options, Report, Samples, Table, clock, machine, rotated};

use decide::{counted, work::Work};

/// The number of repetitions in one round.
const REPETITIONS: u32 = 200_000;
const REPETITIONS_QUICK: u32 = 2_000;
const DECISION_NS: f64 = 1000.0;
const REPORT_NS: f64 = 150.0;
const PASS_OF_TEN_PODS_NS: f64 = 3_000.0;
const PASS_OF_A_THOUSAND_PODS_NS: f64 = 150_000.0;
const FORECAST_MINUTE_INSTRUCTIONS: f64 = 80_000.0;

fn main() -> anyhow::Result<()> {
    if counted::is_child() {
        return counted::repeat_in_child();
    }
    let options = Options::read();
    machine::require(&[("valgrind", "valgrind")])?;
    let rounds = options.rounds(20, 1);
    let repetitions = options.choose(REPETITIONS, REPETITIONS_QUICK);
    let mut works: Vec<(Work, Samples)> = Work::all()
        .into_iter()
        .filter(|work| options.includes(work.name()))
        .map(|work| (work, Samples::new()))
        .collect();
    let order: Vec<usize> = (0..works.len()).collect();
    for round in 0..rounds {
        for &index in rotated(&order, round) {
            let (work, nanoseconds) = &mut works[index];
            nanoseconds.push(time(*work, repetitions / work.weight()));
        }
    }
    let mut report = Report::new("decide", options.quick, rounds);
    let columns = ["", "ns [least … most]", "instructions", "allocations"];
    let mut table = Table::new("Each once", &columns);
    let mut bars = Vec::new();
    for (work, nanoseconds) in &works {
        let name = work.name();
        let counts = counted::count(*work).with_context(|| format!("counting {name}"))?;
        let numbers = [counts.instructions, counts.allocations].map(|count| format!("{count:.1}"));
        table.row([name.to_owned(), nanoseconds.summary(0)].into_iter().chain(numbers));
        report.measured(name, "ebb", "ns", nanoseconds);
        report.measured(name, "ebb", "instructions", &Samples(vec![counts.instructions]));
        report.measured(name, "ebb", "allocations", &Samples(vec![counts.allocations]));
        if let Some(limit) = nanoseconds_max(*work) {
            report.goal(Goal::at_most(&format!("{name}: ns"), nanoseconds.median(), limit));
            let goal = format!("{name}: allocations in steady state");
            report.goal(Goal::at_most(&goal, counts.allocations, 0.0));
        } else {
            let goal = format!("{name}: instructions");
            report.goal(Goal::at_most(&goal, counts.instructions, FORECAST_MINUTE_INSTRUCTIONS));
        }
        let (least, most) = (nanoseconds.least(), nanoseconds.most());
        bars.push(Bar { label: name.to_owned(), median: nanoseconds.median(), least, most });
    }
    report.table(table);
    report.note("Noise: the extremes of the rounds, in the table.");
    if let Some(path) = &options.svg {
        plot::bars(path, "Nanoseconds", &bars, Some(DECISION_NS))?;
    }
    report.finish(options.json.as_deref())
}

/// How long one repetition may take; `None` for work that is judged by its instructions.
fn nanoseconds_max(work: Work) -> Option<f64> {
    match work {
        Work::Report { .. } => Some(REPORT_NS),
        Work::Decision { .. } => Some(DECISION_NS),
        Work::Tick { .. } => Some(2.0 * REPORT_NS + DECISION_NS),
        Work::Pass { pods: ..=10 } => Some(PASS_OF_TEN_PODS_NS),
        Work::Pass { .. } => Some(PASS_OF_A_THOUSAND_PODS_NS),
        Work::ForecastMinute => None,
    }
}

/// The nanoseconds that one repetition takes.
fn time(work: Work, repetitions: u32) -> f64 {
    let mut bench = work.prepare();
    // The first ones meet cold caches.
    (0..repetitions / 10).for_each(|_| bench.once());
    let began = clock::now();
    (0..repetitions).for_each(|_| black_box(&mut bench).once());
    clock::since(began).as_secs_f64() * 1e9 / f64::from(repetitions)
}
