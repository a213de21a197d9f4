//! Which pods may be started now, and which wait for a moment.
//!
//! To start a pod keeps a core busy, for ten milliseconds or, with an interpreter that loads a framework, for
//! seconds. Where many are to be started, all at once would share the cores with each other and with those
//! that serve: the first would be ready hardly before the last, and no request would be answered meanwhile.
//! So a pod takes a place from its start until it is *ready*, and there are a few places for each core. A
//! start that leaves a core idle, or uses hardly anything of the cores while other programs keep them busy
//! (it waits for a database, say), gives its place up soon: what counts is measured, not guessed.
//!
//! While no core is idle, what starts takes from what serves. A revision whose pods took little of the cores
//! until they were ready grows all the same; one whose starts work for long gets a pod for each core at once,
//! and further ones only now and then. Where other programs are what keeps the cores busy, and pods hardly
//! use them, there is no such pace. So a start waits only for pods of ours that use the cores.
//!
//! The first pod of an edited template takes the turn of the first start of its revision that waits, and
//! counts as urgent: the edit may be what ends the burst, and pods of the older template are replaced soon.
//!
//! Memory is measured as well: how much less of it was free when a pod was ready than when it was started.
//! While there is less than what starts and what is to be started take so, a further pod of a revision waits:
//! a pod that would be swapped or killed for memory answers no request. A revision's first pod never does.
//!
//! Beyond a number of processes the machine's memory would not hold them; then the rest wait until one ends,
//! and say so. The last of those places are kept for revisions that have no pod at all.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use vocabulary::{PodName, RevisionName, Timestamp};

use super::start_progress::{PodStart, QUICK};
use super::start_usage::StartUsage;
use crate::memory::PER_POD_KIB;
use crate::pod::PodSpec;

/// How many may be on their way for each core: while one waits for the disk or for another process, there is
/// one that does not.
const PER_CORE: usize = 2;
/// A pod that is not ready so long after its start gives its place up, if a core is idle or the pod uses
/// hardly anything of them: a few looks at the cores.
const PATIENCE: Duration = Duration::from_millis(400);
/// The same if it uses the cores and none is idle: it may hang, and keep the cores busy without ever getting
/// ready.
const LONG_PATIENCE: Duration = Duration::from_secs(10);
/// While no core is idle, starts of a revision that has a pod for each core take one part in so many of what
/// the cores do. More pods answer no more where cores are what lacks; but another program may keep the cores
/// busy, and then the revision must grow all the same.
const SHARE_OF_STARTS: u32 = 10;
/// The longest wait for such a start; also where it is not known how long one takes.
const SLOWLY: Duration = Duration::from_secs(10);
/// A start that has waited so long for a core says so. Most are started sooner, and saying so would be noise.
const TOLD_AFTER: Duration = Duration::from_millis(400);
/// The least memory that a pod is taken to need: its queue-proxy. A measurement may be lower where another
/// process gave memory back meanwhile.
const LEAST_NEED_KIB: u64 = 12 * 1024;
/// What part of all places revisions without a pod may keep free: one in so many.
const KEPT_FREE: usize = 8;

/// The pods that are being started, and those that are to be.
#[derive(Debug)]
pub(super) struct Starts {
    /// The number of cores that this process may use.
    cores: usize,
    /// The most processes of pods at once (`--max-pods`).
    ceiling: usize,
    /// Starts that wait, in the order of their turns.
    waiting: BTreeMap<StartTurn, WaitingStart>,
    /// Pods between their start and being ready.
    under_way: BTreeMap<PodName, PodStart>,
    /// What the last start of each revision took from others, as a time.
    costs: BTreeMap<RevisionName, Duration>,
    /// How much memory it took, in KiB.
    memory_needs: BTreeMap<RevisionName, u64>,
    /// How many starts were ever added: the source of [`StartTurn::number`].
    added: u64,
    last_start: Timestamp,
    /// When the cores are worth another look, once a start was asked for.
    look_again: Option<Timestamp>,
}

/// The pods of a revision beside one that is to be started: those that are wanted and start or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Siblings {
    pub(crate) all: usize,
    /// Of them, those of the same template.
    pub(crate) of_template: usize,
}

/// A start that waits for its turn.
#[derive(Debug)]
struct WaitingStart {
    pod: PodName,
    spec: Box<PodSpec>,
    siblings: Siblings,
    since: Timestamp,
    core: CoreWait,
}

/// Whether a start waits for a core, as it was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoreWait {
    /// It does not, or has waited for a moment alone.
    No,
    Told,
}

/// The machine as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    /// Whether a core is idle.
    pub(super) has_room: bool,
    /// Whether pods leave the cores to other programs, which keep them busy.
    pub(super) is_left_to_others: bool,
    /// How much memory processes could still have, in KiB; `None`: not known, so nothing waits for it.
    pub(super) free_memory: Option<u64>,
    /// How many pods have a process.
    pub(super) running: usize,
    /// How many revisions have no pod.
    pub(super) asleep: usize,
    /// When it is worth to look again.
    pub(super) next_look: Timestamp,
}

/// The place of a start in the queue: the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StartTurn {
    /// How many pods of its revision come before it; none before the first of a template. So the first pod of
    /// one revision, for which requests may wait, does not wait for the tenth of another.
    ahead: usize,
    /// Of pods with equally many ahead the one added first is started first.
    number: u64,
}

impl Starts {
    /// As many at once as suit this machine, and no more than `ceiling` processes in all.
    pub(super) fn of_at_most(ceiling: usize) -> Self {
        Self::on(available_parallelism().map_or(1, NonZero::get), ceiling)
    }

    fn on(cores: usize, ceiling: usize) -> Self {
        Self {
            cores,
            ceiling,
            waiting: BTreeMap::new(),
            under_way: BTreeMap::new(),
            costs: BTreeMap::new(),
            memory_needs: BTreeMap::new(),
            added: 0,
            last_start: Timestamp::ZERO,
            look_again: None,
        }
    }

    /// A pod is to be started, in a revision that has these other pods.
    pub(super) fn add(&mut self, pod: PodName, siblings: Siblings, spec: Box<PodSpec>, now: Timestamp) {
        self.added += 1;
        let is_first = siblings.of_template == 0;
        let turn = StartTurn { ahead: if is_first { 0 } else { siblings.all }, number: self.added };
        let mut start = WaitingStart { pod, spec, siblings, since: now, core: CoreWait::No };
        if is_first && siblings.all > 0 {
            let owner = start.spec.owner();
            let before = self.waiting.range_mut(..turn).map(|(_, waiting)| waiting);
            // The two change places: the older template loses no turn to other revisions.
            if let Some(older) = before.into_iter().find(|waiting| waiting.spec.owner() == owner) {
                std::mem::swap(older, &mut start);
            }
        }
        self.waiting.insert(turn, start);
    }

    /// Whether no pod waits for its start.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a waiting start depends on an idle core. A wake from zero does not, and does not pay for a
    /// look at the cores.
    pub(super) fn depend_on_cores(&self) -> bool {
        !self.under_way.is_empty() || self.may_be_paced()
    }

    /// Whether a start waits that is not among the first of its revision, so that it has a pace while no core
    /// is idle.
    pub(super) fn may_be_paced(&self) -> bool {
        self.waiting.keys().any(|turn| !self.is_urgent(*turn))
    }

    /// Whether a waiting start depends on free memory, or is the first to show how much a pod of its revision
    /// takes. A wake from zero of a known revision does not, and does not pay for a look.
    pub(super) fn depend_on_memory(&self) -> bool {
        let is_known = |spec: &PodSpec| self.memory_needs.contains_key(&spec.owner());
        self.waiting.values().any(|start| start.siblings.all > 0 || !is_known(&start.spec))
    }

    /// A pod is not to be started any more; false if it was already.
    pub(super) fn cancel(&mut self, pod: &PodName) -> bool {
        let turn = self.waiting.iter().find(|(_, waiting)| waiting.pod == *pod).map(|(turn, _)| *turn);
        turn.is_some_and(|turn| self.waiting.remove(&turn).is_some())
    }

    /// The process of a pod that is being started runs, with this number.
    pub(super) fn note_process(&mut self, pod: &PodName, pid: i32) {
        if let Some(start) = self.under_way.get_mut(pod) {
            start.note_process(pid);
        }
    }

    /// The starts to be looked at now, each with its process.
    pub(super) fn to_measure(&self, now: Timestamp) -> Vec<(PodName, i32)> {
        let due = self
            .under_way
            .iter()
            .filter_map(|(pod, start)| Some((pod.clone(), start.process_to_measure(now)?)));
        due.collect()
    }

    /// The process of a pod that is ready, if its start was so slow that it matters what that has used.
    pub(super) fn process_of_slow_start(&self, pod: &PodName, now: Timestamp) -> Option<i32> {
        self.under_way.get(pod)?.process_of_slow_start(now)
    }

    /// What the processes of a pod that is being started have used of the cores.
    pub(super) fn note_usage(&mut self, pod: &PodName, usage: StartUsage, now: Timestamp) {
        if let Some(start) = self.under_way.get_mut(pod) {
            start.note_usage(usage, now);
        }
    }

    /// A pod is ready. Whether it was long ago that it was started, and what that took of the memory, says
    /// how its revision may grow.
    pub(super) fn note_ready(&mut self, pod: &PodName, free_memory: Option<u64>, now: Timestamp) {
        // Those that start beside it take their part of what there is less now.
        let starting = u64::try_from(self.under_way.len()).unwrap_or(u64::MAX);
        if let Some(start) = self.under_way.remove(pod) {
            if let (Some(before), Some(after)) = (start.free_memory, free_memory) {
                let need = (before.saturating_sub(after) / starting).max(LEAST_NEED_KIB);
                self.memory_needs.insert(start.revision.clone(), need);
            }
            let cost = start.cost(now);
            self.costs.insert(start.revision, cost);
        }
    }

    /// A pod will not be ready: its process ended or failed.
    pub(super) fn note_ended(&mut self, pod: &PodName) {
        self.under_way.remove(pod);
    }

    /// Forgets what was measured of a revision that is gone.
    pub(super) fn forget(&mut self, revision: &RevisionName) {
        self.costs.remove(revision);
        self.memory_needs.remove(revision);
    }

    /// The next pod to be started at this moment.
    pub(super) fn next(&mut self, machine: Machine, now: Timestamp) -> Option<(PodName, Box<PodSpec>)> {
        for start in self.under_way.values_mut() {
            let is_harmless = machine.has_room || start.leaves_cores_alone();
            // The place is given up for good: a slow start must not block the others, and by the time that
            // the machine has room another start has the place.
            start.keep_place_for(if is_harmless { PATIENCE } else { LONG_PATIENCE }, now);
        }
        self.look_again = Some(machine.next_look);
        let waiting = self.waiting.iter();
        // The order of the turns is the order of need: first pods before second ones, and of equals the one
        // that was added first. A start that must wait does not keep those behind it from starting.
        let mut free = waiting.filter(|(turn, start)| self.may_start(**turn, start, machine, now));
        let turn = *free.next()?.0;
        let WaitingStart { pod, spec, .. } = self.waiting.remove(&turn)?;
        self.under_way.insert(pod.clone(), PodStart::new(spec.owner(), machine.free_memory, now));
        // Of all revisions: the pace is there for the machine, which they share.
        self.last_start = now;
        Some((pod, spec))
    }

    fn may_start(&self, turn: StartTurn, start: &WaitingStart, machine: Machine, now: Timestamp) -> bool {
        let taken = self.under_way.values().filter(|start| start.has_place()).count();
        if taken >= PER_CORE * self.cores || machine.running >= self.ceiling_for(start, machine) {
            return false;
        }
        if self.lacks_memory(start, machine) {
            return false;
        }
        let is_due = || now.saturating_since(self.last_start) >= self.pace(&start.spec.owner());
        // The pace is there for pods that serve; where these leave the cores to others, it protects nothing.
        machine.has_room || machine.is_left_to_others || self.is_urgent(turn) || is_due()
    }

    /// Whether what is to be started, and what starts already, takes more than is free.
    fn lacks_memory(&self, waiting: &WaitingStart, machine: Machine) -> bool {
        // Without its first pod a revision answers no request at all.
        let Some(free) = machine.free_memory.filter(|_| waiting.siblings.all > 0) else { return false };
        // Those under way may have taken theirs already; then this waits until they are ready, and no longer.
        let starting: u64 = self.under_way.values().map(|start| self.need(&start.revision)).sum();
        free < self.need(&waiting.spec.owner()).saturating_add(starting)
    }

    fn need(&self, revision: &RevisionName) -> u64 {
        self.memory_needs.get(revision).copied().unwrap_or(PER_POD_KIB)
    }

    /// The first pods of a revision are what its requests wait for.
    fn is_urgent(&self, turn: StartTurn) -> bool {
        turn.ahead < self.cores
    }

    /// How long after the last start a revision may start another pod while no core is idle.
    fn pace(&self, revision: &RevisionName) -> Duration {
        match self.costs.get(revision) {
            Some(cost) if *cost < QUICK => Duration::ZERO,
            Some(cost) => {
                let cores = u32::try_from(self.cores).unwrap_or(u32::MAX);
                (*cost * SHARE_OF_STARTS / cores).min(SLOWLY)
            }
            None if self.has_shown_low_cost(revision) => Duration::ZERO,
            None => SLOWLY,
        }
    }

    /// Whether a start of the revision that is under way has shown what none that is over could.
    fn has_shown_low_cost(&self, revision: &RevisionName) -> bool {
        self.under_way.values().any(|start| start.revision == *revision && start.has_shown_low_cost())
    }

    /// How many processes there may be before the one whose turn it is.
    fn ceiling_for(&self, start: &WaitingStart, machine: Machine) -> usize {
        // A revision that grows must not take the places that others need to wake up at all.
        let is_first = start.siblings.all == 0;
        let kept_free = if is_first { 0 } else { machine.asleep.min(self.ceiling / KEPT_FREE) };
        self.ceiling - kept_free
    }

    /// The pods that wait because there are as many processes as may be, and why, for people.
    pub(super) fn beyond_ceiling(&self, machine: Machine) -> Option<(Vec<PodName>, String)> {
        let waiting = self.waiting.values();
        let beyond = waiting.filter(|start| machine.running >= self.ceiling_for(start, machine));
        let pods: Vec<PodName> = beyond.map(|start| start.pod.clone()).collect();
        let ceiling = self.ceiling;
        let reason =
            || format!("waits for another pod to end: this machine runs {ceiling} at most (--max-pods)");
        (!pods.is_empty()).then(|| (pods, reason()))
    }

    /// The pods that wait because the memory is used up, and why, for people.
    pub(super) fn short_of_memory(&self, machine: Machine) -> Option<(Vec<PodName>, String)> {
        let short = self.waiting.values().filter(|start| self.lacks_memory(start, machine));
        let pods: Vec<PodName> = short.map(|start| start.pod.clone()).collect();
        // Without numbers: they change at every look, and people are told once.
        let reason = "waits for memory: this machine has less left than the pods before it took";
        (!pods.is_empty()).then(|| (pods, reason.to_owned()))
    }

    /// The pods that wait for a core and for nothing else, once they have waited for a while, without those
    /// that were returned before and wait for it ever since. Asked when [`Starts::next`] has none to be
    /// started.
    pub(super) fn short_of_cores(&mut self, machine: Machine, now: Timestamp) -> Vec<PodName> {
        let waits_for_core = |start: &WaitingStart| {
            now.saturating_since(start.since) >= TOLD_AFTER
                && machine.running < self.ceiling_for(start, machine)
                && !self.lacks_memory(start, machine)
        };
        let short = self.waiting.iter().filter(|(_, start)| waits_for_core(start));
        let short: BTreeSet<StartTurn> = short.map(|(turn, _)| *turn).collect();
        let mut news = Vec::new();
        for (turn, start) in &mut self.waiting {
            let core = if short.contains(turn) { CoreWait::Told } else { CoreWait::No };
            if core == CoreWait::Told && start.core == CoreWait::No {
                news.push(start.pod.clone());
            }
            start.core = core;
        }
        news
    }

    /// When [`Starts::next`] is to be asked again at the latest.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.look_again.filter(|_| !self.waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::Template;

    const NOW: Timestamp = Timestamp::from_secs(3600);

    /// Adds the start of a pod that is named `SERVICE-NUMBER`.
    fn add(starts: &mut Starts, pod: &str, siblings: usize) {
        let name = |name: &str| name.to_owned();
        let (service, _) = pod.split_once('-').unwrap_or((pod, ""));
        let spec = PodSpec {
            pod: name(pod),
            namespace: name("default"),
            service: name(service),
            revision: name("app-00001"),
            template: Template::default(),
            drain_limit: std::time::Duration::ZERO,
            ignored_user_agents: vocabulary::IgnoredUserAgents::none(),
            descriptors: None,
            control_group: None,
            images: None,
        };
        // Of the present template, unless the name says otherwise.
        let of_template = if pod.ends_with("-edited") { 0 } else { siblings };
        starts.add(PodName::new(pod), Siblings { all: siblings, of_template }, Box::new(spec), NOW);
    }

    const IDLE: Machine = Machine {
        has_room: true,
        is_left_to_others: false,
        free_memory: None,
        running: 0,
        asleep: 0,
        next_look: NOW,
    };
    const BUSY: Machine = Machine { has_room: false, ..IDLE };

    /// All that may be started now.
    fn started_on(machine: Machine, starts: &mut Starts, now: Timestamp) -> Vec<String> {
        std::iter::from_fn(|| starts.next(machine, now)).map(|(pod, _)| pod.to_string()).collect()
    }

    fn started(starts: &mut Starts, now: Timestamp) -> Vec<String> {
        started_on(IDLE, starts, now)
    }

    /// One core, so two places.
    fn one_core() -> Starts {
        Starts::on(1, usize::MAX)
    }

    #[test]
    fn a_few_at_once_and_the_next_when_one_is_ready() {
        let mut starts = one_core();
        for pod in ["a", "b", "c", "d"] {
            add(&mut starts, pod, 0);
        }
        assert!(!starts.depend_on_cores(), "no start has begun, and all are urgent");
        assert_eq!(started(&mut starts, NOW), ["a", "b"]);
        assert!(starts.depend_on_cores() && !starts.may_be_paced());
        assert_eq!(started(&mut starts, NOW), [""; 0]);
        starts.note_ready(&PodName::new("b"), None, NOW);
        assert_eq!(started(&mut starts, NOW), ["c"]);
        for pod in ["a", "c", "unheard-of"] {
            starts.note_ended(&PodName::new(pod));
        }
        assert_eq!(started(&mut starts, NOW), ["d"]);
    }

    #[test]
    fn measured_memory_needs_limit_further_starts() {
        let mebibytes = |count: u64| Machine { free_memory: Some(count * 1024), ..IDLE };
        let mut starts = Starts::on(8, usize::MAX);
        add(&mut starts, "web-1", 0);
        assert!(starts.depend_on_memory(), "its need is not known");
        assert_eq!(started_on(mebibytes(1000), &mut starts, NOW), ["web-1"]);
        starts.note_ready(&PodName::new("web-1"), Some(600 * 1024), NOW);
        add(&mut starts, "web-0", 0);
        assert!(!starts.depend_on_memory(), "what a first pod takes is known by now, and it does not wait");
        assert!(starts.cancel(&PodName::new("web-0")));
        // It took 400 MiB, so 900 hold two more.
        for (pod, siblings) in [("web-2", 1), ("web-3", 2), ("web-4", 3), ("new-1", 0)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started_on(mebibytes(900), &mut starts, NOW), ["new-1", "web-2", "web-3"]);
        let (pods, reason) = starts.short_of_memory(mebibytes(900)).expect("one waits");
        assert_eq!(pods, [PodName::new("web-4")]);
        assert!(reason.starts_with("waits for memory"), "{reason}");
        // No start waits where nothing is known.
        for pod in ["new-1", "web-2", "web-3"] {
            starts.note_ended(&PodName::new(pod));
        }
        assert_eq!(started_on(IDLE, &mut starts, NOW), ["web-4"]);
        assert!(starts.short_of_memory(IDLE).is_none());
    }

    #[test]
    fn the_first_pods_of_all_come_before_further_ones_of_any() {
        let mut starts = Starts::on(5, usize::MAX);
        for (pod, siblings) in [("big-1", 0), ("big-2", 1), ("big-3", 2), ("small-2", 1), ("new-1", 0)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started(&mut starts, NOW), ["big-1", "new-1", "big-2", "small-2", "big-3"]);
    }

    #[test]
    fn a_cancelled_start_leaves_the_queue() {
        let mut starts = one_core();
        for pod in ["a", "b", "c", "d"] {
            add(&mut starts, pod, 0);
        }
        assert_eq!(started(&mut starts, NOW), ["a", "b"]);
        assert!(!starts.cancel(&PodName::new("a")), "it was started");
        assert!(starts.cancel(&PodName::new("c")));
        assert!(!starts.cancel(&PodName::new("c")), "only once");
        starts.note_ended(&PodName::new("a"));
        assert_eq!(started(&mut starts, NOW), ["d"]);
    }

    #[test]
    fn a_slow_start_gives_its_place_up_unless_it_keeps_the_cores_busy() {
        let mut starts = one_core();
        for pod in ["slow-1", "slow-2", "waits-1", "waits-2", "waits-3"] {
            add(&mut starts, pod, 0);
        }
        assert_eq!(started(&mut starts, NOW), ["slow-1", "slow-2"]);
        assert!(starts.next_deadline().is_some());
        assert_eq!(started_on(BUSY, &mut starts, NOW + PATIENCE), [""; 0]);
        assert_eq!(started(&mut starts, NOW + PATIENCE), ["waits-1", "waits-2"]);
        assert_eq!(started_on(BUSY, &mut starts, NOW + PATIENCE + LONG_PATIENCE), ["waits-3"]);
        assert_eq!(starts.next_deadline(), None, "no start waits");
    }

    #[test]
    fn while_no_core_is_idle_a_revision_that_starts_slowly_grows_slowly() {
        let mut starts = one_core();
        for (pod, siblings) in [("a-2", 1), ("a-3", 2), ("b-1", 0)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started_on(BUSY, &mut starts, NOW), ["b-1"]);
        starts.note_ready(&PodName::new("b-1"), None, NOW);
        assert_eq!(started_on(BUSY, &mut starts, NOW + SLOWLY / 2), [""; 0]);
        assert_eq!(started_on(BUSY, &mut starts, NOW + SLOWLY), ["a-2"]);
        starts.note_ready(&PodName::new("a-2"), None, NOW + SLOWLY + QUICK);
        add(&mut starts, "a-4", 3);
        assert_eq!(started_on(BUSY, &mut starts, NOW + SLOWLY + QUICK), [""; 0], "it took too long");
        let paced = NOW + SLOWLY + QUICK * SHARE_OF_STARTS;
        assert_eq!(started_on(BUSY, &mut starts, paced), ["a-3"], "a tenth of the time goes to starts");
        assert_eq!(started(&mut starts, paced), ["a-4"], "a core is idle again");
    }

    #[test]
    fn a_start_that_works_waits_for_starts_of_ours_and_not_for_other_programs() {
        let left_to_others = Machine { is_left_to_others: true, ..BUSY };
        let mut starts = one_core();
        for (pod, siblings) in [("a-1", 0), ("a-2", 1), ("a-3", 2), ("a-4", 3)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started_on(left_to_others, &mut starts, NOW), ["a-1", "a-2"], "two places for each core");
        starts.note_ready(&PodName::new("a-1"), None, NOW + 2 * QUICK);
        assert_eq!(started_on(BUSY, &mut starts, NOW + 2 * QUICK), [""; 0], "pods use the cores");
        assert_eq!(started_on(left_to_others, &mut starts, NOW + 2 * QUICK), ["a-3"]);
        assert_eq!(
            started_on(left_to_others, &mut starts, NOW + 2 * QUICK),
            [""; 0],
            "both places are taken"
        );
    }

    #[test]
    fn a_revision_that_starts_quickly_grows_on_a_busy_machine_and_waits_for_no_slow_one() {
        let mut starts = one_core();
        for (pod, siblings) in [("quick-1", 0), ("slow-2", 1), ("quick-2", 2), ("quick-3", 3)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started_on(BUSY, &mut starts, NOW), ["quick-1"]);
        starts.note_ready(&PodName::new("quick-1"), None, NOW + QUICK / 2);
        assert_eq!(started_on(BUSY, &mut starts, NOW + QUICK / 2), ["quick-2", "quick-3"]);
        starts.forget(&RevisionName::new("default", "service", "quick").expect("a name"));
        starts.note_ended(&PodName::new("quick-2"));
        add(&mut starts, "quick-4", 1);
        assert_eq!(started_on(BUSY, &mut starts, NOW + QUICK), [""; 0], "another one of that name");
    }

    /// Looks twice at starts of which none uses the cores, and says when that was.
    fn looked_at(starts: &mut Starts, from: Timestamp, cpu: Duration) -> Timestamp {
        let usage = StartUsage { cpu, is_runnable: false };
        let begun: Vec<PodName> = starts.under_way.keys().cloned().collect();
        for now in [from + PATIENCE / 2, from + PATIENCE] {
            for pod in &begun {
                starts.note_usage(pod, usage, now);
            }
        }
        from + PATIENCE
    }

    /// Fifteen pods of an app that sleeps before it listens, on a machine that other programs keep busy.
    #[test]
    fn starts_that_sleep_make_no_start_wait_on_a_busy_machine() {
        let mut starts = one_core();
        for number in 0..15_u8 {
            add(&mut starts, &format!("web-{number:02}"), usize::from(number));
        }
        assert_eq!(started_on(BUSY, &mut starts, NOW), ["web-00"], "nothing is known of the revision");
        let mut now = NOW;
        for expected in (1..15).collect::<Vec<_>>().chunks(2) {
            now = looked_at(&mut starts, now, QUICK / 4);
            let expected: Vec<String> = expected.iter().map(|number| format!("web-{number:02}")).collect();
            assert_eq!(started_on(BUSY, &mut starts, now), expected, "two places for each core");
        }
        assert!(now < NOW + Duration::from_secs(3));
        assert!(starts.is_empty());
    }

    #[test]
    fn starts_that_use_the_cores_keep_their_places_on_a_busy_machine() {
        let mut starts = one_core();
        for (pod, siblings) in [("a-1", 0), ("a-2", 1), ("a-3", 2)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started_on(BUSY, &mut starts, NOW), ["a-1"]);
        let a1 = PodName::new("a-1");
        for (used, now) in [(100, NOW + PATIENCE / 2), (200, NOW + PATIENCE)] {
            let usage = StartUsage { cpu: Duration::from_millis(used), is_runnable: true };
            starts.note_usage(&a1, usage, now);
        }
        assert_eq!(started_on(BUSY, &mut starts, NOW + PATIENCE), [""; 0]);
        assert!(starts.short_of_cores(BUSY, NOW + TOLD_AFTER / 2).is_empty(), "it is too soon to say so");
        let told = starts.short_of_cores(BUSY, NOW + TOLD_AFTER);
        assert_eq!(told, ["a-2", "a-3"].map(PodName::new));
        assert!(starts.short_of_cores(BUSY, NOW + TOLD_AFTER).is_empty(), "each is told once");
        let usage = StartUsage { cpu: Duration::from_millis(700), is_runnable: true };
        starts.note_usage(&a1, usage, NOW + 2 * QUICK);
        starts.note_ready(&a1, None, NOW + 2 * QUICK);
        assert_eq!(started_on(BUSY, &mut starts, NOW + 2 * QUICK), [""; 0], "its start worked");
        let paced = NOW + 2 * QUICK * SHARE_OF_STARTS;
        assert_eq!(started_on(BUSY, &mut starts, paced), ["a-2"]);
    }

    #[test]
    fn a_slow_start_that_took_little_of_the_cores_does_not_slow_its_revision_down() {
        let mut starts = one_core();
        for (pod, siblings) in [("a-1", 0), ("a-2", 1), ("a-3", 2)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started_on(BUSY, &mut starts, NOW), ["a-1"]);
        let a1 = PodName::new("a-1");
        starts.note_process(&a1, 17);
        let ready_at = NOW + Duration::from_secs(2);
        assert_eq!(starts.process_of_slow_start(&a1, ready_at), Some(17));
        let usage = StartUsage { cpu: QUICK / 4, is_runnable: false };
        starts.note_usage(&a1, usage, ready_at);
        starts.note_ready(&a1, None, ready_at);
        assert_eq!(started_on(BUSY, &mut starts, ready_at), ["a-2", "a-3"]);
    }

    #[test]
    fn a_start_without_memory_or_a_place_among_the_processes_does_not_wait_for_a_core() {
        let mut starts = Starts::on(1, 3);
        add(&mut starts, "a-2", 1);
        let later = NOW + TOLD_AFTER;
        assert_eq!(starts.short_of_cores(BUSY, later), [PodName::new("a-2")]);
        assert!(starts.short_of_cores(Machine { running: 3, ..BUSY }, later).is_empty());
        assert_eq!(starts.short_of_cores(BUSY, later), [PodName::new("a-2")], "again");
        assert!(starts.short_of_cores(Machine { free_memory: Some(1024), ..BUSY }, later).is_empty());
    }

    /// Slow starters of a burst, on a machine that others keep busy, and then an edit.
    #[test]
    fn the_first_pod_of_an_edited_template_has_the_next_start_of_its_revision() {
        let mut starts = one_core();
        for (pod, siblings) in [("a-1", 0), ("a-2", 1), ("a-3", 2), ("a-4", 3)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started_on(BUSY, &mut starts, NOW), ["a-1"]);
        starts.note_ready(&PodName::new("a-1"), None, NOW + LONG_PATIENCE / 2);
        assert_eq!(started_on(BUSY, &mut starts, NOW + LONG_PATIENCE), ["a-2"], "one start in so long");
        add(&mut starts, "a-edited", 4);
        assert_eq!(started_on(BUSY, &mut starts, NOW + LONG_PATIENCE), ["a-edited"], "there is a place");
        assert_eq!(started_on(BUSY, &mut starts, NOW + LONG_PATIENCE), [""; 0], "the others wait on");
        starts.note_ended(&PodName::new("a-2"));
        assert_eq!(started(&mut starts, NOW + LONG_PATIENCE), ["a-3"], "in their order");
    }

    #[test]
    fn an_edit_takes_the_turn_of_its_own_revision_and_of_no_other() {
        let mut starts = one_core();
        for (pod, siblings) in [("b-1", 0), ("b-2", 0), ("a-1", 0), ("c-1", 0)] {
            add(&mut starts, pod, siblings);
        }
        add(&mut starts, "a-edited", 1);
        assert_eq!(started(&mut starts, NOW), ["b-1", "b-2"], "they came before");
        for pod in ["b-1", "b-2"] {
            starts.note_ended(&PodName::new(pod));
        }
        assert_eq!(started(&mut starts, NOW), ["a-edited", "c-1"]);
        starts.note_ended(&PodName::new("c-1"));
        assert_eq!(started(&mut starts, NOW), ["a-1"]);
    }

    /// Urgent as it is, the revision has pods that answer meanwhile.
    #[test]
    fn the_first_pod_of_an_edited_template_waits_for_memory_and_for_a_place_like_any_further_pod() {
        let mut starts = Starts::on(8, 16);
        add(&mut starts, "a-edited", 1);
        let short = Machine { free_memory: Some(1024), ..IDLE };
        assert_eq!(started_on(short, &mut starts, NOW), [""; 0]);
        assert!(starts.short_of_memory(short).is_some());
        let full = Machine { running: 14, asleep: 5, ..IDLE };
        assert_eq!(started_on(full, &mut starts, NOW), [""; 0], "two of sixteen are kept free");
        assert!(starts.beyond_ceiling(full).is_some());
        assert_eq!(started(&mut starts, NOW), ["a-edited"]);
    }

    #[test]
    fn beyond_the_ceiling_nobody_is_started_and_that_is_said() {
        let mut starts = Starts::on(4, 3);
        add(&mut starts, "a", 0);
        let full = Machine { running: 3, ..IDLE };
        assert_eq!(starts.beyond_ceiling(Machine { running: 2, ..IDLE }), None);
        assert_eq!(started_on(full, &mut starts, NOW), [""; 0]);
        let (pods, reason) = starts.beyond_ceiling(full).expect("one waits");
        assert_eq!(pods, [PodName::new("a")]);
        assert!(reason.contains("3 at most (--max-pods)"), "{reason}");
        assert_eq!(started(&mut starts, NOW), ["a"]);
    }

    #[test]
    fn the_last_places_are_for_revisions_that_have_no_pod() {
        let mut starts = Starts::on(8, 16);
        add(&mut starts, "big-2", 1);
        let full = |running, asleep| Machine { running, asleep, ..IDLE };
        assert_eq!(started_on(full(14, 5), &mut starts, NOW), [""; 0], "two of sixteen are kept free");
        add(&mut starts, "new-1", 0);
        assert_eq!(starts.beyond_ceiling(full(14, 5)).expect("one waits").0, [PodName::new("big-2")]);
        assert_eq!(started_on(full(14, 5), &mut starts, NOW), ["new-1"]);
        assert_eq!(started_on(full(15, 0), &mut starts, NOW), ["big-2"], "no sleeping revision needs them");
    }
}
