//! When may a template that keeps failing be started again?

use std::time::Duration;

use runtime::Backoff;
use vocabulary::Timestamp;

use super::failure::PodTrouble;
use super::handover::records::RestartsRecord;

/// The first wait after a failure.
const LEAST: Duration = Duration::from_millis(100);
/// The longest wait after a failure.
const LONGEST: Duration = Duration::from_secs(10);
/// A pod that was healthy for so long, or as long a time without any failure, makes the next failure the
/// first one again.
pub(crate) const HEALTHY: Duration = Duration::from_secs(10);

/// After so many failures in a row requests do not wait for the next attempt: the first failure may be bad
/// luck, and the second follows from it. A pod that is ready breaks no row, as an app may listen for a moment
/// before it fails. A pod that answered a request does, and so does one that was healthy for [`HEALTHY`].
const HOPELESS: u32 = 3;

/// The failures of one template.
#[derive(Clone, Debug)]
pub(crate) struct Restarts {
    backoff: Backoff,
    not_before: Timestamp,
    /// The last failure of a pod of the template.
    last: Option<Timestamp>,
    /// The last one that lengthened the wait.
    last_new: Option<Timestamp>,
    /// Why its new pods are watched with suspicion; until one gets ready.
    reason: Option<PodTrouble>,
    /// Failures since a pod was seen to work, as many as lengthened the wait.
    in_a_row: u32,
    /// Why no request should wait for the next attempt.
    hold: Option<String>,
}

/// The life of a pod that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// The moment at which the pod's process was started.
    pub(crate) started: Timestamp,
    /// Since when it was ready, if it was at its end.
    pub(crate) ready_since: Option<Timestamp>,
}

impl Default for Restarts {
    fn default() -> Self {
        Self {
            backoff: Backoff::new(LEAST, LONGEST),
            not_before: Timestamp::ZERO,
            last: None,
            last_new: None,
            reason: None,
            in_a_row: 0,
            hold: None,
        }
    }
}

impl Restarts {
    /// Notes a failure. Pods that were started together fail together; that is one failure, so only a pod
    /// that was started after the last one that lengthened the wait lengthens it again.
    pub(crate) fn note_failure(&mut self, reason: impl Into<PodTrouble>, life: Life, now: Timestamp) {
        let reason = reason.into();
        let was_healthy = life.ready_since.is_some_and(|since| now.saturating_since(since) >= HEALTHY);
        let was_quiet = self.last.is_none_or(|last| now.saturating_since(last) >= HEALTHY + LONGEST);
        if was_healthy || was_quiet {
            self.backoff.reset();
        }
        let is_new = self.last_new.is_none_or(|last| life.started >= last);
        self.last = Some(now);
        if is_new {
            self.last_new = Some(now);
            let wait = self.backoff.next_wait();
            self.not_before = now + wait;
            self.reason = Some(reason.map(|text| format!("{text}; it is started again {wait:?} later")));
            self.in_a_row += 1;
            let failures = self.in_a_row;
            // Any client of the front door is told: what apps print is for those who may read their logs.
            let why = reason.without_output;
            self.hold = (failures >= HOPELESS).then(|| format!("{failures} failures in a row: {why}"));
        }
    }

    /// The record for another process, so that its requests do not wait anew for a template that is known to
    /// fail.
    pub(crate) fn record(&self, now: Timestamp) -> RestartsRecord {
        RestartsRecord {
            next_wait: self.backoff.upcoming(),
            wait_left: self.not_before.saturating_since(now),
            last_before: self.last.map(|last| now.saturating_since(last)),
            last_new_before: self.last_new.map(|last| now.saturating_since(last)),
            reason: self.reason.as_ref().map(|reason| reason.whole.clone()),
            reason_without_output: self.reason.as_ref().map(|reason| reason.without_output.clone()),
            in_a_row: self.in_a_row,
            hold: self.hold.clone(),
        }
    }

    /// The failures that another process noted, on this process's axis of time.
    pub(crate) fn taken_over(record: RestartsRecord, now: Timestamp) -> Self {
        Self {
            backoff: Backoff::new(LEAST, LONGEST).continued(record.next_wait),
            not_before: now + record.wait_left.min(LONGEST),
            last: record.last_before.map(|span| now - span),
            last_new: record.last_new_before.map(|span| now - span),
            reason: PodTrouble::taken_over(record.reason, record.reason_without_output),
            in_a_row: record.in_a_row,
            hold: record.hold,
        }
    }

    /// A pod of the template is ready: it may work, and requests are to try it.
    pub(crate) fn note_ready(&mut self) {
        self.reason = None;
        self.hold = None;
    }

    /// A pod of the template was seen to work at that time: failures before it are forgotten.
    pub(crate) fn note_proof(&mut self, at: Timestamp) {
        if self.last_new.is_none_or(|last| last <= at) {
            self.in_a_row = 0;
            self.hold = None;
        }
    }

    /// Why no request should wait for a pod of the template, if it fails time and again.
    pub(crate) fn hold(&self) -> Option<&str> {
        self.hold.as_deref()
    }

    /// When the next pod may start.
    pub(crate) fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// The last failure, while no pod got ready since.
    pub(crate) fn reason(&self) -> Option<&PodTrouble> {
        self.reason.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + milliseconds)
    }

    fn started(milliseconds: u64) -> Life {
        Life { started: at(milliseconds), ready_since: None }
    }

    #[test]
    fn each_generation_of_failures_doubles_the_wait_up_to_ten_seconds() {
        let mut restarts = Restarts::default();
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..9 {
            restarts.note_failure("exited", started(now), at(now + 10));
            restarts.note_failure("exited", started(now), at(now + 20));
            let wait = restarts.not_before().saturating_since(at(now + 10)).as_millis();
            waits.push(wait);
            now += 20 + u64::try_from(wait).expect("small");
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn ten_healthy_seconds_make_the_next_failure_the_first() {
        let mut restarts = Restarts::default();
        restarts.note_failure("exited", started(0), at(10));
        restarts.note_failure("exited", started(110), at(120));
        assert_eq!(restarts.not_before(), at(320));
        let life = Life { started: at(320), ready_since: Some(at(400)) };
        restarts.note_failure("exited", life, at(10_400));
        assert_eq!(restarts.not_before(), at(10_500));
    }

    #[test]
    fn pods_that_fail_in_turn_wait_longer_and_longer_too() {
        let mut restarts = Restarts::default();
        for (start, end) in [(0, 5000), (2500, 7500), (5100, 10_100), (7500, 12_500), (10_300, 15_300)] {
            restarts.note_failure("exited", started(start), at(end));
        }
        // One of the two pods lengthens the wait each time.
        assert_eq!(restarts.not_before(), at(15_700));
    }

    #[test]
    fn the_third_failure_in_a_row_is_one_too_many_until_a_pod_is_seen_to_work() {
        let mut restarts = Restarts::default();
        let mut hold_after = |start, end| {
            restarts.note_failure("exited", started(start), at(end));
            restarts.hold().map(str::to_owned)
        };
        assert_eq!(hold_after(0, 10), None);
        assert_eq!(hold_after(0, 11), None, "started together, failed together");
        assert_eq!(hold_after(110, 120), None);
        assert_eq!(hold_after(320, 330).as_deref(), Some("3 failures in a row: exited"));
        assert_eq!(hold_after(730, 740).as_deref(), Some("4 failures in a row: exited"));
        restarts.note_ready();
        assert_eq!(restarts.hold(), None, "requests are to try it");
        restarts.note_failure("exited", started(2000), at(2010));
        assert_eq!(restarts.hold(), Some("5 failures in a row: exited"), "it listened for a moment");
        restarts.note_proof(at(2000));
        assert!(restarts.hold().is_some(), "what worked before proves nothing");
        restarts.note_proof(at(2010));
        assert_eq!(restarts.hold(), None);
        restarts.note_failure("exited", started(3000), at(3010));
        assert_eq!(restarts.hold(), None);
    }

    #[test]
    fn a_ready_pod_clears_the_reason_but_not_the_wait() {
        let mut restarts = Restarts::default();
        restarts.note_failure("the app exited with code 3", started(0), at(10));
        let text = "the app exited with code 3; it is started again 100ms later";
        assert_eq!(restarts.reason(), Some(&text.into()));
        restarts.note_ready();
        assert_eq!(restarts.reason(), None);
        assert_eq!(restarts.not_before(), at(110));
    }
}
