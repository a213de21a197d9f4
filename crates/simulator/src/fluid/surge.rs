//! When does the activator hold so many requests that the control loop is to hear of them at once?
//!
//! Averages over a second hide its peaks, and the control loop decides on peaks too. Requests that are
//! followed have theirs by their own arrivals and ends. Of others the peak of a second is drawn: a queue that
//! is at rest comes from one level to the next as often as requests arrive at the lower one, and levels that
//! are rare are reached independently of each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use settings::Metric;

use super::capacity::chance_of_waiting;
use super::second_arrivals::{ArrivalGroup, GroupWork};
use crate::random::{RandomStream, span_of};
use crate::rounding::whole_part;
use crate::scenario::{Scenario, ServiceScenario};

/// Levels of a second are said no more often than this, in seconds.
const SAID_EVERY: f64 = 0.04;
/// More requests of one time are not told apart.
const ALIKE_MAX: u32 = 10_000;
/// Where more of the slots are taken on average, no queue is at rest.
const REST_MAX: f64 = 0.99;

/// From which level on the control loop looks at what is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SurgeThreshold {
    /// `None` where what is held tells no count while a pod is ready.
    total_per_pod: Option<f64>,
}

impl SurgeThreshold {
    pub(crate) fn of(service: &ServiceScenario, scenario: &Scenario) -> Self {
        let facts = &service.facts;
        let spec =
            facts.settings.resolve(&scenario.cluster, facts.container_concurrency, facts.progress_deadline);
        Self {
            total_per_pod: match spec.metric {
                Metric::Concurrency => Some(spec.total_per_pod),
                Metric::Rps => None,
            },
        }
    }

    /// The least level that is more than so many pods can take; `None` if no level is.
    pub(crate) fn level(&self, pods: u32) -> Option<u32> {
        if pods == 0 {
            return Some(1);
        }
        Some(whole_part(f64::from(pods) * self.total_per_pod?).saturating_add(1))
    }
}

/// The levels of a second that are to be said, each above the one before.
#[derive(Debug)]
pub(crate) struct RisingLevels {
    from: u32,
    levels: Vec<RisenLevel>,
}

/// A level and the time at which it was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RisenLevel {
    pub(crate) at: f64,
    pub(crate) held: u32,
}

impl RisingLevels {
    /// Levels below this one are not said.
    pub(crate) fn new(from: u32) -> Self {
        Self { from, levels: Vec::new() }
    }

    /// A level is reached; of levels that follow each other fast the highest is said.
    pub(crate) fn reach(&mut self, at: f64, held: u32) {
        if held < self.from {
            return;
        }
        match self.levels.last_mut() {
            Some(last) if held <= last.held => {}
            Some(last) if at < last.at + SAID_EVERY => last.held = held,
            Some(_) | None => self.levels.push(RisenLevel { at, held }),
        }
    }

    pub(crate) fn into_levels(self) -> Vec<RisenLevel> {
        self.levels
    }
}

/// The ends of requests that are followed and have begun.
#[derive(Debug, Default)]
pub(crate) struct FollowedRequests {
    ends: BinaryHeap<Reverse<Duration>>,
}

impl FollowedRequests {
    /// Requests arrive, and begin at once.
    pub(crate) fn arrive(&mut self, groups: &[ArrivalGroup], levels: &mut RisingLevels) {
        for group in groups {
            let GroupWork::Known(work) = group.work else { continue };
            let now = span_of(group.at);
            while self.ends.peek().is_some_and(|Reverse(end)| *end <= now) {
                self.ends.pop();
            }
            let end = Reverse(span_of(group.at + work));
            self.ends.extend((0..group.requests.min(ALIKE_MAX)).map(|_| end));
            levels.reach(group.at, u32::try_from(self.ends.len()).unwrap_or(u32::MAX));
        }
    }
}

/// A queue at rest, with random arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestingQueue {
    /// Requests that arrive in a second.
    pub(crate) rate: f64,
    /// The slots that are taken on average.
    pub(crate) offered: f64,
    /// The slots that there are; infinite without a limit.
    pub(crate) slots: f64,
}

impl RestingQueue {
    /// Whether slots are free on average, so that no backlog grows.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.offered < REST_MAX * self.slots
    }

    /// The highest level of a second, if it is at least `from`.
    pub(crate) fn draw_peak(&self, from: u32, draws: &mut RandomStream) -> Option<u32> {
        let luck = draws.unit();
        if self.offered <= 0.0 || !self.is_at_rest() {
            return None;
        }
        let waits = if self.slots.is_finite() {
            chance_of_waiting(whole_part(self.slots + 0.5), self.offered)
        } else {
            0.0
        };
        let is_reached = |level: u32| 1.0 - libm::exp(-self.times_reached(level, waits)) > luck;
        let mut peak = from.checked_sub(1)?;
        while is_reached(peak.saturating_add(1)) && peak < u32::MAX {
            peak += 1;
        }
        (peak >= from).then_some(peak)
    }

    /// How often in a second a level is reached from below, of those times that are no mere return: one that
    /// has been reached is left and reached again some times.
    fn times_reached(&self, level: u32, waits: f64) -> f64 {
        let below = f64::from(level.saturating_sub(1));
        let busy = self.offered / self.slots;
        let chance = if below >= self.slots {
            waits * (1.0 - busy) * libm::pow(busy, below - self.slots)
        } else {
            libm::exp(below * libm::log(self.offered) - self.offered - libm::lgamma(below + 1.0))
        };
        let returns = (1.0 - self.offered / f64::from(level.max(1)).min(self.slots)).max(0.0);
        self.rate * chance * returns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_and_are_said_apart() {
        let mut levels = RisingLevels::new(3);
        for (at, held) in [(0.0, 2), (0.1, 3), (0.12, 5), (0.2, 4), (0.3, 6)] {
            levels.reach(at, held);
        }
        let found: Vec<(f64, u32)> =
            levels.into_levels().iter().map(|level| (level.at, level.held)).collect();
        assert_eq!(found, [(0.1, 5), (0.3, 6)]);
    }

    #[test]
    fn followed_requests_are_held_until_they_end() {
        let group = |at: f64, requests: u32| {
            let work = GroupWork::Known(0.25);
            ArrivalGroup { at, span: 0.0, requests, work }
        };
        let (mut followed, mut levels) = (FollowedRequests::default(), RisingLevels::new(1));
        followed.arrive(&[group(0.0, 1), group(0.125, 2), group(0.5, 3), group(0.625, 1)], &mut levels);
        let found: Vec<u32> = levels.into_levels().iter().map(|level| level.held).collect();
        assert_eq!(found, [1, 3, 4]);
    }

    /// The known rate at which a queue without a limit reaches a level, and that of one server.
    #[test]
    fn peaks_are_as_frequent_as_queues_have_them() {
        let unlimited = RestingQueue { rate: 50.0, offered: 8.0, slots: f64::INFINITY };
        let share_at_least = |queue: RestingQueue, from: u32| {
            let mut draws = RandomStream::of(7, "hello", "peaks");
            let reached = (0..20_000).filter(|_| queue.draw_peak(from, &mut draws).is_some()).count();
            f64::from(u32::try_from(reached).expect("few")) / 20_000.0
        };
        // π(19) of a Poisson number with mean 8 is 3.97e-4: 50 × that × (1 - 8/20) = 0.0119 a second.
        let found = share_at_least(unlimited, 20);
        assert!((found - 0.0118).abs() < 0.003, "{found}");
        // One server, half busy: π(4) = 0.5^5, and 5 × that × (1 - 0.5) = 0.078 times a second.
        let one = RestingQueue { rate: 5.0, offered: 0.5, slots: 1.0 };
        let found = share_at_least(one, 5);
        assert!((found - 0.075).abs() < 0.008, "{found}");
        let full = RestingQueue { rate: 5.0, offered: 1.0, slots: 1.0 };
        assert_eq!(share_at_least(full, 5), 0.0);
    }
}
