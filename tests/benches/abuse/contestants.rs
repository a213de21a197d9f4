//! Who is attacked: each a fresh process before an app of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::ConfigMap;
use tests::bench::api;
use tests::bench::machine::{Cores, move_to, starting_on};
use tests::bench::memory_group::MemoryGroup;
use tests::bench::process::{cpu_time, cpu_time_of_threads, listening_ports, peak_memory};
use tests::bench::proxies::{
    App, Place, Protocol, Server, Target, haproxy, queue_proxy, queue_proxy_in_group,
};
use tests::bench::up::{self, Up, service};

/// How all threads of the activator are called.
const ACTIVATOR_THREADS: &str = "activator-";
const PATIENCE: Duration = Duration::from_secs(60);
/// What the container of a queue-proxy may have, in bytes.
pub(crate) const CONTAINER_BYTES: u32 = 128 << 20;

/// The proxies that are attacked, ours and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    QueueProxy,
    /// One in a memory group of its own, as in its container.
    QueueProxyIn128,
    Activator,
    Haproxy,
}

pub(crate) const NAMES: [Name; 4] = [Name::QueueProxy, Name::QueueProxyIn128, Name::Activator, Name::Haproxy];

impl Name {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::QueueProxy => "queue-proxy",
            Self::QueueProxyIn128 => "queue-proxy in 128 MiB",
            Self::Activator => "activator",
            Self::Haproxy => "HAProxy",
        }
    }
}

/// What each of them is started from.
pub(crate) struct Ground<'a> {
    pub(crate) cores: Cores,
    pub(crate) folder: &'a Path,
    ebb: PathBuf,
    app: PathBuf,
}

/// A contestant that runs, with everything beside it.
pub(crate) enum Contestant {
    /// Its group goes last, when the process in it has ended.
    Alone {
        server: Server,
        _app: App,
        _group: Option<MemoryGroup>,
    },
    Up {
        up: Box<Up>,
        queue_proxy: u32,
    },
}

impl<'a> Ground<'a> {
    pub(crate) fn prepare(folder: &'a Path) -> anyhow::Result<Self> {
        let [ebb, app] = up::executables()?;
        Ok(Self { cores: Cores::divide()?, folder, ebb, app })
    }

    pub(crate) fn start(&self, name: Name, protocol: Protocol) -> anyhow::Result<Contestant> {
        let place = Place { folder: self.folder, cores: &self.cores.contestant };
        match name {
            Name::Activator => self.start_up(protocol),
            Name::QueueProxy => {
                let (app, target) = self.start_app(protocol)?;
                Ok(alone(queue_proxy(&self.ebb, target, 0, place)?, app))
            }
            Name::QueueProxyIn128 => self.start_in_group(protocol, place),
            Name::Haproxy => {
                let (app, target) = self.start_app(protocol)?;
                Ok(alone(haproxy("haproxy", target, place)?, app))
            }
        }
    }

    fn start_app(&self, protocol: Protocol) -> anyhow::Result<(App, Target)> {
        let app = App::start(self.folder, &self.cores.load)?;
        let target = app.target(protocol);
        Ok((app, target))
    }

    /// Where this user may make no group, the process has the machine's memory, and its peak is looked at.
    fn start_in_group(&self, protocol: Protocol, place: Place<'_>) -> anyhow::Result<Contestant> {
        let (app, target) = self.start_app(protocol)?;
        let group = MemoryGroup::with_limit("abuse", CONTAINER_BYTES.into());
        let server = match &group {
            Some(group) => queue_proxy_in_group(&self.ebb, group, target, place)?,
            None => queue_proxy(&self.ebb, target, 0, place)?,
        };
        Ok(Contestant::Alone { server, _app: app, _group: group })
    }

    /// `ebb up` with the activator in the path whatever the load. Its pod is moved to where the load is.
    fn start_up(&self, protocol: Protocol) -> anyhow::Result<Contestant> {
        let service = match protocol {
            Protocol::Http1 => service("abuse", &self.app),
            Protocol::H2c => service("abuse", &self.app).args(&["--prior-knowledge"]),
        };
        let config = ConfigMap::default()
            .set("target-burst-capacity", "-1")
            .set("min-scale", "1")
            .set("max-scale", "1");
        let up = starting_on(&self.cores.contestant, || Up::start(&self.ebb, &[service], &config))??;
        let pod = api::until(PATIENCE, || {
            let revision = up.revision("abuse")?;
            let pod = &revision["pods"][0];
            ensure!(pod["state"] == "ready", "it has no ready pod");
            Ok(pod.clone())
        })?;
        let pid = |name: &str| -> anyhow::Result<u32> {
            pod["details"][name].as_str().and_then(|pid| pid.parse().ok()).with_context(|| name.to_owned())
        };
        for process in ["queue_proxy_pid", "app_pid"] {
            move_to(&self.cores.load, pid(process)?)?;
        }
        Ok(Contestant::Up { queue_proxy: pid("queue_proxy_pid")?, up: Box::new(up) })
    }
}

fn alone(server: Server, app: App) -> Contestant {
    Contestant::Alone { server, _app: app, _group: None }
}

impl Contestant {
    /// Fails if it has ended.
    pub(crate) fn check_alive(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Alone { server, .. } => server.process.check_alive(),
            Self::Up { .. } => peak_memory(self.pid()).map(drop),
        }
    }

    /// The port of its pages with metrics, where it has them.
    pub(crate) fn pages(&self) -> anyhow::Result<u16> {
        match self {
            Self::Alone { server, .. } => server.admin.context("it has no pages"),
            Self::Up { up, .. } => Ok(up.ebb().api.port()),
        }
    }

    /// The port at which it takes requests.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Alone { server, .. } => server.port,
            Self::Up { up, .. } => up.requests().port(),
        }
    }

    /// Every other port that it listens on.
    pub(crate) fn other_ports(&self) -> anyhow::Result<Vec<u16>> {
        let mut ports = listening_ports(self.pid())?;
        ports.retain(|port| *port != self.port());
        ensure!(!ports.is_empty(), "it listens on no other port");
        Ok(ports)
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Alone { server, .. } => server.process.pid(),
            Self::Up { up, .. } => up.pid(),
        }
    }

    /// The most memory it ever had, in MB; of `ebb up` with its pod's queue-proxy.
    pub(crate) fn peak_memory(&self) -> anyhow::Result<f64> {
        let beside = match self {
            Self::Alone { .. } => 0.0,
            Self::Up { queue_proxy, .. } => peak_memory(*queue_proxy)?,
        };
        Ok(peak_memory(self.pid())? + beside)
    }

    /// Seconds of CPU time so far; of `ebb up`, the activator's.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let time = match self {
            Self::Alone { server, .. } => cpu_time(server.process.pid())?,
            Self::Up { up, .. } => cpu_time_of_threads(up.pid(), ACTIVATOR_THREADS)?,
        };
        Ok(time.as_secs_f64())
    }
}
