//! The protobuf messages of answers to questions of class hpa.

use prost::{Message, Oneof};

use super::shared_proto::{NothingMessage, PodRequestsMessage};

/// The answers to one round of questions of class hpa.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnswersMessage {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(uint64, tag = "2")]
    pub round: u64,
    #[prost(message, repeated, tag = "3")]
    pub samples: Vec<SamplesMessage>,
    #[prost(message, optional, tag = "4")]
    pub target: Option<TargetMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SamplesMessage {
    /// The place of the metric in its document.
    #[prost(uint32, tag = "1")]
    pub place: u32,
    #[prost(oneof = "SamplesBody", tags = "2, 3, 4, 5, 6")]
    pub samples: Option<SamplesBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum SamplesBody {
    #[prost(message, tag = "2")]
    PerPod(PodSamplesMessage),
    #[prost(message, tag = "3")]
    Series(SeriesMessage),
    #[prost(message, tag = "4")]
    Decided(DecidedMessage),
    #[prost(message, tag = "5")]
    Failed(FailureMessage),
    #[prost(message, tag = "6")]
    NotAsked(NothingMessage),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodSamplesMessage {
    #[prost(message, repeated, tag = "1")]
    pub samples: Vec<PodSampleMessage>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct PodSampleMessage {
    #[prost(uint32, tag = "1")]
    pub pod: u32,
    #[prost(sint64, tag = "2")]
    pub value: i64,
    #[prost(uint64, tag = "3")]
    pub at: u64,
    #[prost(uint64, tag = "4")]
    pub window: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SeriesMessage {
    #[prost(sint64, repeated, tag = "1")]
    pub values: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct DecidedMessage {
    #[prost(uint32, tag = "1")]
    pub count: u32,
    #[prost(sint64, tag = "2")]
    pub average: i64,
}

/// The places of the reason and of the cause in their lists, from 1.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct FailureMessage {
    #[prost(uint32, tag = "1")]
    pub reason: u32,
    #[prost(uint32, tag = "2")]
    pub why: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TargetMessage {
    #[prost(message, repeated, tag = "1")]
    pub pods: Vec<HpaPodMessage>,
    #[prost(uint32, tag = "2")]
    pub present: u32,
    /// 1 unique, 2 absent, 3 unreadable, 4 ambiguous.
    #[prost(uint32, tag = "3")]
    pub selection: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HpaPodMessage {
    #[prost(uint32, tag = "1")]
    pub pod: u32,
    /// 1 pending, 2 running, 3 succeeded, 4 failed, 5 unknown.
    #[prost(uint32, tag = "2")]
    pub phase: u32,
    #[prost(bool, tag = "3")]
    pub is_deleted: bool,
    #[prost(uint64, optional, tag = "4")]
    pub started: Option<u64>,
    #[prost(message, optional, tag = "5")]
    pub ready: Option<ReadyMessage>,
    #[prost(message, optional, tag = "6")]
    pub requests: Option<PodRequestsMessage>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ReadyMessage {
    /// 1 true, 2 false, 3 unknown.
    #[prost(uint32, tag = "1")]
    pub status: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
}
