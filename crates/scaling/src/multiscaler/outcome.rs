//! The outcome of a decision, by which it counts as new, and the cause of a count above zero.

use settings::ScalingSpec;
use vocabulary::{PodCount, Routing, Timestamp};

use super::algorithm::Algorithm;
use crate::decider::Verdict;
use crate::decision::{Mode, Sentence, StandingText};
use crate::scale_to_zero::{KeptBy, Plan};

/// The outcome of a decision. Two decisions with the same outcome differ in numbers only, and the second is
/// not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecisionOutcome {
    pub(super) has_data: bool,
    pub(super) desired: Option<PodCount>,
    pub(super) wanted: PodCount,
    pub(super) panicking: bool,
    pub(super) routing: Option<Routing>,
    pub(super) activators: Option<PodCount>,
    pub(super) activity: &'static str,
    pub(super) why: NonzeroCause,
}

/// Why the count is not zero, without the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NonzeroCause {
    /// The count is zero: there is nothing to explain.
    Zero,
    /// The load, or a metric of a document, needs pods.
    Load,
    /// Panic mode holds the count.
    Panic,
    /// Nothing in the windows, but the rate limit or the scale-down delay holds.
    Held,
    /// A rule around zero keeps the last pod.
    Kept(KeptBy),
    /// There was no valid decision yet.
    Undecided,
}

/// Why the count is not zero: the rule, and one sentence with its numbers.
pub(super) fn why_not_zero(
    spec: &ScalingSpec,
    wanted: PodCount,
    plan: &Plan,
    algorithm: &Algorithm,
    now: Timestamp,
) -> (NonzeroCause, Option<Sentence>) {
    if wanted == PodCount::ZERO {
        return (NonzeroCause::Zero, None);
    }
    let (why, sentence) = match (&plan.kept, algorithm) {
        (Some(kept), _) => (NonzeroCause::Kept(kept.rule), kept.text),
        (None, Algorithm::Kpa(kpa)) => match kpa.verdict() {
            None => (NonzeroCause::Undecided, StandingText::NothingKnown.into()),
            Some(verdict) => load_sentence(spec, verdict, now),
        },
        (None, Algorithm::Hpa(hpa)) => match hpa.reasons().last() {
            None => (NonzeroCause::Undecided, StandingText::NothingKnown.into()),
            Some(last) => (NonzeroCause::Load, last.text),
        },
    };
    (why, Some(sentence))
}

/// Why the load, or what is left of it, needs pods.
fn load_sentence(spec: &ScalingSpec, verdict: &Verdict, now: Timestamp) -> (NonzeroCause, Sentence) {
    if let Mode::Panic { since } = verdict.mode {
        let (count, age) = (verdict.desired, now.saturating_since(since));
        return (NonzeroCause::Panic, StandingText::Panic { count, age, window: spec.stable_window }.into());
    }
    let (value, target) = (verdict.inputs.stable_value, verdict.inputs.target_per_pod);
    if value > 0.0 {
        return (NonzeroCause::Load, StandingText::Load { value, target }.into());
    }
    (
        NonzeroCause::Held,
        verdict.reasons.last().map_or_else(|| StandingText::EarlierPeak.into(), |last| last.text),
    )
}
