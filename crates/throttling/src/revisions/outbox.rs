//! What one link has not said yet: of each revision the latest alone.
//!
//! Words are not queued. A link that can be written to asks what is true then, so a slow peer gets fewer and
//! newer words.

use std::collections::BTreeMap;

use vocabulary::{RevisionName, Version};

/// Whether something is still to be said once on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaidOnce {
    NotYet,
    Said,
}

/// The words for one link that have not left yet.
#[derive(Clone, Debug)]
pub(super) struct LinkOutbox {
    pub(super) hello: SaidOnce,
    pub(super) draining: SaidOnce,
    /// The first second whose loads were not said.
    pub(super) next_second: u64,
    news: BTreeMap<RevisionName, RevisionWords>,
    /// Whether the link was told that there are words.
    is_called: bool,
}

/// The words about one revision.
#[derive(Clone, Debug, Default)]
pub(super) struct RevisionWords {
    /// The count has changed; it is taken when it is said.
    pub(super) is_present_due: bool,
    /// The newest version that is acted upon.
    pub(super) acknowledged: Option<Version>,
    /// Others serve the revision, and it is empty.
    pub(super) is_emptied: bool,
}

impl LinkOutbox {
    pub(super) fn new() -> Self {
        Self {
            hello: SaidOnce::NotYet,
            draining: SaidOnce::NotYet,
            next_second: 0,
            news: BTreeMap::new(),
            is_called: false,
        }
    }

    /// The entry of a revision, to which something is added.
    pub(super) fn entry(&mut self, revision: &RevisionName) -> &mut RevisionWords {
        self.news.entry(revision.clone()).or_default()
    }

    /// The next revision with something to say.
    pub(super) fn pop(&mut self) -> Option<(RevisionName, RevisionWords)> {
        self.news.pop_first()
    }

    /// There are words. Returns whether the link has to be told so.
    pub(super) fn call(&mut self) -> bool {
        !std::mem::replace(&mut self.is_called, true)
    }

    /// All words are said: the next one is to be told.
    pub(super) fn is_drained(&mut self) {
        self.is_called = false;
    }
}
