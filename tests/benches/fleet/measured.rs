//! A process with an autoscaler, and what it uses of the machine.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use tests::bench::process::{Process, cpu_time, cpu_time_of_threads};
use tests::bench::{Samples, clock};

use crate::fleet::autoscaler::LOOP_THREAD;

/// What an autoscaler uses that records nothing.
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
            let (began, before) = (clock::now(), cpu_time(self.process.pid())?);
            thread::sleep(window);
            let used = cpu_time(self.process.pid())?.saturating_sub(before);
            cores.push(used.as_secs_f64() / clock::since(began).as_secs_f64());
        }
        Ok(cores)
    }

    /// The cores that the event loop's thread uses in a window.
    pub(crate) fn cores_of_loop(&self, window: Duration) -> anyhow::Result<f64> {
        let pid = self.process.pid();
        let (began, before) = (clock::now(), cpu_time_of_threads(pid, LOOP_THREAD)?);
        thread::sleep(window);
        let used = cpu_time_of_threads(pid, LOOP_THREAD)?.saturating_sub(before);
        Ok(used.as_secs_f64() / clock::since(began).as_secs_f64())
    }
}
