//! What people would call news about a revision, and why its count is not zero.

use std::time::Duration;

use vocabulary::{PodCount, Routing, Timestamp, format_duration};

use crate::config::ScalingSpec;
use crate::decider::Verdict;
use crate::decision::Mode;
use crate::scale_to_zero::{KeptBy, Plan};

/// What people would call news: two decisions with the same outcome differ in numbers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) has_data: bool,
    pub(super) desired: Option<PodCount>,
    pub(super) wanted: PodCount,
    pub(super) panicking: bool,
    pub(super) routing: Option<Routing>,
    pub(super) activators: Option<PodCount>,
    pub(super) activity: &'static str,
    pub(super) why: Why,
}

/// Why the count is not zero, without the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is.
    Zero,
    /// The load needs pods.
    Load,
    /// Panic mode holds the count.
    Panic,
    /// Nothing in the windows, but the rate limit or the scale-down delay holds.
    Held,
    /// A rule around zero.
    Kept(KeptBy),
    /// Never decided.
    Undecided,
}

/// Why the count is not zero: the rule, and one sentence with its numbers.
pub(super) fn why_not_zero(
    spec: &ScalingSpec,
    wanted: PodCount,
    plan: &Plan,
    verdict: Option<&Verdict>,
    now: Timestamp,
) -> (Why, Option<String>) {
    if wanted == PodCount::ZERO {
        return (Why::Zero, None);
    }
    let (why, sentence) = match (&plan.kept, verdict) {
        (Some(kept), _) => (Why::Kept(kept.rule), kept.text.clone()),
        (None, None) => {
            (Why::Undecided, "nothing is known of its load yet, so it is left as it is".to_owned())
        }
        (None, Some(verdict)) => load_sentence(spec, verdict, now),
    };
    (why, Some(sentence))
}

/// Why the load, or what is left of it, needs pods.
fn load_sentence(spec: &ScalingSpec, verdict: &Verdict, now: Timestamp) -> (Why, String) {
    let inputs = &verdict.inputs;
    if let Mode::Panic { since } = verdict.mode {
        let age = format_duration(Duration::from_secs(now.saturating_since(since).as_secs()));
        let window = format_duration(spec.stable_window);
        let text = format!(
            "panic mode holds {} pods; begun or extended {age} ago, it lasts {window}",
            verdict.desired
        );
        return (Why::Panic, text);
    }
    if inputs.stable_value > 0.0 {
        let text = format!(
            "the stable window still averages {:.3} with a target of {} per pod",
            inputs.stable_value, inputs.target_per_pod
        );
        return (Why::Load, text);
    }
    let text = verdict
        .reasons
        .last()
        .map_or_else(|| "an earlier peak holds the count".to_owned(), |last| last.text.clone());
    (Why::Held, text)
}
