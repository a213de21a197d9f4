//! Which pods may be started now, and which wait for a moment.
//!
//! To start a pod keeps a core busy for about ten milliseconds. Where many are to be started, all at once would share the cores with
//! each other and with whoever holds the requests for them: the first would serve hardly before the last, and what the load needs
//! would be noticed late. So only a few are on their way at any time.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use vocabulary::{PodName, Timestamp};

use crate::pod::PodSpec;

/// How many may be on their way for each core: while one waits for the disk or for another process, there is one that does not.
const PER_CORE: usize = 2;

/// A pod that has not announced itself so long after its start does not keep others from theirs any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pods that are being started, and those that are to be.
#[derive(Debug)]
pub(super) struct Starts {
    most: usize,
    waiting: BTreeMap<Turn, (PodName, Box<PodSpec>)>,
    /// Those on their way, and until when they count.
    under_way: BTreeMap<PodName, Timestamp>,
    added: u64,
}

/// Who comes first: the least does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// So the first pod of one revision, for which requests may wait, does not wait for the tenth of another.
    siblings: usize,
    /// Otherwise who came first.
    number: u64,
}

impl Default for Starts {
    /// As many at once as suit this machine.
    fn default() -> Self {
        Self::of_at_most(PER_CORE * available_parallelism().map_or(1, NonZero::get))
    }
}

impl Starts {
    fn of_at_most(most: usize) -> Self {
        Self { most, waiting: BTreeMap::new(), under_way: BTreeMap::new(), added: 0 }
    }

    /// A pod is to be started, in a revision that has so many other pods.
    pub(super) fn add(&mut self, pod: PodName, siblings: usize, spec: Box<PodSpec>) {
        self.added += 1;
        self.waiting.insert(Turn { siblings, number: self.added }, (pod, spec));
    }

    /// A pod is not to be started any more; false if it was already.
    pub(super) fn cancel(&mut self, pod: &PodName) -> bool {
        let turn = self.waiting.iter().find(|(_, (waiting, _))| waiting == pod).map(|(turn, _)| *turn);
        turn.is_some_and(|turn| self.waiting.remove(&turn).is_some())
    }

    /// A pod is up, or will not be.
    pub(super) fn done(&mut self, pod: &PodName) {
        self.under_way.remove(pod);
    }

    /// The next pod to be started at this moment.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<(PodName, Box<PodSpec>)> {
        self.under_way.retain(|_, until| *until > now);
        if self.under_way.len() >= self.most {
            return None;
        }
        let (_, (pod, spec)) = self.waiting.pop_first()?;
        self.under_way.insert(pod.clone(), now + PATIENCE);
        Some((pod, spec))
    }

    /// When [`Starts::next`] is to be asked again at the latest.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.under_way.values().min().copied().filter(|_| !self.waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::Template;

    const NOW: Timestamp = Timestamp::from_secs(3600);

    fn add(starts: &mut Starts, pod: &str, siblings: usize) {
        let name = |name: &str| name.to_owned();
        let spec = PodSpec {
            pod: name(pod),
            namespace: name("default"),
            service: name("app"),
            revision: name("app-00001"),
            template: Template::default(),
            drain_limit: std::time::Duration::ZERO,
            descriptors: None,
        };
        starts.add(PodName::new(pod), siblings, Box::new(spec));
    }

    /// All that may be started now.
    fn started(starts: &mut Starts, now: Timestamp) -> Vec<String> {
        std::iter::from_fn(|| starts.next(now)).map(|(pod, _)| pod.to_string()).collect()
    }

    #[test]
    fn a_few_at_once_and_the_next_when_one_is_up() {
        let mut starts = Starts::of_at_most(2);
        for pod in ["a", "b", "c", "d"] {
            add(&mut starts, pod, 0);
        }
        assert_eq!(started(&mut starts, NOW), ["a", "b"]);
        assert_eq!(started(&mut starts, NOW), [""; 0]);
        starts.done(&PodName::new("b"));
        assert_eq!(started(&mut starts, NOW), ["c"]);
        for pod in ["a", "c", "unheard-of"] {
            starts.done(&PodName::new(pod));
        }
        assert_eq!(started(&mut starts, NOW), ["d"]);
    }

    #[test]
    fn the_first_pods_of_all_come_before_further_ones_of_any() {
        let mut starts = Starts::of_at_most(10);
        for (pod, siblings) in [("big-1", 0), ("big-2", 1), ("big-3", 2), ("small-2", 1), ("new-1", 0)] {
            add(&mut starts, pod, siblings);
        }
        assert_eq!(started(&mut starts, NOW), ["big-1", "new-1", "big-2", "small-2", "big-3"]);
    }

    #[test]
    fn who_is_not_wanted_any_more_is_not_started() {
        let mut starts = Starts::of_at_most(1);
        add(&mut starts, "a", 0);
        add(&mut starts, "b", 0);
        add(&mut starts, "c", 0);
        assert_eq!(started(&mut starts, NOW), ["a"]);
        assert!(!starts.cancel(&PodName::new("a")), "it was started");
        assert!(starts.cancel(&PodName::new("b")));
        assert!(!starts.cancel(&PodName::new("b")), "only once");
        starts.done(&PodName::new("a"));
        assert_eq!(started(&mut starts, NOW), ["c"]);
    }

    #[test]
    fn who_hangs_does_not_keep_the_others_waiting_for_long() {
        let mut starts = Starts::of_at_most(1);
        add(&mut starts, "hangs", 0);
        assert_eq!(started(&mut starts, NOW), ["hangs"]);
        assert_eq!(starts.next_deadline(), None, "nobody waits");
        add(&mut starts, "waits", 0);
        assert_eq!(starts.next_deadline(), Some(NOW + PATIENCE));
        assert_eq!(started(&mut starts, NOW + PATIENCE - Duration::from_nanos(1)), [""; 0]);
        assert_eq!(started(&mut starts, NOW + PATIENCE), ["waits"]);
    }

    #[test]
    fn this_machine_has_a_core() {
        assert!(Starts::default().most >= PER_CORE);
    }
}
