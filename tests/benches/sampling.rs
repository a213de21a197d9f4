//! What does it cost to know what pods use? Once a second `ebb pod` reads CPU time and memory of its app and
//! of everything below it.
//!
//! `cargo bench -p tests --bench sampling`. Ten pods whose apps do nothing; `ebb pod` does nothing else
//! meanwhile, so its CPU time is that of the sampling.

use std::time::Duration;

use anyhow::ensure;
use tests::bench::process::{cpu_time, parent_of};
use tests::bench::up::{executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table};
use tests::{ConfigMap, Ebb};

const PODS: usize = 10;
/// How long each round lasts, in seconds, and how many there are.
const FULL: (u32, u32) = (20, 5);
const QUICK: (u32, u32) = (3, 1);
/// Of a core, for all of them.
const GOAL_PERCENT: f64 = 0.2;
/// How long the pods may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let options = Options::read_whole();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&options))
}

async fn measure(options: &Options) -> anyhow::Result<()> {
    let (seconds, rounds) = options.choose(FULL, QUICK);
    let [ebb, app] = executables()?;
    let service = service("idle", &app).scaling("min-scale", &PODS.to_string());
    let ebb = Ebb::up_as(&ebb, &[service], &ConfigMap::short(), &["--log", "warn"]).await;
    let ready = ebb.until_within("idle", "ten ready pods", PATIENCE, |revision| revision.ready() == PODS);
    let revision = ready.await;
    let pods = revision.pids("app_pid").into_iter().map(parent_of).collect::<anyhow::Result<Vec<u32>>>()?;
    ensure!(pods.len() == PODS, "there are {} pods", pods.len());

    let mut shares = Samples::new();
    for _ in 0..rounds {
        let time = Duration::from_secs(seconds.into());
        let before = used(&pods)?;
        tokio::time::sleep(time).await;
        let used = used(&pods)?.saturating_sub(before);
        shares.push(used.as_secs_f64() / time.as_secs_f64() * 100.0);
    }
    let mut report = Report::new("sampling", options.quick, rounds.try_into()?);
    report.measured("sampling", "ten pods", "percent of a core", &shares);
    let mut table = Table::new("Sampling", &["", "percent of a core"]);
    table.row(["ten pods, idle".to_owned(), shares.summary(3)]);
    report.table(table);
    report.goal(Goal::at_most("ten pods: at most 0.2 % of a core", shares.median(), GOAL_PERCENT));
    report.finish(options.json.as_deref())
}

/// The CPU time of all of them together.
fn used(pods: &[u32]) -> anyhow::Result<Duration> {
    pods.iter().map(|pod| cpu_time(*pod)).sum()
}
