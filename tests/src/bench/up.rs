//! `ebb up` as benchmarks use it: from programs that are not asynchronous themselves.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{api, executables};
use crate::{ConfigMap, Ebb, Service};

/// A running `ebb up`; dropping it ends it at once.
#[derive(Debug)]
pub struct Up {
    ebb: Ebb,
    /// The runtime of the task that collects what `ebb up` prints.
    runtime: Runtime,
}

impl Up {
    /// Starts this executable. Pods of these services start when a request needs them.
    pub fn start(executable: &Path, services: &[Service], config: &ConfigMap) -> anyhow::Result<Self> {
        Self::start_with(executable, services, config, &[])
    }

    /// The same with further arguments.
    pub fn start_with(
        executable: &Path,
        services: &[Service],
        config: &ConfigMap,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let arguments = [&["--log", "warn"][..], arguments].concat();
        let ebb = runtime.block_on(Ebb::up_as(executable, services, config, &arguments));
        Ok(Self { ebb, runtime })
    }

    /// The address at which `ebb up` takes requests.
    pub fn requests(&self) -> SocketAddr {
        self.ebb.requests
    }

    /// The process id of `ebb up`.
    pub fn pid(&self) -> u32 {
        self.ebb.pid()
    }

    /// Asks it to end (SIGTERM), and waits until it has ended with its pods. Fails if it ends badly.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.ebb.signal(Signal::SIGTERM);
        let status = self.runtime.block_on(self.ebb.ended());
        ensure!(status.success(), "`ebb up` ended with {status}:\n{}", self.ebb.output());
        Ok(())
    }

    /// The harness's view of it.
    pub fn ebb(&self) -> &Ebb {
        &self.ebb
    }

    /// What the API says of a service of namespace `default`.
    pub fn revision(&self, service: &str) -> anyhow::Result<Value> {
        api::get_json(self.ebb.api, &format!("/v1/revisions/default/service/{service}"))
    }

    /// What the API says of all.
    pub fn revisions(&self) -> anyhow::Result<Vec<Value>> {
        let list = api::get_json(self.ebb.api, "/v1/revisions")?;
        list["revisions"].as_array().cloned().context("a list of revisions")
    }

    /// Fails unless a service has no pod of any kind.
    pub fn expect_nothing_of(&self, service: &str) -> anyhow::Result<()> {
        let revision = self.revision(service)?;
        let pods = revision["pods"].as_array().map_or(usize::MAX, Vec::len);
        ensure!(pods == 0, "{service} has {pods} pods");
        Ok(())
    }
}

/// The configuration in which nothing runs before its first request.
pub fn asleep() -> ConfigMap {
    ConfigMap::short().set("allow-zero-initial-scale", "true").set("initial-scale", "0")
}

/// A service that runs the benchmarks' app.
pub fn service(name: &str, app: &Path) -> Service {
    Service::running(name, &[&app.to_string_lossy()])
}

/// The executables under test: `ebb` and the app.
pub fn executables() -> anyhow::Result<[std::path::PathBuf; 2]> {
    Ok([executables::ebb()?, executables::bench_app()?])
}
