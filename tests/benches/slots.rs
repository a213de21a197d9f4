//! How long is a slot idle while a request waits? With three activators, each of which sees only what waits
//! with it, beside one that sees everything.
//!
//! `cargo bench -p tests --bench slots`. Ten pods that take one request at a time, and more requests than
//! that. What waits is counted from the client's log, what runs from the apps' (`tests::slots`); all are on
//! one machine's clock. Handlers sleep, so the pods themselves need no processor. A request that is on its
//! way waits too, so what is found is the whole hand-over of a slot: the answer's way back to the activator
//! and the next request's way to the pod.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tests::bench::{Goal, Options, Report, Samples, Table, clock, executables};
use tests::slots::{Connection, SLOTS, idle_while_waiting, read_journal, service};
use tests::{ConfigMap, Ebb};
use tokio::task::JoinSet;

/// The longest that a slot may be idle while anything waits, in ms.
const IDLE_MAX: f64 = 100.0;
/// Until every connection is made and every slot taken.
const WARM_UP: Duration = Duration::from_millis(500);

/// The clients of one kind: their requests and their connections.
#[derive(Clone, Copy)]
struct Clients {
    name: &'static str,
    /// Requests at once; each is followed by the next when it is answered.
    requests: usize,
    wire: Wire,
}

/// How they are connected, which decides what waits at which activator.
#[derive(Clone, Copy)]
enum Wire {
    /// All on one connection: everything waits at one activator.
    OneHttp2,
    /// Each on its own: the kernel spreads them.
    Http1Each,
}

const CLIENTS: [Clients; 3] = [
    Clients { name: "30 streams of one connection", requests: 30, wire: Wire::OneHttp2 },
    Clients { name: "12 streams of one connection", requests: 12, wire: Wire::OneHttp2 },
    Clients { name: "30 connections", requests: 30, wire: Wire::Http1Each },
];

const ACTIVATORS: [&str; 2] = ["3", "1"];

/// What one contestant showed under one kind of clients, a value for each round.
#[derive(Default)]
struct Results {
    /// The longest time, in ms.
    longest: Samples,
    /// What 99 of 100 times do not exceed, in ms.
    p99: Samples,
    median: Samples,
    /// The share of all slots' time, in %.
    share: Samples,
    per_second: Samples,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read_whole();
    let rounds = options.rounds(5, 1);
    let mut report = Report::new("slots", options.quick, rounds);
    let mut results: Vec<[Results; 2]> = CLIENTS.iter().map(|_| Default::default()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for round in 0..rounds {
        for turn in 0..ACTIVATORS.len() {
            let contestant = (round + turn) % ACTIVATORS.len();
            let found = runtime.block_on(play(&options, ACTIVATORS[contestant]))?;
            for (results, found) in results.iter_mut().zip(found) {
                results[contestant].add(&found);
            }
        }
    }
    fill(&mut report, &results);
    report.finish(options.json.as_deref())
}

/// What was found under one kind of clients.
struct Found {
    idle: Vec<Duration>,
    window: Duration,
    answered: usize,
}

/// One round of one contestant, on a fresh `ebb up`.
async fn play(options: &Options, activators: &str) -> anyhow::Result<Vec<Found>> {
    let (ebb, app) = (executables::ebb()?, executables::test_app()?);
    let folder = tempfile::tempdir()?;
    let journal: PathBuf = folder.path().join("journal");
    let service = service("slots", &app.to_string_lossy(), &journal);
    let arguments = ["--log", "warn", "--activators", activators];
    let services = std::slice::from_ref(&service);
    let ebb = Ebb::up_as(&ebb, services, &ConfigMap::short(), &arguments).await;
    ebb.until_pods("slots", SLOTS).await;
    let (mut sent, mut windows) = (Vec::new(), Vec::new());
    for clients in CLIENTS {
        let (began, answered) = (clock::now(), sent.len());
        let time = WARM_UP + options.turn(5);
        sent.extend(clients.send(&ebb, &service.host(), began + time).await?);
        windows.push((began + WARM_UP..began + time, sent.len() - answered));
    }
    drop(ebb);
    let found = |(window, answered): &(Range<Duration>, usize)| look(&journal, &sent, window, *answered);
    windows.iter().map(found).collect()
}

fn look(
    journal: &Path,
    sent: &[Duration],
    window: &Range<Duration>,
    answered: usize,
) -> anyhow::Result<Found> {
    let idle = idle_while_waiting(&read_journal(journal)?, sent, window.clone());
    Ok(Found { idle, window: window.end.saturating_sub(window.start), answered })
}

impl Clients {
    /// Sends until then; every request must be answered. Returns when each was sent.
    async fn send(self, ebb: &Ebb, host: &str, until: Duration) -> anyhow::Result<Vec<Duration>> {
        let shared = Connection::http2(ebb.requests).await?;
        let mut clients = JoinSet::new();
        for client in 0..self.requests {
            let mut connection = match self.wire {
                Wire::OneHttp2 => shared.share().context("HTTP/2 has room")?,
                Wire::Http1Each => Connection::http1(ebb.requests).await?,
            };
            let host = host.to_owned();
            clients.spawn(async move {
                let mut sent = Vec::new();
                while clock::now() < until {
                    // Of many lengths, so that slots become free one by one.
                    let sleep = 40 + (client * 37 + sent.len() * 53) % 120;
                    sent.push(clock::now());
                    connection
                        .ask(&host, &format!("/?sleep={sleep}&client={client}&number={}", sent.len()))
                        .await?;
                }
                anyhow::Ok(sent)
            });
        }
        let mut sent = Vec::new();
        while let Some(client) = clients.join_next().await {
            sent.extend(client.context("a client does not panic")??);
        }
        Ok(sent)
    }
}

impl Results {
    fn add(&mut self, found: &Found) {
        let times = Samples(found.idle.iter().map(|&time| clock::millis(time)).collect());
        let of_all: f64 = times.0.iter().sum();
        let slots = f64::from(u32::try_from(SLOTS).unwrap_or(u32::MAX));
        let answered = f64::from(u32::try_from(found.answered).unwrap_or(u32::MAX));
        self.longest.push(times.most());
        self.p99.push(times.quantile(990));
        self.median.push(times.median());
        self.share.push(100.0 * of_all / (clock::millis(found.window) * slots));
        self.per_second.push(answered / (found.window + WARM_UP).as_secs_f64());
    }

    fn columns(&self) -> [(&'static str, &Samples, usize); 5] {
        [
            ("longest ms", &self.longest, 1),
            ("p99 ms", &self.p99, 1),
            ("median ms", &self.median, 2),
            ("% of the slots' time", &self.share, 2),
            ("requests/s", &self.per_second, 0),
        ]
    }
}

fn fill(report: &mut Report, results: &[[Results; 2]]) {
    for (clients, contestants) in CLIENTS.iter().zip(results) {
        let title = format!("A slot idle while something waits: {}", clients.name);
        let names = contestants[0].columns().map(|(name, _, _)| name);
        let mut table = Table::new(&title, &[&["activators"], names.as_slice()].concat());
        for (activators, results) in ACTIVATORS.iter().zip(contestants) {
            let shown = results.columns().map(|(_, samples, digits)| samples.summary(digits));
            table.row([(*activators).to_owned()].into_iter().chain(shown));
            for (name, samples, _) in results.columns() {
                report.measured(clients.name, &format!("{activators} activators"), name, samples);
            }
        }
        report.table(table);
        let goal = format!("{}: no slot idle for longer than ms, in the worst round", clients.name);
        let [ours, one] = contestants;
        report.goal(Goal::at_most_as_far_as_known(&goal, ours.longest.most(), IDLE_MAX, one.longest.most()));
    }
    report.note("One activator sees everything that waits and every slot: what it needs is the machine's and the way's, and how far a longest time is known.");
}
