//! When may a request be tried at a pod outside this activator's slice?
//!
//! Slices keep activators from filling the same pods, but they are carved for an even load: requests may wait
//! here while a pod of another slice is idle. So what waits is tried there too, marked so that the pod's
//! queue-proxy takes it at once or refuses it at once. No pod has to be asked for room beforehand, and it
//! works without an autoscaler.
//!
//! One attempt is under way at a time. After a refusal there is a pause, short at first and doubling, so that
//! full pods are not asked again and again; it grows only until one round through all the pods takes
//! [`ROUND_MAX`].

use std::time::Duration;

use vocabulary::Timestamp;

use crate::balancer::{Balancer, Candidate, Policy};

/// A refusal comes within a round trip to the pod, which in one cluster takes less than this. A pod that has
/// not refused by then has let the request in, and the next one may be tried.
const REFUSAL_MAX: Duration = Duration::from_millis(5);
/// The pause after the first refusal.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// How long a round through all the pods of other slices takes, at the longest: an idle slot is found in half
/// of that, on average.
const ROUND_MAX: Duration = Duration::from_millis(50);

/// The attempts of one revision.
#[derive(Clone, Debug)]
pub(super) struct OutsideAttempts {
    /// Remembers which pod outside the slice is tried next.
    turns: Balancer,
    next: Timestamp,
    /// How many were refused in a row.
    refusals: u32,
    /// Whether the last one has neither been refused nor begun to run, as far as we know.
    is_undecided: bool,
}

impl OutsideAttempts {
    pub(super) fn new(seed: u64) -> Self {
        Self { turns: Balancer::new(seed), next: Timestamp::ZERO, refusals: 0, is_undecided: false }
    }

    /// The next pod to try, of `count` that `candidate` describes; `None` while the last attempt or the pause
    /// after it lasts.
    pub(super) fn pick(
        &mut self,
        now: Timestamp,
        count: usize,
        candidate: impl Fn(usize) -> Candidate,
    ) -> Option<usize> {
        if now < self.next {
            return None;
        }
        let chosen = self.turns.pick(Policy::RoundRobin, count, candidate)?;
        if std::mem::replace(&mut self.is_undecided, true) {
            self.refusals = 0;
        }
        self.next = now + REFUSAL_MAX;
        Some(chosen)
    }

    /// A pod had no room. There are `pods` to try.
    pub(super) fn refused(&mut self, now: Timestamp, pods: usize) {
        self.is_undecided = false;
        let doubled = PAUSE_MIN.saturating_mul(1 << self.refusals.min(16));
        let share = ROUND_MAX / u32::try_from(pods.max(1)).unwrap_or(u32::MAX);
        self.refusals = self.refusals.saturating_add(1);
        self.next = now + doubled.min(share).max(PAUSE_MIN);
    }

    /// A pod took the request.
    pub(super) fn admitted(&mut self, now: Timestamp) {
        self.is_undecided = false;
        self.refusals = 0;
        self.next = self.next.min(now);
    }

    /// From when on another attempt may be made; may be past.
    pub(super) fn next(&self) -> Timestamp {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_secs(60);
    const FREE: Candidate = Candidate { in_flight: 0, slots: 1 };

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn one_attempt_is_under_way_until_it_is_refused_taken_or_old() {
        let mut attempts = OutsideAttempts::new(1);
        assert_eq!(attempts.pick(START, 3, |_| FREE), Some(0));
        assert_eq!(attempts.pick(START + milliseconds(4), 3, |_| FREE), None);
        assert_eq!(attempts.pick(START + milliseconds(5), 3, |_| FREE), Some(1), "it was let in");
        attempts.admitted(START + milliseconds(6));
        assert_eq!(attempts.pick(START + milliseconds(6), 3, |_| FREE), Some(2), "each in turn");
    }

    #[test]
    fn pauses_double_until_a_round_takes_its_longest() {
        let mut attempts = OutsideAttempts::new(1);
        let mut now = START;
        let mut pauses = Vec::new();
        for _ in 0..6 {
            assert!(attempts.pick(now, 4, |_| FREE).is_some());
            attempts.refused(now, 4);
            pauses.push(attempts.next().saturating_since(now));
            now = attempts.next();
        }
        assert_eq!(
            pauses,
            [1, 2, 4, 8, 12, 12].map(|ms| if ms == 12 { ROUND_MAX / 4 } else { milliseconds(ms) })
        );
        assert!(attempts.pick(now, 4, |_| FREE).is_some());
        attempts.admitted(now);
        attempts.refused(now, 4);
        assert_eq!(attempts.next(), now + PAUSE_MIN, "what was taken begins anew");
    }

    #[test]
    fn many_pods_are_asked_no_faster_than_one_a_millisecond() {
        let mut attempts = OutsideAttempts::new(1);
        attempts.refused(START, 1000);
        assert_eq!(attempts.next(), START + PAUSE_MIN);
    }
}
