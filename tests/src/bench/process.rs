//! A process that takes part: started on its cores, ended when dropped, and asked what it cost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::Serialize;

use super::api;
use super::machine::spawn_on;
use crate::ebb::signal_process;

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command on these cores. What it says on standard error goes to `NAME.log` in `folder`.
    pub fn start(mut command: Command, name: &str, folder: &Path, cores: &[usize]) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let child = spawn_on(cores, &mut command).with_context(|| format!("starting {name}"))?;
        Ok(Self { child, log })
    }

    /// The first line of its standard output; fails with its log if it ends without one.
    pub fn first_line(&mut self) -> anyhow::Result<String> {
        let output = self.child.stdout.take().context("its output was read before")?;
        let mut reader = BufReader::new(output);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        self.child.stdout = Some(reader.into_inner());
        if line.is_empty() {
            bail!("it ended without a word:\n{}", self.log());
        }
        Ok(line.trim().to_owned())
    }

    /// Where to tell it something.
    pub fn input(&mut self) -> &mut ChildStdin {
        self.child.stdin.as_mut().expect("standard input is piped")
    }

    /// What it said on standard error.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The process id of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs; if not, the error holds its log.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("a process ended with {status}:\n{}", self.log()),
        }
    }

    /// Asks it to end (SIGTERM), and waits until it has. Fails with its log if that takes longer than `limit`
    /// or it ends badly.
    pub fn end(mut self, limit: Duration) -> anyhow::Result<()> {
        signal_process(self.pid(), Signal::SIGTERM);
        let ended = api::until(limit, || self.child.try_wait()?.context("it was asked to end and lives on"));
        let status = ended.with_context(|| format!("its log:\n{}", self.log()))?;
        ensure!(status.success(), "it ended with {status}:\n{}", self.log());
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The CPU time that all threads of a process have used, ended ones included.
pub fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let clock =
        ClockId::pid_cpu_clock_id(raw(pid)).with_context(|| format!("the CPU clock of process {pid}"))?;
    Ok(clock_gettime(clock).with_context(|| format!("the CPU time of process {pid}"))?.into())
}

/// The CPU time of those threads of a process whose name begins so, as far as they still run.
pub fn cpu_time_of_threads(pid: u32, name: &str) -> anyhow::Result<Duration> {
    let mut nanoseconds = 0;
    let mut found = 0;
    for thread in threads(pid) {
        let folder = format!("/proc/{pid}/task/{thread}");
        let Ok(comm) = fs::read_to_string(format!("{folder}/comm")) else { continue };
        if comm.starts_with(name) {
            let text = fs::read_to_string(format!("{folder}/schedstat"))?;
            nanoseconds += text.split_whitespace().next().context("schedstat is empty")?.parse::<u64>()?;
            found += 1;
        }
    }
    if found == 0 {
        bail!("process {pid} has no thread whose name begins with {name:?}");
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<Pid> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .collect()
}

/// How many files a process has open.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().count()
}

/// What a process holds of the machine's memory, in MB (10^6 bytes).
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Memory {
    /// Everything it has mapped and resident.
    pub rss: f64,
    /// The same, with what it shares divided among those who share it.
    pub pss: f64,
    /// Its part of it that it shares with no other process.
    pub private: f64,
}

/// Reads a process's memory from `smaps_rollup`.
pub fn memory(pid: u32) -> anyhow::Result<Memory> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.map(|kilobytes| kilobytes * 1024.0 / 1e6).with_context(|| format!("{path} has no {name}"))
    };
    let private = field("Private_Clean:")? + field("Private_Dirty:")?;
    Ok(Memory { rss: field("Rss:")?, pss: field("Pss:")?, private })
}

/// The most that a process ever had resident, in MB (10^6 bytes).
pub fn peak_memory(pid: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024.0 / 1e6).with_context(|| format!("{path} has no VmHWM"))
}

/// The process that has started this one.
pub fn parent_of(pid: u32) -> anyhow::Result<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name before the numbers stands in parentheses.
    let (_, after_name) = stat.rsplit_once(')').context("a line of /proc/PID/stat")?;
    let parent = after_name.split_whitespace().nth(1).context("it has a parent")?;
    Ok(parent.parse()?)
}

/// The TCP ports (IPv4) on which a process listens.
pub fn listening_ports(pid: u32) -> anyhow::Result<Vec<u16>> {
    let folder = format!("/proc/{pid}/fd");
    let files = fs::read_dir(&folder).with_context(|| format!("reading {folder}"))?;
    let sockets: Vec<String> = files
        .flatten()
        .filter_map(|file| {
            let target = fs::read_link(file.path()).ok()?.to_string_lossy().into_owned();
            Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).context("reading the table of sockets")?;
    let listening = table.lines().skip(1).filter_map(|line| {
        // Number, local address, remote address, state, and, as the tenth, the socket.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_its = fields.get(3) == Some(&"0A")
            && sockets.iter().any(|socket| fields.get(9) == Some(&socket.as_str()));
        let (_, port) = fields.get(1).filter(|_| is_its)?.split_once(':')?;
        u16::from_str_radix(port, 16).ok()
    });
    Ok(listening.collect())
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("process ids are positive 32-bit numbers"))
}
