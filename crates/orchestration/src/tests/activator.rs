//! An activator as the tests play it: what it does with what it is told, as the real one does.

use std::collections::VecDeque;
use std::sync::Arc;

use vocabulary::{Assignment, PresentCount, Standing, Version};

use crate::*;

/// What an activator was told.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Everything(Option<Arc<Assignment>>),
    Assignment(Arc<Assignment>),
    Unassigned(Version, Unassignment),
}

/// One activator, and what it holds of the one revision that there is.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeActivator {
    pub(super) life: ActivatorLife,
    pub(super) boot: u64,
    pub(super) is_linked: bool,
    pub(super) is_stalled: bool,
    /// The assignment that this activator acts upon.
    pub(super) applied: Option<Arc<Assignment>>,
    /// It forgets the revision once it holds nothing.
    pub(super) forget: Option<Version>,
    /// By which version it forgot it, until it has said so.
    pub(super) forgot: Option<Version>,
    /// What it was told while it was stalled.
    pub(super) unread: VecDeque<Told>,
    pub(super) forgotten: usize,
    /// What waits and runs there.
    pub(super) holds: Option<PresentCount>,
    /// What it told its present owner, in its present boot, that it acts upon.
    pub(super) acknowledged: Option<Version>,
    pub(super) last_version: Version,
}

impl FakeActivator {
    pub(super) fn read(&mut self, told: Told) {
        match told {
            Told::Everything(Some(assignment)) | Told::Assignment(assignment) => self.apply(assignment),
            Told::Everything(None) => self.retire(),
            Told::Unassigned(version, how) => self.unassign(version, how),
        }
    }

    fn apply(&mut self, assignment: Arc<Assignment>) {
        if self.applied.as_ref().is_none_or(|applied| applied.version <= assignment.version) {
            self.forget = self.forget.filter(|forget| *forget > assignment.version);
            self.forgot = None;
            self.applied = Some(assignment);
        }
    }

    fn retire(&mut self) {
        if let Some(applied) = &self.applied {
            self.applied =
                Some(Arc::new(Assignment { standing: Standing::Retired, ..Assignment::clone(applied) }));
        }
    }

    fn unassign(&mut self, version: Version, how: Unassignment) {
        if self.applied.as_ref().is_some_and(|applied| applied.version >= version) {
            return;
        }
        match how {
            Unassignment::Removed => self.applied = None,
            Unassignment::Forgotten => {
                self.forget = Some(version);
                self.retire();
                self.forget_if_empty();
            }
        }
    }

    pub(super) fn forget_if_empty(&mut self) {
        if self.holds.is_none()
            && let Some(version) = self.forget.take()
        {
            (self.applied, self.forgot) = (None, Some(version));
            self.forgotten += 1;
        }
    }
}
