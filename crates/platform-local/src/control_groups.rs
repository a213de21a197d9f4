//! Do the limits of a manifest hold? The kernel's control groups (cgroup v2) keep them, where `ebb` has a
//! subtree of its own.
//!
//! ```text
//! the group that ebb was started in (systemd: Delegate=yes)
//! ├── ebb                          `ebb up`, every `ebb pod` and queue-proxy, and containers of which nothing is said
//! └── pods
//!     └── NAMESPACE.POD.CONTAINER  one container of which something is said
//! ```
//!
//! A group has either processes or limited children, so `ebb` itself moves into a leaf first, and can do so
//! only where no other process is in its group. Only containers of which a manifest says something get a
//! group, because moving a process costs milliseconds, and a wake from zero has none to spare.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

const OURS: &str = "ebb";
const PODS: &str = "pods";
const PROCESSES: &str = "cgroup.procs";
const CONTROLLERS: &str = "cgroup.controllers";
const CHILDRENS_CONTROLLERS: &str = "cgroup.subtree_control";

/// Over which a limit of CPU time is kept, in microseconds: what Kubernetes and systemd use.
pub(crate) const CPU_PERIOD: u64 = 100_000;
/// The kernel takes no shorter share of a period.
const CPU_QUOTA_MIN: u64 = 1_000;

/// What a container may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainerLimits {
    /// `limits.memory` of the container, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// `limits.cpu`, in thousandths of a core.
    pub(crate) cpu_milli: Option<u64>,
    /// `requests.cpu`, in thousandths of a core: its share where there is not enough for all.
    pub(crate) cpu_request_milli: Option<u64>,
}

impl ContainerLimits {
    /// Whether the manifest gives neither a limit nor a request of CPU.
    pub(crate) fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Why limits cannot be kept.
#[derive(Debug, Error)]
pub(crate) enum ControlGroupError {
    #[error(
        "this machine has no control groups of version 2; boot it with systemd.unified_cgroup_hierarchy=1"
    )]
    NotMounted,
    #[error(
        "the control group {path} controls neither memory nor CPU; where control groups of version 1 do, boot with \
         systemd.unified_cgroup_hierarchy=1, else start ebb by systemd with Delegate=yes, as `ebb install` does"
    )]
    NoControllers { path: PathBuf },
    #[error(
        "ebb shares its control group with {name} ({pid}); start it by systemd with Delegate=yes, as `ebb install` does, or with \
         `systemd-run --user --scope -p Delegate=yes ebb up …`"
    )]
    NotAlone { pid: i32, name: String },
    #[error(
        "the control group {path} is not ebb's to divide ({source}); start it by systemd with Delegate=yes, as `ebb install` does"
    )]
    NotOurs { path: PathBuf, source: io::Error },
}

/// A subtree that is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlGroups {
    root: PathBuf,
}

impl ControlGroups {
    /// Takes possession of the group that this process is in, or joins those of the `ebb up` whose place it
    /// takes.
    pub(crate) fn set_up(handed_over: Option<&Path>) -> Result<Self, ControlGroupError> {
        if let Some(root) = handed_over
            && enter(&root.join(OURS)).is_ok()
        {
            return Ok(Self { root: root.to_owned() });
        }
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let root = own_group(&own, &mounts).ok_or(ControlGroupError::NotMounted)?;
        Self::divide(root)
    }

    fn divide(root: PathBuf) -> Result<Self, ControlGroupError> {
        let controllers = controllers_of(&root.join(CONTROLLERS));
        if controllers.is_empty() {
            return Err(ControlGroupError::NoControllers { path: root });
        }
        if let Some(pid) = other_processes_in(&root).next() {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            return Err(ControlGroupError::NotAlone { pid, name: name.trim().to_owned() });
        }
        match try_divide(&root, &controllers) {
            Ok(()) => Ok(Self { root }),
            Err(source) => {
                // As it was: no other program is to find us in a group that we made for nothing.
                let _ = enter(&root);
                let _ = fs::remove_dir(root.join(PODS));
                let _ = fs::remove_dir(root.join(OURS));
                Err(ControlGroupError::NotOurs { path: root, source })
            }
        }
    }

    /// The group that was divided.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The first of these limits that the control groups cannot enforce, as a word for a sentence.
    pub(crate) fn unenforced(&self, limits: ContainerLimits) -> Option<&'static str> {
        let kept = controllers_of(&self.root.join(PODS).join(CHILDRENS_CONTROLLERS));
        match (limits.memory_bytes, limits.cpu_milli) {
            (Some(_), _) if !kept.contains(&MEMORY) => Some(MEMORY),
            (_, Some(_)) if !kept.contains(&CPU) => Some(CPU),
            (_, _) => None,
        }
    }
}

const MEMORY: &str = "memory";
const CPU: &str = "cpu";

/// The controllers among memory and CPU that a file names.
fn controllers_of(file: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let is_named =
        |name: &&str| text.split_ascii_whitespace().any(|word| word.trim_start_matches('+') == *name);
    [MEMORY, CPU].into_iter().filter(is_named).collect()
}

/// The numbers of the processes in the group besides this one.
fn other_processes_in(group: &Path) -> impl Iterator<Item = i32> + use<> {
    let own = i64::from(std::process::id());
    let listed = fs::read_to_string(group.join(PROCESSES)).unwrap_or_default();
    let pids: Vec<i32> = listed.lines().filter_map(|line| line.parse().ok()).collect();
    pids.into_iter().filter(move |pid| i64::from(*pid) != own)
}

fn try_divide(root: &Path, controllers: &[&str]) -> io::Result<()> {
    make(&root.join(OURS))?;
    enter(&root.join(OURS))?;
    let wanted: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
    let wanted = wanted.join(" ");
    fs::write(root.join(CHILDRENS_CONTROLLERS), &wanted)?;
    let pods = root.join(PODS);
    make(&pods)?;
    fs::write(pods.join(CHILDRENS_CONTROLLERS), &wanted)?;
    // Removes the groups that a killed `ebb pod` has left; a group with processes stays.
    for left in fs::read_dir(&pods)?.flatten() {
        let _ = fs::remove_dir(left.path());
    }
    Ok(())
}

fn make(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Moves this process, with all its threads, into the group.
fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join(PROCESSES), std::process::id().to_string())
}

/// Where a process's group lies, by what the kernel says of it and of what is mounted.
fn own_group(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let is_of_version_2 = |line: &&str| {
        line.split_once(" - ").is_some_and(|(_, kind)| kind.split(' ').next() == Some("cgroup2"))
    };
    let mount = mounts.lines().find(is_of_version_2)?;
    let mut fields = mount.split(' ').skip(3);
    let (mounted, place) = (fields.next()?, fields.next()?);
    let below = path.strip_prefix(mounted.trim_end_matches('/'))?;
    Some(Path::new(place).join(below.trim_start_matches('/')))
}

/// The group of one container. Dropped, it goes with the processes that it held, if these have ended.
#[derive(Debug)]
pub(crate) struct ContainerGroup {
    directory: PathBuf,
    ours: PathBuf,
    limits: ContainerLimits,
}

impl ContainerGroup {
    /// Makes it below this root.
    pub(crate) fn make(root: &Path, name: &str, limits: ContainerLimits) -> io::Result<Self> {
        let pods = root.join(PODS);
        let directory = pods.join(name);
        make(&directory)?;
        let group = Self { directory, ours: root.join(OURS), limits };
        let kept = controllers_of(&pods.join(CHILDRENS_CONTROLLERS));
        if let Some(bytes) = limits.memory_bytes.filter(|_| kept.contains(&MEMORY)) {
            group.write("memory.max", &bytes.to_string())?;
            // All of it ends, as in a container of Kubernetes: what is left of an app of several processes is
            // rarely of use.
            group.write("memory.oom.group", "1")?;
            // Else an app would be slow where it is to be killed. A kernel may count no swap.
            let _ = group.write("memory.swap.max", "0");
        }
        if kept.contains(&CPU) {
            if let Some(milli) = limits.cpu_milli {
                group.write("cpu.max", &format!("{} {CPU_PERIOD}", cpu_quota(milli)))?;
            }
            if let Some(milli) = limits.cpu_request_milli {
                group.write("cpu.weight", &cpu_weight(milli).to_string())?;
            }
        }
        Ok(group)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.directory.join(file), text)
            .map_err(|error| io::Error::other(format!("{text} in {file} of its control group: {error}")))
    }

    /// Starts something that is in the group from its first instruction on: this process goes there, and back
    /// when its child is made. Only `ebb pod` may, which has one thread.
    pub(crate) fn start<Child>(&self, start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        enter(&self.directory)?;
        let started = start();
        enter(&self.ours)?;
        started
    }

    /// The end of a sentence about a container that the kernel killed for want of memory, if it did.
    pub(crate) fn killed_for_memory(&self) -> Option<String> {
        let events = fs::read_to_string(self.directory.join("memory.events")).ok()?;
        let killed = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
        if killed.trim() == "0" {
            return None;
        }
        Some(match self.limits.memory_bytes {
            Some(bytes) => killed_beyond(bytes),
            None => "was killed for memory: the machine has none left".to_owned(),
        })
    }
}

impl Drop for ContainerGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

/// The end of a sentence about a container that was killed because it needed more memory than this.
pub(crate) fn killed_beyond(bytes: u64) -> String {
    format!("was killed for memory: it needed more than its limit of {}", quantity_text(bytes))
}

/// How many microseconds of [`CPU_PERIOD`] a limit in thousandths of a core is.
pub(crate) fn cpu_quota(milli: u64) -> u64 {
    (milli.saturating_mul(CPU_PERIOD) / 1000).max(CPU_QUOTA_MIN)
}

/// Kubernetes' way from a request in thousandths of a core to shares: a core is 1,024, and the kernel takes
/// from 2 to 262,144.
pub(crate) fn cpu_shares(milli: u64) -> u64 {
    (milli.saturating_mul(1024) / 1000).clamp(2, 262_144)
}

/// Kubernetes' way from a request to a weight: 2 … 262,144 shares are 1 … 10,000.
fn cpu_weight(milli: u64) -> u64 {
    1 + (cpu_shares(milli) - 2) * 9999 / 262_142
}

/// A number of bytes as manifests write quantities, such as `128Mi`.
fn quantity_text(bytes: u64) -> String {
    for (unit, size) in [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
        if bytes.is_multiple_of(size) {
            return format!("{}{unit}", bytes / size);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a delegated group looks like: files, on which the kernel acts elsewhere.
    fn delegated(controllers: &str, processes: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join(CONTROLLERS), controllers).expect("writing");
        fs::write(root.path().join(PROCESSES), processes).expect("writing");
        root
    }

    fn read(root: &Path, file: &str) -> String {
        fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    #[test]
    fn ebb_goes_into_a_leaf_and_each_container_with_limits_into_another() {
        let own = std::process::id().to_string();
        let root = delegated("cpuset cpu io memory pids\n", &format!("{own}\n"));
        let groups = ControlGroups::divide(root.path().to_owned()).expect("it is ours");
        let root = root.path();
        assert_eq!(read(root, "ebb/cgroup.procs"), own);
        for file in ["cgroup.subtree_control", "pods/cgroup.subtree_control"] {
            assert_eq!(read(root, file), "+memory +cpu", "{file}");
        }
        let limits = ContainerLimits {
            memory_bytes: Some(128 << 20),
            cpu_milli: Some(250),
            cpu_request_milli: Some(1000),
        };
        assert_eq!(groups.unenforced(limits), None);
        let group = ContainerGroup::make(root, "default.web-1.app", limits).expect("it can be made");
        let leaf = root.join("pods/default.web-1.app");
        for (file, text) in [
            ("memory.max", "134217728"),
            ("memory.oom.group", "1"),
            ("memory.swap.max", "0"),
            ("cpu.max", "25000 100000"),
            ("cpu.weight", "39"),
        ] {
            assert_eq!(read(&leaf, file), text, "{file}");
        }
        let entered = group.start(|| Ok(read(&leaf, PROCESSES))).expect("it can be entered");
        assert_eq!(entered, own, "what is started there is there from the beginning");
        assert_eq!(group.killed_for_memory(), None);
        fs::write(leaf.join("memory.events"), "low 0\nmax 7\noom 1\noom_kill 0\n").expect("writing");
        assert_eq!(group.killed_for_memory(), None);
        fs::write(leaf.join("memory.events"), "low 0\nmax 7\noom 1\noom_kill 2\n").expect("writing");
        let said = group.killed_for_memory().expect("it was killed");
        assert_eq!(said, "was killed for memory: it needed more than its limit of 128Mi");
        assert_eq!(ControlGroups::set_up(Some(root)).expect("it can be joined"), groups);
    }

    #[test]
    fn a_shared_group_or_one_without_controllers_is_refused_with_advice() {
        let root = delegated("memory pids", "1\n");
        let refusal =
            ControlGroups::divide(root.path().to_owned()).expect_err("process 1 is in it").to_string();
        assert!(refusal.contains("(1); start it by systemd with Delegate=yes"), "{refusal}");
        assert!(!root.path().join(OURS).exists(), "nothing was changed");
        let root = delegated("hugetlb", "");
        let refusal = ControlGroups::divide(root.path().to_owned()).expect_err("no controllers").to_string();
        assert!(refusal.contains("neither memory nor CPU"), "{refusal}");
        let root = delegated("memory", "");
        let groups = ControlGroups::divide(root.path().to_owned()).expect("it is ours");
        let cpu = ContainerLimits { cpu_milli: Some(1), ..ContainerLimits::default() };
        assert_eq!(groups.unenforced(cpu), Some(CPU));
    }

    #[test]
    fn the_own_group_is_found_wherever_it_is_mounted() {
        let unified = "24 1 0:22 / /sys rw - sysfs sysfs rw\n29 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let hybrid = "29 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n30 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let container = "29 24 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        for (own, mounts, expected) in [
            ("0::/system.slice/ebb.service\n", unified, Some("/sys/fs/cgroup/system.slice/ebb.service")),
            ("4:memory:/x\n0::/\n", hybrid, Some("/sys/fs/cgroup/unified/")),
            ("0::/docker/1/app\n", container, Some("/sys/fs/cgroup/app")),
            ("0::/elsewhere\n", container, None),
            ("4:memory:/x\n", unified, None),
            ("0::/x\n", "", None),
        ] {
            assert_eq!(own_group(own, mounts).as_deref(), expected.map(Path::new), "{own} {mounts}");
        }
    }

    #[test]
    fn requests_become_weights_as_on_kubernetes() {
        for (milli, weight) in [(0, 1), (100, 4), (1000, 39), (4000, 157), (u64::MAX, 10_000)] {
            assert_eq!(cpu_weight(milli), weight, "{milli}");
        }
    }
}
