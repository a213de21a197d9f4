//! Our own measurements of a revision, by which it is scaled.

use serde::{Deserialize, Serialize};

/// The quantity on which a revision is scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Requests in flight, averaged over time.
    #[default]
    Concurrency,
    /// Requests that arrive in a second.
    Rps,
}
