//! Our own measurements of a revision, by which it is scaled.

use serde::Serialize;

/// What a revision is scaled on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Requests in flight.
    #[default]
    Concurrency,
    /// Requests per second.
    Rps,
}
