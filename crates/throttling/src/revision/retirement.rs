//! A revision that other activators serve from now on: what waits here and what still comes is served, and
//! then it is forgotten.
//!
//! Nothing is refused for it. It goes on hearing of pods, as its assignment does not end with its standing;
//! its owner hears as often as it becomes empty, and may have it forgotten. It is, as soon as it holds
//! nothing then.

use vocabulary::{Standing, Version};

/// Whether the activator is to serve a revision, and if not, how far its end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retirement {
    pub(super) standing: Standing,
    /// The version of the word that the revision may be forgotten once it is empty.
    pub(super) forget: Option<Version>,
    /// Whether the emptiness is news that nothing has taken yet.
    pub(super) is_noted: bool,
}

impl Retirement {
    /// An assignment says what the revision is to this activator. A newer one than the word that it may be
    /// forgotten takes that back.
    pub(super) fn assigned(&mut self, standing: Standing, version: Version) {
        self.standing = standing;
        self.forget = self.forget.filter(|forget| *forget > version);
    }

    /// The owner says, in that version, that the revision may be forgotten.
    pub(super) fn forgettable(&mut self, version: Version) {
        self.standing = Standing::Retired;
        self.forget = self.forget.max(Some(version));
    }
}

/// What a retired revision still holds at this activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetiredRemainder {
    /// This activator serves the revision, or the revision still holds requests.
    Something,
    /// Other activators serve the revision, and it holds no request.
    Nothing,
    /// As `Nothing`, and its owner has said, in that version, that it may be forgotten: it takes no request
    /// from now on.
    Forgotten(Version),
}
