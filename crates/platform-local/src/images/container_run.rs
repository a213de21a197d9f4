//! The command line that runs a container, and the environment that the engine needs for it.

use std::collections::BTreeMap;

use nix::sys::resource::{Resource, getrlimit};

use super::container_image::{ContainerImage, PullPolicy};
use super::engine::{ImageEngine, ImageNetwork};
use super::image_runtime::{INSTANCE_LABEL, ImageRuntime, POD_LABEL};
use crate::control_groups::{CPU_PERIOD, ContainerLimits, cpu_quota, cpu_shares};

/// Everything that the command line of one container says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContainerRun<'a> {
    pub(crate) runtime: &'a ImageRuntime,
    /// The name of the container.
    pub(crate) name: &'a str,
    /// The pod that it is, as `NAMESPACE/NAME`.
    pub(crate) pod: &'a str,
    pub(crate) image: &'a ContainerImage,
    /// The port of 127.0.0.1 at which the container is reached.
    pub(crate) port: u16,
    pub(crate) limits: ContainerLimits,
    pub(crate) process_limits: ProcessLimits,
    pub(crate) variables: &'a BTreeMap<String, String>,
    /// The arguments for the image's own program.
    pub(crate) words: &'a [String],
}

/// Limits of processes that a container gets as a process of `ebb pod` would: soft and hard, where
/// `u64::MAX` means none. Without them an engine asks for its own, which some machines refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessLimits {
    /// Of open files of the process.
    pub(crate) descriptors: Option<(u64, u64)>,
    /// Of processes of the user.
    pub(crate) processes: Option<(u64, u64)>,
}

impl ProcessLimits {
    /// The limits of this process; of processes no more than there can be. Podman lowers its own limit to
    /// that number, and what it starts cannot raise a limit again without a right to.
    pub(crate) fn own() -> Self {
        let ids = std::fs::read_to_string(PROCESS_IDS).ok().and_then(|text| text.trim().parse().ok());
        let possible = ids.unwrap_or(u64::MAX);
        let processes = getrlimit(Resource::RLIMIT_NPROC).ok();
        Self {
            descriptors: getrlimit(Resource::RLIMIT_NOFILE).ok(),
            processes: processes.map(|(soft, hard)| (soft.min(possible), hard.min(possible))),
        }
    }
}

/// The file with the number of process identifiers of this machine.
const PROCESS_IDS: &str = "/proc/sys/kernel/pid_max";

impl ContainerRun<'_> {
    /// The arguments of the engine. Values of most variables are not among them: every user of the machine
    /// can read the arguments of a process.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = Arguments(vec!["run".to_owned()]);
        arguments.option("--name", self.name);
        arguments.option("--label", &format!("{INSTANCE_LABEL}={}", self.runtime.instance));
        arguments.option("--label", &format!("{POD_LABEL}={}", self.pod));
        arguments.option("--pull", if self.image.pull == PullPolicy::Never { "never" } else { "missing" });
        // What it prints comes to us; a copy on the disk would only grow.
        arguments.option("--log-driver", "none");
        match self.runtime.network {
            ImageNetwork::Host => arguments.option("--network", "host"),
            ImageNetwork::Auto | ImageNetwork::Bridge => {
                arguments.option("--publish", &format!("127.0.0.1:{}:{}", self.port, self.image.port));
            }
        }
        self.add_limits(&mut arguments);
        self.add_security(&mut arguments);
        if let Some(directory) = &self.image.directory {
            arguments.option("--workdir", directory);
        }
        for (name, value) in self.variables {
            if is_passed_by_name(name) {
                arguments.option("--env", name);
            } else {
                arguments.option("--env", &format!("{name}={value}"));
            }
        }
        let Arguments(mut arguments) = arguments;
        arguments.push(self.image.reference.clone());
        arguments.extend_from_slice(self.words);
        arguments
    }

    /// The variables that the engine takes from its own environment.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&String, &String)> {
        self.variables.iter().filter(|(name, _)| is_passed_by_name(name))
    }

    fn add_limits(&self, arguments: &mut Arguments) {
        if let Some(bytes) = self.limits.memory_bytes {
            arguments.option("--memory", &bytes.to_string());
            // As much in all, so no swap: else an app would be slow where it is to be killed.
            arguments.option("--memory-swap", &bytes.to_string());
        }
        if let Some(milli) = self.limits.cpu_milli {
            // Docker takes no more `--cpus` than the machine has cores; a quota may be anything.
            arguments.option("--cpu-period", &CPU_PERIOD.to_string());
            arguments.option("--cpu-quota", &cpu_quota(milli).to_string());
        }
        if let Some(milli) = self.limits.cpu_request_milli {
            arguments.option("--cpu-shares", &cpu_shares(milli).to_string());
        }
        let ProcessLimits { descriptors, processes } = self.process_limits;
        // Docker's service has all rights, and counts the processes of all containers of a user together.
        let processes = processes.filter(|_| self.runtime.engine == ImageEngine::Podman);
        for (name, limit) in [("nofile", descriptors), ("nproc", processes)] {
            if let Some((soft, hard)) = limit {
                arguments.option("--ulimit", &format!("{name}={}:{}", limit_text(soft), limit_text(hard)));
            }
        }
    }

    fn add_security(&self, arguments: &mut Arguments) {
        let security = &self.image.security;
        match (security.user, security.group) {
            (Some(user), Some(group)) => arguments.option("--user", &format!("{user}:{group}")),
            (Some(user), None) => arguments.option("--user", &user.to_string()),
            (None, _) => {}
        }
        if security.has_read_only_root {
            arguments.0.push("--read-only".to_owned());
        }
        if security.may_gain_no_privileges {
            arguments.option("--security-opt", "no-new-privileges");
        }
        for capability in &security.dropped_capabilities {
            arguments.option("--cap-drop", capability);
        }
        for capability in &security.added_capabilities {
            arguments.option("--cap-add", capability);
        }
    }
}

/// A command line that grows.
struct Arguments(Vec<String>);

impl Arguments {
    fn option(&mut self, name: &str, value: &str) {
        self.0.extend([name.to_owned(), value.to_owned()]);
    }
}

/// How engines write a limit.
fn limit_text(limit: u64) -> String {
    if limit == u64::MAX { "-1".to_owned() } else { limit.to_string() }
}

/// Variables by which engines, or the libraries that they are made of, are told what to do.
const READ_BY_ENGINES: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "TMPDIR", "LANG", "HOSTNAME"];
/// How the names of other such variables begin.
const READ_BY_ENGINES_BEGIN: [&str; 17] = [
    "_", "BUILD", "CONTAIN", "DBUS_", "DOCKER_", "GO", "LC_", "LD_", "LISTEN_", "NOTIFY_", "PODMAN_",
    "REGISTR", "SSH_", "SSL_", "STORAGE_", "SUDO_", "XDG_",
];

/// Whether the engine may find a variable of the container in its own environment, where other users do not
/// see its value. A variable that the engine reads itself must not be there.
fn is_passed_by_name(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_engines = READ_BY_ENGINES.contains(&name)
        || READ_BY_ENGINES_BEGIN.iter().any(|begin| name.starts_with(begin))
        || name.to_ascii_uppercase().ends_with("_PROXY");
    is_plain && !is_engines
}

#[cfg(test)]
mod tests;
