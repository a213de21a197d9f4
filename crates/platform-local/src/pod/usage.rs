//! What the app uses: CPU time and resident memory of its process and of everything below it, once a second.
//!
//! The kernel adds what a process used to its parent once that has waited for it, and orphans end as children
//! of ours. So the sum over all living processes, each with its ended children, and over ours that ended,
//! misses nothing but children that their parent never waits for. Of a family only the members are read every
//! second; its members are looked up every few seconds, because each thread may have children and has to
//! be asked for them: an app with a hundred threads would otherwise cost more than it is worth. A child that
//! begins in between counts from the next look on, with all it used.
//!
//! Shared memory counts in each process that has it resident, as in `ps`.
//!
//! The processes of a container are not below ours. Its engine knows the first one, and is asked for it once,
//! when the start of the pod is over.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::Context;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use vocabulary::{AppEndLine, ResourceUsageLine, Timestamp};

use super::descendants;

/// How often usage is read.
const EVERY: Duration = Duration::from_secs(1);
/// What a CPU value is the mean of: Kubernetes' metrics-server has the same by default.
const WINDOW: Duration = Duration::from_secs(15);
/// How long after the start of a pod its engine is asked for the container's first process: the question
/// holds up the pod's loop, and costs as much as a twentieth of a start.
const CONTAINER_KNOWN_AFTER: Duration = Duration::from_secs(2);
/// After so many readings the members of the family are looked up again.
const READINGS_PER_LOOK: u32 = 5;
/// Linux counts CPU time in hundredths of a second wherever it runs (`USER_HZ`), whatever its clock does.
const TICK: Duration = Duration::from_millis(10);
/// The size of a page where nothing else is known; `AT_PAGESZ` of all machines that are built for here.
const PAGE_BYTES: u64 = 4096;

/// Tells the queue-proxy every second what the app uses, and at last how it ended.
pub(super) struct UsageReporter {
    pipe: File,
    meter: UsageMeter,
    due: Timestamp,
}

impl UsageReporter {
    pub(super) fn new(pipe: OwnedFd, queue_proxy: Pid) -> anyhow::Result<Self> {
        // A queue-proxy that does not read misses a report; the pod's loop never waits for it.
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).context("the queue-proxy's input")?;
        Ok(Self { pipe: pipe.into(), meter: UsageMeter::new(queue_proxy), due: Timestamp::ZERO })
    }

    /// The same of an app that is a container, whose processes are not known yet.
    #[must_use]
    pub(super) fn of_container(mut self, now: Timestamp) -> Self {
        self.note_container(None, now);
        self
    }

    /// Whether it is time to ask for the first process of the container.
    pub(super) fn awaits_container(&self, now: Timestamp) -> bool {
        self.due <= now && matches!(self.meter.family, AppFamily::InContainer(None))
    }

    /// The first process of the container; `None` if it is not known yet, or another container begins.
    pub(super) fn note_container(&mut self, first: Option<Pid>, now: Timestamp) {
        self.meter.family = AppFamily::InContainer(first);
        self.meter.readings_to_look = 0;
        if first.is_none() {
            self.due = now + CONTAINER_KNOWN_AFTER;
        }
    }

    pub(super) fn report_if_due(&mut self, now: Timestamp) {
        if self.due > now {
            return;
        }
        // Not from when it was due: what was missed is not made up for.
        self.due = now + EVERY;
        if let Some(line) = self.meter.read(now) {
            self.send(&line);
        }
    }

    /// Says how the app ended: its clients are to read it.
    pub(super) fn report_end(&mut self, how: &str) {
        self.send(&AppEndLine { ended: how.to_owned() });
    }

    fn send(&mut self, line: &impl serde::Serialize) {
        let mut line = serde_json::to_vec(line).expect("numbers and texts are JSON");
        line.push(b'\n');
        let _ = self.pipe.write(&line);
    }

    /// When [`UsageReporter::report_if_due`] reports the next time.
    pub(super) fn next_deadline(&self) -> Timestamp {
        self.due
    }
}

/// Which processes are the app's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AppFamily {
    /// All below us but the queue-proxy's.
    Below { queue_proxy: Pid },
    /// The first process of a container and those below it, once it is known.
    InContainer(Option<Pid>),
}

impl AppFamily {
    /// Its members, as `/proc` has them now.
    fn members(self) -> Vec<Pid> {
        match self {
            Self::Below { queue_proxy } => descendants::descendants_except(queue_proxy),
            Self::InContainer(Some(first)) => {
                descendants::descendants_of(first).into_iter().chain([first]).collect()
            }
            Self::InContainer(None) => Vec::new(),
        }
    }

    /// The CPU time of those that ended and were adopted by us.
    fn cpu_of_ended(self) -> Duration {
        match self {
            Self::Below { .. } => ended_children(),
            // The first process of a container adopts them.
            Self::InContainer(_) => Duration::ZERO,
        }
    }
}

/// Measures the CPU time and memory of an app and its children.
#[derive(Debug)]
struct UsageMeter {
    family: AppFamily,
    members: Vec<Pid>,
    readings_to_look: u32,
    /// The most that was counted, at each reading of the window.
    readings: VecDeque<(Timestamp, Duration)>,
}

impl UsageMeter {
    fn new(queue_proxy: Pid) -> Self {
        let family = AppFamily::Below { queue_proxy };
        Self { family, members: Vec::new(), readings_to_look: 0, readings: VecDeque::new() }
    }

    /// Reads; `None` at the first time, when nothing can be said of a rate.
    fn read(&mut self, now: Timestamp) -> Option<ResourceUsageLine> {
        if self.readings_to_look == 0 {
            self.members = self.family.members();
            self.readings_to_look = READINGS_PER_LOOK;
        }
        self.readings_to_look -= 1;
        let (mut cpu, mut memory_bytes) = (self.family.cpu_of_ended(), 0);
        for member in &self.members {
            let stat = fs::read_to_string(format!("/proc/{member}/stat")).unwrap_or_default();
            if let Some(usage) = ProcessUsage::of(&stat) {
                cpu += usage.cpu;
                memory_bytes += usage.resident_bytes;
            }
        }
        self.add(now, cpu).map(|(cpu_milli, window)| ResourceUsageLine {
            cpu_milli,
            memory_bytes,
            window_ms: u64::try_from(window.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// The mean since the oldest reading that is not older than the window, in thousandths of a core.
    fn add(&mut self, now: Timestamp, cpu: Duration) -> Option<(i64, Duration)> {
        // A process that ended and was not waited for takes its time with it; what was used stays used.
        let most = self.readings.back().map_or(cpu, |(_, before)| cpu.max(*before));
        self.readings.push_back((now, most));
        while self.readings.get(1).is_some_and(|(at, _)| now.saturating_since(*at) >= WINDOW) {
            self.readings.pop_front();
        }
        let (since, before) = *self.readings.front()?;
        let window = now.saturating_since(since);
        if window.is_zero() {
            return None;
        }
        let milli = most.saturating_sub(before).as_nanos() * 1000 / window.as_nanos();
        Some((i64::try_from(milli).unwrap_or(i64::MAX), window))
    }
}

/// The CPU time of children that ended and were waited for.
fn ended_children() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
}

/// What one line of `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// Its own and that of its ended children.
    pub(crate) cpu: Duration,
    resident_bytes: u64,
    /// Whether it runs or waits for a core.
    pub(crate) is_runnable: bool,
}

impl ProcessUsage {
    /// The name before the numbers stands in parentheses and may hold any character.
    pub(crate) fn of(stat: &str) -> Option<Self> {
        /// Where the fields stand after the name (`proc_pid_stat(5)` counts pid and name as 1 and 2).
        const UTIME: usize = 14 - 3;
        const RSS: usize = 24 - 3;
        let (_, after_name) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().take(RSS + 1).collect();
        let mut ticks: u32 = 0;
        for field in fields.get(UTIME..UTIME + 4)? {
            let number: i64 = field.parse().ok()?;
            ticks = ticks.saturating_add(u32::try_from(number.max(0)).unwrap_or(u32::MAX));
        }
        let pages: u64 = fields.get(RSS)?.parse().ok()?;
        Some(Self {
            cpu: TICK * ticks,
            resident_bytes: pages.saturating_mul(PAGE_BYTES),
            // The state stands right behind the name.
            is_runnable: fields.first() == Some(&"R"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_memory_are_found_behind_any_name() {
        let stat = "17 (a) b (c) S 4 17 17 0 -1 4194304 900 0 1 0 250 50 30 20 20 0 9 0 1234 1000000 300 18446744073709551615";
        let (cpu, resident_bytes) = (Duration::from_millis(3500), 300 * PAGE_BYTES);
        let expected = ProcessUsage { cpu, resident_bytes, is_runnable: false };
        assert_eq!(ProcessUsage::of(stat), Some(expected));
        assert_eq!(ProcessUsage::of("garbage"), None);
        assert_eq!(ProcessUsage::of("1 (a) S 1 2"), None);
    }

    #[test]
    fn the_family_of_a_container_is_its_first_process_and_those_below() {
        let own = Pid::this();
        assert!(AppFamily::InContainer(Some(own)).members().contains(&own));
        assert!(AppFamily::InContainer(None).members().is_empty());
        assert_eq!(
            AppFamily::InContainer(Some(own)).cpu_of_ended(),
            Duration::ZERO,
            "what it waited for is its own"
        );
    }

    #[test]
    fn a_value_is_the_mean_of_the_last_15_seconds() {
        let mut meter = UsageMeter::new(Pid::from_raw(1));
        assert_eq!(meter.add(Timestamp::from_secs(100), Duration::from_secs(7)), None);
        let mut last = None;
        for second in 1..=40_u64 {
            // Half a core, and from second 30 on a whole one.
            let used = 7000 + 500 * second.min(30) + 1000 * second.saturating_sub(30);
            last = meter.add(Timestamp::from_secs(100 + second), Duration::from_millis(used));
            if second <= 30 {
                assert_eq!(last, Some((500, Duration::from_secs(second.min(15)))), "second {second}");
            }
        }
        assert_eq!(last, Some((833, WINDOW)), "10 s of one core and 5 of half of one");
    }

    #[test]
    fn time_that_went_with_a_process_stays_used_and_counts_once() {
        let mut meter = UsageMeter::new(Pid::from_raw(1));
        let seconds = Duration::from_secs;
        meter.add(Timestamp::from_secs(0), seconds(10));
        meter.add(Timestamp::from_secs(1), seconds(11));
        assert_eq!(meter.add(Timestamp::from_secs(2), seconds(4)), Some((500, seconds(2))));
        assert_eq!(meter.add(Timestamp::from_secs(4), seconds(12)), Some((500, seconds(4))));
    }

    /// On this very process: a child that burns CPU counts while it lives and when it is gone.
    #[test]
    fn usage_of_a_child_counts_before_and_after_its_end() {
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 5";
        let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().expect("a shell");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        let used = |family: Vec<Pid>| {
            let stat = |pid: &Pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let living: Duration =
                family.iter().filter_map(|pid| ProcessUsage::of(&stat(pid))).map(|usage| usage.cpu).sum();
            living + ended_children()
        };
        let before = ended_children();
        // Bounded: the loop of the shell takes a fraction of a second of CPU, however long it waits for a
        // core.
        for _ in 0..6000 {
            if used(vec![pid]).saturating_sub(before) >= TICK * 3 {
                break;
            }
            std::thread::sleep(TICK);
        }
        assert!(descendants::descendants_except(Pid::from_raw(1)).contains(&pid), "the family has it");
        assert!(!descendants::descendants_except(pid).contains(&pid), "unless it is left out");
        let living = used(vec![pid]).saturating_sub(before);
        assert!(living >= TICK * 3, "{living:?}");
        child.kill().expect("it lives");
        child.wait().expect("it ended");
        let ended = used(Vec::new()).saturating_sub(before);
        assert!(ended + TICK * 2 >= living, "{living:?} before, {ended:?} after");
    }
}
