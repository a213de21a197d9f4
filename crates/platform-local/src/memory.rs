//! How many pods does this machine's memory hold?

/// The memory of a pod before one was measured: a queue-proxy of 12 MiB beside an app of usual size.
pub(crate) const PER_POD_KIB: u64 = 48 * 1024;
/// Even the smallest machine runs so many; each may be as small as its queue-proxy.
const LEAST: usize = 16;

/// As many pods as fit, by what the kernel says of the machine's memory and of what this process's control
/// groups may use of it.
pub fn pods_that_fit() -> usize {
    fitting(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), runtime::memory_limit())
}

/// The memory that processes could still have without anything being swapped, in KiB: the least of the
/// kernel's own estimate and what this process's control groups leave; `None` where neither is known.
pub(crate) fn free_kib() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    free(&meminfo, runtime::memory_headroom())
}

fn free(meminfo: &str, headroom: Option<u64>) -> Option<u64> {
    let of_groups = headroom.map(|bytes| bytes / 1024);
    [field(meminfo, "MemAvailable:"), of_groups].into_iter().flatten().min()
}

fn field(meminfo: &str, name: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

fn fitting(meminfo: &str, limit: Option<u64>) -> usize {
    let total = field(meminfo, "MemTotal:").unwrap_or_default();
    let kib = limit.map_or(total, |bytes| total.min(bytes / 1024));
    usize::try_from(kib / PER_POD_KIB).unwrap_or(usize::MAX).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_out_and_even_little_holds_some() {
        let machine = "MemTotal:       16777216 kB\nMemFree: 1 kB\n";
        assert_eq!(fitting(machine, None), 341);
        assert_eq!(fitting(machine, Some(1 << 30)), 21, "a container of a GiB");
        assert_eq!((fitting("MemTotal: 100 kB\n", None), fitting("", None)), (LEAST, LEAST));
    }

    #[test]
    fn free_memory_is_the_least_that_the_machine_and_the_control_groups_leave() {
        let machine = "MemFree: 1 kB\nMemAvailable:    8123 kB\n";
        for (headroom, expected) in [(None, 8123), (Some(1 << 40), 8123), (Some(1 << 20), 1024), (Some(0), 0)]
        {
            assert_eq!(free(machine, headroom), Some(expected), "{headroom:?}");
        }
        assert_eq!((free("", None), free("", Some(4096))), (None, Some(4)));
    }
}
