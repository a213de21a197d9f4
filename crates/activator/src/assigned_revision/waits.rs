//! What becomes of requests that no ready pod takes, and what do those that are refused count as?

use vocabulary::Load;

/// What becomes of requests that no ready pod takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Queued,
    Refused,
}

impl Waits {
    pub(super) fn under(hold: Option<&str>) -> Self {
        if hold.is_some() { Self::Refused } else { Self::Queued }
    }
}

/// Whether requests were refused under a hold in the second that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HeldRefusals {
    #[default]
    None,
    Some,
}

impl HeldRefusals {
    /// Ends a second: what it held, with the requests that were refused in it.
    pub(super) fn added_to(&mut self, load: Load) -> Load {
        match std::mem::take(self) {
            Self::None => load,
            Self::Some => load.with_refused_requests(),
        }
    }
}
