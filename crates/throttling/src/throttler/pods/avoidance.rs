//! For how long a pod is left alone: one that did not start requests, and one that other activators have
//! filled.

use std::time::Duration;

use vocabulary::Timestamp;

/// How long a pod that did not start a request rests, even if there is no other; doubles with every further
/// failure.
const REST_MIN: Duration = Duration::from_millis(10);
/// The longest time for which a suspect pod rests.
const REST_MAX: Duration = Duration::from_millis(500);
/// How much longer it is left alone while there are others.
const AVOIDED_FACTOR: u32 = 10;
/// How long a pod of our slice that others have filled is left alone; doubles with every further refusal.
const FULL_MIN: Duration = Duration::from_millis(1);
/// The longest such wait: an idle slot is found within it.
const FULL_MAX: Duration = Duration::from_millis(50);
/// How often in a row a pod of our slice had no room, and until when it is left alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fullness {
    pub(super) refusals: u32,
    pub(super) until: Timestamp,
}

impl Fullness {
    pub(super) fn after(refusals: u32, now: Timestamp) -> Self {
        let doubled = FULL_MIN.saturating_mul(1 << refusals.saturating_sub(1).min(16));
        Self { refusals, until: now + doubled.min(FULL_MAX) }
    }
}

/// A pod failed to start requests that were sent to it, this often in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    pub(super) failures: u32,
    /// Until when it is left alone while other pods are not suspect.
    avoided_until: Timestamp,
    /// Until when it is left alone in any case.
    rests_until: Timestamp,
}

impl Suspicion {
    pub(super) fn after(failures: u32, now: Timestamp) -> Self {
        let doubled = REST_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let rest = doubled.min(REST_MAX);
        Self { failures, avoided_until: now + rest * AVOIDED_FACTOR, rests_until: now + rest }
    }

    /// When the pod may be tried again.
    pub(super) fn ends(&self, all_suspect: bool) -> Timestamp {
        // With no better pod to go to, leaving it alone for long would only keep requests waiting.
        if all_suspect { self.rests_until } else { self.avoided_until }
    }
}
