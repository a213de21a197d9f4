//! The kernel's table of processes (`/proc`).

use std::fs;

use nix::unistd::Pid;

/// The number of a process as signals take it.
pub(crate) fn pid_of(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).expect("Linux has fewer than 2^22 processes"))
}

/// One process, at the moment of the look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) pid: i32,
    /// The number of the process that started it, or adopted it.
    pub(crate) parent: i32,
    /// The number of its group.
    pub(crate) group: i32,
    /// Whether it has ended and only waits to be collected.
    pub(crate) is_zombie: bool,
}

impl ProcessStat {
    /// All processes of this machine, as `/proc` lists them now.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Self::of(entry.file_name().to_str()?.parse().ok()?))
    }

    /// The process with this number, if there is one.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }
}

/// A line of `/proc/PID/stat`. The name before the state stands in parentheses and may hold any character.
fn parse(pid: i32, stat: &str) -> Option<ProcessStat> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?;
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(ProcessStat { pid, parent, group, is_zombie: state == "Z" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_group_are_found_behind_any_name() {
        let sleeping = ProcessStat { pid: 17, parent: 4, group: 16, is_zombie: false };
        assert_eq!(parse(17, "17 (a) b (c) S 4 16 17 0 -1"), Some(sleeping));
        assert!(parse(1, "1 (x) Z 0 1 1").is_some_and(|stat| stat.is_zombie));
        assert_eq!(parse(1, "garbage"), None);
        assert_eq!(ProcessStat::of(1).map(|first| first.parent), Some(0));
    }
}
