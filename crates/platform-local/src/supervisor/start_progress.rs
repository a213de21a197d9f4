//! A start that is under way: does it use the cores, and what has it cost?
//!
//! A start that uses the cores keeps its place until its pod is ready, for another one beside it would make
//! neither ready sooner. A start that sleeps (for a database, say) takes nothing from others, however busy
//! *other* programs keep the cores; so it gives its place up, and its time asleep is no cost.

use std::time::Duration;

use vocabulary::{RevisionName, Timestamp};

use super::cores::LOOK_EVERY;
use super::start_usage::StartUsage;

/// A start that takes so little of the cores has taken less from others than a look at the cores can see.
pub(super) const QUICK: Duration = Duration::from_millis(250);
/// A start is looked at from this age on: most are over by then, and cost no look.
const FIRST_LOOK: Duration = Duration::from_millis(200);
/// A start uses the cores if it had one of them for one part in so many of the time between two looks.
const USES_ONE_IN: u32 = 5;

/// A start that is under way.
#[derive(Debug)]
pub(super) struct PodStart {
    pub(super) revision: RevisionName,
    /// What was free of the memory at the start, in KiB; `None`: not known.
    pub(super) free_memory: Option<u64>,
    since: Timestamp,
    place: Place,
    /// The number of its `ebb pod`, once that runs.
    process: Option<i32>,
    last_look: Option<UsageLook>,
    cores: CoreUse,
}

/// Whether a start has a place among those that may be under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Taken,
    /// It gave its place up, after so long.
    GivenUp,
    /// The same, and it did not use the cores then.
    GivenUpAsleep,
}

/// What two looks at a start have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoreUse {
    /// It uses them, or nothing is known yet.
    Uses,
    LeavesAlone,
}

/// What a start had used at one moment.
#[derive(Clone, Copy, Debug)]
struct UsageLook {
    at: Timestamp,
    usage: StartUsage,
}

impl UsageLook {
    /// What happened between an earlier look and this one.
    fn core_use_since(self, before: Self) -> CoreUse {
        let used = self.usage.cpu.saturating_sub(before.usage.cpu);
        let time = self.at.saturating_since(before.at);
        // Where many share the cores, one that needs them gets little; but it never sleeps.
        let is_starved = before.usage.is_runnable && self.usage.is_runnable;
        if is_starved || used * USES_ONE_IN >= time { CoreUse::Uses } else { CoreUse::LeavesAlone }
    }
}

impl PodStart {
    /// A start that begins now and takes a place.
    pub(super) fn new(revision: RevisionName, free_memory: Option<u64>, now: Timestamp) -> Self {
        Self {
            revision,
            free_memory,
            since: now,
            place: Place::Taken,
            process: None,
            last_look: None,
            cores: CoreUse::Uses,
        }
    }

    pub(super) fn has_place(&self) -> bool {
        self.place == Place::Taken
    }

    /// Whether the last two looks have shown that it uses hardly anything of the cores.
    pub(super) fn leaves_cores_alone(&self) -> bool {
        self.cores == CoreUse::LeavesAlone
    }

    /// Its `ebb pod` runs, with this number.
    pub(super) fn note_process(&mut self, pid: i32) {
        self.process = Some(pid);
    }

    /// The process to look at now, if a look would say something new. A start without a place holds nothing
    /// up.
    pub(super) fn process_to_measure(&self, now: Timestamp) -> Option<i32> {
        let last = self.last_look.map_or(self.since + FIRST_LOOK, |look| look.at + LOOK_EVERY);
        self.process.filter(|_| self.has_place() && last <= now)
    }

    /// The process of a start that took so long that it matters whether it used the cores.
    pub(super) fn process_of_slow_start(&self, now: Timestamp) -> Option<i32> {
        self.process.filter(|_| now.saturating_since(self.since) >= QUICK)
    }

    /// What its processes have used until now.
    pub(super) fn note_usage(&mut self, usage: StartUsage, now: Timestamp) {
        let look = UsageLook { at: now, usage };
        self.cores = self.last_look.map_or(CoreUse::Uses, |before| look.core_use_since(before));
        self.last_look = Some(look);
    }

    /// Gives its place up, for good, once it is older than this.
    pub(super) fn keep_place_for(&mut self, patience: Duration, now: Timestamp) {
        if self.has_place() && now.saturating_since(self.since) >= patience {
            self.place = if self.leaves_cores_alone() { Place::GivenUpAsleep } else { Place::GivenUp };
        }
    }

    /// Whether it has shown that starts of its revision cost little, although it is not ready yet.
    pub(super) fn has_shown_low_cost(&self) -> bool {
        self.place == Place::GivenUpAsleep && self.last_look.is_some_and(|look| look.usage.cpu < QUICK)
    }

    /// What it has taken from others, at the end of the start: all its time, unless it was asleep.
    pub(super) fn cost(&self, now: Timestamp) -> Duration {
        let took = now.saturating_since(self.since);
        match self.last_look {
            Some(look) if look.usage.cpu < QUICK || self.place == Place::GivenUpAsleep => {
                look.usage.cpu.min(took)
            }
            Some(_) | None => took,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_secs(3600);
    const PATIENCE: Duration = Duration::from_millis(400);

    fn start() -> PodStart {
        let revision = RevisionName::new("default", "service", "web").expect("a name");
        let mut start = PodStart::new(revision, None, START);
        start.note_process(17);
        start
    }

    fn after(milliseconds: u64) -> Timestamp {
        START + Duration::from_millis(milliseconds)
    }

    fn asleep(cpu: u64) -> StartUsage {
        StartUsage { cpu: Duration::from_millis(cpu), is_runnable: false }
    }

    fn runnable(cpu: u64) -> StartUsage {
        StartUsage { is_runnable: true, ..asleep(cpu) }
    }

    #[test]
    fn two_looks_show_whether_a_start_uses_the_cores() {
        for (first, second, leaves_alone) in [
            (asleep(40), asleep(40), true),
            (asleep(40), asleep(50), true),
            (asleep(40), asleep(60), false),
            // A core for a tenth of the time: the rest was spent in waiting for one.
            (runnable(40), runnable(50), false),
            // A queue-proxy that asks whether the app listens runs now and then.
            (runnable(40), asleep(50), true),
            // A process ended, and its parent did not wait for it.
            (asleep(40), asleep(10), true),
        ] {
            let mut start = start();
            start.note_usage(first, after(200));
            assert!(!start.leaves_cores_alone(), "one look says nothing");
            start.note_usage(second, after(300));
            assert_eq!(start.leaves_cores_alone(), leaves_alone, "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_start_is_measured_while_it_has_a_place_and_is_not_quick() {
        let mut start = start();
        assert_eq!(start.process_to_measure(after(199)), None);
        assert_eq!(start.process_to_measure(after(200)), Some(17));
        start.note_usage(asleep(40), after(200));
        assert_eq!(start.process_to_measure(after(299)), None);
        assert_eq!(start.process_to_measure(after(300)), Some(17));
        start.keep_place_for(PATIENCE, after(399));
        assert!(start.has_place());
        start.keep_place_for(PATIENCE, after(400));
        assert!(!start.has_place());
        assert_eq!(start.process_to_measure(after(500)), None);
        assert_eq!(start.process_of_slow_start(after(249)), None);
        assert_eq!(start.process_of_slow_start(after(250)), Some(17));
    }

    #[test]
    fn time_asleep_is_no_cost() {
        let two_seconds = Duration::from_secs(2);
        let mut unmeasured = start();
        assert_eq!(unmeasured.cost(after(2000)), two_seconds);
        unmeasured.note_usage(asleep(60), after(2000));
        assert_eq!(
            unmeasured.cost(after(2000)),
            Duration::from_millis(60),
            "its processes say so at the end"
        );
        let mut working = start();
        working.note_usage(runnable(700), after(2000));
        assert_eq!(working.cost(after(2000)), two_seconds);
        let mut both = start();
        both.note_usage(asleep(60), after(200));
        both.note_usage(asleep(60), after(300));
        both.keep_place_for(PATIENCE, after(400));
        assert!(both.has_shown_low_cost());
        both.note_usage(runnable(700), after(2000));
        assert_eq!(both.cost(after(2000)), Duration::from_millis(700));
        assert!(!both.has_shown_low_cost(), "it woke up and worked");
    }
}
