//! What a revision reports to the autoscaler: a load for each second, and between two of them an early report
//! when more is held than was reported.

use std::sync::Arc;
use std::time::Duration;

use throttling::LoadMeter;
use vocabulary::{Load, PresentCount, Timestamp};

use super::{AssignedRevision, RevisionState};

/// The least time between two early reports of one revision.
const PRESENCE_INTERVAL: Duration = Duration::from_millis(10);

/// The load of a revision in one second, and how long its oldest request has waited at the end of it.
pub(crate) struct RevisionSecond {
    pub(crate) load: Load,
    pub(crate) oldest_wait: Duration,
}

impl AssignedRevision {
    /// Ends so many seconds and says what each of them held. `None` if there is nothing to say any more: the
    /// revision is idle from now on.
    pub(crate) fn close_seconds(&self, count: u32, now: Timestamp) -> Option<RevisionSecond> {
        let mut state = self.state.lock();
        let measured = state.meter.close_seconds(count, now);
        let mut load = state.refusals.added_to(measured);
        let counts = state.throttler.counts();
        load.queued = counts.waiting;
        state.reported_in_flight = state.meter.present().in_flight;
        let shown = shown(load.concurrency.value());
        self.metrics.concurrency.inc_by(shown - std::mem::replace(&mut state.shown, shown));
        if load.is_zero() && state.reported_in_flight == 0 {
            // Under the same lock as an arrival: either that comes first and is in this second, or it finds
            // the revision idle and makes it active again.
            state.is_active = false;
            return None;
        }
        let oldest_wait = counts.oldest_arrival.map(|arrival| now.saturating_since(arrival));
        Some(RevisionSecond { load, oldest_wait: oldest_wait.unwrap_or_default() })
    }

    /// What is held right now.
    pub(crate) fn present(&self) -> PresentCount {
        present(&self.state.lock())
    }

    /// The present count for an early report, and how long the oldest request has waited. The count is the
    /// one reported from now on.
    pub(crate) fn take_early_report(&self) -> (PresentCount, Duration) {
        let now = self.context.clock.now();
        let mut state = self.state.lock();
        let count = present(&state);
        state.is_report_planned = false;
        state.reported_in_flight = count.in_flight;
        state.reported_at = now;
        let oldest_arrival = state.throttler.counts().oldest_arrival;
        (count, oldest_arrival.map_or(Duration::ZERO, |arrival| now.saturating_since(arrival)))
    }

    /// The revision has something to report from now on. What is open began when the activator's second did.
    pub(super) fn activate(self: &Arc<Self>, state: &mut RevisionState) {
        if !state.is_active {
            state.is_active = true;
            let began = self.context.seconds.beginning_of(self.context.open_second());
            state.meter = LoadMeter::new(began);
            // The report from before the revision fell idle is over: whatever is held now is news.
            state.reported_in_flight = 0;
            self.context.active.lock().insert(self.name.clone(), Arc::clone(self));
        }
    }

    /// Plans an early report if more is held than was reported: at once, then every [`PRESENCE_INTERVAL`].
    pub(super) fn report_growth(self: &Arc<Self>, state: &mut RevisionState, now: Timestamp) {
        if state.meter.present().in_flight > state.reported_in_flight {
            self.plan_early_report(state, now);
        }
    }

    /// Plans an early report if less is held than was reported. Needed only while another activator takes
    /// over what ends here: its reports would add up with an old report of this one.
    pub(super) fn report_decline(self: &Arc<Self>, state: &mut RevisionState, now: Timestamp) {
        if state.meter.present().in_flight < state.reported_in_flight {
            self.plan_early_report(state, now);
        }
    }

    fn plan_early_report(self: &Arc<Self>, state: &mut RevisionState, now: Timestamp) {
        // However many arrive until then, one word says all: it is made when it is sent.
        if !state.is_report_planned {
            state.is_report_planned = true;
            let at = now.max(state.reported_at + PRESENCE_INTERVAL);
            self.context.presence.add(at, Arc::clone(self));
        }
    }
}

/// In steps of 1/1024, so that sums and differences are exact and nothing is left of what has ended.
fn shown(concurrency: f64) -> f64 {
    (concurrency * 1024.0).round() / 1024.0
}

fn present(state: &RevisionState) -> PresentCount {
    PresentCount { in_flight: state.meter.present().in_flight, waiting: state.throttler.counts().waiting }
}
