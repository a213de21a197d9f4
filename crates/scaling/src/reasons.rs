//! Collects why a number changed, each change linked to the one before.

use vocabulary::PodCount;

use crate::decision::{Reason, Stage};

/// A number on its way through the stages of an evaluation. A stage that leaves it as it is leaves no trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reasons {
    list: Vec<Reason>,
    number: Option<PodCount>,
}

impl Reasons {
    /// Goes on from a number that other reasons led to.
    pub(crate) fn continuing(number: Option<PodCount>) -> Self {
        Self { list: Vec::new(), number }
    }

    /// The number as it is now; `None` for "not known" or "leave it alone".
    pub(crate) fn number(&self) -> Option<PodCount> {
        self.number
    }

    /// A stage says `after`. The text is made only if that is a change.
    pub(crate) fn step(&mut self, stage: Stage, after: Option<PodCount>, text: impl FnOnce() -> String) {
        if after == self.number {
            return;
        }
        self.list.push(Reason { stage, before: self.number, after, text: text() });
        self.number = after;
    }

    /// The reasons in order.
    pub(crate) fn into_list(self) -> Vec<Reason> {
        self.list
    }
}
