//! The protobuf messages of a record, proto3. Messages only grow: a field number is never reused, so a record
//! of a year ago is read, and one of next year is read as far as it is known.

use prost::{Message, Oneof};

use super::answers_proto::AnswersMessage;
use super::facts_proto::FactMessage;
use super::shared_proto::NothingMessage;

/// One thing that a record says. What a later program added is unknown here, and has no body.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FrameMessage {
    /// Nanoseconds since the frame before in the same segment; of several calls, of the last one.
    #[prost(sint64, tag = "1")]
    pub after: i64,
    #[prost(oneof = "FrameBody", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16")]
    pub body: Option<FrameBody>,
    /// Absent where no command came out.
    #[prost(message, optional, tag = "12")]
    pub outcome: Option<OutcomeMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum FrameBody {
    #[prost(message, tag = "2")]
    PodSpoke(WordMessage),
    #[prost(message, tag = "3")]
    ActivatorSpoke(WordMessage),
    #[prost(message, tag = "4")]
    LinkChanged(LinkChangeMessage),
    #[prost(message, boxed, tag = "5")]
    Fact(Box<FactMessage>),
    #[prost(message, tag = "6")]
    MetricsAnswered(AnswersMessage),
    /// The wall clock was read: nanoseconds since the beginning of 1970.
    #[prost(uint64, tag = "7")]
    WallClock(u64),
    #[prost(message, tag = "8")]
    HistoryRestored(HistoryMessage),
    #[prost(message, tag = "9")]
    Advanced(NothingMessage),
    #[prost(message, boxed, tag = "10")]
    Header(Box<HeaderMessage>),
    #[prost(message, tag = "11")]
    Keyframe(KeyframeMessage),
    #[prost(message, tag = "13")]
    ZoneRead(ZoneMessage),
    /// Of the history the demand is read, and nothing else.
    #[prost(message, tag = "14")]
    DemandImported(HistoryMessage),
    #[prost(message, tag = "15")]
    Reports(ReportsMessage),
    /// The state of the control loop, behind a keyframe that every program reads.
    #[prost(message, tag = "16")]
    ExactState(ExactStateMessage),
}

/// The private state of the control loop, for the executable that the header names.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExactStateMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub state: Vec<u8>,
}

/// Calls that come each second, one after the other, as `reports` packs them.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReportsMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub heads: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub codes: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub values: Vec<u8>,
}

/// How far the local time of a zone is ahead of UTC, in minutes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ZoneMessage {
    /// The name of the zone in the database of zones.
    #[prost(string, tag = "1")]
    pub zone: String,
    /// The minutes before the first change.
    #[prost(sint32, tag = "2")]
    pub first: i32,
    #[prost(message, repeated, tag = "3")]
    pub changes: Vec<ZoneChangeMessage>,
}

/// A change of how far local time is ahead of UTC.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ZoneChangeMessage {
    /// The first minute since 1970, by UTC, with the new offset.
    #[prost(uint64, tag = "1")]
    pub minute: u64,
    #[prost(sint32, tag = "2")]
    pub offset: i32,
}

/// The first frame of a segment.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderMessage {
    /// The number of the segment: one greater than that of the segment before.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Drawn once for each life of an autoscaler.
    #[prost(fixed64, tag = "2")]
    pub life: u64,
    /// The name of the autoscaler that decides.
    #[prost(string, tag = "3")]
    pub owner: String,
    /// The version and the executable of the program that wrote it.
    #[prost(string, tag = "4")]
    pub build: String,
    /// The time on the axis of the process, in nanoseconds.
    #[prost(uint64, tag = "5")]
    pub at: u64,
    /// See `SegmentStart`: 1 is nothing known, 2 a keyframe, 3 the segment before, 4 a keyframe after a gap.
    #[prost(uint32, tag = "6")]
    pub start: u32,
    /// How long a leaving pod waits for acknowledgements, in nanoseconds.
    #[prost(uint64, tag = "7")]
    pub release_after: u64,
    /// Which activators serve a revision: 1 is all, 2 as many as needed.
    #[prost(uint32, tag = "8")]
    pub choice: u32,
    /// Nanoseconds since the beginning of 1970; 0 where no clock was read before.
    #[prost(uint64, tag = "9")]
    pub wall_clock: u64,
    /// Whether hashes stand in the place of names and addresses.
    #[prost(bool, tag = "10")]
    pub is_anonymous: bool,
}

/// The state of the world at one point in time, as an owner that takes over would find it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyframeMessage {
    /// In the order in which a platform tells them.
    #[prost(message, repeated, tag = "1")]
    pub facts: Vec<FactMessage>,
    #[prost(message, repeated, tag = "2")]
    pub links: Vec<LinkStateMessage>,
    /// Orders whose end was not told yet.
    #[prost(message, repeated, tag = "3")]
    pub orders: Vec<GivenOrderMessage>,
    /// The histories of revisions that predict.
    #[prost(message, repeated, tag = "4")]
    pub histories: Vec<HistoryMessage>,
}

/// A link that is kept, with the words that its peer would say on a new connection.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinkStateMessage {
    #[prost(message, optional, tag = "1")]
    pub link: Option<OpenedLinkMessage>,
    /// Words as their link encodes them, the hello first; none while the link is not up.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub words: Vec<Vec<u8>>,
}

/// One word of a pod or an activator, as its link encodes it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WordMessage {
    #[prost(uint64, tag = "1")]
    pub link: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub word: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinkChangeMessage {
    #[prost(uint64, tag = "1")]
    pub link: u64,
    #[prost(oneof = "LinkChangeBody", tags = "2, 3, 4, 5, 6")]
    pub news: Option<LinkChangeBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum LinkChangeBody {
    #[prost(message, tag = "2")]
    Lost(NothingMessage),
    #[prost(message, tag = "3")]
    Refused(NothingMessage),
    #[prost(string, tag = "4")]
    Blocked(String),
    /// Since when, in nanoseconds on the axis of the process.
    #[prost(uint64, tag = "5")]
    Unreachable(u64),
    #[prost(message, tag = "6")]
    Accepting(NothingMessage),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HistoryMessage {
    #[prost(string, tag = "1")]
    pub revision: String,
    /// JSON, as every store writes a history.
    #[prost(bytes = "vec", tag = "2")]
    pub history: Vec<u8>,
}

/// What came out of one event.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OutcomeMessage {
    /// The hash of all commands with all their numbers.
    #[prost(fixed64, tag = "1")]
    pub commands: u64,
    /// How many decisions there are.
    #[prost(uint32, tag = "2")]
    pub decided: u32,
    #[prost(message, repeated, tag = "3")]
    pub opened: Vec<OpenedLinkMessage>,
    #[prost(message, repeated, tag = "4")]
    pub orders: Vec<GivenOrderMessage>,
    /// The counts that were decided.
    #[prost(message, repeated, tag = "5")]
    pub counts: Vec<WantedCountMessage>,
}

/// The count of a revision that a decision asks for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WantedCountMessage {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(uint32, tag = "2")]
    pub count: u32,
}

/// A link with its peer: a pod, or an activator.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpenedLinkMessage {
    #[prost(uint64, tag = "1")]
    pub link: u64,
    #[prost(oneof = "LinkPeerBody", tags = "2, 3")]
    pub peer: Option<LinkPeerBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum LinkPeerBody {
    #[prost(string, tag = "2")]
    Pod(String),
    #[prost(string, tag = "3")]
    Activator(String),
}

/// An order whose end will be told.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct GivenOrderMessage {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The hash of its errand.
    #[prost(fixed64, tag = "2")]
    pub errand: u64,
}
