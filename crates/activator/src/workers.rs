//! The threads that serve requests.
//!
//! Each runs a single-threaded runtime with tasks that never move, so a request is served on the thread that accepted its connection and pools need no
//! locks. The kernel spreads connections: every thread accepts from a clone of the same socket.

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::LocalSet;

/// Running threads; they end when what they were given to do returns.
#[derive(Debug)]
pub(crate) struct Workers {
    threads: Vec<JoinHandle<()>>,
    /// Closed when the last thread has ended.
    ended: mpsc::Receiver<()>,
}

impl Workers {
    /// Starts `count` threads (at least one), each running the future that `work` makes of its number.
    pub(crate) fn start<Work, Job>(count: usize, work: Work) -> io::Result<Self>
    where
        Work: Fn(usize) -> Job + Clone + Send + 'static,
        Job: Future<Output = ()> + 'static,
    {
        let (alive, ended) = mpsc::channel(1);
        let mut threads = Vec::new();
        for number in 0..count.max(1) {
            let (work, alive) = (work.clone(), alive.clone());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let thread = Builder::new().name(format!("activator-{number}")).spawn(move || {
                LocalSet::new().block_on(&runtime, work(number));
                drop(alive);
            })?;
            threads.push(thread);
        }
        Ok(Self { threads, ended })
    }

    /// Waits until all threads have ended, at most `patience`, and joins those that have.
    pub(crate) async fn join(mut self, patience: Duration) {
        // Nothing is ever sent: the channel only closes.
        let _ = tokio::time::timeout(patience, self.ended.recv()).await;
        for thread in self.threads {
            if thread.is_finished() && thread.join().is_err() {
                tracing::error!("a worker thread of the activator panicked");
            }
        }
    }
}
