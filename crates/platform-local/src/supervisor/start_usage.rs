//! How much of the cores does a pod use while it starts?
//!
//! `/proc/stat` says that the cores are busy, and not with which processes. So the processes of a pod that
//! starts are asked: `ebb pod` and everything below it.

use std::fs;
use std::time::Duration;

use nix::unistd::Pid;

use crate::pod::{ProcessUsage, descendants_of};

/// What the processes of one pod have used of the cores, at the moment of the look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartUsage {
    /// The CPU time of all of them, with their children that ended.
    pub(super) cpu: Duration,
    /// Whether one of them runs or waits for a core.
    pub(super) is_runnable: bool,
}

impl StartUsage {
    /// Of the `ebb pod` with this number and everything below it. `None` where that is not known: the process
    /// is gone, has started nothing yet, or the kernel does not list its children.
    pub(super) fn of(pod_process: i32) -> Option<Self> {
        let root = Pid::from_raw(pod_process);
        let below = descendants_of(root);
        if below.is_empty() {
            return None;
        }
        let processes = below.into_iter().chain([root]);
        let stats = processes.map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default());
        Some(Self::sum(stats))
    }

    /// The sum of these lines of `/proc/PID/stat`; a process that ended meanwhile has none.
    fn sum(stats: impl Iterator<Item = String>) -> Self {
        let mut sum = Self { cpu: Duration::ZERO, is_runnable: false };
        for stat in stats {
            if let Some(usage) = ProcessUsage::of(&stat) {
                sum.cpu += usage.cpu;
                sum.is_runnable |= usage.is_runnable;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of `/proc/PID/stat`, with these hundredths of a second of CPU time.
    fn stat(state: char, ticks: u32) -> String {
        format!(
            "17 (a) R (b) {state} 4 17 17 0 -1 4194304 900 0 1 0 {ticks} 0 0 0 20 0 9 0 1234 1000000 300 0"
        )
    }

    #[test]
    fn usage_is_the_sum_over_the_processes_of_a_pod() {
        let sum = |stats: &[String]| StartUsage::sum(stats.iter().cloned());
        let asleep = StartUsage { cpu: Duration::from_millis(70), is_runnable: false };
        assert_eq!(sum(&[stat('S', 3), stat('D', 4), String::new()]), asleep);
        assert!(sum(&[stat('S', 3), stat('R', 4)]).is_runnable);
    }

    #[test]
    fn usage_is_unknown_without_a_process_below() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it can be started");
        let of = |pid: u32| StartUsage::of(i32::try_from(pid).expect("a pid"));
        assert_eq!(of(child.id()), None);
        assert!(of(std::process::id()).is_some(), "this process has a child");
        child.kill().expect("it lives");
        child.wait().expect("it ended");
    }
}
