//! Which requests, pods and waits of one Service are counted while the load lasts?

use std::time::Duration;

use vocabulary::{PodCount, Timestamp};

use crate::wait_histogram::WaitHistogram;

/// A count that was ordered, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCount {
    /// The time since the load began; zero for what was ordered before.
    pub at: Duration,
    /// The number of pods that was ordered.
    pub count: PodCount,
    /// The reason in one sentence.
    pub why: String,
}

/// Why a request has to wait at the activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitCause {
    /// No pod of the Service is ready.
    NoReadyPod,
    /// Pods are ready, and every slot of them is taken.
    NoFreeSlot,
}

/// Whether a pod is ready and holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodOccupation {
    Idle,
    Busy,
}

/// Time that pods spent, summed over all of them.
#[derive(Clone, Debug)]
struct PodTime {
    pods: u32,
    idle: u32,
    last: Timestamp,
    spent: Duration,
    spent_idle: Duration,
}

impl PodTime {
    fn advance(&mut self, now: Timestamp) {
        let passed = now.saturating_since(self.last);
        self.last = self.last.max(now);
        self.spent = self.spent.saturating_add(passed.saturating_mul(self.pods));
        self.spent_idle = self.spent_idle.saturating_add(passed.saturating_mul(self.idle));
    }
}

/// The numbers of one Service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceTally {
    began: Timestamp,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) waited_from_zero: u64,
    pub(crate) waited_for_growth: u64,
    /// The waits of all requests that were answered.
    pub(crate) waits: WaitHistogram,
    /// The counts that were ordered, each another one than before.
    pub(crate) counts: Vec<RecordedCount>,
    time: PodTime,
}

impl ServiceTally {
    /// Nothing is counted before the load begins.
    pub(crate) fn new(began: Timestamp) -> Self {
        let time =
            PodTime { pods: 0, idle: 0, last: began, spent: Duration::ZERO, spent_idle: Duration::ZERO };
        Self {
            began,
            requests: 0,
            refused: 0,
            waited_from_zero: 0,
            waited_for_growth: 0,
            waits: WaitHistogram::default(),
            counts: Vec::new(),
            time,
        }
    }

    /// A request has to wait at the activator.
    pub(crate) fn note_wait(&mut self, cause: WaitCause) {
        self.note_waits(cause, 1);
    }

    /// So many requests have to wait at the activator.
    pub(crate) fn note_waits(&mut self, cause: WaitCause, requests: u32) {
        let waited = match cause {
            WaitCause::NoReadyPod => &mut self.waited_from_zero,
            WaitCause::NoFreeSlot => &mut self.waited_for_growth,
        };
        *waited += u64::from(requests);
    }

    /// A count was ordered, for this reason.
    pub(crate) fn note_count(&mut self, count: PodCount, why: String, now: Timestamp) {
        if self.counts.last().is_none_or(|last| last.count != count) {
            self.counts.push(RecordedCount { at: now.saturating_since(self.began), count, why });
        }
    }

    pub(crate) fn note_started_pod(&mut self, now: Timestamp) {
        self.time.advance(now);
        self.time.pods += 1;
    }

    pub(crate) fn note_ended_pod(&mut self, occupation: PodOccupation, now: Timestamp) {
        self.time.advance(now);
        self.time.pods -= 1;
        self.time.idle -= u32::from(occupation == PodOccupation::Idle);
    }

    /// A pod is idle now and was not, or the other way round.
    pub(crate) fn note_occupation(&mut self, occupation: PodOccupation, now: Timestamp) {
        self.time.advance(now);
        match occupation {
            PodOccupation::Idle => self.time.idle += 1,
            PodOccupation::Busy => self.time.idle -= 1,
        }
    }

    /// Ready pods held nothing for so long, summed, of whose requests none is followed.
    pub(crate) fn add_idle(&mut self, spent: Duration) {
        self.time.spent_idle = self.time.spent_idle.saturating_add(spent);
    }

    /// The time of all pods together up to now, and the idle part of it.
    pub(crate) fn pod_time(&mut self, now: Timestamp) -> (Duration, Duration) {
        self.time.advance(now);
        (self.time.spent, self.time.spent_idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_time_counts_from_the_beginning_of_the_load() {
        let mut tally = ServiceTally::new(Timestamp::from_secs(10));
        tally.note_started_pod(Timestamp::from_secs(9));
        tally.note_occupation(PodOccupation::Idle, Timestamp::from_secs(11));
        tally.note_started_pod(Timestamp::from_secs(12));
        tally.note_occupation(PodOccupation::Busy, Timestamp::from_secs(14));
        tally.note_ended_pod(PodOccupation::Busy, Timestamp::from_secs(15));
        let seconds = |time: (Duration, Duration)| (time.0.as_secs(), time.1.as_secs());
        // One pod for 10 s and another one for 3 s; idle from 11 s to 14 s.
        assert_eq!(seconds(tally.pod_time(Timestamp::from_secs(20))), (13, 3));
    }

    #[test]
    fn a_count_is_recorded_once() {
        let mut tally = ServiceTally::new(Timestamp::from_secs(10));
        for (count, at) in [(1, 9), (1, 12), (3, 14), (1, 20)] {
            tally.note_count(PodCount::new(count), String::new(), Timestamp::from_secs(at));
        }
        let counts: Vec<_> = tally.counts.iter().map(|of| (of.at.as_secs(), of.count.value())).collect();
        assert_eq!(counts, [(0, 1), (4, 3), (10, 1)]);
    }
}
