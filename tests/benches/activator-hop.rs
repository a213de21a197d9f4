//! What the activator costs as a hop before the queue-proxies, beside HAProxy in its place, with one revision
//! and with a hundred.
//!
//! `cargo bench -p tests --bench activator-hop`. The activator's CPU time is that of its own threads in `ebb
//! up`. HAProxy chooses by Host too, and takes part twice; each has one core and finds no other, so each has
//! one thread. Behind it each app has a second queue-proxy: those of the pods tell strangers to reconnect
//! while the activator is in the path. An executable of another version in `$EBB_FORMER_EXECUTABLE` takes
//! part too, and this one may cost no more than that.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::ConfigMap;
use tests::bench::executables::former_ebb;
use tests::bench::machine::{self, Cores, move_to, starting_on};
use tests::bench::plot::{self, Bar};
use tests::bench::process::{cpu_time, cpu_time_of_threads};
use tests::bench::proxies::{Place, Protocol, Server, Target, haproxy_by_host, queue_proxy};
use tests::bench::up::{Up, executables, service};
use tests::bench::wrk::{Requests, Seen, Wrk};
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock, no_dearer_than_before, rotated};

const ACTIVATOR: &str = "activator";
const HAPROXY: &str = "HAProxy";
const CONTROL: &str = "HAProxy again";
/// The activator of the version before.
const FORMER: &str = "activator before";
/// How all threads of the activator are called.
const THREADS: &str = "activator-";
const LIMIT: f64 = 1.2;
const PATIENCE: Duration = Duration::from_secs(120);

struct Cell {
    name: &'static str,
    connections: usize,
    path: &'static str,
    upload: usize,
}

const CELLS: [Cell; 6] = [
    Cell { name: "1x12B", connections: 1, path: "/bytes/12", upload: 0 },
    Cell { name: "64x12B", connections: 64, path: "/bytes/12", upload: 0 },
    Cell { name: "1000x12B", connections: 1000, path: "/bytes/12", upload: 0 },
    Cell { name: "64x16KB", connections: 64, path: "/bytes/16384", upload: 0 },
    Cell { name: "64x1MB", connections: 64, path: "/bytes/1048576", upload: 0 },
    Cell { name: "64x64KB-upload", connections: 64, path: "/upload", upload: 65536 },
];

/// A revision with its pod, and a queue-proxy for HAProxy before the same app.
struct Pod {
    host: String,
    app: u16,
    queue_proxy: Server,
}

/// An `ebb up` with its revisions.
struct Contender {
    up: Up,
    pods: Vec<Pod>,
}

/// Every process that the benchmark has started.
struct Field<'a> {
    ours: Contender,
    former: Option<Contender>,
    proxies: BTreeMap<&'static str, Server>,
    cores: Cores,
    folder: &'a Path,
}

#[derive(Default)]
struct Turns {
    cpu_us: Samples,
    rate: Samples,
    p50_us: Samples,
    p99_us: Samples,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    machine::require(&[("wrk", "wrk"), ("haproxy", "haproxy")])?;
    machine::raise_open_files()?;
    let rounds = options.rounds(10, 1);
    let mut report = Report::new("activator-hop", options.quick, rounds);
    let mut bars = Vec::new();
    for revisions in [1, options.choose(100, 5)] {
        let folder = tempfile::tempdir()?;
        let field = Field::start(revisions, folder.path())?;
        let short = ["64x12B", "64x64KB-upload"];
        for cell in CELLS.iter().filter(|cell| !options.quick || short.contains(&cell.name)) {
            let name = format!("{revisions} revisions, {}", cell.name);
            if !options.includes(&name) {
                continue;
            }
            let played = field.play(cell, &options, rounds);
            let Some(turns) = report.unless_failed(&name, played) else { continue };
            fill(&mut report, &name, &turns);
            let ratio = turns[ACTIVATOR].cpu_us.over(&turns[HAPROXY].cpu_us);
            bars.push(Bar { label: name, median: ratio.median(), least: ratio.least(), most: ratio.most() });
        }
    }
    if let Some(path) = &options.svg {
        plot::bars(path, "The activator's CPU time per request, HAProxy = 1", &bars, Some(LIMIT))?;
    }
    report.finish(options.json.as_deref())
}

impl Contender {
    fn start(revisions: usize, ebb: &Path, app: &Path, cores: &Cores, folder: &Path) -> anyhow::Result<Self> {
        let names: Vec<String> = (0..revisions).map(|number| format!("hop-{number}")).collect();
        let services: Vec<_> = names.iter().map(|name| service(name, app)).collect();
        // The activator is in the path whatever the load, and no pod comes or goes.
        let config = ConfigMap::default()
            .set("target-burst-capacity", "-1")
            .set("min-scale", "1")
            .set("max-scale", "1");
        // It has as many threads as it finds cores: one, as HAProxy has.
        let up = starting_on(&cores.contestant, || Up::start(ebb, &services, &config))??;
        let beside = Place { folder, cores: &cores.load };
        let pods = names.iter().map(|name| pod(&up, name, ebb, beside)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { up, pods })
    }

    fn served(&self) -> anyhow::Result<f64> {
        self.pods.iter().try_fold(0.0, |sum, pod| {
            let app = SocketAddr::from((Ipv4Addr::LOCALHOST, pod.app));
            Ok(sum + api::get(app, "localhost", "/served")?.trim().parse::<f64>()?)
        })
    }
}

impl<'a> Field<'a> {
    fn start(revisions: usize, folder: &'a Path) -> anyhow::Result<Self> {
        let cores = Cores::divide()?;
        let [ebb, app] = executables()?;
        let ours = Contender::start(revisions, &ebb, &app, &cores, folder)?;
        let former = former_ebb().map(|former| Contender::start(revisions, &former, &app, &cores, folder));
        let routes: Vec<_> = ours.pods.iter().map(|pod| (pod.host.clone(), pod.queue_proxy.port)).collect();
        let place = Place { folder, cores: &cores.contestant };
        let mut proxies = BTreeMap::new();
        for (name, file) in [(HAPROXY, "haproxy"), (CONTROL, "haproxy-control")] {
            proxies.insert(name, haproxy_by_host(file, &routes, place)?);
        }
        Ok(Self { ours, former: former.transpose()?, proxies, cores, folder })
    }

    /// The `ebb up` that serves in a contestant's turn: HAProxy stands before the pods of ours.
    fn contender(&self, name: &str) -> &Contender {
        self.former.as_ref().filter(|_| name == FORMER).unwrap_or(&self.ours)
    }

    fn play(&self, cell: &Cell, options: &Options, rounds: usize) -> anyhow::Result<BTreeMap<&str, Turns>> {
        let mut turns: BTreeMap<&str, Turns> = BTreeMap::new();
        let former = self.former.as_ref().map(|_| FORMER);
        let contestants: Vec<&str> = [ACTIVATOR, HAPROXY, CONTROL].into_iter().chain(former).collect();
        for round in 0..rounds {
            for &name in rotated(&contestants, round) {
                self.turn(cell, name, options.turn(2), turns.entry(name).or_default()).context(name)?;
            }
        }
        Ok(turns)
    }

    fn turn(&self, cell: &Cell, name: &str, time: Duration, turn: &mut Turns) -> anyhow::Result<()> {
        let (proxy, contender) = (self.proxies.get(name), self.contender(name));
        let port = proxy.map_or(contender.up.requests().port(), |proxy| proxy.port);
        let (seen, cpu_us) = thread::scope(|scope| {
            let loading = scope.spawn(|| self.load(cell, port, time));
            let cpu_us = Self::cpu_of_the_middle(proxy, contender, time);
            let seen = loading.join().expect("loading does not panic")?;
            anyhow::Ok((seen, cpu_us?))
        })?;
        turn.cpu_us.push(cpu_us);
        turn.rate.push(seen.rate);
        turn.p50_us.push(clock::micros(seen.p50));
        turn.p99_us.push(clock::micros(seen.p99));
        Ok(())
    }

    fn load(&self, cell: &Cell, port: u16, time: Duration) -> anyhow::Result<Seen> {
        let hosts = self.ours.pods.iter().map(|pod| pod.host.clone()).collect();
        let requests = Requests::Hosts(hosts, cell.upload);
        let wrk = Wrk::new(self.folder, "load", &requests)?;
        wrk.path(cell.path).connections(cell.connections).cores(&self.cores.load).run(port, time)
    }

    /// Microseconds of CPU time per request that the apps answer, without the beginning, in which connections
    /// are made, and the end.
    fn cpu_of_the_middle(
        proxy: Option<&Server>,
        contender: &Contender,
        time: Duration,
    ) -> anyhow::Result<f64> {
        let cpu = || match proxy {
            Some(proxy) => cpu_time(proxy.process.pid()),
            None => cpu_time_of_threads(contender.up.pid(), THREADS),
        };
        thread::sleep(time.mul_f64(0.3));
        let (before, served_before) = (cpu()?, contender.served()?);
        thread::sleep(time.mul_f64(0.5));
        let (after, served_after) = (cpu()?, contender.served()?);
        Ok(clock::micros(after.saturating_sub(before)) / (served_after - served_before))
    }
}

/// The one pod of a service, moved to where the load is.
fn pod(up: &Up, service: &str, ebb: &Path, beside: Place<'_>) -> anyhow::Result<Pod> {
    let found = api::until(PATIENCE, || {
        let revision = up.revision(service)?;
        let pod = &revision["pods"][0];
        ensure!(pod["state"] == "ready", "{service} has no ready pod");
        Ok(pod.clone())
    })?;
    let detail = |name: &str| {
        let text = found["details"][name].as_str();
        text.and_then(|text| text.parse::<u32>().ok()).with_context(|| format!("{name} in {found}"))
    };
    for process in ["queue_proxy_pid", "app_pid"] {
        move_to(beside.cores, detail(process)?)?;
    }
    let app: u16 = detail("app_port")?.try_into()?;
    let target = Target { protocol: Protocol::Http1, port: app };
    Ok(Pod {
        host: format!("{service}.default.example.com"),
        app,
        queue_proxy: queue_proxy(ebb, target, 0, beside)?,
    })
}

fn fill(report: &mut Report, cell: &str, turns: &BTreeMap<&str, Turns>) {
    let columns = ["contestant", "CPU µs/request", "× HAProxy", "requests/s", "p50 µs", "p99 µs"];
    let mut table = Table::new(cell, &columns);
    let reference = &turns[HAPROXY];
    for (&name, turn) in turns {
        let ratio = turn.cpu_us.over(&reference.cpu_us);
        table.row([
            name.to_owned(),
            turn.cpu_us.summary(2),
            ratio.summary(2),
            turn.rate.summary(0),
            turn.p50_us.summary(0),
            turn.p99_us.summary(0),
        ]);
        report.measured(cell, name, "CPU µs/request", &turn.cpu_us);
        report.measured(cell, name, "CPU ratio to HAProxy", &ratio);
        report.measured(cell, name, "requests/s", &turn.rate);
        report.measured(cell, name, "p50 µs", &turn.p50_us);
        report.measured(cell, name, "p99 µs", &turn.p99_us);
    }
    report.table(table);
    if let Some(former) = turns.get(FORMER) {
        let noise = turns[CONTROL].cpu_us.less(&reference.cpu_us);
        report.goal(no_dearer_than_before(cell, &turns[ACTIVATOR].cpu_us, &former.cpu_us, &noise));
    }
    let noise = turns[CONTROL].cpu_us.over(&reference.cpu_us).summary(2);
    let ratio = turns[ACTIVATOR].cpu_us.over(&reference.cpu_us).median();
    let goal = Goal::at_most(&format!("{cell}: CPU per request × HAProxy's"), ratio, LIMIT);
    report.goal(goal.beside(&format!("HAProxy again {noise}")));
}
