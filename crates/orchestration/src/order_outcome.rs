//! How each order to a platform ends, by its number.

use vocabulary::PodCount;

/// One order of one owner; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderId(pub u64);

/// How an order ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// It is written.
    Done,
    /// A later one about the same subject replaced it.
    Superseded,
    /// Somebody else wrote another count, which stays.
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
    /// We may not.
    Forbidden(String),
    /// Not yet, and why; not final.
    Retrying(String),
}
