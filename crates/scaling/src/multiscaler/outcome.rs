//! The outcome of a decision, by which it counts as new, and the cause of a count above zero.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use settings::ScalingSpec;
use vocabulary::{PodCount, Routing, Timestamp};

use crate::decider::Verdict;
use crate::decision::{Mode, Sentence, StandingText};
use crate::scale_to_zero::{KeptBy, Plan, RevisionActivity};

/// A word of [`RevisionActivity::NAMES`]. It has a name because serde would borrow a plain `&str`.
type ActivityWord = &'static str;

/// The outcome of a decision. Two decisions with the same outcome differ in numbers only, and the second is
/// not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DecisionOutcome {
    pub(super) has_data: bool,
    pub(super) desired: Option<PodCount>,
    pub(super) wanted: PodCount,
    pub(super) panicking: bool,
    pub(super) routing: Option<Routing>,
    pub(super) activators: Option<PodCount>,
    #[serde(deserialize_with = "activity_word")]
    pub(super) activity: ActivityWord,
    pub(super) why: NonzeroCause,
}

/// Why the count is not zero, without the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Reads the word of an activity in an exact keyframe.
fn activity_word<'de, Source: Deserializer<'de>>(from: Source) -> Result<ActivityWord, Source::Error> {
    let word = String::deserialize(from)?;
    let known = RevisionActivity::NAMES.into_iter().find(|name| *name == word);
    known.ok_or_else(|| Source::Error::custom(format_args!("{word:?} is no activity")))
}

/// Why the count is not zero: the rule, and one sentence with its numbers. `load` says why the load needs
/// pods, `None` before the first answer of the class.
pub(super) fn why_not_zero(
    wanted: PodCount,
    plan: &Plan,
    load: impl FnOnce() -> Option<(NonzeroCause, Sentence)>,
) -> (NonzeroCause, Option<Sentence>) {
    if wanted == PodCount::ZERO {
        return (NonzeroCause::Zero, None);
    }
    let (why, sentence) = match &plan.kept {
        Some(kept) => (NonzeroCause::Kept(kept.rule), kept.text),
        None => load().unwrap_or((NonzeroCause::Undecided, StandingText::NothingKnown.into())),
    };
    (why, Some(sentence))
}

/// Why the load, or what is left of it, needs pods.
pub(super) fn load_sentence(
    spec: &ScalingSpec,
    verdict: &Verdict,
    now: Timestamp,
) -> (NonzeroCause, Sentence) {
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
