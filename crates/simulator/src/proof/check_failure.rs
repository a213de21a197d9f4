//! What a check of a made-up world says.

use throttling::RequestRefusal;

/// A check that failed in a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckFailure {
    /// The sentence that does not hold.
    pub(crate) check: &'static str,
    pub(crate) text: String,
}

impl CheckFailure {
    pub(crate) fn new(check: &'static str, text: String) -> Self {
        Self { check, text }
    }
}

/// Nothing, or the check that failed.
pub(crate) type Checked = Result<(), CheckFailure>;

/// How a request of a world ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Served,
    /// No activator was there until the time limit.
    NoActivator,
    /// The time limit ended the wait at an activator.
    WaitedTooLong,
    Refused(RequestRefusal),
    /// The process that had it was killed.
    LostWithActivator,
    LostWithPod,
}
