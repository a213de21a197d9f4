//! How does the status of a `PodAutoscaler` follow from the present state of its revision? (Contract §2.3.)
//!
//! Pure and without memory: what was so before stands in the status itself. So a new owner, and Knative's
//! own autoscaler after a way back, go on where the last one stopped.
//!
//! The contract's `NewObservedGenFailure` is Ready's reason for a new generation whose handling came to no
//! end. A handling here is one pure step and always complete, so that reason is never written; where
//! Knative's autoscaler has left it, the next handling overwrites it.

use std::time::Duration;

use jiff::Timestamp as WallTime;
use settings::ACTIVATION_TIMEOUT_BUFFER;
use vocabulary::PodCount;

use super::active::{ActiveState, PodNeed};
use super::condition::{Condition, ConditionKind, ConditionStatus, ConditionWords};
use super::serverless::{ServerlessRecord, ready_words};
use super::status::AutoscalerStatus;
use crate::moment::Moment;

/// At the limit itself a start still has time.
const JUST_AFTER: Duration = Duration::from_millis(1);

/// The state of a revision, from which its status follows.
#[derive(Clone, Copy, Debug)]
pub struct HandledRevision<'a> {
    /// The generation of the spec that this is the answer to.
    pub generation: i64,
    /// The `ServerlessService` of the revision, if there is one.
    pub service: Option<&'a ServerlessRecord>,
    /// The count that is wanted, within its bounds; `None` while none is known.
    pub want: Option<PodCount>,
    /// The pods that Kubernetes calls ready.
    pub ready: PodCount,
    /// The least count of the settings.
    pub min: PodCount,
    /// The count that a new revision has to reach once.
    pub initial: PodCount,
    /// Whether a route leads to the revision.
    pub is_reachable: bool,
    /// How long a start may take; [`ACTIVATION_TIMEOUT_BUFFER`] later the revision counts as failed.
    pub progress_deadline: Duration,
}

impl HandledRevision<'_> {
    /// The status after this handling.
    #[must_use]
    pub fn status(&self, former: &AutoscalerStatus, now: WallTime) -> AutoscalerStatus {
        let has_private = |service: &&ServerlessRecord| !service.private_service_name.is_empty();
        let service = self.service.filter(has_private);
        // Without its Services nothing of a revision is known, and the names that are written stay.
        let (want, ready) = if service.is_some() { (self.want, self.ready) } else { (None, PodCount::ZERO) };
        let mut status = former.clone();
        status.observed_generation = self.generation;
        if let Some(service) = service {
            status.service_name.clone_from(&service.service_name);
            status.metrics_service_name.clone_from(&service.private_service_name);
        }
        let need = self.need(former);
        let want = self.want_of_start(want, former, now);
        status.desired = match (want, former.desired) {
            (Some(want), _) => Some(i64::from(want.value())),
            // A restart, of which nothing is known yet, hides no count.
            (None, Some(desired)) if desired >= 0 => Some(desired),
            (None, _) => Some(-1),
        };
        status.actual = Some(ready);
        let active = former.condition(ConditionKind::Active).words;
        let active = ActiveState { want, ready, need }.words(&active);
        let is_initialized = former.is_initialized() || (ready >= need && !status.service_name.is_empty());
        let initialized =
            if is_initialized { ConditionWords::yes() } else { ConditionWords::unknown("", "") };
        let words = [
            (ConditionKind::Active, active),
            (ConditionKind::ServerlessServiceReady, ready_words(self.service)),
            (ConditionKind::ScaleTargetInitialized, initialized),
        ];
        put_with_ready(&mut status, words, now);
        status
    }

    /// The ready pods that the revision needs, as long as its status is the former one.
    fn need(&self, former: &AutoscalerStatus) -> PodCount {
        let need = PodNeed {
            min: self.min,
            initial: self.initial,
            is_reachable: self.is_reachable,
            is_initialized: former.is_initialized(),
        };
        need.pods()
    }

    /// While a first start still has time, nothing wants zero: Ready would be False for a moment, and the
    /// controller would fail the revision for good.
    fn want_of_start(
        &self,
        want: Option<PodCount>,
        former: &AutoscalerStatus,
        now: WallTime,
    ) -> Option<PodCount> {
        let starts = !former.is_initialized() && self.need(former) > PodCount::ZERO;
        let is_kept = starts && self.has_time_to_start(former, now);
        want.filter(|want| !(is_kept && *want == PodCount::ZERO))
    }

    /// Whether a revision is starting, and not for longer than it may; afterwards zero makes Active
    /// `TimedOut`.
    fn has_time_to_start(&self, former: &AutoscalerStatus, now: WallTime) -> bool {
        let active = former.condition(ConditionKind::Active);
        active.words.status == ConditionStatus::Unknown
            && active.since.is_none_or(|since| Moment::between(since, now) <= self.start_limit())
    }

    /// When a start of which zero is wanted has no time left, so that its status changes without any event;
    /// `None` where time alone changes nothing.
    pub(crate) fn start_times_out_at(&self, former: &AutoscalerStatus, now: WallTime) -> Option<WallTime> {
        let is_kept = self.want.is_some() && self.want_of_start(self.want, former, now).is_none();
        let since = former.condition(ConditionKind::Active).since.filter(|_| is_kept)?;
        since.checked_add(self.start_limit().saturating_add(JUST_AFTER)).ok()
    }

    /// How long a start may take.
    fn start_limit(&self) -> Duration {
        self.progress_deadline.saturating_add(ACTIVATION_TIMEOUT_BUFFER)
    }
}

/// The status after a handling that found a `ServerlessService` of another controller under the revision's
/// name.
#[must_use]
pub(crate) fn not_owned(
    former: &AutoscalerStatus,
    generation: i64,
    name: &str,
    now: WallTime,
) -> AutoscalerStatus {
    let mut status = AutoscalerStatus { observed_generation: generation, ..former.clone() };
    let message = format!("There is an existing ServerlessService \"{name}\" that we do not own.");
    put_with_ready(&mut status, [(ConditionKind::Active, ConditionWords::no("NotOwned", message))], now);
    status
}

/// Puts these conditions in, and Ready as it follows from all of them.
fn put_with_ready(
    status: &mut AutoscalerStatus,
    words: impl IntoIterator<Item = (ConditionKind, ConditionWords)>,
    now: WallTime,
) {
    put(status, words, now);
    let ready = readiness(status);
    put(status, [(ConditionKind::Ready, ready)], now);
}

/// Puts these conditions in: all that change in one handling share one time.
fn put(
    status: &mut AutoscalerStatus,
    words: impl IntoIterator<Item = (ConditionKind, ConditionWords)>,
    now: WallTime,
) {
    for (kind, words) in words {
        let present = status.condition(kind).with_words(words, now);
        status.conditions.insert(kind, present);
    }
}

/// The words of Ready: those of the condition that keeps the revision from being ready and has changed last.
fn readiness(status: &AutoscalerStatus) -> ConditionWords {
    let conditions = ConditionKind::DEPENDENT.map(|kind| status.condition(kind));
    for bad in [ConditionStatus::False, ConditionStatus::Unknown] {
        let bad = conditions.iter().rev().filter(|condition| condition.words.status == bad);
        // Of those that have changed at once the first one counts, as `max_by_key` takes the last.
        let latest: Option<&Condition> = bad.max_by_key(|condition| condition.since);
        if let Some(latest) = latest {
            return latest.words.clone();
        }
    }
    ConditionWords::yes()
}

#[cfg(test)]
mod tests;
