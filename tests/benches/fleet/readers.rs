//! Readers of the API: each asks once a second, by turns for all revisions, for one, and for the past of one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tests::bench::{Goal, Report, Samples, Table, api, clock};

use crate::fleet::measured::Autoscaler;
use crate::fleet::shape::Shape;

/// How often each reader asks.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The most cores that readers may cost the event loop's thread.
const COST_MAX: f64 = 0.01;

/// Readers that ask until they are stopped.
struct Readers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<anyhow::Result<u64>>>,
}

impl Readers {
    /// Starts readers whose questions are spread over a second.
    fn start(address: SocketAddr, count: u32) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let reader = |number: u32| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                thread::sleep(ASK_EVERY * number / count);
                ask(address, number, &stop)
            })
        };
        let threads = (0..count).map(reader).collect();
        Self { stop, threads }
    }

    /// Ends all readers; returns the number of answers that they got.
    fn stop(self) -> anyhow::Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut answers = 0;
        for thread in self.threads {
            match thread.join() {
                Ok(answered) => answers += answered?,
                Err(_) => bail!("a reader panicked"),
            }
        }
        Ok(answers)
    }
}

/// The cores that the event loop's thread used, in windows by turns.
pub(crate) struct BesideReaders {
    readers: u32,
    without: Samples,
    with: Samples,
    /// The number of answers that the readers got.
    answers: u64,
}

impl BesideReaders {
    pub(crate) fn measured(
        autoscaler: &Autoscaler,
        readers: u32,
        window: Duration,
        rounds: usize,
    ) -> anyhow::Result<Self> {
        let (mut without, mut with, mut answers) = (Samples::new(), Samples::new(), 0);
        for _ in 0..rounds {
            without.push(autoscaler.cores_of_loop(window)?);
            let asking = Readers::start(autoscaler.api, readers);
            with.push(autoscaler.cores_of_loop(window)?);
            answers += asking.stop()?;
        }
        ensure!(answers > 0, "no reader got an answer");
        Ok(Self { readers, without, with, answers })
    }

    pub(crate) fn rows(&self, table: &mut Table) {
        let Self { readers, without, with, answers } = self;
        table.row(["the loop's thread without readers, cores".to_owned(), without.summary(3)]);
        table.row([
            format!("the same beside {readers} readers a second, which got {answers} answers"),
            with.summary(3),
        ]);
    }

    pub(crate) fn fill(&self, report: &mut Report, name: &str) {
        report.measured(name, "loop without readers", "cores", &self.without);
        report.measured(name, "loop beside readers", "cores", &self.with);
        let more = self.with.median() - self.without.median();
        let goal =
            format!("{name}: cores more in the loop's thread beside {} readers a second", self.readers);
        report.goal(Goal::at_most(&goal, more, COST_MAX));
    }
}

fn ask(address: SocketAddr, number: u32, stop: &AtomicBool) -> anyhow::Result<u64> {
    let one = format!("/v1/revisions/{}", Shape::revision(0));
    let past = format!("{one}/series?range=24h");
    let mut paths = ["/v1/revisions", &one, &past].into_iter().cycle().skip(usize::try_from(number)?);
    let mut answers = 0;
    while !stop.load(Ordering::Relaxed) {
        let began = clock::now();
        api::get(address, "localhost", paths.next().context("a cycle has no end")?)?;
        answers += 1;
        thread::sleep(ASK_EVERY.saturating_sub(clock::since(began)));
    }
    Ok(answers)
}
