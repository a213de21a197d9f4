//! The cells of the comparison: how many connections, which bodies, which protocol.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tests::bench::h2load::H2load;
use tests::bench::machine::Cores;
use tests::bench::plot::Bar;
use tests::bench::process::cpu_time;
use tests::bench::proxies::{
    App, Place, Protocol, Server, haproxy, hyper, nginx, queue_proxy, queue_proxy_named,
};
use tests::bench::wrk::{Requests, Seen, Wrk};
use tests::bench::{
    Goal, Options, Report, Samples, Table, clock, executables, no_dearer_than_before, rotated,
};

const DIRECT: &str = "no proxy";
const HAPROXY: &str = "HAProxy";
const CONTROL: &str = "HAProxy again";
/// What a library in the place of our protocols would cost at least.
const HYPER: &str = "hyper";
/// The contestants that are ours, with their containerConcurrency.
const OURS: [(&str, u32); 2] = [("queue-proxy", 0), ("queue-proxy, limit 100", 100)];
/// The first of ours, of the version before.
const FORMER: &str = "queue-proxy before";

/// One load: its protocol, its connections and its bodies.
#[derive(Clone, Debug)]
struct Cell {
    name: String,
    protocol: Protocol,
    connections: usize,
    /// Requests at once on each connection.
    streams: usize,
    path: &'static str,
    /// Bytes sent with each request.
    upload: usize,
}

/// The bodies that are sent one way or the other.
const BODIES: [(&str, &str, usize); 4] = [
    ("12B", "/bytes/12", 0),
    ("16KB", "/bytes/16384", 0),
    ("1MB", "/bytes/1048576", 0),
    ("64KB-upload", "/upload", 65536),
];

/// A turn has a second for so many bytes that are on their way at once, or hardly a request would end within
/// it.
const BYTES_PER_SECOND: usize = 200 * 1024 * 1024;

/// With a thousand requests at once a proxy that spools bodies can take more than two seconds to answer the
/// first.
const CROWD: (usize, Duration) = (1000, Duration::from_secs(4));

impl Cell {
    fn turn(&self, wanted: Duration) -> Duration {
        let size = self.path.rsplit('/').next().and_then(|size| size.parse().ok()).unwrap_or(self.upload);
        let crowd = self.connections * self.streams;
        let least = if crowd >= CROWD.0 { CROWD.1 } else { Duration::ZERO };
        wanted.max(least).max(Duration::from_secs((crowd * size / BYTES_PER_SECOND) as u64))
    }
}

fn cells(options: &Options) -> Vec<Cell> {
    let http1 = [1, 64, 1000].map(|connections| (Protocol::Http1, connections, 1));
    let h2c = [(1, 1), (64, 1), (10, 10), (100, 10)]
        .map(|(connections, streams)| (Protocol::H2c, connections, streams));
    let mut cells = Vec::new();
    for (protocol, connections, streams) in http1.into_iter().chain(h2c) {
        for (body, path, upload) in BODIES {
            let name = match protocol {
                Protocol::Http1 => format!("{connections}x{body}"),
                Protocol::H2c => format!("h2c-{connections}x{streams}x{body}"),
            };
            cells.push(Cell { name, protocol, connections, streams, path, upload });
        }
    }
    let short = ["64x12B", "64x64KB-upload", "1000x12B", "h2c-64x1x12B", "h2c-10x10x16KB"];
    cells.retain(|cell| match (&options.only, options.quick) {
        (Some(_), _) => options.includes(&cell.name),
        (None, true) => short.contains(&cell.name.as_str()),
        (None, false) => true,
    });
    cells
}

/// Every process that the benchmark has started.
struct Field<'a> {
    app: App,
    cores: Cores,
    folder: &'a Path,
    /// The proxies by name and protocol; `DIRECT` has none.
    proxies: BTreeMap<(&'static str, Protocol), Server>,
}

/// What one contestant's turns in one cell gave.
#[derive(Default)]
struct Turns {
    cpu_us: Samples,
    rate: Samples,
    p50_us: Samples,
    p99_us: Samples,
}

/// Measures all cells; returns what to draw.
pub(crate) fn measure(options: &Options, report: &mut Report) -> anyhow::Result<Vec<Bar>> {
    let cells = cells(options);
    if cells.is_empty() {
        return Ok(Vec::new());
    }
    let folder = tempfile::tempdir()?;
    let field = Field::start(folder.path(), Cores::divide()?)?;
    let mut bars = Vec::new();
    for cell in &cells {
        let Some(turns) = report.unless_failed(&cell.name, field.play(cell, options)) else { continue };
        report_cell(cell, &turns, report);
        for (name, _) in OURS {
            let ratio = turns[name].cpu_us.over(&turns[HAPROXY].cpu_us);
            let label = format!("{}, {name}", cell.name);
            bars.push(Bar { label, median: ratio.median(), least: ratio.least(), most: ratio.most() });
        }
    }
    Ok(bars)
}

impl<'a> Field<'a> {
    fn start(folder: &'a Path, cores: Cores) -> anyhow::Result<Self> {
        let place = Place { folder, cores: &cores.contestant };
        let app = App::start(folder, &cores.load)?;
        let ebb = executables::ebb()?;
        let mut proxies = BTreeMap::new();
        // Towards the app, proxies speak what the client speaks, and our app speaks each on a port of its
        // own.
        for protocol in [Protocol::Http1, Protocol::H2c] {
            let target = app.target(protocol);
            for (name, limit) in OURS {
                proxies.insert((name, protocol), queue_proxy(&ebb, target, limit, place)?);
            }
            if let Some(former) = executables::former_ebb() {
                let name = format!("former-queue-proxy-{}", target.port);
                proxies.insert((FORMER, protocol), queue_proxy_named(&name, &former, target, 0, place)?);
            }
            for name in [HAPROXY, CONTROL] {
                let file = format!("{}-{protocol:?}", name.replace(' ', "-"));
                proxies.insert((name, protocol), haproxy(&file, target, place)?);
            }
            proxies.insert((HYPER, protocol), hyper(target, place)?);
        }
        proxies.insert(("nginx", Protocol::Http1), nginx(app.http1, place)?);
        Ok(Self { app, cores, folder, proxies })
    }

    /// All rounds of one cell.
    fn play(&self, cell: &Cell, options: &Options) -> anyhow::Result<BTreeMap<&'static str, Turns>> {
        let mut names = vec![DIRECT];
        names.extend(
            self.proxies.keys().filter(|(_, spoken)| *spoken == cell.protocol).map(|(name, _)| *name),
        );
        let mut turns: BTreeMap<&'static str, Turns> = BTreeMap::new();
        for round in 0..options.rounds(10, 1) {
            for &name in rotated(&names, round) {
                let proxy = self.proxies.get(&(name, cell.protocol));
                let turn = turns.entry(name).or_default();
                self.turn(cell, proxy, cell.turn(options.turn(2)), turn)
                    .with_context(|| format!("{name}, {}", cell.name))?;
            }
        }
        Ok(turns)
    }

    fn turn(
        &self,
        cell: &Cell,
        proxy: Option<&Server>,
        time: Duration,
        turn: &mut Turns,
    ) -> anyhow::Result<()> {
        let port = proxy.map_or(self.app.target(cell.protocol).port, |proxy| proxy.port);
        let pid = proxy.map_or(self.app.process.pid(), |proxy| proxy.process.pid());
        let (seen, cpu_us) = thread::scope(|scope| {
            let loading = scope.spawn(|| self.load(cell, port, time));
            let cpu_us = self.cpu_of_the_middle(pid, time);
            let seen = loading.join().expect("loading does not panic")?;
            anyhow::Ok((seen, cpu_us?))
        })?;
        turn.cpu_us.push(cpu_us);
        turn.rate.push(seen.rate);
        turn.p50_us.push(clock::micros(seen.p50));
        turn.p99_us.push(clock::micros(seen.p99));
        Ok(())
    }

    /// Microseconds of CPU time per request that the app answers, without the beginning, in which connections
    /// are made, and the end.
    fn cpu_of_the_middle(&self, pid: u32, time: Duration) -> anyhow::Result<f64> {
        thread::sleep(time.mul_f64(0.3));
        let (cpu, served) = (cpu_time(pid)?, self.app.count("served")?);
        thread::sleep(time.mul_f64(0.6));
        let (cpu, served) = (cpu_time(pid)?.saturating_sub(cpu), self.app.count("served")? - served);
        Ok(clock::micros(cpu) / served)
    }

    fn load(&self, cell: &Cell, port: u16, time: Duration) -> anyhow::Result<Seen> {
        let cores = &self.cores.load;
        match cell.protocol {
            Protocol::Http1 => {
                let requests = if cell.upload > 0 { Requests::Post(cell.upload) } else { Requests::Get };
                let wrk = Wrk::new(self.folder, "load", &requests)?;
                wrk.path(cell.path).connections(cell.connections).cores(cores).run(port, time)
            }
            Protocol::H2c => {
                let body = self.folder.join("upload");
                fs::write(&body, vec![b'x'; cell.upload])?;
                let h2load = H2load {
                    connections: cell.connections,
                    streams: cell.streams,
                    path: cell.path.to_owned(),
                    body: (cell.upload > 0).then_some(body),
                    cores: cores.clone(),
                };
                h2load.run(port, time, self.folder)
            }
        }
    }
}

fn report_cell(cell: &Cell, turns: &BTreeMap<&'static str, Turns>, report: &mut Report) {
    let columns =
        ["contestant", "CPU µs/request", "× HAProxy", "requests/s", "p50 µs", "p99 µs", "p99 − HAProxy's"];
    let mut table =
        Table::new(&format!("{} (of \"{DIRECT}\", the CPU time is the app's)", cell.name), &columns);
    let reference = &turns[HAPROXY];
    for (&name, turn) in turns {
        let is_proxy = name != DIRECT;
        let ratio = turn.cpu_us.over(&reference.cpu_us);
        table.row([
            name.to_owned(),
            turn.cpu_us.summary(2),
            if is_proxy { ratio.summary(2) } else { String::new() },
            turn.rate.summary(0),
            turn.p50_us.summary(0),
            turn.p99_us.summary(0),
            turn.p99_us.less(&reference.p99_us).summary(0),
        ]);
        report.measured(&cell.name, name, "CPU µs/request", &turn.cpu_us);
        report.measured(&cell.name, name, "requests/s", &turn.rate);
        report.measured(&cell.name, name, "p50 µs", &turn.p50_us);
        report.measured(&cell.name, name, "p99 µs", &turn.p99_us);
        if is_proxy {
            report.measured(&cell.name, name, "CPU ratio to HAProxy", &ratio);
        }
    }
    report.table(table);
    if let Some(former) = turns.get(FORMER) {
        report.goal(no_dearer_than_before(
            &cell.name,
            &turns[OURS[0].0].cpu_us,
            &former.cpu_us,
            &turns[CONTROL].cpu_us.less(&reference.cpu_us),
        ));
    }
    let limit = if cell.name == "64x12B" { 1.0 } else { 1.1 };
    let noise = turns[CONTROL].cpu_us.over(&reference.cpu_us).summary(2);
    for (name, _) in OURS {
        let turn = &turns[name];
        let ratio = turn.cpu_us.over(&reference.cpu_us).median();
        let goal = format!("{}, {name}: CPU per request × HAProxy's", cell.name);
        report.goal(Goal::at_most(&goal, ratio, limit).beside(&format!("HAProxy again {noise}")));
        // In one round both are added to the same latency without a proxy, so the difference of the two is
        // all there is to look at.
        let difference = |turn: &Turns| turn.p99_us.less(&reference.p99_us);
        let noise = difference(&turns[CONTROL]);
        let goal = format!("{}, {name}: p99 in µs beyond HAProxy's", cell.name);
        let beyond = difference(turn).median();
        report.goal(
            Goal::at_most_as_far_as_known(&goal, beyond, 0.0, noise.uncertainty_of_median())
                .beside(&format!("HAProxy again {}", noise.summary(0))),
        );
    }
}
