//! Threads with a single-threaded runtime each.
//!
//! Tasks never move, so a request is served on the thread that accepted its connection, and pools need no
//! locks. The kernel spreads connections: every worker accepts from a clone of the same socket.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use runtime::vital;
use tokio::runtime::{Builder as RuntimeBuilder, LocalOptions, RuntimeMetrics};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The interval between two heartbeats of a thread: long, since each wakes a process that may sleep.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// Counts of heartbeats, one per thread: the count of a thread that hangs grows no more. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ThreadHeartbeats(Vec<Arc<AtomicU64>>);

impl ThreadHeartbeats {
    /// The number of heartbeats of each thread so far: one every two seconds, fewer while the thread has much
    /// to do.
    pub fn counts(&self) -> Vec<u64> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// The heartbeats of these threads and of `others`.
    pub(crate) fn with(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).cloned().collect())
    }
}

/// Runs the work, and counts in `count` every [`HEARTBEAT_INTERVAL`] in which its thread polls.
async fn with_heartbeat(work: impl Future<Output = ()>, count: &AtomicU64) {
    let mut work = std::pin::pin!(work);
    loop {
        // The work is polled on and never cancelled, and a beat that is cut short is no loss.
        tokio::select! {
            () = &mut work => return,
            () = sleep(HEARTBEAT_INTERVAL) => drop(count.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// Running threads; each ends when its future returns, with every task that this has spawned.
pub(crate) struct Threads {
    handles: Vec<JoinHandle<()>>,
    runtimes: Vec<RuntimeMetrics>,
    heartbeats: ThreadHeartbeats,
    /// Held by every thread; dropped here before waiting.
    alive: mpsc::Sender<()>,
    /// Closed when the last thread has ended.
    ended: mpsc::Receiver<()>,
}

impl Default for Threads {
    fn default() -> Self {
        let (alive, ended) = mpsc::channel(1);
        Self {
            handles: Vec::new(),
            runtimes: Vec::new(),
            heartbeats: ThreadHeartbeats::default(),
            alive,
            ended,
        }
    }
}

impl Threads {
    /// Starts a thread that runs the future that `work` makes there.
    pub(crate) fn start<Job: Future<Output = ()> + 'static>(
        &mut self,
        name: String,
        work: impl FnOnce() -> Job + Send + 'static,
    ) -> io::Result<()> {
        let alive = self.alive.clone();
        let (begun, whether_begun) = std::sync::mpsc::sync_channel(1);
        let part = format!("the thread {name} of the activator");
        let heartbeats = Arc::<AtomicU64>::default();
        self.heartbeats.0.push(Arc::clone(&heartbeats));
        // The work is vital. A panic before it drops `begun`, which the starting thread notices.
        let thread = Builder::new().name(name).spawn(move || {
            let runtime = RuntimeBuilder::new_current_thread()
                .enable_all()
                .max_io_events_per_tick(dataplane::IO_EVENTS_PER_TICK)
                .build_local(LocalOptions::default());
            let (begins, runtime) = match runtime {
                Ok(runtime) => (Ok(runtime.handle().metrics()), Some(runtime)),
                Err(error) => (Err(error), None),
            };
            // Fails if the starting thread has gone, which then needs no answer.
            let _ = begun.send(begins);
            if let Some(runtime) = runtime {
                runtime.block_on(with_heartbeat(vital(&part, work()), &heartbeats));
            }
            drop(alive);
        })?;
        self.handles.push(thread);
        let begun = whether_begun.recv();
        let runtime = begun.unwrap_or_else(|_| Err(io::Error::other("the thread ended before it began")))?;
        self.runtimes.push(runtime);
        Ok(())
    }

    /// The counts of the threads' runtimes, such as tasks that are alive.
    pub(crate) fn runtimes(&self) -> &[RuntimeMetrics] {
        &self.runtimes
    }

    /// The heartbeats of all threads, for a watchdog.
    pub(crate) fn heartbeats(&self) -> &ThreadHeartbeats {
        &self.heartbeats
    }

    /// Waits until all have ended, at most `patience`. Whether they have.
    pub(crate) async fn ended(&mut self, patience: Duration) -> bool {
        // From now on only the threads hold the channel open. Nothing is ever sent: it only closes.
        self.alive = mpsc::channel(1).0;
        tokio::time::timeout(patience, self.ended.recv()).await.is_ok()
    }

    /// Waits until all have ended.
    pub(crate) async fn join(mut self) {
        drop(self.alive);
        let _ = self.ended.recv().await;
        for thread in self.handles {
            // They have left their runtimes, so this takes no time.
            if thread.join().is_err() {
                tracing::error!("a thread of the activator panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that this test starts, which is this test alone.
    const IS_CHILD_OF_TEST: &str = "EBB_TEST_ACTIVATOR_THREAD_PANICS";

    #[tokio::test]
    async fn a_panic_in_a_thread_ends_the_process_with_a_code_of_its_own() {
        if std::env::var_os(IS_CHILD_OF_TEST).is_some() {
            let mut threads = Threads::default();
            threads.start("worker-3".to_owned(), || async { panic!("a bug") }).expect("a thread starts");
            threads.join().await;
            panic!("the process outlived its thread");
        }
        let test = std::env::current_exe().expect("a process knows its executable");
        let name = "workers::tests::a_panic_in_a_thread_ends_the_process_with_a_code_of_its_own";
        let victim =
            Command::new(test).args(["--exact", name, "--nocapture"]).env(IS_CHILD_OF_TEST, "1").output();
        let victim = victim.expect("it can be started again");
        let said = String::from_utf8_lossy(&victim.stderr);
        assert_eq!(victim.status.code(), Some(70), "{said}");
        assert!(said.contains("error: the thread worker-3 of the activator failed (a bug)"), "{said}");
    }
}
