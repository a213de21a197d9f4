//! Threads with a single-threaded runtime each.
//!
//! Tasks never move, so a request is served on the thread that accepted its connection, and pools need no locks. The kernel spreads connections: every
//! worker accepts from a clone of the same socket.

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use runtime::vital;
use tokio::runtime::{Builder as RuntimeBuilder, LocalOptions, RuntimeMetrics};
use tokio::sync::mpsc;

/// Running threads; each ends when its future returns, with every task that this has spawned.
pub(crate) struct Threads {
    handles: Vec<JoinHandle<()>>,
    runtimes: Vec<RuntimeMetrics>,
    /// Held by every thread; dropped here before waiting.
    alive: mpsc::Sender<()>,
    /// Closed when the last thread has ended.
    ended: mpsc::Receiver<()>,
}

impl Default for Threads {
    fn default() -> Self {
        let (alive, ended) = mpsc::channel(1);
        Self { handles: Vec::new(), runtimes: Vec::new(), alive, ended }
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
        let thread = Builder::new().name(name).spawn(move || {
            let runtime = RuntimeBuilder::new_current_thread()
                .enable_all()
                .max_io_events_per_tick(dataplane::IO_EVENTS_PER_TICK)
                .build_local(LocalOptions::default());
            let (begins, runtime) = match runtime {
                Ok(runtime) => (Ok(runtime.handle().metrics()), Some(runtime)),
                Err(error) => (Err(error), None),
            };
            // Nobody listens if the starting thread has gone, and then nothing is to be said.
            let _ = begun.send(begins);
            if let Some(runtime) = runtime {
                runtime.block_on(vital(&part, work()));
            }
            drop(alive);
        })?;
        self.handles.push(thread);
        let begun = whether_begun.recv();
        let runtime = begun.unwrap_or_else(|_| Err(io::Error::other("the thread ended before it began")))?;
        self.runtimes.push(runtime);
        Ok(())
    }

    /// What can be asked of the threads from outside.
    pub(crate) fn runtimes(&self) -> &[RuntimeMetrics] {
        &self.runtimes
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
