//! How long it takes from a request for a sleeping service to its answer, and where each millisecond goes.
//!
//! `cargo bench -p tests --bench wake`. Services wake one after the other, on an idle machine and with one
//! core busy. After each wake comes its control: the same two processes, started and asked by hand.

mod wake {
    pub(super) mod control;
    pub(super) mod journey;
}

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tests::bench::executions::Executions;
use tests::bench::machine::{Cores, move_this_thread_to};
use tests::bench::up::{Up, asleep, executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock, plot};

use wake::{control, journey};

/// From one wake to the next.
const STAGGER: Duration = Duration::from_millis(250);
/// How long a service may take to fall asleep.
const PATIENCE: Duration = Duration::from_secs(60);

/// The stages of a wake, in milliseconds.
#[derive(Default)]
struct Stages {
    /// From the first byte of the request to the execution of the first process.
    start: Samples,
    /// From there to the execution of the app.
    app_start: Samples,
    /// From there until the app listens: its own affair.
    app_listens: Samples,
    /// From there to the first byte that the app gets.
    forwarded: Samples,
    /// From there to the answer at the client.
    answered: Samples,
    /// The whole journey, from the request to the answer.
    whole: Samples,
}

impl Stages {
    fn rows(&self) -> [(&'static str, &Samples); 6] {
        [
            ("first byte → first process executed", &self.start),
            ("→ app executed", &self.app_start),
            ("→ app accepts (its own time)", &self.app_listens),
            ("→ first byte forwarded to it", &self.forwarded),
            ("→ answer at the client", &self.answered),
            ("the whole wake", &self.whole),
        ]
    }
}

struct Bench {
    options: Options,
    executions: Executions,
    ebb: PathBuf,
    app: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    let folder = tempfile::tempdir()?;
    let [ebb, app] = executables()?;
    let (executions, copies) = Executions::watch(&[&ebb, &app], folder.path())?;
    let [ebb, app] = <[PathBuf; 2]>::try_from(copies).ok().context("two executables")?;
    let rounds = options.rounds(5, 1);
    let mut report = Report::new("wake", options.quick, rounds);
    let mut bars = Vec::new();
    let bench = Bench { options, executions, ebb, app };
    for (condition, busy) in [("idle machine", Busy::No), ("one core busy", Busy::OneCore)] {
        if !bench.options.includes(condition) {
            continue;
        }
        let spinning = Spinning::start(busy)?;
        let (wakes, controls) = bench.measure(folder.path())?;
        drop(spinning);
        report_condition(condition, &wakes, &controls, &mut report);
        for (contestant, stages) in [("wake", &wakes), ("by hand", &controls)] {
            bars.push(plot::Bar {
                label: format!("{condition}, {contestant}"),
                median: stages.whole.median(),
                least: stages.whole.least(),
                most: stages.whole.quantile(990),
            });
        }
    }
    if let Some(path) = &bench.options.svg {
        plot::bars(path, "From request to answer in ms (median, least … p99)", &bars, None)?;
    }
    report.finish(bench.options.json.as_deref())
}

impl Bench {
    /// All wakes under one condition, each followed by its control.
    fn measure(&self, folder: &Path) -> anyhow::Result<(Stages, Stages)> {
        let names: Vec<String> =
            (0..self.options.choose(40, 3)).map(|number| format!("sleeper-{number}")).collect();
        let services: Vec<_> = names.iter().map(|name| service(name, &self.app)).collect();
        let up = Up::start(&self.ebb, &services, &asleep())?;
        let (mut wakes, mut controls) = (Stages::default(), Stages::default());
        for _ in 0..self.options.rounds(5, 1) {
            for name in &names {
                let began = clock::now();
                api::until(PATIENCE, || up.expect_nothing_of(name))?;
                self.executions.take();
                let seen = journey::send(up.requests(), &format!("{name}.default.example.com"))
                    .with_context(|| format!("waking {name}"))?;
                let executions = self.executions.take_with(journey::APP)?;
                seen.split(&executions, &mut wakes).with_context(|| format!("waking {name}"))?;
                thread::sleep(STAGGER.saturating_sub(clock::since(began)) / 2);
                let seen = control::start_and_ask(&self.ebb, &self.app, folder)?;
                let executions = self.executions.take_with(journey::EBB)?;
                seen.split(&executions, &mut controls).context("starting by hand")?;
                thread::sleep(STAGGER.saturating_sub(clock::since(began)));
            }
        }
        Ok((wakes, controls))
    }
}

fn report_condition(condition: &str, wakes: &Stages, controls: &Stages, report: &mut Report) {
    let columns = ["stage, in ms", "wake p50", "p90", "p99", "most", "by hand p50", "p99"];
    let mut table = Table::new(&format!("{condition}: {} wakes", wakes.whole.0.len()), &columns);
    for ((stage, wake), (_, control)) in wakes.rows().into_iter().zip(controls.rows()) {
        let numbers = [
            wake.quantile(500),
            wake.quantile(900),
            wake.quantile(990),
            wake.most(),
            control.quantile(500),
            control.quantile(990),
        ];
        table.row([stage.to_owned()].into_iter().chain(numbers.map(|number| format!("{number:.2}"))));
        report.measured(condition, "wake", &format!("{stage}, ms"), wake);
        report.measured(condition, "by hand", &format!("{stage}, ms"), control);
    }
    report.table(table);
    let control_p99 = controls.start.quantile(990);
    let goals = [
        ("first byte → first process, p50 in ms", wakes.start.quantile(500), 2.0),
        ("first byte → first process, p99 in ms", wakes.start.quantile(990), (control_p99 + 5.0).max(10.0)),
        ("app accepts → first forwarded byte, p50 in ms", wakes.forwarded.quantile(500), 5.0),
        ("app accepts → first forwarded byte, p99 in ms", wakes.forwarded.quantile(990), 20.0),
        ("whole wake, p50 in ms", wakes.whole.quantile(500), controls.whole.quantile(500) + 15.0),
    ];
    for (goal, found, limit) in goals {
        report.goal(Goal::at_most(&format!("{condition}: {goal}"), found, limit));
    }
    let first_half = Samples(controls.whole.0.iter().copied().step_by(2).collect());
    let second_half = Samples(controls.whole.0.iter().copied().skip(1).step_by(2).collect());
    report.note(format!(
        "Noise ({condition}): every other control takes {:.2} ms at the median, the others {:.2} ms.",
        first_half.median(),
        second_half.median()
    ));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Busy {
    No,
    OneCore,
}

/// Keeps the first core busy until it is dropped.
struct Spinning {
    is_over: std::sync::Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Spinning {
    fn start(busy: Busy) -> anyhow::Result<Option<Self>> {
        if busy == Busy::No {
            return Ok(None);
        }
        let cores = Cores::divide()?;
        let is_over = std::sync::Arc::<AtomicBool>::default();
        let watched = std::sync::Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            // Wherever it runs, a core is busy.
            let _ = move_this_thread_to(&cores.contestant);
            while !watched.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Ok(Some(Self { is_over, thread: Some(thread) }))
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}
