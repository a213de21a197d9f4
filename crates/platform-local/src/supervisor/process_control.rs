//! How a pod's process is reached: told to end, killed whole, and waited for.
//!
//! One that we started is our child: until we have waited for it, no other process can get its number. One
//! that was taken over is not, and its parent or the machine's first process collects it whenever it likes;
//! so it is reached through a descriptor, which never comes to mean another process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

use crate::proc::ProcessStat;

/// A process of ours, which leads a group of its own.
#[derive(Debug)]
pub(super) enum ProcessControl {
    /// A child of this process, with its number.
    Child(Child, i32),
    /// A process that another `ebb up` started, by its pidfd and number.
    TakenOver(AsyncFd<OwnedFd>, i32),
}

impl ProcessControl {
    /// A child that was not waited for yet.
    pub(super) fn of_child(child: Child) -> Self {
        let pid = child.id().expect("not waited for yet");
        Self::Child(child, i32::try_from(pid).expect("Linux has fewer than 2^22 processes"))
    }

    /// The process behind a descriptor.
    #[expect(
        deprecated,
        reason = "its successor is unsafe and asks that the descriptor stays open, which an owned one does"
    )]
    pub(super) fn of_descriptor(process: OwnedFd, pid: i32) -> io::Result<Self> {
        Ok(Self::TakenOver(AsyncFd::with_interest(process, Interest::READABLE)?, pid))
    }

    /// Its number, which is its group's too.
    pub(super) fn pid(&self) -> i32 {
        match self {
            Self::Child(_, pid) | Self::TakenOver(_, pid) => *pid,
        }
    }

    /// A descriptor of the process, for another `ebb up`.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        match self {
            // No process has waited for it, so the number is its own.
            Self::Child(_, pid) => Ok(open(*pid)?),
            Self::TakenOver(process, _) => process.as_fd().try_clone_to_owned(),
        }
    }

    /// Asks it to end. It may be gone already.
    pub(super) fn terminate(&self) {
        match self {
            Self::Child(_, pid) => {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), Signal::SIGTERM);
            }
            Self::TakenOver(process, _) => {
                let _ = pidfd_send_signal(process, rustix::process::Signal::TERM);
            }
        }
    }

    /// Kills every process of the group that it leads.
    pub(super) fn kill_group(&self) {
        match self {
            Self::Child(_, pid) => {
                let _ = killpg(nix::unistd::Pid::from_raw(*pid), Signal::SIGKILL);
            }
            Self::TakenOver(process, pid) => kill_members(process, *pid),
        }
    }

    /// Waits for its end, and says how that was, as the end of a sentence.
    pub(super) async fn ended(&mut self) -> String {
        match self {
            Self::Child(child, _) => match child.wait().await {
                Ok(status) => exit_in_words(status),
                Err(error) => format!("its pod process is gone: {error}"),
            },
            Self::TakenOver(process, _) => {
                // Only a parent is told more; what went wrong inside it said itself.
                let _ = process.readable().await;
                "its pod process is gone".to_owned()
            }
        }
    }
}

fn open(pid: i32) -> rustix::io::Result<OwnedFd> {
    pidfd_open(Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH)?, PidfdFlags::empty())
}

/// Kills the members of a group one by one, each through a descriptor that was opened before it was looked
/// at: between a look at a number and a signal to it, the number may have become another's.
fn kill_members(leader: &AsyncFd<OwnedFd>, group: i32) {
    // As long as any member lives, no new process gets the number of the group. If there is a process of that
    // number, and it is not the leader, all of ours are gone.
    let of_that_number = ProcessStat::of(group).filter(|process| !process.is_zombie);
    if of_that_number.is_some() && has_ended(leader) {
        return;
    }
    for found in ProcessStat::all().filter(|process| process.group == group) {
        let Ok(process) = open(found.pid) else { continue };
        if ProcessStat::of(found.pid).is_some_and(|process| process.group == group) {
            let _ = pidfd_send_signal(&process, rustix::process::Signal::KILL);
        }
    }
}

fn has_ended(process: &AsyncFd<OwnedFd>) -> bool {
    let mut sources = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut sources, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// How the process ended, as the end of a sentence.
fn exit_in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its pod process exited with code {code}"),
        (None, Some(signal)) => {
            let name =
                Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.to_string());
            format!("its pod process was killed by {name}")
        }
        (None, None) => "its pod process is gone".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::process::Command;

    use super::*;

    /// A leader of a group with another member.
    fn two_sleepers() -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]).process_group(0).stdin(Stdio::null());
        command.spawn().expect("a shell")
    }

    async fn members(group: i32, expected: usize) {
        for _ in 0..5000 {
            let found = ProcessStat::all().filter(|process| process.group == group && !process.is_zombie);
            if found.count() == expected {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        panic!("group {group} does not come to {expected} members");
    }

    #[tokio::test]
    async fn a_group_that_was_taken_over_is_killed_whole_after_its_leader_too() {
        let child = ProcessControl::of_child(two_sleepers());
        let (descriptor, pid) = (child.descriptor().expect("a descriptor"), child.pid());
        let mut taken = ProcessControl::of_descriptor(descriptor, pid).expect("a descriptor of a process");
        members(pid, 2).await;
        let ProcessControl::Child(mut child, _) = child else { unreachable!("it was made of one") };
        child.kill().await.expect("it lives");
        assert_eq!(taken.ended().await, "its pod process is gone");
        members(pid, 1).await;
        taken.kill_group();
        members(pid, 0).await;
    }

    #[tokio::test]
    async fn a_process_with_the_number_of_a_group_that_is_gone_is_spared() {
        let mut gone = Command::new("true").spawn().expect("a process");
        let descriptor =
            open(i32::try_from(gone.id().expect("it runs")).expect("a number")).expect("it lives");
        gone.wait().await.expect("it ends");
        let mut innocent = two_sleepers();
        let number = i32::try_from(innocent.id().expect("it runs")).expect("a number");
        members(number, 2).await;
        let taken = ProcessControl::of_descriptor(descriptor, number).expect("a descriptor of a process");
        taken.kill_group();
        members(number, 2).await;
        ProcessControl::of_child(two_sleepers()).kill_group();
        assert!(innocent.try_wait().is_ok_and(|status| status.is_none()));
        ProcessControl::of_child(innocent).kill_group();
        members(number, 0).await;
    }
}
