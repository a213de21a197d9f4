//! In shadow everything is measured and decided, and nothing is written: how often would the count have been
//! another?
//!
//! Each regular decision (a tick, a sync) is compared with the count that there is. Whether a person or
//! another autoscaler gives that count makes no difference.

use serde::Serialize;
use vocabulary::{PodCount, Timestamp};

use crate::decision::Sentence;

/// How decisions compare with the count that there was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShadowStatus {
    /// Since when they are compared.
    #[serde(skip)]
    pub since: Timestamp,
    /// The number of decisions that were compared.
    pub compared: u64,
    /// How many of them would have been another count.
    pub differed: u64,
    /// Since when they differ without a break; `None` while they agree.
    #[serde(skip)]
    pub differs_since: Option<Timestamp>,
    /// The last decision that differed; `None` before the first.
    pub last: Option<ShadowDifference>,
}

/// One decision that would have been another count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShadowDifference {
    /// The instant of the comparison.
    #[serde(skip)]
    pub at: Timestamp,
    /// The count that was decided here.
    pub ours: PodCount,
    /// The count that the platform had.
    pub theirs: PodCount,
    /// Why ours is what it is.
    pub why: Option<Sentence>,
}

impl ShadowStatus {
    pub(super) fn since(now: Timestamp) -> Self {
        Self { since: now, compared: 0, differed: 0, differs_since: None, last: None }
    }

    pub(super) fn compare(&mut self, difference: ShadowDifference) {
        self.compared += 1;
        if difference.ours == difference.theirs {
            self.differs_since = None;
            return;
        }
        self.differed += 1;
        self.differs_since.get_or_insert(difference.at);
        self.last = Some(difference);
    }
}
