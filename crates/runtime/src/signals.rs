//! Requests to stop the process: the first begins a drain, the second ends it at once.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal by which the process was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// SIGINT, which a terminal sends for Ctrl-C.
    Interrupt,
    /// `kill`, a service manager, Kubernetes.
    Terminate,
}

/// The stop requests that this process receives. From its creation on the signals no longer end the process
/// by themselves.
#[derive(Debug)]
pub struct StopRequests {
    interrupt: Signal,
    terminate: Signal,
}

impl StopRequests {
    /// Takes over SIGINT and SIGTERM. Must be called within a tokio runtime.
    pub fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
        })
    }

    /// The next request. Cancel-safe: a signal that arrives while no task waits is kept.
    pub async fn next(&mut self) -> StopRequest {
        // Cancel-safe: a signal without a waiting task is kept.
        tokio::select! {
            _ = self.interrupt.recv() => StopRequest::Interrupt,
            _ = self.terminate.recv() => StopRequest::Terminate,
        }
    }
}
