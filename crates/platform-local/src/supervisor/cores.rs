//! Does this machine have a core to spare?
//!
//! Asked while pods wait for their start: whatever starts now takes from those that serve, if nothing is
//! idle. The kernel counts how the time of all cores was spent; the difference of two looks says how much of
//! it was idle in between.

use std::time::Duration;

use vocabulary::Timestamp;

/// The least time between two looks: the kernel counts in hundredths of a second, so less would be noise.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The machine is busy if less of its time was idle: more pods would share what is left.
const IDLE_SHARE: f64 = 0.15;

/// Whether a core was idle between the last two looks at the kernel's counters.
#[derive(Debug, Default)]
pub(super) struct Cores {
    last: Option<(Timestamp, CoreTime)>,
    has_room: bool,
}

/// How the time of all cores was spent since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CoreTime {
    idle: u64,
    all: u64,
}

impl Cores {
    /// Whether something was idle just now; false while that is not known. A machine that cannot be asked has
    /// cores to spare.
    pub(super) fn have_room(&mut self, now: Timestamp) -> bool {
        if self.last.is_none_or(|(at, _)| now.saturating_since(at) >= LOOK_EVERY) {
            match std::fs::read_to_string("/proc/stat").ok().and_then(|text| parse(&text)) {
                Some(spent) => self.note(now, spent),
                None => self.has_room = true,
            }
        }
        self.has_room
    }

    /// When another look would say something new.
    pub(super) fn next_look(now: Timestamp) -> Timestamp {
        now + LOOK_EVERY
    }

    fn note(&mut self, now: Timestamp, spent: CoreTime) {
        // A first look, or one after a long time, says nothing about now. Then those that are urgent are
        // started, and the next look shows what that left idle.
        let recent = self.last.filter(|(at, _)| now.saturating_since(*at) < 10 * LOOK_EVERY);
        self.has_room = recent.is_some_and(|(_, before)| {
            let all = spent.all.saturating_sub(before.all);
            let idle = spent.idle.saturating_sub(before.idle);
            all > 0 && share(idle, all) >= IDLE_SHARE
        });
        self.last = Some((now, spent));
    }
}

fn share(part: u64, whole: u64) -> f64 {
    let number = |ticks: u64| f64::from(u32::try_from(ticks).unwrap_or(u32::MAX));
    number(part) / number(whole)
}

/// The line of all cores: user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of the
/// first two.
fn parse(stat: &str) -> Option<CoreTime> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let spent: Vec<u64> = numbers.take(8).map_while(|number| number.parse().ok()).collect();
    let idle = spent.get(3)? + spent.get(4)?;
    Some(CoreTime { idle, all: spent.iter().sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_two_looks_says_whether_cores_are_idle() {
        let at = |looks: u32| Timestamp::from_secs(3600) + LOOK_EVERY * looks;
        let spent = |idle, busy| CoreTime { idle, all: idle + busy };
        let mut cores = Cores::default();
        cores.note(at(0), spent(0, 0));
        assert!(!cores.has_room, "one look says nothing");
        cores.note(at(1), spent(2, 38));
        assert!(!cores.has_room, "5 % idle");
        cores.note(at(2), spent(12, 68));
        assert!(cores.has_room, "25 % idle");
        cores.note(at(40), spent(1000, 68));
        assert!(!cores.has_room, "that was long ago");
    }

    #[test]
    fn the_kernels_line_is_read() {
        let stat = "cpu  100 1 20 300 40 0 5 6 7 8\ncpu0 1 2 3 4\n";
        assert_eq!(parse(stat), Some(CoreTime { idle: 340, all: 472 }));
        assert_eq!(parse("intr 1 2 3"), None);
    }
}
