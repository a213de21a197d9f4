//! Ten minutes of everything at once: does anything grow, and is anything lost?
//!
//! `cargo bench -p tests --bench soak`. Steady load, bursts, services that wake and fall asleep, apps that
//! are killed, templates that are edited. Each second the memory, open files, threads and tasks of `ebb up`
//! and of a queue-proxy that lives throughout are noted.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use tests::bench::plot::{Chart, Line, charts};
use tests::bench::process::{memory, open_files, threads};
use tests::bench::report::Met;
use tests::bench::up::{executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock};
use tests::ebb::signal_process;
use tests::{ConfigMap, Ebb, Load, Service, Tally};
use tokio::task::JoinSet;

/// The time is told in tenths of the whole: minutes, in the full form.
const TENTHS: u32 = 10;
const FULL: u32 = 600;
const QUICK: u32 = 20;
/// A median that grew by less is flat.
const FLAT: f64 = 1.05;
/// So many files, threads or tasks more are pods that happened to be there.
const FEW: f64 = 3.0;
const WAKERS: u32 = 3;
/// How long the first pod may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process holds, second by second.
struct Watched {
    name: &'static str,
    pid: u32,
    /// The address of the program's page with metrics.
    metrics: SocketAddr,
    rss: Samples,
    files: Samples,
    threads: Samples,
    tasks: Samples,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read_whole();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(soak(&options))
}

async fn soak(options: &Options) -> anyhow::Result<()> {
    let time = Duration::from_secs(options.choose(FULL, QUICK).into());
    let [ebb, app] = executables()?;
    let services: Vec<Service> = ["steady", "bursty", "killed", "edited"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..WAKERS).map(|number| format!("waker-{number}")))
        .map(|name| service(&name, &app))
        .map(|service| match service.name() {
            "steady" | "edited" => service.scaling("min-scale", "1").scaling("target", "10"),
            "killed" => service.scaling("min-scale", "2").scaling("target", "10"),
            _ => service.scaling("target", "10"),
        })
        .collect();
    let ebb = Ebb::up_as(&ebb, &services, &ConfigMap::short(), &["--log", "warn"]).await;
    let queue_proxy: u32 = api::until(PATIENCE, || detail(&ebb, "steady", "queue_proxy_pid"))?;
    let metrics = api::until(PATIENCE, || detail(&ebb, "steady", "metrics_port"))?;
    let metrics = SocketAddr::from((Ipv4Addr::LOCALHOST, metrics));
    let mut watched =
        [Watched::new("ebb up", ebb.pid(), ebb.api), Watched::new("queue-proxy", queue_proxy, metrics)];
    let mut loads = JoinSet::new();
    start_loads(&ebb, time, &mut loads);
    let (tally, ()) = tokio::try_join!(
        async { Ok(finish(loads).await) },
        disturb_and_watch(&ebb, &services, time, &mut watched),
    )?;
    let mut report = Report::new("soak", options.quick, 1);
    fill(&mut report, &watched, &tally);
    if let Some(path) = &options.svg {
        charts(path, &pictures(&watched))?;
    }
    report.finish(options.json.as_deref())
}

/// Everything that sends requests for the whole time.
fn start_loads(ebb: &Ebb, time: Duration, loads: &mut JoinSet<Tally>) {
    let load = |service: &str| ebb.load(service).path("/hold/20");
    for (service, per_second) in [("steady", 50), ("killed", 20), ("edited", 20)] {
        let load = load(service);
        loads.spawn(async move { load.steady(per_second, time).await });
    }
    let bursty = load("bursty");
    loads.spawn(repeat(time, Duration::from_secs(10), Duration::ZERO, move || {
        let bursty = bursty.clone();
        async move { bursty.burst(200).await }
    }));
    for number in 0..WAKERS {
        let waker = load(&format!("waker-{number}"));
        let delay = Duration::from_millis(700) * number;
        // Longer than a service takes to fall asleep.
        loads.spawn(repeat(time, Duration::from_secs(12), delay, move || one(waker.clone())));
    }
}

async fn one(load: Load) -> Tally {
    load.one().await
}

/// Does something again and again for a time.
async fn repeat<Work: Future<Output = Tally>>(
    time: Duration,
    every: Duration,
    delay: Duration,
    work: impl Fn() -> Work,
) -> Tally {
    let ended = clock::now() + time;
    let mut tally = Tally::default();
    tokio::time::sleep(delay).await;
    let mut ticks = tokio::time::interval(every);
    while clock::now() < ended {
        tally.merge(work().await);
        ticks.tick().await;
    }
    tally
}

async fn finish(mut loads: JoinSet<Tally>) -> Tally {
    let mut tally = Tally::default();
    while let Some(done) = loads.join_next().await {
        tally.merge(done.expect("a load does not panic"));
    }
    tally
}

/// Looks each second; kills an app every quarter of a tenth and edits a template every half of one.
async fn disturb_and_watch(
    ebb: &Ebb,
    services: &[Service],
    time: Duration,
    watched: &mut [Watched],
) -> anyhow::Result<()> {
    let tenth = time.as_secs() / u64::from(TENTHS);
    let (kill_every, edit_every) = ((tenth / 4).max(4), (tenth / 2).max(7));
    let edited = services.iter().find(|service| service.name() == "edited").context("it is there")?;
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    for second in 1..=time.as_secs() {
        seconds.tick().await;
        for watched in &mut *watched {
            watched.look()?;
        }
        if second.is_multiple_of(kill_every) {
            // Right after another kill there may be none.
            if let Ok(app) = detail(ebb, "killed", "app_pid") {
                signal_process(app, Signal::SIGKILL);
            }
        }
        if second.is_multiple_of(edit_every) {
            ebb.rewrite(&edited.clone().env("EDITION", &second.to_string()));
        }
    }
    Ok(())
}

/// A number, of the first pod of a service that has one.
fn detail<Number: FromStr>(ebb: &Ebb, service: &str, which: &str) -> anyhow::Result<Number> {
    let revision = api::get_json(ebb.api, &format!("/v1/revisions/default/service/{service}"))?;
    let pods = revision["pods"].as_array().context("a list of pods")?;
    let number = pods.iter().find_map(|pod| pod["details"][which].as_str()?.parse().ok());
    number.with_context(|| format!("{service} has no {which}"))
}

impl Watched {
    fn new(name: &'static str, pid: u32, metrics: SocketAddr) -> Self {
        let [rss, files, threads, tasks] = std::array::from_fn(|_| Samples::new());
        Self { name, pid, metrics, rss, files, threads, tasks }
    }

    fn look(&mut self) -> anyhow::Result<()> {
        let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.rss.push(memory(self.pid).with_context(|| format!("{} is gone", self.name))?.rss);
        self.files.push(count(open_files(self.pid)));
        self.threads.push(count(threads(self.pid).len()));
        self.tasks.push(self.count_tasks()?);
        Ok(())
    }

    /// The number of tasks on all runtimes of the program.
    fn count_tasks(&self) -> anyhow::Result<f64> {
        let page = api::get(self.metrics, "localhost", "/metrics")?;
        let counts = page.lines().filter_map(|line| {
            line.strip_prefix("runtime_tasks ").or_else(|| line.strip_prefix("activator_tasks "))
        });
        let counts = counts.map(str::parse::<f64>).collect::<Result<Vec<_>, _>>()?;
        ensure!(!counts.is_empty(), "{} does not say how many tasks it has", self.name);
        Ok(counts.iter().sum())
    }

    fn rows(&self) -> [(&'static str, &Samples, f64); 4] {
        [
            ("RSS MB", &self.rss, 0.0),
            ("open files", &self.files, FEW),
            ("threads", &self.threads, FEW),
            ("tasks", &self.tasks, FEW),
        ]
    }
}

/// One of the ten parts of what was noted, from 0.
fn tenth(samples: &Samples, which: usize) -> Samples {
    let length = samples.0.len() / 10;
    Samples(samples.0.iter().copied().skip(which * length).take(length).collect())
}

fn fill(report: &mut Report, watched: &[Watched], tally: &Tally) {
    let mut table = Table::new("Growth", &["", "", "second minute", "last minute"]);
    for watched in watched {
        for (what, samples, few) in watched.rows() {
            let (early, late) = (tenth(samples, 1), tenth(samples, 9));
            table.row([watched.name.to_owned(), what.to_owned(), early.summary(1), late.summary(1)]);
            report.measured("soak", watched.name, what, samples);
            let goal =
                format!("{}, {what}: the last minute's median within that of the second", watched.name);
            report.goal(Goal::at_most(
                &goal,
                late.median(),
                (early.median() * FLAT).max(early.median() + few),
            ));
        }
    }
    report.table(table);
    let mut requests = Table::new("Requests", &["", ""]);
    for (what, count) in [
        ("sent", tally.sent),
        ("answered", tally.answered()),
        ("refused with a reason", tally.refused()),
        ("stated exceptions", tally.excepted()),
        ("lost", tally.lost()),
    ] {
        requests.row([what.to_owned(), count.to_string()]);
    }
    report.table(requests);
    let accounted = tally.sent == tally.answered() + tally.refused() + tally.excepted() + tally.lost();
    let found = format!("{} lost of {}", tally.lost(), tally.sent);
    report.goal(Goal::holds("no request is lost", found, Met::from(accounted && tally.lost() == 0)));
    report.note("Noise: the extremes within a minute, in the table.");
    report.note(format!("How requests ended: {:?}", tally.outcomes));
}

fn pictures(watched: &[Watched]) -> Vec<Chart> {
    let chart = |title: &str, of: fn(&Watched) -> &Samples| Chart {
        title: title.to_owned(),
        unit: String::new(),
        lines: watched
            .iter()
            .map(|watched| Line {
                label: watched.name.to_owned(),
                points: (1..).map(f64::from).zip(of(watched).0.iter().copied()).collect(),
            })
            .collect(),
    };
    vec![
        chart("Resident memory, MB", |watched| &watched.rss),
        chart("Open files", |watched| &watched.files),
        chart("Threads", |watched| &watched.threads),
        chart("Tasks", |watched| &watched.tasks),
    ]
}
