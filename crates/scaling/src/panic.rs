//! Panic mode: when the short window says that far more pods are needed than are ready, the count rises at once and does not fall
//! until a whole stable window has passed without another such moment.

use std::time::Duration;

use vocabulary::{PodCount, Timestamp};

use crate::decision::Mode;

/// Whether the revision panics, and the largest count since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PanicState {
    mode: Mode,
    /// The count that is held. Outside panic it has no effect.
    most: PodCount,
}

impl PanicState {
    /// A fresh decider with more than one pod starts in panic, so that a restart cannot shrink a running revision for one stable window.
    pub(crate) fn starting(count: PodCount, now: Timestamp) -> Self {
        let mode = if count > PodCount::ONE { Mode::Panic { since: now } } else { Mode::Stable };
        Self { mode, most: count }
    }

    pub(crate) fn mode(self) -> Mode {
        self.mode
    }

    pub(crate) fn is_panicking(self) -> bool {
        matches!(self.mode, Mode::Panic { .. })
    }

    /// Enters or extends panic.
    pub(crate) fn alarm(&mut self, now: Timestamp) {
        self.mode = Mode::Panic { since: now };
    }

    /// Leaves panic if more than a stable window (strictly) has passed since it was entered or last extended.
    pub(crate) fn calm(&mut self, stable_window: Duration, now: Timestamp) {
        if let Mode::Panic { since } = self.mode
            && since + stable_window < now
        {
            *self = Self { mode: Mode::Stable, most: PodCount::ZERO };
        }
    }

    /// While panicking the count only grows: the larger of `count` and what was held, which is held from now on.
    pub(crate) fn hold(&mut self, count: PodCount) -> PodCount {
        self.most = self.most.max(count);
        self.most
    }
}
