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

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn a_start_with_one_pod_or_none_is_no_panic() {
        let panics = |count| PanicState::starting(PodCount::new(count), at(100)).is_panicking();
        assert_eq!([0, 1, 2].map(panics), [false, false, true]);
    }

    #[test]
    fn panic_is_left_once_more_than_a_stable_window_has_passed_and_holds_nothing_then() {
        let mut panic = PanicState::starting(PodCount::new(3), at(100));
        panic.calm(WINDOW, at(160));
        assert!(panic.is_panicking(), "a whole window has passed, and no more");
        panic.calm(WINDOW, at(160) + Duration::from_nanos(1));
        assert_eq!((panic.mode(), panic.hold(PodCount::ZERO)), (Mode::Stable, PodCount::ZERO));
    }

    #[test]
    fn pods_that_were_found_count_until_an_alarm_and_are_held_after_it() {
        let mut panic = PanicState::starting(PodCount::new(3), at(100));
        assert!(panic.only_holds());
        for (ready, providing) in [(1, 3), (5, 5)] {
            assert_eq!(panic.providing(PodCount::new(ready)), PodCount::new(providing));
        }
        panic.alarm(at(130));
        assert!(panic.is_panicking() && !panic.only_holds());
        assert_eq!(panic.providing(PodCount::ONE), PodCount::ONE);
        assert_eq!(panic.hold(PodCount::new(2)), PodCount::new(3));
        panic.calm(WINDOW, at(190));
        assert!(panic.is_panicking(), "the window counts from the alarm on");
    }
}
