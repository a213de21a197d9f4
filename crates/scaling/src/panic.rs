//! Panic mode: when the short window says that far more pods are needed than are ready, the count rises at
//! once and does not fall until a whole stable window has passed without another such moment.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, Timestamp};

use crate::decision::Mode;

/// Whether the revision panics, and the largest count since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PanicState {
    mode: Mode,
    /// The count that is held. Outside panic it has no effect.
    most: PodCount,
    cause: Cause,
}

/// What began the panic: it decides whether the panic may raise the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Cause {
    /// A decider that has just begun holds the count that it found. Knative's is ordinary panic, in which any
    /// moment above the average adds pods; but nothing has happened, and a restart must not change the count
    /// at a steady load. So this one only holds.
    Found,
    /// Far more pods were needed than were ready.
    Alarm,
}

impl PanicState {
    /// A fresh decider with more than one pod starts in panic, so that a restart cannot shrink a running
    /// revision for one stable window.
    pub(crate) fn starting(count: PodCount, now: Timestamp) -> Self {
        let mode = if count > PodCount::ONE { Mode::Panic { since: now } } else { Mode::Stable };
        Self { mode, most: count, cause: Cause::Found }
    }

    pub(crate) fn mode(self) -> Mode {
        self.mode
    }

    pub(crate) fn is_panicking(self) -> bool {
        matches!(self.mode, Mode::Panic { .. })
    }

    /// Whether the panic only holds the count that was found at the start.
    pub(crate) fn only_holds(self) -> bool {
        self.is_panicking() && self.cause == Cause::Found
    }

    /// The pods that a need is compared with. Pods that were found count until their reports can have
    /// arrived: right after a start no pod is known to be ready.
    pub(crate) fn providing(self, ready: PodCount) -> PodCount {
        if self.only_holds() { ready.max(self.most) } else { ready }
    }

    /// Enters panic mode, or extends it from `now` on.
    pub(crate) fn alarm(&mut self, now: Timestamp) {
        // The held count stays: an alarm must not release the count that was found at the start.
        self.mode = Mode::Panic { since: now };
        self.cause = Cause::Alarm;
    }

    /// Leaves panic if more than a stable window (strictly) has passed since it was entered or last extended.
    pub(crate) fn calm(&mut self, stable_window: Duration, now: Timestamp) {
        if let Mode::Panic { since } = self.mode
            && since + stable_window < now
        {
            *self = Self { mode: Mode::Stable, most: PodCount::ZERO, cause: Cause::Alarm };
        }
    }

    /// While panicking the count only grows: the larger of `count` and what was held, which is held from now
    /// on.
    pub(crate) fn hold(&mut self, count: PodCount) -> PodCount {
        self.most = self.most.max(count);
        self.most
    }
}
