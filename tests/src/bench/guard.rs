//! Which program ends what a benchmark has started, when the benchmark is killed?
//!
//! A benchmark that ends drops its processes, which kills them. One that is killed drops nothing, and what it
//! leaves behind would share the machine with the next measurement. So all that it starts is in a process
//! group, whose leader is a shell that waits for the end of a pipe which only the benchmark holds: however
//! that ends, the kernel closes the pipe, and the leader kills its group, itself with it. (The kernel's own
//! way, `PR_SET_PDEATHSIG`, watches the thread that started a process, and ours end at once; and it would
//! take `unsafe`.)

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// What the leader does. A signal to all that the benchmark started must not end it before them.
const LEADER: &str = "trap '' HUP INT TERM; read -r _; kill -KILL 0";

/// The leader, with our end of its pipe. One for as long as the process lives.
static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// Sees to it that what `command` starts ends with this process at the latest.
pub fn protect(command: &mut Command) -> io::Result<()> {
    command.process_group(group()?);
    Ok(())
}

/// The process group of all that this process has started and that is protected.
pub fn group() -> io::Result<i32> {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let leader = match &mut *guard {
        Some(leader) => leader,
        none => {
            let mut command = Command::new("sh");
            command.args(["-c", LEADER]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
            none.insert(command.stderr(Stdio::null()).spawn()?)
        }
    };
    Ok(i32::try_from(leader.id()).expect("process ids are positive 32-bit numbers"))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use nix::sys::signal::Signal;

    use super::super::{clock, process::Process};
    use super::*;
    use crate::ebb::{is_alive, signal_process};

    /// The environment variable that makes [`a_killed_program_plays_its_part`] play the killed program.
    const PART: &str = "GUARD_TEST_PART";

    const PATIENCE: Duration = Duration::from_secs(30);

    /// The program that is killed below: this test again, in a process of its own, with a process that takes
    /// part in it.
    #[test]
    fn a_killed_program_plays_its_part() {
        if std::env::var_os(PART).is_none() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        // With a process of its own, which no kill by a process id reaches.
        command.args(["-c", "sleep 600 & echo $!; wait"]);
        let mut started = Process::start(command, "part", folder.path(), &[0]).expect("it starts");
        let of_its_own = started.first_line().expect("it says so");
        println!("\nstarted {} {of_its_own}", started.pid());
        std::thread::sleep(PATIENCE);
    }

    #[test]
    fn a_killed_benchmark_leaves_no_process() {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let mut command = Command::new(std::env::current_exe().expect("this test"));
            command.args(["--exact", "bench::guard::tests::a_killed_program_plays_its_part", "--nocapture"]);
            let mut benchmark =
                command.env(PART, "1").stdout(Stdio::piped()).spawn().expect("this test starts again");
            let output = BufReader::new(benchmark.stdout.take().expect("it is piped"));
            let mut lines = output.lines().map_while(Result::ok);
            let started = lines.find_map(|line| line.strip_prefix("started ").map(str::to_owned));
            let started = started.expect("it says what it started");
            let started: Vec<u32> = started.split(' ').map(|pid| pid.parse().expect("a number")).collect();
            assert!(started.len() == 2 && started.iter().all(|pid| is_alive(*pid)), "{started:?}");
            signal_process(benchmark.id(), signal);
            benchmark.wait().expect("it was our child");
            let killed_at = clock::now();
            while started.iter().any(|pid| is_alive(*pid)) {
                assert!(clock::since(killed_at) < PATIENCE, "after {signal}: {started:?} live on");
                std::thread::yield_now();
            }
        }
    }

    /// `tests/cluster/bench` holds a whole Kubernetes, none of whose processes is in a group of ours.
    #[test]
    fn a_killed_script_takes_its_cluster_down() {
        const SCRIPT: &str = ". ./settings.sh; owned; sleep 600 & echo $!; wait";
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let folder = tempfile::tempdir().expect("a folder");
            let place = folder.path().join("tests/cluster");
            std::fs::create_dir_all(&place).expect("a folder in it");
            let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/settings.sh");
            std::fs::copy(settings, place.join("settings.sh")).expect("it is there");
            let is_down = place.join("is-down");
            let down = "#!/bin/sh\ntouch \"$(dirname \"$0\")/is-down\"\n";
            std::fs::write(place.join("down"), down).expect("written");
            std::fs::set_permissions(place.join("down"), Permissions::from_mode(0o755)).expect("set");
            let mut command = Command::new("bash");
            command.args(["-c", SCRIPT]).current_dir(&place).stdout(Stdio::piped());
            let mut script = command.spawn().expect("bash is there");
            let mut lines = BufReader::new(script.stdout.take().expect("it is piped")).lines();
            // It lives on, as the cluster does, and may not keep the pipe open.
            let outlives = lines.next().expect("it says so").expect("text").parse().expect("a number");
            assert!(!is_down.exists());
            signal_process(script.id(), signal);
            script.wait().expect("it was our child");
            let killed_at = clock::now();
            while !is_down.exists() {
                assert!(clock::since(killed_at) < PATIENCE, "after {signal}: it stays up");
                std::thread::yield_now();
            }
            signal_process(outlives, Signal::SIGKILL);
        }
    }
}
