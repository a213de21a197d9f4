//! Of which subjects has the autoscaler to be sent a fact?

use orchestration::Subject;
use vocabulary::RevisionName;

/// A subject of which the autoscaler has to be sent a fact. Facts go out in this order: those of a later
/// variant rely on those of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Configuration,
    Problems(Subject),
    Revision(RevisionName),
    Pods(RevisionName),
    Failure(RevisionName),
    Activators,
    Route(RevisionName),
}
