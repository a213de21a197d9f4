//! A control group with a limit of memory, as a container has one: the kernel ends a process in it that needs
//! more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where groups are made, and the file of their limit: version 1 of control groups, and version 2.
const HIERARCHIES: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// A group of processes with a limit of memory. Dropping it removes it once its processes have ended.
#[derive(Debug)]
pub struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    /// A new group whose processes may hold this many bytes. `None` where this user may make none.
    pub fn with_limit(name: &str, bytes: u64) -> Option<Self> {
        let name = format!("ebb-{name}-{}", std::process::id());
        HIERARCHIES.iter().find_map(|(root, limit)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = Self { folder };
            fs::write(group.folder.join(limit), bytes.to_string()).ok()?;
            Some(group)
        })
    }

    /// A command that runs the program in this group from its first instruction on. Arguments come behind.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]).arg(&self.folder).arg(program);
        command
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // What the kernel still holds of it goes with a later one.
        let _ = fs::remove_dir(&self.folder);
    }
}
