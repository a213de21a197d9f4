//! The proxy before the pods: which pod takes this request, or how long does it wait.
//!
//! An activator knows what the autoscaler assigned to it over its link (`assignments`), finds the revision of a request by its Host, holds the request
//! until a pod has a free slot (`throttling`), and forwards it (`dataplane`). It knows no platform, and serves on with what it knows when its link is
//! gone.

mod config;
mod metrics;
mod workers;

use std::io;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use config::{ActivatorConfig, Limits, Listeners};
pub use metrics::Metrics;

use workers::Workers;

/// A running activator.
#[derive(Debug)]
pub struct Activator {
    accepting: CancellationToken,
    synced: watch::Receiver<bool>,
    workers: Workers,
}

impl Activator {
    /// Starts the worker threads and begins to accept. Fails if a thread cannot be started or a listener cannot be used.
    pub fn start(config: ActivatorConfig, listeners: Listeners) -> io::Result<Self> {
        listeners.requests.set_nonblocking(true)?;
        listeners.link.set_nonblocking(true)?;
        let accepting = CancellationToken::new();
        let until = accepting.clone();
        let workers = Workers::start(config.workers, move |_| until.clone().cancelled_owned())?;
        Ok(Self { accepting, synced: watch::channel(true).1, workers })
    }

    /// Returns once the autoscaler has told everything it knows for the first time.
    pub async fn synced(&self) {
        let mut synced = self.synced.clone();
        // An error means that the activator has ended, which its owner finds out soon enough.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Accepts no more connections. What is held is served with `Connection: close`; the link stays.
    pub fn stop_accepting(&self) {
        self.accepting.cancel();
    }

    /// Waits until everything that is held has been answered, at most `patience`, and ends all threads. Calls [`Activator::stop_accepting`].
    pub async fn drained(self, patience: Duration) {
        self.stop_accepting();
        self.workers.join(patience).await;
    }
}
