//! A burst at an app whose start keeps a core busy: does the machine answer, or does it only start pods?
//!
//! `cargo bench -p tests --bench slow-starters`. A start takes 0.7 s of a core, a pod one request at a time,
//! and 60 clients ask again as soon as they are answered. Left alone, the revision wants a pod for each of
//! them. The controls are the same with a `max-scale` that somebody set by hand; the best of them is the
//! goal. Once requests keep a core busy themselves (then a few pods answer as much as any number), and once
//! they only wait (then more pods answer more, as soon as they have started).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use tests::bench::up::{Up, asleep, executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table};
use tests::{Load, Tally};

const NAME: &str = "interpreter";
const CLIENTS: usize = 60;
/// What a start takes of a core, in milliseconds.
const START_WORK: &str = "700";

/// A kind of request: its name and its path.
struct Kind {
    name: &'static str,
    path: &'static str,
}

const KINDS: [Kind; 2] =
    [Kind { name: "work of 50 ms", path: "/work/50" }, Kind { name: "waits 500 ms", path: "/hold/500" }];

/// Set by hand; the first is nothing.
const MAX_SCALES: [Option<&str>; 5] = [None, Some("2"), Some("4"), Some("10"), Some("30")];

struct Bench {
    ebb: PathBuf,
    app: PathBuf,
    time: Duration,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    let [ebb, app] = executables()?;
    let bench = Bench { ebb, app, time: options.turn(20) };
    let rounds = options.rounds(3, 1);
    let mut report = Report::new("slow-starters", options.quick, rounds);
    for kind in KINDS.iter().filter(|kind| options.includes(kind.name)) {
        let mut answers: Vec<Samples> = MAX_SCALES.iter().map(|_| Samples::new()).collect();
        for _ in 0..rounds {
            for (max_scale, answers) in MAX_SCALES.iter().zip(&mut answers) {
                answers.push(bench.burst(kind, *max_scale)?);
            }
        }
        fill(&mut report, kind, &answers);
    }
    report.finish(options.json.as_deref())
}

fn fill(report: &mut Report, kind: &Kind, answers: &[Samples]) {
    let mut table = Table::new(kind.name, &["max-scale", "answers: median [least … most]"]);
    for (max_scale, answers) in MAX_SCALES.iter().zip(answers) {
        let label = max_scale.unwrap_or("none");
        table.row([label.to_owned(), answers.summary(0)]);
        report.measured(kind.name, &format!("max-scale {label}"), "answers", answers);
    }
    report.table(table);
    let [ours, by_hand @ ..] = answers else { return };
    let best = by_hand.iter().map(Samples::median).fold(0.0, f64::max);
    let goal = format!("{}: best set by hand ÷ left alone", kind.name);
    report.goal(Goal::at_most(&goal, best / ours.median(), 1.1));
}

impl Bench {
    /// How many requests were answered while the clients asked, on a fresh `ebb up`.
    fn burst(&self, kind: &Kind, max_scale: Option<&str>) -> anyhow::Result<f64> {
        let app = service(NAME, &self.app).args(&["--start-work", START_WORK]);
        let mut app = app.spec("containerConcurrency: 1");
        if let Some(max_scale) = max_scale {
            app = app.scaling("max-scale", max_scale);
        }
        let up = Up::start(&self.ebb, std::slice::from_ref(&app), &asleep())?;
        let load = Load::new(up.requests(), &app.host()).path(kind.path);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let tally: Tally = runtime.block_on(load.closed_loop(CLIENTS, self.time));
        ensure!(tally.answered() == tally.sent, "not all were answered: {:?}", tally.outcomes);
        // Each client's last request was under way when the time was over.
        let answers = tally.sent.saturating_sub(CLIENTS);
        Ok(f64::from(u32::try_from(answers)?))
    }
}
