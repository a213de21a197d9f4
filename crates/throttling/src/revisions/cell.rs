//! Where an activator keeps a revision: plainly, or behind the lock that its requests take.

use std::sync::Arc;

use vocabulary::{Assignment, Timestamp};

use crate::revision::{ActivatorRevision, ClosedSecond, RevisionCommand};

/// A place for one revision. A shell that serves requests on several threads has one with a lock, and carries
/// out the commands of the requests under that lock; in tests and simulations the revision is its own place.
pub trait RevisionCell {
    /// What all places of one activator share.
    type Shared;

    /// A place with this revision in it.
    fn holding(revision: ActivatorRevision, shared: &Self::Shared) -> Self;

    /// Lets something happen to the revision. A place with a lock carries out all commands before it lets go
    /// of the lock.
    fn with<T>(&mut self, act: impl FnOnce(&mut ActivatorRevision) -> T) -> T;

    /// Puts a newer assignment in force. A place with a lock shows it to requests before it carries out the
    /// commands that follow.
    fn assign(&mut self, assignment: &Arc<Assignment>, now: Timestamp) {
        self.with(|revision| revision.assign(assignment, now));
    }

    /// A command that the place leaves to the value; a place with a lock leaves none.
    fn next_command(&mut self) -> Option<RevisionCommand>;

    /// When the value is to let time pass for the revision; never for a place that sees to that itself, and
    /// says `RevisionIsDue`.
    fn next_deadline(&self) -> Option<Timestamp>;

    /// Ends so many seconds of the revision, the first of which began at `began`; a place that shows the load
    /// to people learns it here.
    fn close_seconds(&mut self, count: u32, began: Timestamp, now: Timestamp) -> Option<ClosedSecond> {
        self.with(|revision| revision.close_seconds(count, began, now))
    }
}

impl RevisionCell for ActivatorRevision {
    type Shared = ();

    fn holding(revision: ActivatorRevision, (): &()) -> Self {
        revision
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut ActivatorRevision) -> T) -> T {
        act(self)
    }

    fn next_command(&mut self) -> Option<RevisionCommand> {
        ActivatorRevision::next_command(self)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        ActivatorRevision::next_deadline(self)
    }
}
