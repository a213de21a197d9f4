//! What should stand in the log? What decides here writes no log: it says what happened, and the shell logs.

use orchestration::Subject;

use crate::custody::Custody;
use crate::notice::Tone;
use crate::resources::ObjectKey;

/// Something that happened, for the log.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterIncident {
    /// People should know of something about an object: a notice is new, or the control loop reports it.
    Noticed {
        /// The object that the notice is about.
        about: Subject,
        /// A word for programs, as in an Event.
        reason: &'static str,
        /// What is so, in a sentence for people.
        text: String,
        /// Whether people have to do something.
        tone: Tone,
    },
    /// This autoscaler owns no bucket: others decide, and it follows them.
    StandsBy {
        /// The names of the autoscalers that decide, with commas.
        owners: String,
    },
    /// A Service's endpoints are written by another than before.
    CustodyChanged {
        /// The Service whose custody has changed.
        service: ObjectKey,
        /// The custody that was in force before.
        former: Custody,
        /// The custody that is in force now.
        present: Custody,
    },
    /// Another live autoscaler goes by another number of buckets than this one.
    BucketCountsDiffer {
        /// The number of buckets by which this autoscaler goes.
        buckets: u16,
        /// The other autoscaler, and the number by which it goes.
        mismatch: String,
    },
}
