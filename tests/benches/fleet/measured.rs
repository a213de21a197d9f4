//! A process with an autoscaler, and what it uses of the machine.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use tests::bench::process::{Process, cpu_time, cpu_time_of_threads};
use tests::bench::{Samples, clock};

use crate::fleet::autoscaler::LOOP_THREAD;

/// What an autoscaler without a record uses of the machine.
pub(crate) struct Unrecorded {
    pub(crate) cores: f64,
    pub(crate) megabytes: f64,
}

/// A process with an autoscaler.
pub(crate) struct Autoscaler {
    pub(crate) process: Process,
    pub(crate) api: SocketAddr,
    pub(crate) started: Duration,
}

impl Autoscaler {
    /// The cores that the process uses, window by window.
    pub(crate) fn cores(&self, window: Duration, rounds: usize) -> anyhow::Result<Samples> {
        let mut cores = Samples::new();
        for _ in 0..rounds {
            cores.push(cores_in(window, || cpu_time(self.process.pid()))?);
        }
        Ok(cores)
    }

    /// The cores that the event loop's thread uses in a window.
    pub(crate) fn cores_of_loop(&self, window: Duration) -> anyhow::Result<f64> {
        cores_in(window, || cpu_time_of_threads(self.process.pid(), LOOP_THREAD))
    }
}

/// The cores that something uses in a window, by the CPU time that it has used so far.
fn cores_in(window: Duration, cpu_time: impl Fn() -> anyhow::Result<Duration>) -> anyhow::Result<f64> {
    let (began, before) = (clock::now(), cpu_time()?);
    thread::sleep(window);
    let used = cpu_time()?.saturating_sub(before);
    Ok(used.as_secs_f64() / clock::since(began).as_secs_f64())
}
