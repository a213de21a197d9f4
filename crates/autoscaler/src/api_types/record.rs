//! What the API says of records: which segments of a run are there to be copied.

use serde::{Deserialize, Serialize};

/// The records of the autoscalers that have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordList {
    /// The version of the API's types.
    pub version: u32,
    /// One for each autoscaler whose run is recorded.
    pub records: Vec<RecordView>,
    /// Autoscalers that did not answer, of several; their records are missing.
    #[serde(default)]
    pub unanswered: Vec<String>,
}

/// The record of one autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordView {
    /// The replica whose run it is, as its pod is called.
    pub autoscaler: String,
    /// The segments that are there, oldest first. The last one grows.
    pub segments: Vec<SegmentView>,
}

/// One segment of a record: a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentView {
    /// Its number; later segments have greater ones.
    pub number: u64,
    /// How many bytes are in it so far.
    pub bytes: u64,
}
