//! The stabilization windows: the present recommendation among those of the past.

use std::time::Duration;

use settings::hpa::{Behavior, HpaSettings, HpaSpec};
use vocabulary::{PodCount, Timestamp};

use super::history::{HpaHistory, Recommendation};
use super::sentence::{HpaSentence, LimitText};
use super::steps::Steps;
use crate::decision::Stage;

/// Without `behavior`: the largest recommendation of the window towards fewer pods. One exactly as old as the
/// window still counts, but where the window is zero, nothing is looked back on.
pub(super) fn without_behavior(
    history: &mut HpaHistory,
    raw: PodCount,
    settings: &HpaSettings,
    now: Timestamp,
    steps: &mut Steps,
) -> PodCount {
    let window = settings.downscale_stabilization;
    let mut most = raw;
    let mut place = None;
    for (index, former) in history.recommendations().iter().enumerate() {
        let age = now.saturating_since(former.at);
        if age > window {
            place = Some(index);
        } else if !window.is_zero() {
            most = most.max(former.count);
        }
    }
    history.record(Recommendation { count: raw, at: now }, place);
    if most > raw {
        let text = LimitText::Peak { count: most, window };
        steps.lead_to(most, Stage::StabilizationWindow, HpaSentence::Limited(text));
    }
    most
}

/// The place of a recommendation that no window of the document looks back on.
pub(super) fn expired(history: &HpaHistory, spec: &HpaSpec, now: Timestamp) -> Option<usize> {
    let windows = match &spec.behavior {
        None => Windows { up: Duration::ZERO, down: spec.settings.downscale_stabilization },
        Some(behavior) => Windows::of(behavior, &spec.settings),
    };
    windows.expired(history, now)
}

/// The windows of both directions.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    up: Duration,
    down: Duration,
}

impl Windows {
    pub(super) fn of(behavior: &Behavior, settings: &HpaSettings) -> Self {
        Self {
            up: behavior.scale_up.stabilization_window.unwrap_or_default(),
            down: behavior.scale_down.stabilization_window.unwrap_or(settings.downscale_stabilization),
        }
    }

    /// Between what the recommendations of the windows allow. One exactly as old as a window no longer
    /// counts.
    pub(super) fn envelope(self, history: &HpaHistory, raw: PodCount, now: Timestamp) -> Envelope {
        let mut envelope = Envelope { lowest: raw, highest: raw };
        for former in history.recommendations() {
            let age = now.saturating_since(former.at);
            if age < self.up {
                envelope.lowest = envelope.lowest.min(former.count);
            }
            if age < self.down {
                envelope.highest = envelope.highest.max(former.count);
            }
        }
        envelope
    }

    /// Keeps a recommendation, in the place of one that neither window looks back on.
    pub(super) fn record(self, history: &mut HpaHistory, raw: PodCount, now: Timestamp) {
        let place = self.expired(history, now);
        history.record(Recommendation { count: raw, at: now }, place);
    }

    /// The place of the last recommendation that neither window looks back on.
    fn expired(self, history: &HpaHistory, now: Timestamp) -> Option<usize> {
        let longest = self.up.max(self.down);
        history.recommendations().iter().rposition(|former| now.saturating_since(former.at) > longest)
    }
}

/// The range in which the count agrees with every recommendation of the windows.
#[derive(Clone, Copy)]
pub(super) struct Envelope {
    lowest: PodCount,
    highest: PodCount,
}

impl Envelope {
    /// The count moves only as far as the envelope forces it, so a falling recommendation never raises it,
    /// nor a rising one lowers it.
    pub(super) fn force(self, current: PodCount, steps: &mut Steps) -> PodCount {
        let count = current.clamp(self.lowest, self.highest);
        let text = LimitText::Envelope { lowest: self.lowest, highest: self.highest };
        steps.lead_to(count, Stage::StabilizationWindow, HpaSentence::Limited(text));
        count
    }
}
