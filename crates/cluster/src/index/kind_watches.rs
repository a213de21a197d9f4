//! Which kinds of workloads are to be watched, and what follows once one is or cannot be?

use vocabulary::Timestamp;

use super::Index;
use crate::notice::Notice;
use crate::resources::kind::WorkloadKind;

impl Index {
    /// Kinds that the watches have not heard of.
    pub(crate) fn take_kinds_to_watch(&mut self) -> Vec<WorkloadKind> {
        self.workloads.kinds_mut().take_to_watch()
    }

    /// Kinds that need not be watched any more.
    pub(crate) fn take_kinds_to_leave(&mut self, now: Timestamp) -> Vec<WorkloadKind> {
        self.workloads.kinds_mut().take_unnamed(now)
    }

    /// Whether a kind is watched, or looked for.
    pub(crate) fn is_kind_wanted(&self, kind: &WorkloadKind) -> bool {
        self.workloads.kinds().is_wanted(kind)
    }

    /// All workloads of a kind are known from now on.
    pub(crate) fn kind_listed(&mut self, kind: &WorkloadKind) {
        self.workloads.kinds_mut().list(kind);
        self.notice_services_of_kind(kind);
    }

    pub(crate) fn is_kind_listed(&self, kind: &WorkloadKind) -> bool {
        self.workloads.kinds().is_listed(kind)
    }

    /// Workloads of a kind cannot be looked at.
    pub(crate) fn refuse_kind(&mut self, kind: &WorkloadKind, why: Notice) {
        if self.workloads.kinds_mut().refuse(kind, why) {
            self.notice_services_of_kind(kind);
        }
    }

    /// Nothing is known of a kind any more.
    pub(crate) fn forget_kind(&mut self, kind: &WorkloadKind) {
        self.workloads.kinds_mut().forget(kind);
    }

    fn notice_services_of_kind(&mut self, kind: &WorkloadKind) {
        for revision in self.workloads.kinds().revisions_of(kind) {
            self.notice_services_of(&revision);
            self.notices.reroute(revision);
        }
    }
}
