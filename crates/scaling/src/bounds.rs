//! How far one evaluation may go, and between which counts the answer must lie.

use serde::{Deserialize, Serialize};
use settings::{FloorCause, ScalingSpec};
use vocabulary::PodCount;

use crate::decision::{BoundText, Stage};
use crate::reasons::Reasons;

/// How far one evaluation may move from the ready pods, as real numbers: they are rounded once, at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateLimits {
    /// The most that one evaluation may ask for: the ready pods times `max-scale-up-rate`, rounded up.
    pub(crate) up: f64,
    /// The least that one evaluation may ask for: the ready pods divided by `max-scale-down-rate`, rounded
    /// down; zero when no traffic can arrive.
    pub(crate) down: f64,
}

impl RateLimits {
    /// The limits around the ready pods; none ready counts as one.
    pub(crate) fn around(spec: &ScalingSpec, ready: PodCount) -> Self {
        let ready = ready.as_f64().max(1.0);
        Self {
            up: (spec.max_scale_up_rate * ready).ceil(),
            down: if spec.reachable { (ready / spec.max_scale_down_rate).floor() } else { 0.0 },
        }
    }

    /// A need brought between the limits.
    pub(crate) fn apply(self, need: f64) -> PodCount {
        PodCount::truncated_from(need.max(self.down).min(self.up))
    }
}

/// Whether the revision was ever ready with as many pods as its initial scale asks for. Until then the
/// initial scale is a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Initialization {
    /// The initial scale was never reached: it is a lower bound.
    Pending,
    /// The initial scale was reached once, and binds no longer.
    Done,
}

/// The least and the most pods a revision may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaBounds {
    /// From the settings; zero when no traffic can arrive.
    min: PodCount,
    /// `min`, or the initial scale while that holds.
    least: PodCount,
    /// Why `min` is the platform's; `None` where the settings ask for as much.
    floor_cause: Option<FloorCause>,
    /// The setting `max-scale`; `None` means no limit.
    max: Option<PodCount>,
}

/// The sentence of the lower bound that holds all the time, and whose bound that is.
fn bound_of(least: PodCount, floor_cause: Option<FloorCause>) -> (Stage, BoundText) {
    match floor_cause {
        Some(cause) => (Stage::PlatformFloor, BoundText::Floor { least, cause }),
        None => (Stage::MinScale, BoundText::MinScale { least }),
    }
}

impl ReplicaBounds {
    /// The bounds that hold now.
    pub(crate) fn of(spec: &ScalingSpec, initialization: Initialization) -> Self {
        let min = if spec.reachable { spec.min_scale } else { PodCount::ZERO };
        let starting =
            initialization == Initialization::Pending && spec.reachable && spec.initial_scale > PodCount::ONE;
        let least = if starting { min.max(spec.initial_scale) } else { min };
        let floor_cause = spec.floor.map(|floor| floor.cause);
        Self { min, least, floor_cause, max: spec.max_scale }
    }

    /// Raises the number to the lower bound, else lowers it to the upper one: for a small need the lower
    /// bound wins over an upper one below it, as in Knative. A number that is not known counts as less than
    /// any bound above zero.
    pub(crate) fn apply(self, reasons: &mut Reasons) {
        let number = reasons.number();
        if number.unwrap_or_default() < self.least {
            if self.least > self.min {
                let text = BoundText::InitialScale { least: self.least };
                reasons.step(Stage::InitialScale, Some(self.least), text);
            } else {
                let (stage, text) = bound_of(self.least, self.floor_cause);
                reasons.step(stage, Some(self.least), text);
            }
        } else if let Some(max) = self.max
            && number.is_some_and(|number| number > max)
        {
            reasons.step(Stage::MaxScale, Some(max), BoundText::MaxScale { most: max });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_bound_wins_over_an_upper_one_below_it() {
        for (min, max, initial, initialization, number, expected) in [
            (5, Some(3), 1, Initialization::Done, Some(2), Some(5)),
            (5, Some(3), 1, Initialization::Done, Some(5), Some(3)),
            (5, Some(3), 1, Initialization::Done, Some(10), Some(3)),
            (0, Some(3), 10, Initialization::Pending, Some(1), Some(10)),
            (0, Some(3), 10, Initialization::Pending, Some(20), Some(3)),
            (0, Some(3), 10, Initialization::Done, Some(1), Some(1)),
            (0, None, 1, Initialization::Pending, Some(0), Some(0)),
            (4, None, 3, Initialization::Pending, None, Some(4)),
            (0, None, 3, Initialization::Pending, None, Some(3)),
            (0, Some(8), 1, Initialization::Done, None, None),
        ] {
            let spec = ScalingSpec {
                min_scale: PodCount::new(min),
                max_scale: max.map(PodCount::new),
                initial_scale: PodCount::new(initial),
                ..ScalingSpec::default()
            };
            let mut reasons = Reasons::continuing(number.map(PodCount::new));
            ReplicaBounds::of(&spec, initialization).apply(&mut reasons);
            assert_eq!(reasons.number(), expected.map(PodCount::new), "{spec:?} {number:?}");
        }
    }

    #[test]
    fn a_floor_of_the_platform_is_not_called_a_setting() {
        let reason = |spec: &ScalingSpec| {
            let mut reasons = Reasons::continuing(Some(PodCount::ZERO));
            ReplicaBounds::of(spec, Initialization::Done).apply(&mut reasons);
            reasons.into_list().last().map(|last| (last.stage, last.text.to_string()))
        };
        let spec = |min| ScalingSpec { min_scale: PodCount::new(min), ..ScalingSpec::default() };
        let floored = |min, cause| spec(min).with_floor(PodCount::ONE, cause);
        let said = reason(&floored(0, FloorCause::GivenBack)).expect("one pod stays");
        assert_eq!(said.0, Stage::PlatformFloor);
        assert!(said.1.starts_with("never below 1: a Service was given back"), "{}", said.1);
        let bypass = reason(&floored(0, FloorCause::Bypass)).expect("one pod stays");
        assert!(bypass.1.contains("past ebb") && !bypass.1.contains("min-scale"), "{}", bypass.1);
        let of_settings = (Stage::MinScale, "never below 2 (min-scale)".to_owned());
        assert_eq!(reason(&floored(2, FloorCause::GivenBack)), Some(of_settings));
        assert_eq!(floored(0, FloorCause::Bypass).min_by_settings(), PodCount::ZERO);
        assert_eq!(floored(2, FloorCause::Bypass).min_by_settings(), PodCount::new(2));
    }

    #[test]
    fn no_lower_bound_holds_where_no_traffic_arrives() {
        let spec = ScalingSpec {
            min_scale: PodCount::new(4),
            initial_scale: PodCount::new(6),
            reachable: false,
            ..ScalingSpec::default()
        };
        let mut reasons = Reasons::continuing(Some(PodCount::ZERO));
        ReplicaBounds::of(&spec, Initialization::Pending).apply(&mut reasons);
        assert_eq!(reasons.number(), Some(PodCount::ZERO));
    }
}
