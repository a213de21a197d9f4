//! How long do pods take, from the order of a pod until it is ready?
//!
//! Pods carry no name of the order that they follow from, so the oldest order goes to the next pod that is
//! ready for the first time. A pod that ends before it is ready leaves its order behind; a count that falls
//! takes the latest orders back.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use forecasting::{ForecastPace, LookAhead, StartTimes};
use serde::{Deserialize, Serialize};
use vocabulary::{PodId, ScaleUpForward, Timestamp};

use crate::hpa::CountChange;

/// Orders that are remembered: as many as starts.
const ORDERS_KEPT: usize = 50;

/// The orders of pods that are not ready yet, and the times that former starts took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StartBook {
    /// When each pod was asked for, the oldest first.
    asked: VecDeque<Timestamp>,
    /// The pods that were ready once.
    seen: BTreeSet<PodId>,
    times: StartTimes,
}

impl StartBook {
    /// The platform was asked for another count.
    pub(super) fn note_order(&mut self, change: CountChange, now: Timestamp) {
        let [from, to] = [change.from, change.to].map(|count| usize::try_from(count.value()).unwrap_or(0));
        let more = to.saturating_sub(from).min(ORDERS_KEPT.saturating_sub(self.asked.len()));
        self.asked.extend(std::iter::repeat_n(now, more));
        let fewer = from.saturating_sub(to);
        self.asked.truncate(self.asked.len().saturating_sub(fewer));
    }

    /// Another client gave the count: its pods answer no order of ours.
    pub(super) fn forget_orders(&mut self) {
        self.asked.clear();
    }

    /// These pods are ready now, of all that exist.
    pub(super) fn note_ready(&mut self, ready: &[PodId], exists: impl Fn(PodId) -> bool, now: Timestamp) {
        self.seen.retain(|pod| exists(*pod));
        for pod in ready {
            if self.seen.insert(*pod)
                && let Some(asked) = self.asked.pop_front()
            {
                self.times.note(now.saturating_since(asked));
            }
        }
    }

    /// The milliseconds that the last starts took, the oldest first.
    pub(super) fn millis(&self) -> Vec<u64> {
        self.times.millis()
    }

    /// Goes on from starts that a former owner saw.
    pub(super) fn restore(&mut self, millis: &[u64]) {
        self.times = StartTimes::default();
        for took in millis {
            self.times.note(Duration::from_millis(*took));
        }
    }

    /// How long before demand comes a pod for it is asked for.
    pub(super) fn look_ahead(&self, forward: ScaleUpForward, pace: ForecastPace) -> LookAhead {
        self.times.look_ahead(forward, pace)
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::PodCount;

    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(second)
    }

    fn change(from: u32, to: u32) -> CountChange {
        CountChange { from: PodCount::new(from), to: PodCount::new(to) }
    }

    #[test]
    fn a_start_lasts_from_the_order_to_the_first_readiness() {
        let mut book = StartBook::default();
        book.note_ready(&[PodId(0)], |_| true, at(1));
        book.note_order(change(1, 6), at(10));
        let pods: Vec<PodId> = (0..6).map(PodId).collect();
        book.note_ready(&pods[..3], |_| true, at(40));
        book.note_ready(&pods, |_| true, at(130));
        book.note_ready(&pods[..2], |_| true, at(500));
        book.note_ready(&pods, |_| true, at(600));
        assert_eq!(book.times.usual(), Some(Duration::from_secs(120)), "five starts, of 30 s and 120 s");
        assert!(book.asked.is_empty());
    }

    #[test]
    fn a_count_that_falls_takes_the_latest_orders_back() {
        let mut book = StartBook::default();
        book.note_order(change(0, 2), at(10));
        book.note_order(change(2, 4), at(20));
        book.note_order(change(4, 2), at(30));
        assert_eq!(book.asked, [at(10), at(10)]);
        book.forget_orders();
        book.note_ready(&[PodId(7)], |_| true, at(40));
        assert_eq!(book.times, StartTimes::default());
        book.note_order(change(0, 1_000), at(50));
        assert_eq!(book.asked.len(), ORDERS_KEPT);
    }
}
