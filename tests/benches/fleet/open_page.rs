//! What a page of the dashboard costs an autoscaler while a person has it open: the stream of changes, and
//! the questions of a revision's page and of the ledger.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{bail, ensure};
use tests::bench::process::memory;
use tests::bench::{Goal, Report, Samples, Table, api, clock};

use crate::fleet::measured::Autoscaler;
use crate::fleet::shape::Shape;

/// How often the page of a revision asks for its state and its last 15 minutes.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// After so many of these questions it asks for the ledger and the forecast again, as pages do after 30 s.
const LEDGER_EVERY: u32 = 15;
/// How soon a reader of the stream sees that it is to end.
const READ_PATIENCE: Duration = Duration::from_millis(500);
/// The most cores and megabytes that one open page may cost, and the most cores of the event loop's thread:
/// nothing, as far as windows of the same fleet are alike.
const COST_MAX: f64 = 0.02;
const MEGABYTES_MAX: f64 = 16.0;
const LOOP_COST_MAX: f64 = 0.005;

/// A page that is open until it is closed.
struct OpenPage {
    is_closed: Arc<AtomicBool>,
    stream: JoinHandle<anyhow::Result<u64>>,
    questions: JoinHandle<anyhow::Result<u64>>,
}

impl OpenPage {
    fn open(address: SocketAddr) -> Self {
        let is_closed = Arc::<AtomicBool>::default();
        let [of_stream, of_questions] = [Arc::clone(&is_closed), Arc::clone(&is_closed)];
        Self {
            is_closed,
            stream: thread::spawn(move || follow(address, &of_stream)),
            questions: thread::spawn(move || ask(address, &of_questions)),
        }
    }

    /// Closes the page; returns the bytes of the stream.
    fn close(self) -> anyhow::Result<u64> {
        self.is_closed.store(true, Ordering::Relaxed);
        let (Ok(bytes), Ok(answers)) = (self.stream.join(), self.questions.join()) else {
            bail!("a thread of the page panicked");
        };
        ensure!(answers? > 0, "the page got no answer");
        bytes
    }
}

/// Reads the stream of changes; returns its bytes.
fn follow(address: SocketAddr, is_closed: &AtomicBool) -> anyhow::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(READ_PATIENCE))?;
    stream.write_all(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let (mut part, mut bytes) = (vec![0; 1 << 16], 0);
    while !is_closed.load(Ordering::Relaxed) {
        match stream.read(&mut part) {
            Ok(0) => bail!("the stream ended"),
            Ok(read) => bytes += u64::try_from(read)?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Asks as the page of a revision and that of the costs do; returns the number of answers.
fn ask(address: SocketAddr, is_closed: &AtomicBool) -> anyhow::Result<u64> {
    let revision = format!("/v1/revisions/{}", Shape::revision(0));
    let often = [revision.clone(), format!("{revision}/series?range=15m")];
    let seldom = ["/v1/ledger?since=7d".to_owned(), format!("{revision}/forecast")];
    let mut answers = 0;
    for turn in 0_u32.. {
        if is_closed.load(Ordering::Relaxed) {
            break;
        }
        let began = clock::now();
        let seldom = seldom.iter().filter(|_| turn.is_multiple_of(LEDGER_EVERY));
        for path in often.iter().chain(seldom) {
            api::get(address, "localhost", path)?;
            answers += 1;
        }
        thread::sleep(ASK_EVERY.saturating_sub(clock::since(began)));
    }
    Ok(answers)
}

/// The cores that the process and its event loop's thread used, in windows by turns, and its memory.
pub(crate) struct BesidePage {
    /// Without a page, and with one.
    cores: [Samples; 2],
    cores_of_loop: [Samples; 2],
    megabytes: [f64; 2],
    /// What the page read of the stream.
    bytes: u64,
}

impl BesidePage {
    pub(crate) fn measured(autoscaler: &Autoscaler, window: Duration, rounds: usize) -> anyhow::Result<Self> {
        let before = memory(autoscaler.process.pid())?.rss;
        let [mut cores, mut cores_of_loop] = [(); 2].map(|()| [Samples::new(), Samples::new()]);
        let (mut most, mut bytes) = (before, 0);
        for _ in 0..rounds {
            cores[0].push(autoscaler.cores(window, 1)?.median());
            cores_of_loop[0].push(autoscaler.cores_of_loop(window)?);
            let page = OpenPage::open(autoscaler.api);
            cores[1].push(autoscaler.cores(window, 1)?.median());
            cores_of_loop[1].push(autoscaler.cores_of_loop(window)?);
            most = most.max(memory(autoscaler.process.pid())?.rss);
            bytes += page.close()?;
        }
        ensure!(bytes > 0, "the stream told nothing");
        Ok(Self { cores, cores_of_loop, megabytes: [before, most], bytes })
    }

    pub(crate) fn rows(&self, table: &mut Table) {
        for (thread, [without, with]) in
            [("the process", &self.cores), ("the loop's thread", &self.cores_of_loop)]
        {
            table.row([format!("{thread} without a page, cores"), without.summary(3)]);
            table.row([format!("{thread} beside an open page, cores"), with.summary(3)]);
        }
        table.row([
            "memory beside an open page, MB: resident (before)".to_owned(),
            format!(
                "{:.0} ({:.0}); {} bytes of the stream",
                self.megabytes[1], self.megabytes[0], self.bytes
            ),
        ]);
    }

    pub(crate) fn fill(&self, report: &mut Report, name: &str) {
        let [without, with] = &self.cores;
        report.measured(name, "process without a page", "cores", without);
        report.measured(name, "process beside a page", "cores", with);
        let title = |goal: &str| format!("{name}: {goal} beside an open page of the dashboard");
        let more = |[without, with]: &[Samples; 2]| with.median() - without.median();
        report.goal(Goal::at_most(&title("cores more"), more(&self.cores), COST_MAX));
        let of_loop = more(&self.cores_of_loop);
        report.goal(Goal::at_most(&title("cores more in the loop's thread"), of_loop, LOOP_COST_MAX));
        let [before, most] = self.megabytes;
        report.goal(Goal::at_most(&title("MB more"), most - before, MEGABYTES_MAX));
    }
}
