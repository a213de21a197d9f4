//! How often do pods refuse a request's stream (`REFUSED_STREAM` of HTTP/2) before its client is told?
//!
//! A refused stream was certainly not begun, so its request waits again and goes to a pod once more. Where
//! pods refuse every stream that would go on for as long as the request may take. A pod that is full for a
//! moment accepts others meanwhile, and then a row of refusals says nothing about the next attempt.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dataplane::{Refusal, RefusalReason};

/// So many refusals in a row, between which no pod of the revision accepted anything.
const REFUSALS_MAX: u32 = 20;

/// Whether the pods of one revision accept requests, as far as a refused request has asked for that.
#[derive(Debug, Default)]
pub(crate) struct PodAcceptance {
    /// Whether a stream was refused since the last acceptance.
    is_asked: AtomicBool,
    /// How many times a request was accepted after a refusal.
    acceptances: AtomicU64,
}

impl PodAcceptance {
    /// A pod has accepted a request. Nearly always that is no more than a look at a flag.
    pub(crate) fn note(&self) {
        if self.is_asked.load(Ordering::Relaxed) && self.is_asked.swap(false, Ordering::Relaxed) {
            self.acceptances.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The refusals of one request, in a row.
#[derive(Debug, Default)]
pub(crate) struct StreamRefusals {
    count: u32,
    /// How many acceptances there were at the last one.
    acceptances: u64,
}

impl StreamRefusals {
    /// One more. An error is what the client is told.
    pub(crate) fn note(&mut self, pods: &PodAcceptance) -> Result<(), Refusal> {
        pods.is_asked.store(true, Ordering::Relaxed);
        let acceptances = pods.acceptances.load(Ordering::Relaxed);
        let is_in_a_row = self.acceptances == acceptances;
        *self = Self { count: if is_in_a_row { self.count + 1 } else { 1 }, acceptances };
        if self.count < REFUSALS_MAX {
            return Ok(());
        }
        let detail = format!(
            "pods refused the stream of the request (REFUSED_STREAM) in each of {REFUSALS_MAX} attempts, and accepted no other request meanwhile"
        );
        Err(Refusal::new(RefusalReason::UpstreamReset, detail).never_started())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_refusals_in_a_row_are_an_answer_unless_a_pod_accepted_something_meanwhile() {
        let (pods, mut refusals) = (PodAcceptance::default(), StreamRefusals::default());
        for _ in 1..REFUSALS_MAX {
            assert!(refusals.note(&pods).is_ok());
        }
        pods.note();
        for _ in 1..REFUSALS_MAX {
            assert!(refusals.note(&pods).is_ok());
        }
        let refusal = refusals.note(&pods).expect_err("in a row");
        assert_eq!(refusal.reason, RefusalReason::UpstreamReset);
        assert!(refusal.detail.contains("REFUSED_STREAM"), "{}", refusal.detail);
    }
}
