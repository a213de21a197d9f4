//! How something is broken, in a way that the API does not offer: a process is killed, a part of the cluster
//! ends. The cluster of tests runs on this machine, so its processes are seen here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::PATIENCE;
use crate::bench::clock;
use crate::wait::eventually;

/// A process in a pod.
pub struct PodProcess(PathBuf);

/// The process of this program in a pod.
pub fn process_of(pod: &str, program: &str) -> PodProcess {
    let is_it = |process: &Path| {
        let read = |file: &str| std::fs::read(process.join(file)).unwrap_or_default();
        let host = format!("HOSTNAME={pod}");
        read("comm").trim_ascii_end() == program.as_bytes()
            && read("environ").split(|byte| *byte == 0).any(|variable| variable == host.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").expect("this is Linux").flatten().map(|entry| entry.path());
    let found = processes.into_iter().find(|process| is_it(process));
    PodProcess(found.unwrap_or_else(|| panic!("{program} of {pod} does not run on this machine")))
}

impl PodProcess {
    /// Kills the program at once (`kill -9`).
    pub fn kill(&self) {
        kill(self.number(), Signal::SIGKILL).expect("root may kill it");
    }

    /// Stops it (`kill -STOP`) until what is returned is dropped.
    #[must_use]
    pub fn freeze(&self) -> FrozenProcess {
        kill(self.number(), Signal::SIGSTOP).expect("root may stop it");
        FrozenProcess(self.number())
    }

    fn number(&self) -> Pid {
        let number = self.0.file_name().and_then(|name| name.to_str()?.parse().ok());
        Pid::from_raw(number.expect("it is a number"))
    }

    /// The network of its pod, as a file that stands for it.
    pub fn network(&self) -> PathBuf {
        self.0.join("ns/net")
    }

    /// Waits until it holds no connection any more; returns when that was seen ([`clock::now`]).
    pub async fn gone(&self) -> Duration {
        eventually(&format!("{} has nothing open", self.0.display()), PATIENCE, || async {
            // Also of one that is dead but not forgotten yet there is none.
            match std::fs::read_dir(self.0.join("fd")).map(Iterator::count) {
                Ok(0) | Err(_) => Ok(clock::now()),
                Ok(open) => Err(format!("{open} files")),
            }
        })
        .await
    }
}

/// A process that stands still until this is dropped.
pub struct FrozenProcess(Pid);

impl Drop for FrozenProcess {
    fn drop(&mut self) {
        // It may have been killed meanwhile.
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

/// What the API server of the cluster of tests has noted of requests, one JSON object a line.
pub fn audit_log() -> String {
    let path = audit_log_path();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where [`audit_log`] is; it only grows.
pub fn audit_log_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/cluster/run/log/audit.log")
}

/// Stops or starts a part of the cluster of tests, as `tests/cluster/component` says.
pub async fn component(what: &str, name: &str) {
    run_script("component", &[what, name]).await;
}

/// What kubectl prints, as the administrator of the cluster of tests (`tests/cluster/kubectl`), or of that
/// which `$KUBECONFIG` names.
pub async fn kubectl(arguments: &[&str]) -> String {
    if std::env::var_os("KUBECONFIG").is_some() {
        return run_program(Path::new("kubectl"), arguments).await;
    }
    run_script("kubectl", arguments).await
}

async fn run_script(name: &str, arguments: &[&str]) -> String {
    run_program(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster").join(name), arguments).await
}

async fn run_program(program: &Path, arguments: &[&str]) -> String {
    let output = tokio::process::Command::new(program).args(arguments).output().await;
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let [out, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{} {arguments:?}: {out}{errors}", program.display());
    out
}
