//! What the autoscaler asks for when the number of clients jumps: how soon, and never too much.
//!
//! `cargo bench -p tests --bench step`. Requests of 100 ms, 10 at most in a pod (so 7 aimed at), and clients
//! that send their next request when the former is answered: from none to 50, and from 10 to 200; in the
//! first round also back. Beside it the same with `surge-evaluation: "false"`, which waits for ticks.

use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::bench::plot::{Chart, Line, charts};
use tests::bench::up::{Up, asleep, executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table, clock};
use tests::{Load, Tally};

/// What the poller waits between two looks, which bounds the resolution.
const LOOK_EVERY: Duration = Duration::from_millis(4);
const NAME: &str = "steps";

/// A jump in the number of clients.
#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    before: usize,
    after: usize,
    /// Pods for `before` and `after` at 7 requests in each.
    pods: [u64; 2],
}

const STEPS: [Step; 2] = [
    Step { name: "0 to 50 clients", before: 0, after: 50, pods: [0, 8] },
    Step { name: "10 to 200 clients", before: 10, after: 200, pods: [2, 29] },
];

#[derive(Clone, Copy, PartialEq, Eq)]
struct Contestant {
    name: &'static str,
    surge_evaluation: &'static str,
}

const OURS: Contestant = Contestant { name: "surge evaluation", surge_evaluation: "true" };
const WITHOUT: Contestant = Contestant { name: "ticks only", surge_evaluation: "false" };

/// How long each part of a round takes.
struct Phases {
    before: Duration,
    high: Duration,
    /// Zero in all rounds but the first.
    low: Duration,
}

/// One look at the revision.
#[derive(Clone, Copy)]
struct Look {
    at: Duration,
    wanted: u64,
    ready: u64,
}

/// The numbers that one round showed.
struct Round {
    looks: Vec<Look>,
    /// The time at which the additional clients came.
    stepped: Duration,
    /// When those that came had gone.
    ended: Duration,
}

#[derive(Default)]
struct Results {
    /// From the step to the right count being asked for, in ms.
    reaction: Samples,
    /// From the step to as many pods being ready, in ms.
    ready: Samples,
    /// The most pods asked for.
    most: Samples,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    let rounds = options.rounds(10, 1);
    let mut report = Report::new("step", options.quick, rounds);
    let mut drawn = Vec::new();
    for step in STEPS.into_iter().filter(|step| options.includes(step.name)) {
        let (mut ours, mut without) = (Results::default(), Results::default());
        let mut lines = Vec::new();
        for round in 0..rounds {
            for turn in 0..2 {
                let contestant = if (round + turn) % 2 == 0 { OURS } else { WITHOUT };
                let seen = play(&options, step, contestant, round)
                    .with_context(|| format!("{}, {}", step.name, contestant.name))?;
                let results = if contestant == OURS { &mut ours } else { &mut without };
                results.add(step, &seen);
                if round == 0 {
                    lines.extend(seen.lines(contestant));
                }
            }
        }
        fill(&mut report, step, &ours, &without);
        drawn.push(Chart { title: step.name.to_owned(), unit: "pods".to_owned(), lines });
    }
    if let Some(path) = &options.svg {
        charts(path, &drawn)?;
    }
    report.finish(options.json.as_deref())
}

/// One round of one contestant, on a fresh `ebb up`.
fn play(options: &Options, step: Step, contestant: Contestant, round: usize) -> anyhow::Result<Round> {
    let [ebb, app] = executables()?;
    let back = if round == 0 { options.choose(30, 3) } else { 0 };
    let phases = Phases {
        before: Duration::from_secs(if step.before == 0 { 0 } else { options.choose(6, 4) }),
        high: Duration::from_secs(options.choose(6, 2)),
        low: Duration::from_secs(back),
    };
    let config = asleep().set("stable-window", "10s").set("surge-evaluation", contestant.surge_evaluation);
    let service = service(NAME, &app).spec("containerConcurrency: 10");
    let up = Up::start(&ebb, &[service], &config)?;
    let load = Load::new(up.requests(), &format!("{NAME}.default.example.com")).path("/hold/100");
    let all = phases.before + phases.high + phases.low;
    let round = thread::scope(|scope| {
        let steady = (step.before > 0).then(|| scope.spawn(|| clients(&load, step.before, all)));
        let mut looks = Vec::new();
        look_for(phases.before, &up, &mut looks)?;
        if let Some(last) = looks.last() {
            ensure!(last.ready == step.pods[0], "before the step {} pods are ready", last.ready);
        }
        let stepped = clock::now();
        let more = scope.spawn(|| clients(&load, step.after - step.before, phases.high));
        look_for(phases.high, &up, &mut looks)?;
        let ended = clock::now();
        more.join().expect("clients do not panic")?;
        look_for(phases.low, &up, &mut looks)?;
        steady.map_or(Ok(()), |clients| clients.join().expect("clients do not panic"))?;
        anyhow::Ok(Round { looks, stepped, ended })
    })?;
    Ok(round)
}

/// Clients that keep asking for a time. Every request must be answered.
fn clients(load: &Load, count: usize, time: Duration) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tally: Tally = runtime.block_on(load.clone().with_own_connections().closed_loop(count, time));
    ensure!(tally.sent > 0 && tally.answered() == tally.sent, "not all were answered: {:?}", tally.outcomes);
    Ok(())
}

fn look(up: &Up) -> anyhow::Result<Look> {
    let revision = up.revision(NAME)?;
    let number = |name: &str| revision[name].as_u64().with_context(|| format!("{name} in {revision}"));
    Ok(Look { at: clock::now(), wanted: number("wanted")?, ready: number("ready_pods")? })
}

fn look_for(time: Duration, up: &Up, looks: &mut Vec<Look>) -> anyhow::Result<()> {
    let began = clock::now();
    while clock::since(began) < time {
        looks.push(look(up)?);
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

impl Round {
    /// When the step is how far behind, in ms; `NaN` if it was not reached while the clients were there.
    fn reached(&self, holds: impl Fn(&Look) -> bool) -> f64 {
        let mut looks = self.looks.iter().filter(|look| look.at >= self.stepped && look.at <= self.ended);
        looks
            .find(|look| holds(look))
            .map_or(f64::NAN, |look| clock::millis(look.at.saturating_sub(self.stepped)))
    }

    fn lines(&self, contestant: Contestant) -> Vec<Line> {
        let line = |what: &str, value: fn(&Look) -> u64| Line {
            label: format!("{what}, {}", contestant.name),
            points: stairs(self.looks.iter().map(|look| (look.at, value(look)))),
        };
        vec![line("wanted", |look| look.wanted), line("ready", |look| look.ready)]
    }
}

/// Only where the value changes, with both ends of each stair.
fn stairs(values: impl Iterator<Item = (Duration, u64)>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut began = None;
    for (at, value) in values {
        let began = *began.get_or_insert(at);
        let second = at.saturating_sub(began).as_secs_f64();
        let value = f64::from(u32::try_from(value).unwrap_or(u32::MAX));
        if let Some(&(_, last)) = points.last() {
            points.push((second, last));
        }
        points.push((second, value));
    }
    points.dedup();
    points
}

impl Results {
    fn add(&mut self, step: Step, round: &Round) {
        let need = step.pods[1];
        self.reaction.push(round.reached(|look| look.wanted >= need));
        self.ready.push(round.reached(|look| look.ready >= need));
        let most = round.looks.iter().map(|look| look.wanted).max().unwrap_or(0);
        self.most.push(f64::from(u32::try_from(most).unwrap_or(u32::MAX)));
    }
}

fn fill(report: &mut Report, step: Step, ours: &Results, without: &Results) {
    let need = step.pods[1];
    let title = format!("{}: {need} pods needed", step.name);
    let mut table = Table::new(&title, &["", "asked for after ms", "ready after ms", "most pods asked for"]);
    for (contestant, results) in [(OURS, ours), (WITHOUT, without)] {
        table.row([
            contestant.name.to_owned(),
            results.reaction.summary(0),
            results.ready.summary(0),
            results.most.summary(0),
        ]);
        report.measured(step.name, contestant.name, "asked for after ms", &results.reaction);
        report.measured(step.name, contestant.name, "ready after ms", &results.ready);
        report.measured(step.name, contestant.name, "most pods", &results.most);
    }
    report.table(table);
    let goal = format!("{}: the right count asked for after ms, in the worst round", step.name);
    let worst =
        if ours.reaction.0.iter().any(|time| time.is_nan()) { f64::NAN } else { ours.reaction.most() };
    report.goal(Goal::at_most(&goal, worst, 100.0));
    let need = f64::from(u32::try_from(need).unwrap_or(u32::MAX));
    let goal = format!("{}: never more pods than need", step.name);
    report.goal(Goal::at_most(&goal, ours.most.most(), need));
}
