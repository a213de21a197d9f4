//! Do pods of ours use the cores?
//!
//! While no core is idle, starts that work are paced: they would take the cores from pods that serve. Where
//! other programs keep the cores busy, there is little to take, and the pace would make a start wait for
//! them. So pods are asked what they use, those that start and those that serve, but only while a start may
//! have to wait. Until two looks have shown that they leave the cores to others, pods count as using them.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use vocabulary::{PodName, Timestamp};

use super::start_usage::StartUsage;

/// The least time between two looks: each reads a few files for every process of every pod.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Two looks that are farther apart say nothing about now.
const STALE_AFTER: Duration = Duration::from_secs(3);
/// Pods leave the cores to others if they used less than one part in so many of the time of all cores: most
/// of that time was taken by other programs then, for none was idle.
const USED_ONE_IN: u32 = 4;

/// The use of the cores by pods, as the last two looks have shown it.
#[derive(Debug)]
pub(super) struct PodsUsage {
    cores: u32,
    /// The number of the `ebb pod` of each pod that was started here.
    processes: BTreeMap<PodName, i32>,
    last: Option<PodsLook>,
    is_low: bool,
}

/// What each pod had used at one moment.
#[derive(Debug)]
struct PodsLook {
    at: Timestamp,
    pods: BTreeMap<PodName, StartUsage>,
}

impl PodsUsage {
    /// On the cores that this process may use.
    pub(super) fn of_this_machine() -> Self {
        Self::on(u32::try_from(available_parallelism().map_or(1, NonZero::get)).unwrap_or(1))
    }

    fn on(cores: u32) -> Self {
        Self { cores, processes: BTreeMap::new(), last: None, is_low: false }
    }

    /// The process of a pod runs, with this number.
    pub(super) fn note_process(&mut self, pod: &PodName, pid: i32) {
        self.processes.insert(pod.clone(), pid);
    }

    /// The process of a pod has ended.
    pub(super) fn note_ended(&mut self, pod: &PodName) {
        self.processes.remove(pod);
    }

    /// Whether pods leave the cores to other programs; false while that is not known. It is not known where
    /// some of the `running` pods were taken over from another `ebb up`.
    pub(super) fn leave_cores_to_others(&mut self, running: usize, now: Timestamp) -> bool {
        if self.last.as_ref().is_none_or(|look| now.saturating_since(look.at) >= LOOK_EVERY) {
            let pods = self.processes.iter();
            let pods = pods.filter_map(|(pod, process)| Some((pod.clone(), StartUsage::of(*process)?)));
            self.note(PodsLook { at: now, pods: pods.collect() });
        }
        self.is_low && self.processes.len() >= running
    }

    fn note(&mut self, look: PodsLook) {
        let recent = self.last.take().filter(|before| look.at.saturating_since(before.at) < STALE_AFTER);
        self.is_low = recent.is_some_and(|before| look.is_low_since(&before, self.cores));
        self.last = Some(look);
    }
}

impl PodsLook {
    /// Whether pods used little of the cores between an earlier look and this one.
    fn is_low_since(&self, before: &Self, cores: u32) -> bool {
        let mut used = Duration::ZERO;
        for (pod, usage) in &self.pods {
            let former = before.pods.get(pod);
            // Where many share the cores, a pod that needs them gets little; but it never sleeps.
            if usage.is_runnable && former.is_none_or(|former| former.is_runnable) {
                return false;
            }
            used += usage.cpu.saturating_sub(former.map_or(Duration::ZERO, |former| former.cpu));
        }
        // How much a pod used before it ended is not known.
        let is_whole = before.pods.keys().all(|pod| self.pods.contains_key(pod));
        is_whole && used * USED_ONE_IN < self.at.saturating_since(before.at) * cores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_secs(3600);

    fn asleep(cpu: u64) -> StartUsage {
        StartUsage { cpu: Duration::from_millis(cpu), is_runnable: false }
    }

    fn runnable(cpu: u64) -> StartUsage {
        StartUsage { is_runnable: true, ..asleep(cpu) }
    }

    /// A look so many seconds after the first, at pods with these names.
    fn look(seconds: u64, pods: &[(&str, StartUsage)]) -> PodsLook {
        let pods = pods.iter().map(|(pod, usage)| (PodName::new(pod), *usage));
        PodsLook { at: START + Duration::from_secs(seconds), pods: pods.collect() }
    }

    #[test]
    fn two_looks_show_whether_pods_leave_the_cores_to_others() {
        for (first, second, is_low) in [
            (look(0, &[]), look(1, &[]), true),
            // A quarter of two cores is half a second.
            (look(0, &[("a", asleep(100))]), look(1, &[("a", asleep(550))]), true),
            (look(0, &[("a", asleep(100))]), look(1, &[("a", asleep(650))]), false),
            (
                look(0, &[("a", asleep(0)), ("b", asleep(0))]),
                look(1, &[("a", asleep(300)), ("b", asleep(300))]),
                false,
            ),
            // A pod that began in between counts with all that it used.
            (look(0, &[]), look(1, &[("a", asleep(600))]), false),
            (look(0, &[]), look(1, &[("a", asleep(50))]), true),
            (look(0, &[]), look(1, &[("a", runnable(50))]), false),
            // Two pods among many others that want the same cores.
            (look(0, &[("a", runnable(0))]), look(1, &[("a", runnable(50))]), false),
            (look(0, &[("a", runnable(0))]), look(1, &[("a", asleep(50))]), true),
            // It may have worked until it ended.
            (look(0, &[("a", asleep(0))]), look(1, &[]), false),
            (look(0, &[]), look(3, &[]), false),
        ] {
            let mut usage = PodsUsage::on(2);
            let case = format!("{first:?} {second:?}");
            usage.note(first);
            assert!(!usage.is_low, "one look says nothing");
            usage.note(second);
            assert_eq!(usage.is_low, is_low, "{case}");
        }
    }

    #[test]
    fn pods_without_a_known_process_count_as_using_the_cores() {
        let mut usage = PodsUsage::on(2);
        assert!(!usage.leave_cores_to_others(0, START));
        let later = START + LOOK_EVERY;
        assert!(usage.leave_cores_to_others(0, later), "there is no pod");
        assert!(!usage.leave_cores_to_others(1, later), "one was taken over");
        // The kernel gives no process this number.
        usage.note_process(&PodName::new("a"), i32::MAX);
        assert!(usage.leave_cores_to_others(1, later));
        usage.note_ended(&PodName::new("a"));
        assert!(!usage.leave_cores_to_others(1, later));
    }
}
