//! The history of an autoscaler: its recommendations, and its changes of the count.
//!
//! Recommendations are what the metrics said, before any window or limit; the stabilization windows look back
//! on them. Events are changes that were carried out; the scaling policies look back on those. All
//! comparisons are of ages: a point "before the axis began" does not exist.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::hpa::Behavior;
use vocabulary::{PodCount, Timestamp};

/// The recommendations that are kept at most: one in each of the longest window's 3,600 seconds, and as many
/// again for changes between two evaluations. The oldest goes first.
pub(super) const RECOMMENDATIONS_MAX: usize = 7200;

/// The events that are kept at most in each direction: one in each of the longest period's 1,800 seconds and
/// as many again. Beyond it, the two oldest become one at the time of the later, so that the policies of that
/// direction rather allow less than more.
pub(super) const EVENTS_MAX: usize = 3600;

/// A count that the metrics asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendation {
    /// How many pods were recommended.
    pub count: PodCount,
    /// The instant of the sync.
    pub at: Timestamp,
}

/// A change of the replica count, ordered or carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountChange {
    /// The count before the change.
    pub from: PodCount,
    /// The count after the change.
    pub to: PodCount,
}

/// A change that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleEvent {
    /// By how many pods; never zero.
    pub change: u32,
    /// The instant at which the change was carried out.
    pub at: Timestamp,
}

/// Everything that is remembered between evaluations for windows and policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HpaHistory {
    pub(super) recommendations: Vec<Recommendation>,
    pub(super) events: ScaleEvents,
    /// Whether the first recommendation, the count that was found, was made.
    pub(super) is_seeded: bool,
}

/// Changes in both directions, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleEvents {
    pub(super) ups: Vec<ScaleEvent>,
    pub(super) downs: Vec<ScaleEvent>,
}

impl HpaHistory {
    /// The recommendations, in no particular order.
    pub fn recommendations(&self) -> &[Recommendation] {
        &self.recommendations
    }

    /// The changes towards more pods, and those towards fewer; oldest first.
    pub fn events(&self) -> (&[ScaleEvent], &[ScaleEvent]) {
        (&self.events.ups, &self.events.downs)
    }

    /// The first time, the count that was found counts as recommended: taking over never takes anything away
    /// at once.
    pub(super) fn seed(&mut self, count: PodCount, now: Timestamp) {
        if !self.is_seeded {
            self.is_seeded = true;
            self.recommendations.push(Recommendation { count, at: now });
        }
    }

    /// Forgets a change that was noted at this time.
    pub(super) fn remove_event(&mut self, change: CountChange, at: Timestamp) {
        let CountChange { from, to } = change;
        let (list, size) = if to > from {
            (&mut self.events.ups, to.value() - from.value())
        } else {
            (&mut self.events.downs, from.value() - to.value())
        };
        // Only the last order can still fail, so its event is the newest of its direction, if it is there.
        list.pop_if(|event| *event == ScaleEvent { change: size, at });
    }

    /// Forgets the latest of equal recommendations.
    pub(super) fn remove_recommendation(&mut self, recommendation: Recommendation) {
        if let Some(place) = self.recommendations.iter().rposition(|one| *one == recommendation) {
            self.recommendations.remove(place);
        }
    }

    /// Keeps a recommendation, in the `place` of one that no longer counts if there is one.
    pub(super) fn record(&mut self, recommendation: Recommendation, place: Option<usize>) {
        if let Some(index) = place {
            self.recommendations[index] = recommendation;
            return;
        }
        if self.recommendations.len() >= RECOMMENDATIONS_MAX {
            let oldest = self.recommendations.iter().enumerate().min_by_key(|(_, one)| one.at);
            let index = oldest.map_or(0, |(index, _)| index);
            self.recommendations.swap_remove(index);
        }
        self.recommendations.push(recommendation);
    }
}

impl ScaleEvents {
    /// Remembers a change that was carried out, and forgets those that no policy of either direction looks
    /// back on.
    pub(super) fn store(&mut self, from: PodCount, to: PodCount, behavior: &Behavior, now: Timestamp) {
        let longest = behavior.scale_up.longest_period().max(behavior.scale_down.longest_period());
        self.ups.retain(|event| now.saturating_since(event.at) < longest);
        self.downs.retain(|event| now.saturating_since(event.at) < longest);
        let (list, change) = if to > from {
            (&mut self.ups, to.value() - from.value())
        } else {
            (&mut self.downs, from.value() - to.value())
        };
        if change == 0 {
            return;
        }
        if list.len() >= EVENTS_MAX {
            let oldest = list.remove(0);
            list[0].change = list[0].change.saturating_add(oldest.change);
        }
        list.push(ScaleEvent { change, at: now });
    }

    /// The count at the start of a period, had everything else stood still: without the pods that were added
    /// since, and with those that were taken away. A change as old as the period no longer counts.
    pub(super) fn count_before(&self, count: PodCount, period: Duration, now: Timestamp) -> i32 {
        let sum = |events: &[ScaleEvent]| -> i64 {
            let recent = events.iter().rev().take_while(|event| now.saturating_since(event.at) < period);
            recent.map(|event| i64::from(event.change)).sum()
        };
        let before = i64::from(count.value()) - sum(&self.ups) + sum(&self.downs);
        let bounded = before.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        i32::try_from(bounded).expect("it was clamped to this range")
    }
}
