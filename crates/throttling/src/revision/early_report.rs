//! When does an owner hear of a count before the second is over?

use std::time::Duration;

use vocabulary::Timestamp;

/// The least time between two early reports of one revision.
const INTERVAL: Duration = Duration::from_millis(10);

/// The count that the owner knows, and the time of the next report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlyReport {
    /// The count that was reported last in this second.
    reported: u32,
    reported_at: Timestamp,
    due: Option<Timestamp>,
    /// Whether the thread of the links was told that a report is due, and has not made the report yet.
    is_under_way: bool,
}

impl EarlyReport {
    /// More or less is held than was reported. However many requests come until the report is made, one word
    /// says all.
    pub(super) fn plan(&mut self, now: Timestamp) {
        if !self.is_under_way {
            self.due = self.due.or(Some(now.max(self.reported_at + INTERVAL)));
        }
    }

    /// Whether the planned report is due. It is under way then, and not due again until it was made.
    pub(super) fn take_due(&mut self, now: Timestamp) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = None;
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
        self.due
    }

    /// The report is made now, of this count.
    pub(super) fn made(&mut self, count: u32, now: Timestamp) {
        *self = Self { reported: count, reported_at: now, due: None, is_under_way: false };
    }

    /// A second was closed with this count, which its load says too. A report that is still under way may
    /// have been lost with its link, so the next growth plans another one.
    pub(super) fn closed_with(&mut self, count: u32) {
        self.reported = count;
        self.is_under_way = false;
    }
}
