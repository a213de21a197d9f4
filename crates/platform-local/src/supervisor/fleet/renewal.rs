//! What people order of the pods of a Service: new ones of the same template, or of the one before.

use vocabulary::{RevisionName, Timestamp};

use super::{Fleet, TargetPresence};
use crate::pod::Template;

impl Fleet {
    /// Lets new pods take over from those of a Service.
    pub(crate) fn renew_pods(&mut self, name: &RevisionName, now: Timestamp) -> TargetPresence {
        let Some(revision) = self.revisions.get_mut(name).filter(|revision| !revision.is_going) else {
            return TargetPresence::No;
        };
        revision.renew_pods();
        self.changes.revisions.insert(name.clone());
        self.reconcile(name, now);
        TargetPresence::Yes
    }

    /// The template that a Service had before its last edit, if it had one.
    pub(crate) fn former_template(&self, name: &RevisionName) -> Option<&Template> {
        self.revisions.get(name).filter(|revision| !revision.is_going)?.former_template()
    }
}
