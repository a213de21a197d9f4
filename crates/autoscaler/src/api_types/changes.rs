//! What a stream of the API says: the revisions that changed.

use serde::{Deserialize, Serialize};
use vocabulary::RevisionName;

use super::RevisionSummary;

/// What has changed since the event before. The first event of a stream has everything, or, where the reader
/// has named the last event that it has, what changed since that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeEvent {
    /// The version of the API's types.
    pub version: u32,
    /// The number of the snapshot, which grows while the autoscaler runs. The event's id ends with it.
    pub snapshot: u64,
    /// Whether the event has all revisions: what it does not name is gone.
    pub whole: bool,
    /// The revisions that changed, as they stand in the list of revisions.
    pub revisions: Vec<RevisionSummary>,
    /// In the first event of a stream that goes on: the names of all revisions. What they do not name is
    /// gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<RevisionName>>,
    /// Revisions that are gone since the event before.
    pub gone: Vec<RevisionName>,
    /// Configuration that was refused; all of it, in each event.
    pub problems: Vec<String>,
    /// Autoscalers that do not answer, of several.
    pub unanswered: Vec<String>,
}
