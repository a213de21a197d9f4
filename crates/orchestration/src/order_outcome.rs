//! How each order to a platform ends, by its number.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

/// One order of one owner; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OrderId(pub u64);

/// How the platform answered an order; every outcome but [`OrderOutcome::Retrying`] is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// The platform has written what was ordered.
    Done,
    /// A later one about the same subject replaced it.
    Superseded,
    /// Another writer has written another count, which stays.
    Conflict {
        /// The count that was found.
        found: PodCount,
    },
    /// What it was about is gone.
    Gone,
    /// The bucket is not the orderer's any more.
    NotOwner,
    /// The platform refuses it as it is.
    Refused(String),
    /// The autoscaler has no right to write it; the text is the platform's answer.
    Forbidden(String),
    /// Not yet, and why; not final.
    Retrying(String),
}
