//! Ending every process that came from this one, and being sure of it.
//!
//! A process can leave its group and its parent, but not its reaper: `ebb pod` is a child subreaper, so every
//! orphan among its descendants becomes its child. Killing what is found and waiting until the kernel says
//! that there is no child left is therefore complete, however often the descendants fork meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use crate::proc::ProcessStat;

/// How long to give the kernel to end what was killed before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Kills and reaps until this process has no descendant.
pub(crate) fn kill_all() {
    loop {
        for process in all() {
            // It may have ended since it was found.
            let _ = kill(process, Signal::SIGKILL);
        }
        if reap(|_| {}) == RemainingChildren::None {
            return;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether there are children after a [`reap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemainingChildren {
    AtLeastOne,
    None,
}

/// Collects every child that has ended.
pub(crate) fn reap(mut ended: impl FnMut(WaitStatus)) -> RemainingChildren {
    loop {
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return RemainingChildren::AtLeastOne,
            Ok(status) => ended(status),
            Err(Errno::EINTR) => {}
            Err(_) => return RemainingChildren::None,
        }
    }
}

/// Every process whose chain of parents leads here, as `/proc` has it now.
pub(crate) fn all() -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for process in ProcessStat::all() {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut found = Vec::new();
    let mut parents = vec![getpid().as_raw()];
    while let Some(parent) = parents.pop() {
        // Taken out, so that a table that changed while it was read cannot lead in circles.
        for process in children.remove(&parent).unwrap_or_default() {
            found.push(Pid::from_raw(process));
            parents.push(process);
        }
    }
    found
}

/// Every process below this one but for one of its children and what is below that.
pub(crate) fn descendants_except(left_out: Pid) -> Vec<Pid> {
    below(getpid(), |child| child != left_out)
}

/// Every process below this one, as `/proc` has it now.
pub(crate) fn descendants_of(process: Pid) -> Vec<Pid> {
    below(process, |_| true)
}

fn below(process: Pid, belongs: impl Fn(Pid) -> bool) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut parents = vec![process];
    while let Some(parent) = parents.pop() {
        for child in children_of(parent).into_iter().filter(|child| belongs(*child)) {
            // A number that was given again while this was read cannot lead in circles.
            if !found.contains(&child) {
                found.push(child);
                parents.push(child);
            }
        }
    }
    found
}

/// The children of this process: what it started, and orphans of what is below it.
pub(crate) fn children() -> Vec<Pid> {
    children_of(getpid())
}

/// The name of a process that lives, as `ps` has it.
pub(crate) fn name_of(process: Pid) -> Option<String> {
    let is_zombie = ProcessStat::of(process.as_raw())?.is_zombie;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    (!is_zombie).then(|| name.trim_end().to_owned())
}

/// The children of each of its threads.
fn children_of(process: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .map(Pid::from_raw)
        .collect()
}
