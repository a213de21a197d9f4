//! When does the last pod end, and when do activators take over its requests?
//!
//! The decider says how many pods the load needs; here its answer meets the bounds and the rules around zero.
//! A revision is *active*, *activating* or *inactive* ([`RevisionActivity`]). Zero is reached in two steps:
//! first the revision becomes inactive, which puts the activators into its path; then, once they are known to
//! answer for it and the grace period and the retention have passed, the last pod is ended. So no request
//! ever meets a revision whose pod is gone and whose activator does not know it yet.
//!
//! Beside these rules, which are Knative's, stands one of ours: while a request is in flight one pod stays,
//! whatever is measured. Metrics other than concurrency do not see a WebSocket or a download that lasts; at
//! zero it would be cut at the end of its pod's drain, and the next client would wait for a start.
//!
//! Everything is a function of the [`Situation`]: nothing here remembers anything. Knative asks to be called
//! again after some time; so does [`Plan::recheck`], which the multiscaler turns into a deadline.

mod activity;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use smallvec::smallvec;
use vocabulary::PodCount;

pub(crate) use activity::{InactiveBecause, RevisionActivity};

use crate::bounds::{Initialization, ReplicaBounds};
use crate::decision::{BoundText, Reason, Sentence, Stage, ZeroText};
use crate::reasons::{ReasonList, Reasons};

/// How long after a revision became inactive to look again when the activators were in its path already
/// (Knative waits this long for its own status to be written; our next look comes sooner, when the activity
/// changes).
const RECHECK_WHEN_PROXIED: Duration = Duration::from_secs(3);

/// How long after a look that found requests in flight to look again. Class kpa does so at its tick; class
/// hpa may have none, and no event says that the last request has ended.
const RECHECK_IN_FLIGHT: Duration = Duration::from_secs(2);

/// The input of the rules. Spans of time are already measured, so that no rule needs the present time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// The settings of the revision, resolved.
    pub(crate) spec: &'a ScalingSpec,
    /// The replica count that the platform was last asked for.
    pub(crate) present: PodCount,
    /// Whether the revision is active, activating or inactive.
    pub(crate) activity: RevisionActivity,
    /// For how long the revision has been so.
    pub(crate) activity_age: Duration,
    /// Whether the revision ever had as many ready pods as its initial scale asks for.
    pub(crate) initialization: Initialization,
    /// What is known of the way through the activators.
    pub(crate) path: Path,
    /// The requests in flight; `None` for none, and where they hold no pod.
    pub(crate) in_flight: Option<RequestsInFlight>,
}

/// Measured requests and upgraded streams in flight, at pods and activators together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestsInFlight {
    /// The number of requests, a whole number above zero.
    pub(crate) requests: f64,
    /// For how long there has been one without a break.
    pub(crate) age: Duration,
}

/// What is known of the way through the activators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Requests are sent to the pods.
    Direct,
    /// Requests are to come through the activators, but not all of these have acknowledged.
    Unacknowledged,
    /// All activators answer for the revision, for this long.
    Acknowledged(Duration),
}

/// The count that the rules lead to, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The count; `None` is Knative's -1: nothing is known, or the revision is still starting.
    pub(crate) want: Option<PodCount>,
    /// Whether the platform should have that count now. Otherwise it is left alone.
    pub(crate) apply: bool,
    /// Look again after this long even if nothing happens.
    pub(crate) recheck: Option<Duration>,
    /// The steps that led here from the decider's answer.
    pub(crate) reasons: ReasonList,
    /// Why a pod stays although the decider asked for none.
    pub(crate) kept: Option<KeptPod>,
}

impl Plan {
    /// The count that the platform is asked for, if any.
    pub(crate) fn applied(&self) -> Option<PodCount> {
        if self.apply { self.want } else { None }
    }
}

/// Why a pod stays although the decider asked for none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KeptPod {
    /// The rule that keeps the pod.
    pub(crate) rule: KeptBy,
    /// The rule in one sentence, with its numbers.
    pub(crate) text: Sentence,
}

/// The rules that keep a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptBy {
    /// The lower bound (`min-scale`) is above zero.
    MinScale,
    /// The platform lets the count not fall below a number.
    PlatformFloor,
    /// The revision was never fully ready.
    InitialScale,
    /// The ConfigMap turns scaling to zero off (`enable-scale-to-zero`).
    Disabled,
    /// A request or a stream is in flight.
    InFlight,
    /// The revision is still starting, within its activation timeout.
    Activating,
    /// The revision has not been active for a whole stable window.
    Window,
    /// The revision is about to become inactive; its pod ends in a later step.
    Deactivating,
    /// Not every activator has acknowledged.
    Acknowledgement,
    /// The retention of the last pod is not over.
    Retention,
    /// The activators have not answered for the whole grace period yet.
    Grace,
    /// Connections from before an adoption are still open.
    AdoptedConnections,
    /// Demand is expected, a pod is kept warm, or the schedule asks for pods.
    Expected,
}

/// How many ready pods make the revision serve: its initial scale until it was ready once, at least one pod
/// afterwards.
pub(crate) fn needed_pods(spec: &ScalingSpec, initialization: Initialization) -> PodCount {
    let min_scale = if spec.reachable { spec.min_scale } else { PodCount::ZERO };
    min_scale.max(match initialization {
        Initialization::Pending => spec.initial_scale,
        Initialization::Done => PodCount::ONE,
    })
}

/// Puts the decider's answer (`None`: it never decided) between the bounds and, if that is zero, through the
/// rules around zero.
pub(crate) fn apply_scale(desired: Option<PodCount>, situation: &Situation<'_>) -> Plan {
    // Never decided, but starting: it goes on as if nothing were needed, so that the bounds hold and the
    // start can time out.
    let Some(count) = desired.or_else(|| situation.activity.is_activating().then_some(PodCount::ZERO)) else {
        return Plan { want: None, apply: false, recheck: None, reasons: ReasonList::new(), kept: None };
    };
    let mut reasons = Reasons::continuing(desired);
    ReplicaBounds::of(situation.spec, situation.initialization).apply(&mut reasons);
    let bounded = reasons.number().unwrap_or_default();
    let plan = if bounded == PodCount::ZERO {
        zero_guard(desired, situation)
    } else {
        let reasons = reasons.into_list();
        let kept = reasons.last().filter(|_| count == PodCount::ZERO).map(kept_by_bound);
        Plan { want: Some(bounded), apply: true, recheck: None, reasons, kept }
    };
    let present = situation.spec.max_scale.map_or(situation.present, |max| max.min(situation.present));
    if desired.is_none() { never_lower(plan, present) } else { plan }
}

/// Without any decision the lower bound may raise what is there but not lower it: a restart knows nothing
/// yet. Nor is more ordered than the upper bound allows, though more was found. (A revision that never got
/// ready in time still goes to zero.)
fn never_lower(mut plan: Plan, present: PodCount) -> Plan {
    if let Some(want) = plan.applied().filter(|&want| want > PodCount::ZERO && want < present) {
        plan.want = Some(present);
        let text = BoundText::Unknown { present }.into();
        plan.reasons.push(Reason { stage: Stage::NoData, before: Some(want), after: Some(present), text });
    }
    plan
}

fn kept_by_bound(raise: &Reason) -> KeptPod {
    let rule = if raise.stage == Stage::InitialScale {
        KeptBy::InitialScale
    } else if raise.stage == Stage::PlatformFloor {
        KeptBy::PlatformFloor
    } else {
        KeptBy::MinScale
    };
    KeptPod { rule, text: raise.text }
}

/// The rules around zero, first match wins. `desired` is what the first reason starts from.
fn zero_guard(desired: Option<PodCount>, situation: &Situation<'_>) -> Plan {
    let step = Step { before: desired };
    if !situation.spec.scale_to_zero {
        return step.keep_one(KeptBy::Disabled, |_| ZeroText::Disabled, None);
    }
    if let Some(RequestsInFlight { requests, age }) = situation.in_flight {
        // The age is shown to people and is no part of a reason, as the time to go in the other rules.
        let text = |recheck: Option<Duration>| ZeroText::InFlight { requests, age: recheck.map(|_| age) };
        return step.keep_one(KeptBy::InFlight, text, Some(RECHECK_IN_FLIGHT));
    }
    match situation.activity {
        RevisionActivity::Activating { .. } => guard_activating(&step, situation),
        RevisionActivity::Active { .. } => guard_active(&step, situation),
        RevisionActivity::Inactive { .. } => guard_inactive(&step, situation),
    }
}

fn guard_activating(step: &Step, situation: &Situation<'_>) -> Plan {
    let timeout = situation.spec.activation_timeout;
    if situation.activity_age > timeout {
        return step.end(Stage::ActivationTimeout, ZeroText::GivenUp { timeout });
    }
    // Knative's -1 and not zero: zero would make the revision inactive while it still starts.
    Plan {
        want: None,
        ..step.leave_alone(KeptBy::Activating, |_| ZeroText::Starting { timeout }, Some(timeout))
    }
}

fn guard_active(step: &Step, situation: &Situation<'_>) -> Plan {
    let window = situation.spec.stable_window;
    if situation.activity_age >= window {
        let recheck = match situation.path {
            Path::Direct => None,
            Path::Unacknowledged | Path::Acknowledged(_) => Some(RECHECK_WHEN_PROXIED),
        };
        // The first of the two steps: this zero makes the revision inactive, and ends no pod yet.
        return step.leave_alone(KeptBy::Deactivating, |_| ZeroText::ActivatorsFirst, recheck);
    }
    let rest = window.saturating_sub(situation.activity_age);
    // One pod, and not all present ones: the load needs none, and to wait with one is enough.
    step.keep_one(KeptBy::Window, |to_go| ZeroText::RecentlyActive { window, to_go }, Some(rest))
}

fn guard_inactive(step: &Step, situation: &Situation<'_>) -> Plan {
    let spec = situation.spec;
    let grace = spec.scale_to_zero_grace_period;
    let retention = if spec.reachable { spec.pod_retention } else { Duration::ZERO };
    let inactive_for = situation.activity_age;
    let Path::Acknowledged(proxied_for) = situation.path else {
        // No time to look again at: the acknowledgement is a fact that comes by itself, and brings the look.
        return step.leave_alone(KeptBy::Acknowledgement, |_| ZeroText::Unacknowledged, None);
    };
    // After so long a rest, activators that answer only now may take over at once.
    if inactive_for >= grace.max(retention) {
        return step.end(Stage::ScaleToZero, ZeroText::NoTraffic { time: inactive_for });
    }
    if inactive_for < retention {
        let rest = retention.saturating_sub(inactive_for);
        return step.leave_alone(
            KeptBy::Retention,
            |to_go| ZeroText::Retained { retention, to_go },
            Some(rest),
        );
    }
    // Knative's short cut: activators that were in the path before the rest began have had their grace
    // period.
    if proxied_for >= grace {
        return step.end(Stage::ScaleToZero, ZeroText::Answered { time: proxied_for });
    }
    let rest = grace.saturating_sub(proxied_for);
    step.leave_alone(KeptBy::Grace, |to_go| ZeroText::Grace { grace, to_go }, Some(rest))
}

/// Builds the plans of the zero guard; all of its reasons start from the same number.
struct Step {
    before: Option<PodCount>,
}

impl Step {
    fn reason(&self, stage: Stage, after: Option<PodCount>, text: ZeroText) -> ReasonList {
        smallvec![Reason { stage, before: self.before, after, text: text.into() }]
    }

    /// A plan that asks for zero pods now.
    fn end(&self, stage: Stage, text: ZeroText) -> Plan {
        let reasons = self.reason(stage, Some(PodCount::ZERO), text);
        Plan { want: Some(PodCount::ZERO), apply: true, recheck: None, reasons, kept: None }
    }

    /// Zero is wanted, but not yet: all present pods stay. `text` takes the time to go.
    fn leave_alone(
        &self,
        rule: KeptBy,
        text: impl Fn(Option<Duration>) -> ZeroText,
        recheck: Option<Duration>,
    ) -> Plan {
        let reasons = self.reason(Stage::ScaleToZero, None, text(None));
        let kept = Some(KeptPod { rule, text: text(recheck).into() });
        Plan { want: Some(PodCount::ZERO), apply: false, recheck, reasons, kept }
    }

    /// One pod, now. `text` takes the time to go.
    fn keep_one(
        &self,
        rule: KeptBy,
        text: impl Fn(Option<Duration>) -> ZeroText,
        recheck: Option<Duration>,
    ) -> Plan {
        let reasons = self.reason(Stage::ScaleToZero, Some(PodCount::ONE), text(None));
        let kept = Some(KeptPod { rule, text: text(recheck).into() });
        Plan { want: Some(PodCount::ONE), apply: true, recheck, reasons, kept }
    }
}

#[cfg(test)]
mod tests;
