//! What the control loop costs at the size that we promise: thousands of revisions over real links, and a
//! restart among them.
//!
//! `cargo bench -p tests --bench fleet`. One process runs the real autoscaler on a platform of made-up facts;
//! another plays all queue-proxies and an activator, each pod on a loopback address of its own. Both are this
//! executable again. With `-- --readers 10` it measures what ten readers of the API a second cost the event
//! loop, which then has a thread of its own, and all links with it. With `-- --histories` it measures the
//! memory again once every revision has a past, with `-- --record` what it costs to record the run, with
//! `-- --dashboard` what an open page of the dashboard costs.

mod fleet {
    pub(super) mod autoscaler;
    pub(super) mod foreseen;
    pub(super) mod histories;
    pub(super) mod measured;
    pub(super) mod open_page;
    pub(super) mod pods;
    pub(super) mod readers;
    pub(super) mod recorded;
    pub(super) mod shape;
    pub(super) mod trust;
}

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, Parser};
use serde_json::Value;
use tests::bench::machine::{self, Cores};
use tests::bench::plot::{Chart, Line, charts};
use tests::bench::process::{Process, memory};
use tests::bench::report::Met;
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock};

use fleet::autoscaler::LoopPlace;
use fleet::foreseen::FleetCost;
use fleet::histories::{HistoryFolder, MemoryWithHistories};
use fleet::measured::{Autoscaler, Unrecorded};
use fleet::open_page::BesidePage;
use fleet::readers::BesideReaders;
use fleet::recorded::{BesideRecord, RecordFolder};
use fleet::shape::{FleetClass, FleetLinks, Shape};
use fleet::trust::TrustFolder;
use fleet::{autoscaler, foreseen, pods};

/// Says which part a process plays, and for which shape.
const ROLE: &str = "FLEET_ROLE";
const SHAPE: &str = "FLEET_SHAPE";
const PODS_PORT: &str = "FLEET_PODS_PORT";
const ACTIVATOR_PORT: &str = "FLEET_ACTIVATOR_PORT";
const EPOCH: &str = "FLEET_EPOCH";
const TRUST: &str = "FLEET_TRUST";
const HISTORIES: &str = "FLEET_HISTORIES";
const RECORDED: &str = "FLEET_RECORDED";
const LOOP_PLACE: &str = "FLEET_LOOP_PLACE";

/// The epoch of the autoscaler that takes over.
const SECOND_EPOCH: u64 = 2;
/// How long linking may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(180);

/// The command line of this benchmark.
#[derive(Parser)]
struct FleetOptions {
    #[command(flatten)]
    common: Options,
    #[command(flatten)]
    extras: Extras,
}

/// What is measured beside the fleet itself.
#[derive(Args, Clone, Copy)]
struct Extras {
    /// Measures what so many readers of the API cost the event loop's thread, each asking once a second
    #[arg(long, value_name = "N")]
    readers: Option<u32>,
    /// Measures the memory again once a tenth of the revisions has a full history and each other one a busy
    /// hour
    #[arg(long)]
    histories: bool,
    /// Measures what an open page of the dashboard costs
    #[arg(long)]
    dashboard: bool,
    /// Lets the second autoscaler record its run, and compares it with the first
    #[arg(long)]
    record: bool,
}

impl Extras {
    /// The readers beside which the event loop is measured apart; an open page is one.
    fn readers_at_most(self) -> Option<u32> {
        self.readers.or(self.dashboard.then_some(1))
    }
}

impl FleetOptions {
    /// Reads the command line; on a mistake the process ends with a message.
    fn read() -> Self {
        Self::parse()
    }
}

fn main() -> anyhow::Result<()> {
    match std::env::var(ROLE).as_deref() {
        Ok("pods") => pods::play(setting(SHAPE)?.parse()?, &trust()?),
        Ok("autoscaler") => autoscaler::play(&autoscaler::Settings {
            shape: setting(SHAPE)?.parse()?,
            pods: setting(PODS_PORT)?.parse()?,
            activator: setting(ACTIVATOR_PORT)?.parse()?,
            epoch: setting(EPOCH)?.parse()?,
            trust: trust()?,
            histories: HistoryFolder::at(Path::new(&setting(HISTORIES)?)),
            place: setting(LOOP_PLACE)?.parse()?,
            record: std::env::var_os(RECORDED).map(|folder| RecordFolder::below(Path::new(&folder))),
        }),
        Ok(other) => bail!("{ROLE} is {other:?}"),
        Err(_) => measure(),
    }
}

fn setting(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| format!("reading {name}"))
}

fn trust() -> anyhow::Result<TrustFolder> {
    Ok(TrustFolder::at(Path::new(&setting(TRUST)?)))
}

fn measure() -> anyhow::Result<()> {
    let FleetOptions { common: options, extras } = FleetOptions::read();
    let files = machine::raise_open_files()?;
    let rounds = options.rounds(10, 2);
    let mut report = Report::new("fleet", options.quick, rounds);
    let fleet = |revisions, pods_each, busy_each, class, links| Shape {
        revisions,
        pods_each,
        busy_each,
        class,
        links,
    };
    let shapes = options.choose(
        [
            fleet(10_000, 1, 10, FleetClass::Kpa, FleetLinks::Plain),
            fleet(10_000, 1, 10, FleetClass::Kpa, FleetLinks::Tls),
            fleet(1000, 10, 1, FleetClass::Kpa, FleetLinks::Plain),
            fleet(1000, 1, 1, FleetClass::Hpa, FleetLinks::Plain),
            fleet(1000, 1, 1, FleetClass::Kpa, FleetLinks::Plain),
            fleet(1000, 1, 1, FleetClass::Ahpa, FleetLinks::Plain),
        ],
        [
            fleet(300, 1, 10, FleetClass::Kpa, FleetLinks::Plain),
            fleet(300, 1, 10, FleetClass::Kpa, FleetLinks::Tls),
            fleet(30, 10, 1, FleetClass::Kpa, FleetLinks::Plain),
            fleet(100, 1, 1, FleetClass::Hpa, FleetLinks::Plain),
            fleet(100, 1, 1, FleetClass::Kpa, FleetLinks::Plain),
            fleet(100, 1, 1, FleetClass::Ahpa, FleetLinks::Plain),
        ],
    );
    let (mut lines, mut costs) = (Vec::new(), Vec::new());
    for shape in shapes.into_iter().filter(|shape| options.includes(&shape.to_string())) {
        let needed = u64::from(shape.pods()) + 100;
        ensure!(
            files >= needed,
            "{needed} open files are needed and {files} allowed; raise the limit (ulimit -Hn)"
        );
        let seen = Stage::set(shape, extras)?.play(&options, rounds).with_context(|| shape.to_string())?;
        lines.push(seen.line(shape));
        costs.push(FleetCost { shape, cores: seen.cores.median(), megabytes: seen.rss });
        seen.fill(&mut report, shape);
    }
    foreseen::judge(&mut report, &costs);
    if let Some(path) = &options.svg {
        let chart = Chart { title: "The autoscaler's CPU".to_owned(), unit: "cores".to_owned(), lines };
        charts(path, &[chart])?;
    }
    report.finish(options.json.as_deref())
}

/// Both processes, and who may run where.
struct Stage {
    shape: Shape,
    cores: Cores,
    folder: tempfile::TempDir,
    extras: Extras,
    /// The pods' process, which ends with the stage.
    _pods: Process,
    ports: Value,
}

/// The numbers that one shape of fleet showed.
struct Seen {
    linked_after: Duration,
    relinked_after: Duration,
    cores: Samples,
    beside_readers: Option<BesideReaders>,
    beside_page: Option<BesidePage>,
    with_histories: Option<MemoryWithHistories>,
    beside_record: Option<BesideRecord>,
    window: Duration,
    rss: f64,
    pss: f64,
    /// How the revisions were found after the start and after the restart.
    found: [String; 2],
    met: [Met; 2],
}

impl Stage {
    fn set(shape: Shape, extras: Extras) -> anyhow::Result<Self> {
        let cores = Cores::divide()?;
        let folder = tempfile::tempdir()?;
        TrustFolder::make(folder.path())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.env(ROLE, "pods").env(SHAPE, shape.to_string()).env(TRUST, folder.path());
        let mut pods = Process::start(command, "pods", folder.path(), &cores.load)?;
        let ports = serde_json::from_str(&pods.first_line()?)?;
        Ok(Self { shape, cores, folder, extras, _pods: pods, ports })
    }

    fn play(&self, options: &Options, rounds: usize) -> anyhow::Result<Seen> {
        let window = options.turn(10);
        let first = self.start_autoscaler(1)?;
        let linked_after = self.linked(&first)?;
        // Windows fill and buffers settle.
        thread::sleep(window * 2);
        let cores = first.cores(window, rounds)?;
        let held = memory(first.process.pid())?;
        let readers = self.extras.readers;
        let beside_readers =
            readers.map(|readers| BesideReaders::measured(&first, readers, window, rounds)).transpose()?;
        let beside_page =
            self.extras.dashboard.then(|| BesidePage::measured(&first, window, rounds)).transpose()?;
        let with_histories =
            self.extras.histories.then(|| self.with_histories(&first, window)).transpose()?;
        let (found, met) = self.judge(&first)?;
        drop(first);
        api::until(PATIENCE, || {
            let links = self.links()?;
            ensure!(links == 0, "{links} links are still up");
            Ok(())
        })?;
        let second = self.start_autoscaler(SECOND_EPOCH)?;
        let relinked_after = self.linked(&second)?;
        // Class kpa decides with the first reports, class hpa at its syncs, 15 s apart.
        let first_decisions = match self.shape.class {
            FleetClass::Kpa | FleetClass::Ahpa => Duration::from_secs(10),
            FleetClass::Hpa => Duration::from_secs(20),
        };
        thread::sleep(options.choose(first_decisions, Duration::from_secs(3)));
        let (found_again, met_again) = self.judge(&second)?;
        let without = Unrecorded { cores: cores.median(), megabytes: held.rss };
        let beside_record =
            self.extras.record.then(|| self.beside_record(&second, &without, window, rounds)).transpose()?;
        Ok(Seen {
            linked_after,
            relinked_after,
            cores,
            beside_readers,
            beside_page,
            with_histories,
            beside_record,
            window,
            rss: held.rss,
            pss: held.pss,
            found: [found, found_again],
            met: [met, met_again],
        })
    }

    fn start_autoscaler(&self, epoch: u64) -> anyhow::Result<Autoscaler> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .env(ROLE, "autoscaler")
            .env(SHAPE, self.shape.to_string())
            .env(PODS_PORT, self.ports["pods"].to_string())
            .env(ACTIVATOR_PORT, self.ports["activator"].to_string())
            .env(EPOCH, epoch.to_string())
            .env(TRUST, self.folder.path())
            .env(HISTORIES, self.folder.path())
            .env(LOOP_PLACE, LoopPlace::for_readers(self.extras.readers_at_most()).to_string());
        if self.extras.record && epoch == SECOND_EPOCH {
            command.env(RECORDED, self.folder.path());
        }
        let started = clock::now();
        let folder: &Path = self.folder.path();
        let mut process =
            Process::start(command, &format!("autoscaler-{epoch}"), folder, &self.cores.contestant)?;
        let ports: Value = serde_json::from_str(&process.first_line()?)?;
        let port = ports["api"].as_u64().and_then(|port| u16::try_from(port).ok()).context("a port")?;
        Ok(Autoscaler { process, api: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), started })
    }

    /// The memory once every revision has a past, and readers have had a snapshot of it for a while.
    fn with_histories(
        &self,
        autoscaler: &Autoscaler,
        window: Duration,
    ) -> anyhow::Result<MemoryWithHistories> {
        HistoryFolder::at(self.folder.path()).make()?;
        let restored = api::get(autoscaler.api, "localhost", "/bench/histories")?;
        ensure!(restored == self.shape.revisions.to_string(), "restoring histories: {restored}");
        thread::sleep(window * 2);
        for (index, least) in [(0, 719), (self.shape.revisions - 1, 1)] {
            let path = format!("/v1/revisions/{}/series?range=30d", Shape::revision(index));
            let series = api::get_json(autoscaler.api, &path)?;
            let hours = series["ready"].as_array().context("a series of hours")?;
            let known = hours.iter().filter(|hour| !hour.is_null()).count();
            ensure!(known >= least, "{known} hours of {path} are known");
        }
        Ok(MemoryWithHistories { shape: self.shape, held: memory(autoscaler.process.pid())? })
    }

    /// What an autoscaler that records uses beside one that does not.
    fn beside_record(
        &self,
        autoscaler: &Autoscaler,
        without: &Unrecorded,
        window: Duration,
        rounds: usize,
    ) -> anyhow::Result<BesideRecord> {
        let folder = RecordFolder::below(self.folder.path());
        thread::sleep(window * 2);
        let (began, before) = (clock::now(), folder.bytes()?);
        let with = autoscaler.cores(window, rounds)?;
        let (time, bytes) = (clock::since(began), folder.bytes()?.saturating_sub(before));
        let megabytes = [without.megabytes, memory(autoscaler.process.pid())?.rss];
        Ok(BesideRecord { without: without.cores, with, megabytes, bytes, links: self.shape.pods(), time })
    }

    fn links(&self) -> anyhow::Result<u64> {
        let port =
            self.ports["control"].as_u64().and_then(|port| u16::try_from(port).ok()).context("a port")?;
        let links = api::get(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), "localhost", "/links")?;
        Ok(links.trim().parse()?)
    }

    /// How long after its start an autoscaler had all links.
    fn linked(&self, autoscaler: &Autoscaler) -> anyhow::Result<Duration> {
        api::until(PATIENCE, || {
            let links = self.links()?;
            ensure!(links == u64::from(self.shape.pods()), "{links} links are up");
            Ok(())
        })
        .with_context(|| autoscaler.process.log())?;
        Ok(clock::since(autoscaler.started))
    }

    /// Whether every revision has the count that its load calls for, and none was ever asked to change.
    fn judge(&self, autoscaler: &Autoscaler) -> anyhow::Result<(String, Met)> {
        let list = api::get_json(autoscaler.api, "/v1/revisions")?;
        let revisions = list["revisions"].as_array().context("a list of revisions")?;
        let expected = u64::from(self.shape.pods_each);
        // In the order of their names, which is that of their numbers.
        let is_right = |(index, revision): &(u32, &Value)| {
            // An idle revision is kept at its lower bound, whatever its load calls for.
            let is_busy = index.is_multiple_of(self.shape.busy_each);
            let decided = |desired| desired == expected || (!is_busy && desired < expected);
            revision["desired"].as_u64().is_some_and(decided) && revision["wanted"] == expected
        };
        let right = (0..).zip(revisions).filter(is_right).count();
        let changes: u64 = api::get(autoscaler.api, "localhost", "/bench/changes")?.trim().parse()?;
        let all = usize::try_from(self.shape.revisions)?;
        let met = Met::from(right == all && revisions.len() == all && changes == 0);
        Ok((format!("{right} of {all} right, {changes} changes of a count"), met))
    }
}

impl Seen {
    fn line(&self, shape: Shape) -> Line {
        let step = self.window.as_secs_f64();
        let times = std::iter::successors(Some(step), |time| Some(time + step));
        Line { label: shape.to_string(), points: times.zip(self.cores.0.iter().copied()).collect() }
    }

    fn fill(&self, report: &mut Report, shape: Shape) {
        let name = shape.to_string();
        let mut table = Table::new(&name, &["", "found"]);
        table.row([
            "links up after the start, s".to_owned(),
            format!("{:.1}", self.linked_after.as_secs_f64()),
        ]);
        table.row([format!("CPU, cores, in windows of {:?}", self.window), self.cores.summary(3)]);
        table.row([
            "memory, MB: resident (its share)".to_owned(),
            format!("{:.0} ({:.0})", self.rss, self.pss),
        ]);
        if let Some(with_histories) = &self.with_histories {
            with_histories.row(&mut table);
        }
        table.row(["decisions".to_owned(), self.found[0].clone()]);
        table.row([
            "links up after a restart, s".to_owned(),
            format!("{:.1}", self.relinked_after.as_secs_f64()),
        ]);
        table.row(["decisions after it".to_owned(), self.found[1].clone()]);
        if let Some(beside) = &self.beside_readers {
            beside.rows(&mut table);
        }
        if let Some(beside) = &self.beside_page {
            beside.rows(&mut table);
        }
        if let Some(beside) = &self.beside_record {
            beside.rows(&mut table);
        }
        report.table(table);
        if let Some(beside) = &self.beside_record {
            beside.fill(report, &name);
        }
        if let Some(beside) = &self.beside_readers {
            beside.fill(report, &name);
        }
        if let Some(beside) = &self.beside_page {
            beside.fill(report, &name);
        }
        report.measured(&name, "autoscaler", "cores", &self.cores);
        report.measured(&name, "autoscaler", "RSS MB", &Samples(vec![self.rss]));
        let seconds = self.relinked_after.as_secs_f64();
        report.measured(&name, "autoscaler", "links up after a restart, s", &Samples(vec![seconds]));
        let (cores, megabytes, relinked_within) = match (shape.class, shape.links) {
            (FleetClass::Hpa, _) => (0.1, 300.0, 25.0),
            (FleetClass::Kpa | FleetClass::Ahpa, FleetLinks::Plain) => (0.5, 300.0, 25.0),
            (FleetClass::Kpa | FleetClass::Ahpa, FleetLinks::Tls) => (0.6, 450.0, 40.0),
        };
        report.goal(Goal::at_most(&format!("{name}: cores"), self.cores.median(), cores));
        report.goal(Goal::at_most(&format!("{name}: RSS in MB"), self.rss, megabytes));
        if let Some(with_histories) = &self.with_histories {
            with_histories.fill(report, megabytes);
        }
        let goal = format!("{name}: seconds to all links after a restart");
        report.goal(Goal::at_most(&goal, seconds, relinked_within));
        let right = "every count right and unchanged";
        report.goal(Goal::holds(&format!("{name}: {right}"), self.found[0].clone(), self.met[0]));
        report.goal(Goal::holds(
            &format!("{name}: {right} after a restart"),
            self.found[1].clone(),
            self.met[1],
        ));
        report.note(format!(
            "Noise ({name}): the windows' CPU is within {:.3} … {:.3} cores.",
            self.cores.least(),
            self.cores.most()
        ));
    }
}
