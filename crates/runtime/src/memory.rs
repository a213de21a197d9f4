//! How much memory the process may have.

use std::path::{Path, PathBuf};

/// The least of the limits that the process's control groups set, in bytes; `None` where none sets a limit.
pub fn memory_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let read = |file: PathBuf| std::fs::read_to_string(file).ok()?.trim().parse().ok();
    limit_files(&groups).into_iter().filter_map(read).min()
}

/// How much more the process's control groups would let it have, in bytes; `None` where none sets a limit.
pub fn memory_headroom() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_files(&groups).iter().filter_map(|file| headroom(file)).min()
}

/// The bytes that the control group of this limit file leaves. Pages of files that were not used lately count
/// as left: the kernel takes them before it kills a process.
fn headroom(limit_file: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(limit_file.with_file_name(name)).ok();
    let limit: u64 = std::fs::read_to_string(limit_file).ok()?.trim().parse().ok()?;
    let (usage, unused) = if limit_file.ends_with("memory.max") {
        ("memory.current", "inactive_file ")
    } else {
        ("memory.usage_in_bytes", "total_inactive_file ")
    };
    let used: u64 = read(usage)?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let unused: Option<u64> =
        stat.lines().find_map(|line| line.strip_prefix(unused)).and_then(|bytes| bytes.trim().parse().ok());
    Some(limit.saturating_sub(used.saturating_sub(unused.unwrap_or_default())))
}

/// The limit files of all control groups around the process, by the text of `/proc/self/cgroup`. In a
/// container the path is often that of the machine, which is not there, and the container's own group is the
/// root of what is.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        files.extend(groups.map(|group| Path::new(root).join(group).join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(groups: &str) -> Vec<String> {
        limit_files(groups).into_iter().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn both_generations_of_control_groups_are_asked_up_to_their_root() {
        assert_eq!(
            files("0::/a/b\n"),
            ["/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"]
        );
        assert_eq!(
            files("5:cpuset:/x\n4:rdma,memory:/c\n"),
            ["/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
        assert_eq!(files("0::/"), ["/sys/fs/cgroup/memory.max"]);
        assert_eq!(files("nonsense"), Vec::<String>::new());
    }
}
