//! What should stand in the log? What decides here writes no log: it says what happened, and the shell logs.

use orchestration::Subject;

use crate::custody::Custody;
use crate::resources::ObjectKey;

/// Something that happened, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterIncident {
    /// People have to do something about an object: a notice is new, or the control loop reports it.
    Noticed { about: Subject, reason: &'static str, text: String },
    /// A Service's endpoints are written by another than before.
    CustodyChanged { service: ObjectKey, former: Custody, present: Custody },
    /// Another live autoscaler goes by another number of buckets than this one.
    BucketCountsDiffer { buckets: u16, mismatch: String },
}
