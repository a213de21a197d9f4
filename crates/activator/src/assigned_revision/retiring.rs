//! A revision that others serve from now on: what waits here and what still comes is served, and then it is
//! forgotten.
//!
//! Nothing is refused for it. It goes on hearing of pods, as its assignment does not end with its standing;
//! once it holds nothing its owner hears so, as often as that happens, and may have it forgotten. It is, as
//! soon as it holds nothing then.

use std::sync::Arc;

use vocabulary::{Standing, Timestamp, Version};

use super::{AssignedRevision, RevisionState};

/// What a retired revision still holds at this activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionRemainder {
    /// This activator serves the revision, or the revision still holds requests.
    Something,
    /// Other activators serve the revision, and it holds no request.
    Nothing,
    /// As `Nothing`, and its owner has said, in that version, that it may be forgotten: it takes no request
    /// from now on.
    Forgotten(Version),
}

/// Whether it is this activator's to serve, and if not, how far that has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retirement {
    pub(super) standing: Standing,
    /// It is to be forgotten once it holds nothing.
    forget: Option<Version>,
    /// It is on the agenda of what holds nothing any more.
    is_noted: bool,
}

impl Retirement {
    /// An assignment says what the revision is to this activator. A newer one than the word that it may be
    /// forgotten takes that back.
    pub(super) fn assigned(&mut self, standing: Standing, version: Version) {
        self.standing = standing;
        self.forget = self.forget.filter(|forget| *forget > version);
    }
}

impl RevisionState {
    /// Every request is part of the load, or holds a place in a pod.
    fn holds_nothing(&self) -> bool {
        self.meter.present().in_flight == 0 && self.throttler.held() == 0
    }
}

impl AssignedRevision {
    /// Its owner did not name it: other activators serve it, if any does.
    pub(crate) fn retire(&self) {
        self.state.lock().retirement.standing = Standing::Retired;
    }

    /// Its owner named it again, in the version that is in force.
    pub(crate) fn repeated(&self, standing: Standing) {
        let version = self.settings.load().version;
        self.state.lock().retirement.assigned(standing, version);
    }

    /// Its owner says that it may be forgotten, unless an assignment newer than `version` is in force.
    /// Returns whether that is so.
    pub(crate) fn forget_when_empty(&self, version: Version) -> bool {
        let mut state = self.state.lock();
        let is_in_force = self.settings.load().version < version;
        if is_in_force {
            let retirement = &mut state.retirement;
            retirement.standing = Standing::Retired;
            retirement.forget = retirement.forget.max(Some(version));
        }
        is_in_force
    }

    /// What is left of the revision. From the answer `Forgotten` on it refuses every request.
    pub(crate) fn remainder(&self) -> RevisionRemainder {
        let mut state = self.state.lock();
        state.retirement.is_noted = false;
        match (state.retirement.standing, state.holds_nothing(), state.retirement.forget) {
            (Standing::Assigned, _, _) | (Standing::Retired, false, _) => RevisionRemainder::Something,
            (Standing::Retired, true, None) => RevisionRemainder::Nothing,
            (Standing::Retired, true, Some(version)) => {
                state.is_gone = true;
                RevisionRemainder::Forgotten(version)
            }
        }
    }

    /// A request has ended. If it was the last of a retired revision, the link's thread looks what remains.
    pub(super) fn note_request_end(self: &Arc<Self>, state: &mut RevisionState) {
        if state.retirement.standing == Standing::Retired
            && !state.retirement.is_noted
            && state.holds_nothing()
        {
            state.retirement.is_noted = true;
            self.context.emptied.add(Timestamp::ZERO, Arc::clone(self));
        }
    }
}
