//! How much memory a hop takes: idle, with a thousand requests in flight, and afterwards.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tests::bench::machine::Cores;
use tests::bench::process::{Memory, memory};
use tests::bench::proxies::{App, Place, Protocol, Server, haproxy, queue_proxy_named};
use tests::bench::wrk::{Requests, Wrk};
use tests::bench::{Goal, Options, Report, Samples, Table, executables};

use super::held_requests::HeldRequests;

const IN_FLIGHT: u16 = 1000;
/// Held for longer than it takes to send all of them and to look.
const HEAD: &str = "GET /hold/8000 HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The most that a proxy may have resident, in MB.
struct ResidentLimits {
    idle: f64,
    in_flight: f64,
    later: f64,
}

const OF_ONE_MACHINE: ResidentLimits = ResidentLimits { idle: 12.0, in_flight: 35.0, later: 20.0 };
const OF_IMAGE: ResidentLimits = ResidentLimits { idle: 3.5, in_flight: 9.0, later: 7.0 };

/// A proxy that takes part.
struct Contestant {
    name: &'static str,
    program: Program,
}

enum Program {
    QueueProxy { executable: PathBuf, limits: ResidentLimits },
    Haproxy,
}

/// One contestant's memory at each stage.
struct Stages {
    idle: Memory,
    in_flight: Memory,
    /// While `wrk` sends on a thousand connections: the largest of many looks.
    under_load: Memory,
    later: Memory,
}

/// The app and the machine that all contestants share, in turn.
struct Field<'a> {
    app: App,
    cores: Cores,
    folder: &'a Path,
    options: &'a Options,
}

pub(crate) fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let mut contestants = contestants(report)?;
    contestants.retain(|contestant| options.includes(contestant.name));
    if contestants.is_empty() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let cores = Cores::divide()?;
    let app = App::start(folder.path(), &cores.load)?;
    let field = Field { app, cores, folder: folder.path(), options };
    let columns = ["contestant", "idle", "1,000 in flight", "1,000 connections busy", "a minute later"];
    let mut table = Table::new("A hop's memory in MB: resident (private)", &columns);
    for contestant in contestants {
        let stages = field.stages(&contestant)?;
        let named = stages.named();
        let cells = named.map(|(_, memory)| format!("{:.1} ({:.1})", memory.rss, memory.private));
        table.row([contestant.name.to_owned()].into_iter().chain(cells));
        contestant.fill(&stages, report);
    }
    report.table(table);
    Ok(())
}

fn contestants(report: &mut Report) -> anyhow::Result<Vec<Contestant>> {
    let executable = executables::ebb()?;
    let one_machine = Program::QueueProxy { executable, limits: OF_ONE_MACHINE };
    let mut contestants = vec![Contestant { name: "queue-proxy of one machine", program: one_machine }];
    let built = executables::target_folder()?.join("packages/ebb-queue-proxy");
    let executable = std::env::var_os("EBB_QUEUE_PROXY_EXECUTABLE").map_or(built, PathBuf::from);
    if executable.is_file() {
        let program = Program::QueueProxy { executable, limits: OF_IMAGE };
        contestants.push(Contestant { name: "queue-proxy of the image", program });
    } else {
        report.note(format!(
            "The queue-proxy of the image was not measured: {} is no file; `cargo xtask images` makes it.",
            executable.display()
        ));
    }
    contestants.push(Contestant { name: "HAProxy", program: Program::Haproxy });
    Ok(contestants)
}

impl Stages {
    fn named(&self) -> [(&'static str, Memory); 4] {
        [("idle", self.idle), ("in flight", self.in_flight), ("busy", self.under_load), ("later", self.later)]
    }
}

impl Contestant {
    fn fill(&self, stages: &Stages, report: &mut Report) {
        for (stage, memory) in stages.named() {
            let cell = format!("memory, {stage}");
            for (quantity, megabytes) in
                [("RSS MB", memory.rss), ("PSS MB", memory.pss), ("private MB", memory.private)]
            {
                report.measured(&cell, self.name, quantity, &Samples(vec![megabytes]));
            }
        }
        let Program::QueueProxy { limits, .. } = &self.program else { return };
        let most = stages.in_flight.rss.max(stages.under_load.rss);
        for (stage, found, limit) in [
            ("idle", stages.idle.rss, limits.idle),
            ("1,000 requests in flight", most, limits.in_flight),
            ("a minute later", stages.later.rss, limits.later),
        ] {
            report.goal(Goal::at_most(&format!("{}: RSS in MB, {stage}", self.name), found, limit));
        }
    }
}

impl Field<'_> {
    fn stages(&self, contestant: &Contestant) -> anyhow::Result<Stages> {
        let place = Place { folder: self.folder, cores: &self.cores.contestant };
        let target = self.app.target(Protocol::Http1);
        let server = match &contestant.program {
            Program::QueueProxy { executable, .. } => {
                queue_proxy_named(&contestant.name.replace(' ', "-"), executable, target, 0, place)?
            }
            Program::Haproxy => haproxy("haproxy", target, place)?,
        };
        let pid = server.process.pid();
        thread::sleep(self.options.choose(Duration::from_secs(5), Duration::from_millis(500)));
        let idle = memory(pid)?;
        let in_flight = self.with_held_requests(&server)?;
        let under_load = self.while_busy(&server)?;
        thread::sleep(self.options.choose(Duration::from_secs(60), Duration::from_secs(1)));
        Ok(Stages { idle, in_flight, under_load, later: memory(pid)? })
    }

    /// A thousand connections with a request each that the app holds.
    fn with_held_requests(&self, server: &Server) -> anyhow::Result<Memory> {
        let mut held = HeldRequests::of_app(self.app.http1);
        let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
        held.send(IN_FLIGHT.into(), proxy, HEAD)?;
        let memory = memory(server.process.pid())?;
        held.answered()?;
        Ok(memory)
    }

    fn while_busy(&self, server: &Server) -> anyhow::Result<Memory> {
        let wrk = Wrk::new(self.folder, "memory", &Requests::Get)?;
        let wrk = wrk.path("/bytes/12").connections(IN_FLIGHT.into()).cores(&self.cores.load);
        let time = self.options.turn(5);
        thread::scope(|scope| {
            let loading = scope.spawn(|| wrk.run(server.port, time));
            let mut most = Memory::default();
            while !loading.is_finished() {
                let now = memory(server.process.pid())?;
                if now.rss > most.rss {
                    most = now;
                }
                thread::sleep(Duration::from_millis(50));
            }
            loading.join().expect("running wrk does not panic")?;
            Ok(most)
        })
    }
}
