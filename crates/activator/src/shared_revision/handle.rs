//! The place of a revision in the value of the whole activator.

use std::sync::Arc;

use throttling::{ActivatorRevision, ClosedSecond, RevisionCell, RevisionCommand};
use vocabulary::{Assignment, Timestamp};

use super::SharedRevision;
use crate::context::Context;

/// The place of a revision in the value of the whole activator: a lock that threads which serve reach without
/// that value.
pub(crate) struct RevisionHandle(Arc<SharedRevision>);

impl RevisionHandle {
    pub(crate) fn shared(&self) -> &Arc<SharedRevision> {
        &self.0
    }
}

impl RevisionCell for RevisionHandle {
    type Shared = Arc<Context>;

    fn holding(revision: ActivatorRevision, context: &Arc<Context>) -> Self {
        Self(Arc::new(SharedRevision::new(revision, context)))
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut ActivatorRevision) -> T) -> T {
        self.0.with(act)
    }

    fn assign(&mut self, assignment: &Arc<Assignment>, now: Timestamp) {
        self.0.assign(assignment, now);
    }

    /// None: each was carried out under the lock.
    fn next_command(&mut self) -> Option<RevisionCommand> {
        None
    }

    /// Never: the agenda tells when the revision is due.
    fn next_deadline(&self) -> Option<Timestamp> {
        None
    }

    fn close_seconds(&mut self, count: u32, began: Timestamp, now: Timestamp) -> Option<ClosedSecond> {
        let close = |revision: &mut ActivatorRevision| {
            (revision.close_seconds(count, began, now), revision.is_gone())
        };
        let (closed, is_gone) = self.0.with(close);
        // Of a revision that is known no more this second is the last one that is told.
        let last = closed.filter(|_| !is_gone);
        self.0.show(last.map_or(0.0, |last| last.load.concurrency.value()));
        closed
    }
}
