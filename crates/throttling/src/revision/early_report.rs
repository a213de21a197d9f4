//! When does an owner hear of a count before the second is over?

use std::time::Duration;

use vocabulary::Timestamp;

/// The least time between two early reports of one revision.
const INTERVAL: Duration = Duration::from_millis(10);

/// A count that has stayed below the reported one for so long is reported: the owner's count is one that was
/// true within this time. Requests that end and are followed by others make no report.
const FALL_LASTS: Duration = Duration::from_millis(100);

/// The count that the owner knows, and the time of the next report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlyReport {
    /// The count that was reported last in this second.
    reported: u32,
    reported_at: Timestamp,
    due: Option<Timestamp>,
    /// The time of the report of less, unless the count is the reported one again until then.
    fall_due: Option<Timestamp>,
    /// Whether the thread of the links was told that a report is due, and has not made the report yet.
    is_under_way: bool,
}

impl EarlyReport {
    /// More is held than was reported, or less in a moment in which that matters at once. However many
    /// requests come until the report is made, one word says all.
    pub(super) fn plan(&mut self, now: Timestamp) {
        if !self.is_under_way {
            let at = now.max(self.reported_at + INTERVAL);
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }

    /// Less is held than was reported.
    pub(super) fn plan_fall(&mut self, now: Timestamp) {
        if !self.is_under_way {
            self.fall_due = self.fall_due.or(Some(now + FALL_LASTS));
        }
    }

    /// As much is held as was reported.
    pub(super) fn forget_fall(&mut self) {
        self.fall_due = None;
    }

    /// Whether the planned report is due. It is under way then, and not due again until it was made.
    pub(super) fn take_due(&mut self, now: Timestamp) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            (self.due, self.fall_due) = (None, None);
            self.is_under_way = true;
        }
        is_due
    }

    /// The count that the owner has heard last.
    pub(super) fn reported(&self) -> u32 {
        self.reported
    }

    /// The time of the planned report.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.due.into_iter().chain(self.fall_due).min()
    }

    /// The report is made now, of this count.
    pub(super) fn made(&mut self, count: u32, now: Timestamp) {
        *self = Self { reported: count, reported_at: now, ..Self::default() };
    }

    /// A second was closed with this count: growth beyond that is reported. A report that is still under way
    /// may have been lost with its link, so the next growth plans another one.
    pub(super) fn closed_with(&mut self, count: u32) {
        // The owner does not know this count. A fall that is not reported yet is news to the owner even if
        // no further one follows.
        self.due = self.due();
        self.fall_due = None;
        self.reported = count;
        self.is_under_way = false;
    }
}
