//! How many pods does this machine's memory hold?

/// What a pod takes where nobody knows better: a queue-proxy of 12 MiB beside an app of usual size.
const PER_POD_KIB: u64 = 48 * 1024;
/// Even the smallest machine runs so many; each may be as small as its queue-proxy.
const LEAST: usize = 16;

/// As many pods as fit, by what the kernel says of the machine's memory and of what this process's control
/// groups may use of it.
pub fn pods_that_fit() -> usize {
    fitting(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), runtime::memory_limit())
}

fn fitting(meminfo: &str, limit: Option<u64>) -> usize {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total =
        total.and_then(|total| total.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default();
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
}
