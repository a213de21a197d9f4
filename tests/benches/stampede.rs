//! A hundred sleeping services get one request each at the same instant.
//!
//! `cargo bench -p tests --bench stampede`. The control: the supervisor starts the same hundred pods because
//! it is told to, and waits for their probes. Both on a fresh `ebb up` each round.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::bench::executions::Executions;
use tests::bench::up::{Up, asleep, executables, service};
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock, plot};
use tests::{ConfigMap, Service};

/// How long a hundred pods may take.
const PATIENCE: Duration = Duration::from_secs(120);

struct Bench {
    executions: Executions,
    ebb: PathBuf,
    services: Vec<Service>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read_whole();
    let folder = tempfile::tempdir()?;
    let [ebb, app] = executables()?;
    let (executions, copies) = Executions::watch(&[&ebb, &app], folder.path())?;
    let [ebb, app] = <[PathBuf; 2]>::try_from(copies).ok().context("two executables")?;
    let count: u32 = options.choose(100, 10);
    let services = (0..count).map(|number| service(&format!("sleeper-{number}"), &app)).collect();
    let bench = Bench { executions, ebb, services };
    let rounds = options.rounds(10, 1);
    let (mut stampede, mut control, mut latencies) = (Samples::new(), Samples::new(), Samples::new());
    for round in 0..rounds {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                stampede.push(bench.stampede(&mut latencies)?);
            } else {
                control.push(bench.control()?);
            }
        }
    }
    let mut report = Report::new("stampede", options.quick, rounds);
    fill(&mut report, &stampede, &control, &latencies);
    if let Some(path) = &options.svg {
        let bar = |label: &str, samples: &Samples| plot::Bar {
            label: label.to_owned(),
            median: samples.median(),
            least: samples.least(),
            most: samples.most(),
        };
        let bars = [bar("stampede", &stampede), bar("control", &control)];
        plot::bars(path, &format!("{count} services awake, in ms"), &bars, Some(control.median() * 1.5))?;
    }
    report.finish(options.json.as_deref())
}

fn fill(report: &mut Report, stampede: &Samples, control: &Samples, latencies: &Samples) {
    let mut table = Table::new("Until everything serves, in ms", &["", "median [least … most]"]);
    table.row(["stampede: first byte → last answer".to_owned(), stampede.summary(0)]);
    table.row(["control: first process → last pod ready".to_owned(), control.summary(0)]);
    table.row(["stampede ÷ control, in a round".to_owned(), stampede.over(control).summary(2)]);
    let single = [500, 900, 990].map(|share| format!("{:.0}", latencies.quantile(share)));
    table.row(["one request of the stampede: p50, p90, p99".to_owned(), single.join(", ")]);
    report.table(table);
    report.measured("stampede", "stampede", "ms", stampede);
    report.measured("stampede", "control", "ms", control);
    report.measured("stampede", "one request", "ms", latencies);
    report.note(format!(
        "Noise: the control's rounds differ from their median by {:+.0} … {:+.0} %.",
        (control.least() / control.median() - 1.0) * 100.0,
        (control.most() / control.median() - 1.0) * 100.0
    ));
    report.goal(Goal::at_most("stampede ÷ control", stampede.over(control).median(), 1.5));
}

impl Bench {
    /// From the requests to the last answer.
    fn stampede(&self, latencies: &mut Samples) -> anyhow::Result<f64> {
        let up = Up::start(&self.ebb, &self.services, &asleep())?;
        let start = Barrier::new(self.services.len() + 1);
        thread::scope(|scope| {
            let requests = up.requests();
            let start = &start;
            let clients: Vec<_> = self
                .services
                .iter()
                .map(|service| scope.spawn(move || ask(requests, &service.host(), start)))
                .collect();
            start.wait();
            let began = clock::now();
            for client in clients {
                let latency = client.join().expect("a client does not panic")?;
                latencies.push(clock::millis(latency));
            }
            Ok(clock::millis(clock::since(began)))
        })
    }

    /// From the first process to the last pod that is ready.
    fn control(&self) -> anyhow::Result<f64> {
        self.executions.take();
        let config = ConfigMap::short().set("min-scale", "1");
        let up = Up::start(&self.ebb, &self.services, &config)?;
        api::until(PATIENCE, || {
            let ready = up.revisions()?.iter().filter(|revision| revision["ready_pods"] == 1).count();
            ensure!(ready == self.services.len(), "{ready} are ready");
            Ok(())
        })?;
        let ended = clock::now();
        // The first is `ebb up` itself.
        let first_pod = self.executions.take().get(1).context("nothing was started")?.at;
        Ok(clock::millis(ended.saturating_sub(first_pod)))
    }
}

/// Waits for the others, then asks; returns how long that took.
fn ask(address: SocketAddr, host: &str, start: &Barrier) -> anyhow::Result<Duration> {
    let connected = connect(address);
    // Whoever fails must not leave the others waiting.
    start.wait();
    let mut stream = connected?;
    let began = clock::now();
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
    let mut answer = [0; 1024];
    let length = stream.read(&mut answer)?;
    let text = String::from_utf8_lossy(&answer[..length]);
    ensure!(text.starts_with("HTTP/1.1 200"), "{host} answered {text}");
    Ok(clock::since(began))
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}
