//! Collects why a number changed, each change linked to the one before.

use smallvec::SmallVec;
use vocabulary::PodCount;

use crate::decision::{Reason, Sentence, Stage};

/// Reasons in order. Six cover what lasts (a peak that is held through rate limits and panic, say), so that a
/// look which finds nothing new allocates nothing; more are possible at a moment.
pub(crate) type ReasonList = SmallVec<[Reason; 6]>;

/// A number on its way through the stages of an evaluation. A stage that leaves it as it is leaves no trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reasons {
    list: ReasonList,
    number: Option<PodCount>,
}

impl Reasons {
    /// Goes on from a number that other reasons led to.
    pub(crate) fn continuing(number: Option<PodCount>) -> Self {
        Self { list: ReasonList::new(), number }
    }

    /// The number as it is now; `None` for "not known" or "leave it alone".
    pub(crate) fn number(&self) -> Option<PodCount> {
        self.number
    }

    /// A stage says `after`, and why.
    pub(crate) fn step(&mut self, stage: Stage, after: Option<PodCount>, text: impl Into<Sentence>) {
        if after == self.number {
            return;
        }
        self.list.push(Reason { stage, before: self.number, after, text: text.into() });
        self.number = after;
    }

    /// A stage says why the number stays as it is, where a person would expect another one.
    pub(crate) fn note(&mut self, stage: Stage, text: impl Into<Sentence>) {
        self.list.push(Reason { stage, before: self.number, after: self.number, text: text.into() });
    }

    /// The reasons, in the order of their stages.
    pub(crate) fn into_list(self) -> ReasonList {
        self.list
    }
}
