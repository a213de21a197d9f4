//! What a stream of the API says: the revisions that changed.

use serde::{Deserialize, Serialize};
use vocabulary::RevisionName;

use super::RevisionSummary;

/// What has changed since the event before. The first event of a stream has everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeEvent {
    /// The version of the API's types.
    pub version: u32,
    /// The number of the snapshot, which grows while the autoscaler runs; it is the event's id, too.
    pub snapshot: u64,
    /// Whether the event has all revisions: what it does not name is gone.
    pub whole: bool,
    /// The revisions that changed, as they stand in the list of revisions.
    pub revisions: Vec<RevisionSummary>,
    /// Revisions that are gone since the event before.
    pub gone: Vec<RevisionName>,
    /// Configuration that was refused; all of it, in each event.
    pub problems: Vec<String>,
    /// Autoscalers that do not answer, of several.
    pub unanswered: Vec<String>,
}
