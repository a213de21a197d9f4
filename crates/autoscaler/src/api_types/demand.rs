//! What the API says of past demand, and is told of it.

use serde::{Deserialize, Serialize};
use vocabulary::RevisionName;

use super::OwnerView;

/// The demand of the past by the minute, as prediction keeps it for fifteen days.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemandView {
    /// The version of the API's types.
    pub version: u32,
    /// The revision's whole name, `namespace/kind/name`.
    pub name: RevisionName,
    /// Which autoscaler decides about it; a client that tells of demand leaves it out.
    #[serde(default)]
    pub owner: Option<OwnerView>,
    /// What is counted: `concurrency`, `rps`, or `cpu` (cores in use).
    pub metric: String,
    /// How many milliseconds ago the first of the minutes began.
    pub first_ms_ago: u64,
    /// The minutes, one after the other: the mean and the greatest second of each; null for one that was not
    /// measured.
    pub minutes: Vec<Option<[f64; 2]>>,
}

/// The answer to a client that told of demand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemandImportView {
    /// The version of the API's types.
    pub version: u32,
    /// The revision's whole name, `namespace/kind/name`.
    pub name: RevisionName,
    /// How many measured minutes were taken in.
    pub minutes: u64,
}
