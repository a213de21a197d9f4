//! Which cores belong to whom, and which tools are there.
//!
//! A contestant has the first core for itself; load and apps share the others. With two cores, load and app
//! share one: the throughput is then theirs, while CPU time per request and what one contestant adds to
//! another's latency stay comparable.

use std::io;
use std::process::{Child, Command};
use std::thread;

use anyhow::{Context, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use serde::Serialize;

/// The cores this process may use, divided.
#[derive(Clone, Debug, Serialize)]
pub struct Cores {
    /// The cores that the contestant runs on.
    pub contestant: Vec<usize>,
    /// For the load generator and apps.
    pub load: Vec<usize>,
}

impl Cores {
    /// Divides the cores that this process may use: the first is the contestant's.
    pub fn divide() -> anyhow::Result<Self> {
        let mine = sched_getaffinity(Pid::from_raw(0)).context("asking for this process's cores")?;
        let mut all = (0..CpuSet::count()).filter(|&core| mine.is_set(core).unwrap_or(false));
        let first = all.next().context("a process runs on some core")?;
        let rest: Vec<usize> = all.collect();
        let load = if rest.is_empty() { vec![first] } else { rest };
        Ok(Self { contestant: vec![first], load })
    }

    /// All cores of both parts, each of them once.
    pub fn all(&self) -> Vec<usize> {
        let mut all = self.contestant.clone();
        all.extend(self.load.iter().filter(|core| !self.contestant.contains(core)));
        all
    }
}

fn cpu_set(cores: &[usize]) -> nix::Result<CpuSet> {
    let mut set = CpuSet::new();
    cores.iter().try_for_each(|&core| set.set(core))?;
    Ok(set)
}

/// Starts a command on these cores only. What it starts ends with this process at the latest.
pub fn spawn_on(cores: &[usize], command: &mut Command) -> io::Result<Child> {
    super::guard::protect(command)?;
    starting_on(cores, || command.spawn())?
}

/// Starts processes so that they find these cores and no others. A thread of its own takes the restriction on
/// and hands it down.
pub fn starting_on<T: Send>(cores: &[usize], start: impl FnOnce() -> T + Send) -> io::Result<T> {
    let set = cpu_set(cores)?;
    thread::scope(|scope| {
        let starting = scope.spawn(|| {
            sched_setaffinity(Pid::from_raw(0), &set)?;
            Ok(start())
        });
        starting.join().expect("starting a process does not panic")
    })
}

/// Moves all threads of a process.
pub fn move_to(cores: &[usize], pid: u32) -> anyhow::Result<()> {
    let set = cpu_set(cores)?;
    for thread in super::process::threads(pid) {
        sched_setaffinity(thread, &set)
            .with_context(|| format!("moving process {pid} to cores {cores:?}"))?;
    }
    Ok(())
}

/// Moves the calling thread to these cores.
pub fn move_this_thread_to(cores: &[usize]) -> anyhow::Result<()> {
    sched_setaffinity(Pid::from_raw(0), &cpu_set(cores)?).context("choosing cores")
}

/// Allows this process and those it starts as many open files as the system lets them have, and says how many
/// that is.
pub fn raise_open_files() -> anyhow::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("asking for the limit of open files")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("raising the limit of open files")?;
    Ok(hard)
}

/// Fails, with how to get them, unless all of these programs are there.
pub fn require(tools: &[(&str, &str)]) -> anyhow::Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    // Debian puts servers where only root's PATH looks.
    let folders: Vec<&str> = path.split(':').chain(["/usr/sbin"]).collect();
    let is_there =
        |tool: &str| folders.iter().any(|folder| std::path::Path::new(folder).join(tool).is_file());
    let missing: Vec<&(&str, &str)> = tools.iter().filter(|(tool, _)| !is_there(tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(tool, _)| *tool).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    bail!("missing: {}; install with: apt-get install -y {}", names.join(", "), packages.join(" "))
}

/// What the numbers were measured on.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// As the kernel names it.
    pub processor: String,
    /// How many this process may use.
    pub cores: usize,
    /// The kernel's release, as the kernel prints it.
    pub kernel: String,
    /// The commit of the working tree, where git knows.
    pub commit: Option<String>,
}

impl Machine {
    /// Reads the description of the machine on which this program runs.
    pub fn this() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown", |(_, name)| name.trim());
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let commit = Command::new("git")
            .args(["describe", "--always", "--dirty"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output();
        Self {
            processor: processor.to_owned(),
            cores: thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: kernel.trim().to_owned(),
            commit: commit
                .ok()
                .filter(|output| output.status.success())
                .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        }
    }
}
