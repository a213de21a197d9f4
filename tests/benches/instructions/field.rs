//! What all parts share: the executable under callgrind, the app, the cores. And the parts themselves: one
//! run of each, which starts its processes, asks them so often, and ends them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use tempfile::TempDir;
use tests::bench::callgrind::Callgrind;
use tests::bench::callgrind::profile::Profile;
use tests::bench::closed_loop::ClosedLoop;
use tests::bench::machine::{Cores, starting_on};
use tests::bench::proxies::{App, Place, Protocol, queue_proxy};
use tests::bench::up::{Up, service};
use tests::bench::{api, executables};
use tests::{ConfigMap, Service};

use super::work::HopCell;

/// How long anything may take that takes milliseconds without callgrind, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(300);
/// The connections of the load at the activator.
const CONNECTIONS: usize = 64;
/// Services that may wake in one run of `ebb up`.
pub(crate) const SLEEPERS: usize = 12;

/// All that outlives one run.
pub(crate) struct Field {
    folder: TempDir,
    ebb: Callgrind,
    app: App,
    app_program: PathBuf,
    cores: Cores,
}

impl Field {
    pub(crate) fn start(ebb: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let cores = Cores::divide()?;
        Ok(Self {
            ebb: Callgrind::of(ebb, folder.path())?,
            app: App::start(folder.path(), &cores.load)?,
            app_program: executables::bench_app()?,
            cores,
            folder,
        })
    }

    /// A queue-proxy before the app, from its start to its end.
    pub(crate) fn hop(&self, cell: &HopCell, requests: usize) -> anyhow::Result<Profile> {
        let place = Place { folder: self.folder.path(), cores: &self.cores.contestant };
        let target = self.app.target(cell.protocol);
        let server = queue_proxy(self.ebb.program(), target, cell.limit, place)?;
        let load = ClosedLoop {
            protocol: cell.protocol,
            connections: cell.connections,
            hosts: vec!["localhost".to_owned()],
            path: cell.body.path.to_owned(),
            upload: cell.body.upload,
        };
        load.run(SocketAddr::from((Ipv4Addr::LOCALHOST, server.port)), requests)?;
        let pid = server.process.pid();
        server.process.end(PATIENCE)?;
        Ok(Profile::together(self.ebb.threads(pid)?))
    }

    /// The activator's threads of an `ebb up` with a pod for each revision.
    pub(crate) fn activator(&self, revisions: usize, requests: usize) -> anyhow::Result<Profile> {
        let names: Vec<String> = (0..revisions).map(|number| format!("hop-{number}")).collect();
        let services: Vec<_> = names.iter().map(|name| service(name, &self.app_program)).collect();
        // The activator is in the path whatever the load, and no pod comes or goes.
        let config = ConfigMap::default()
            .set("target-burst-capacity", "-1")
            .set("min-scale", "1")
            .set("max-scale", "1");
        // It has as many workers as it finds cores: one, or how many a turn of one finds would vary.
        let up = starting_on(&self.cores.contestant, || Up::start(self.ebb.program(), &services, &config))??;
        for name in &names {
            api::until(PATIENCE, || {
                let revision = up.revision(name)?;
                ensure!(revision["pods"][0]["state"] == "ready", "{name} has no ready pod: {revision}");
                Ok(())
            })?;
        }
        let load = ClosedLoop {
            protocol: Protocol::Http1,
            connections: CONNECTIONS,
            hosts: services.iter().map(Service::host).collect(),
            path: "/bytes/12".to_owned(),
            upload: 0,
        };
        load.run(up.requests(), requests)?;
        let workers: Vec<Profile> = self.threads_of(up)?.into_iter().filter(is_of_the_activator).collect();
        ensure!(
            !workers.is_empty(),
            "no thread of `ebb up` spent {TIMES_MORE} times more on the activator than on the autoscaler"
        );
        Ok(Profile::together(workers))
    }

    /// The whole of an `ebb up` in which so many services wake, one after the other. Valgrind 3.19 does not
    /// know `pidfd_open`, and says so in the log: tokio then hears of the ends of processes by SIGCHLD.
    pub(crate) fn wakes(&self, wakes: usize) -> anyhow::Result<Profile> {
        ensure!(wakes <= SLEEPERS, "{wakes} of {SLEEPERS} services cannot wake");
        let services: Vec<_> =
            (0..SLEEPERS).map(|number| service(&format!("sleeper-{number}"), &self.app_program)).collect();
        // As for `wake`, but a pod that has come stays.
        let config = ConfigMap::default()
            .set("allow-zero-initial-scale", "true")
            .set("initial-scale", "0")
            .set("stable-window", "600s");
        let up = Up::start(self.ebb.program(), &services, &config)?;
        for sleeper in &services[..wakes] {
            let load = ClosedLoop {
                protocol: Protocol::Http1,
                connections: 1,
                hosts: vec![sleeper.host()],
                path: "/bytes/12".to_owned(),
                upload: 0,
            };
            load.run(up.requests(), 1)?;
        }
        Ok(Profile::together(self.threads_of(up)?))
    }

    fn threads_of(&self, up: Up) -> anyhow::Result<Vec<Profile>> {
        let pid = up.pid();
        up.end()?;
        self.ebb.threads(pid)
    }
}

/// How many times more a thread of the activator spends on the activator than on the autoscaler. It spends
/// nothing on that, unless the compiler made one function of two that are alike; the thread that starts both
/// spends about as much on each.
const TIMES_MORE: u64 = 10;

/// Threads are told by what they run, for profiles have no names of threads.
fn is_of_the_activator(thread: &Profile) -> bool {
    let spent_on = |name: &str| -> u64 {
        let of_crate = thread.instructions.iter().filter(|(function, _)| function.crate_name() == name);
        of_crate.map(|(_, instructions)| instructions).sum()
    };
    spent_on("activator") > TIMES_MORE * spent_on("autoscaler")
}
