//! The protobuf messages of facts of the platform.

use std::collections::BTreeMap;

use prost::{Message, Oneof};

use super::shared_proto::{NothingMessage, PodRequestsMessage};

/// A fact of the platform.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FactMessage {
    #[prost(oneof = "FactBody", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13")]
    pub body: Option<FactBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum FactBody {
    #[prost(message, tag = "1")]
    Config(TextsMessage),
    #[prost(message, tag = "2")]
    Problems(ProblemsMessage),
    #[prost(message, tag = "3")]
    Ownership(OwnershipMessage),
    #[prost(message, boxed, tag = "4")]
    Revision(Box<RevisionFactsMessage>),
    #[prost(string, tag = "5")]
    RevisionRemoved(String),
    #[prost(string, tag = "6")]
    RevisionGivenBack(String),
    #[prost(message, tag = "7")]
    Pods(PodsMessage),
    #[prost(message, tag = "8")]
    PodFailed(PodEndMessage),
    #[prost(message, tag = "9")]
    PodKilled(PodEndMessage),
    #[prost(message, tag = "10")]
    Activators(ActivatorsMessage),
    #[prost(message, tag = "11")]
    RouteFound(RouteMessage),
    #[prost(message, tag = "12")]
    OrderEnded(OrderEndMessage),
    #[prost(message, tag = "13")]
    Synced(NothingMessage),
}

/// Texts of a ConfigMap or of annotations, as they were written.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TextsMessage {
    #[prost(btree_map = "string, string", tag = "1")]
    pub texts: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProblemsMessage {
    #[prost(oneof = "SubjectBody", tags = "1, 2, 3, 4")]
    pub about: Option<SubjectBody>,
    #[prost(string, repeated, tag = "5")]
    pub problems: Vec<String>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum SubjectBody {
    #[prost(message, tag = "1")]
    Configuration(NothingMessage),
    #[prost(string, tag = "2")]
    Revision(String),
    #[prost(string, tag = "3")]
    Pod(String),
    #[prost(string, tag = "4")]
    Activator(String),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OwnershipMessage {
    #[prost(btree_map = "uint32, uint64", tag = "1")]
    pub epochs: BTreeMap<u32, u64>,
    #[prost(uint32, tag = "2")]
    pub buckets: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RevisionFactsMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub annotations: Option<TextsMessage>,
    #[prost(message, optional, tag = "3")]
    pub requests: Option<PodRequestsMessage>,
    /// Whether the platform is asked for what pods use.
    #[prost(bool, tag = "4")]
    pub is_usage_asked_for: bool,
    #[prost(uint32, tag = "5")]
    pub container_concurrency: u32,
    #[prost(message, optional, tag = "6")]
    pub timeouts: Option<TimeoutsMessage>,
    #[prost(uint64, tag = "7")]
    pub progress_deadline: u64,
    #[prost(message, repeated, tag = "8")]
    pub entrances: Vec<EntranceMessage>,
    /// Keyed hashes of the hop keys, under which equal keys are equal.
    #[prost(fixed64, repeated, tag = "9")]
    pub hop_keys: Vec<u64>,
    #[prost(uint32, tag = "10")]
    pub wanted: u32,
    #[prost(bool, tag = "11")]
    pub may_write: bool,
    #[prost(bool, tag = "12")]
    pub reachable: bool,
    #[prost(uint32, tag = "13")]
    pub floor: u32,
    #[prost(string, optional, tag = "14")]
    pub hold: Option<String>,
    /// See `RevisionOrigin`: 1 new, 2 found.
    #[prost(uint32, tag = "15")]
    pub origin: u32,
    #[prost(string, tag = "16")]
    pub template: String,
    /// See `FloorCause`: 0 given back, as in records from before there were others, 1 abandoned, 2 bypass, 3
    /// invalid annotations.
    #[prost(uint32, tag = "17")]
    pub floor_cause: u32,
}

/// Nanoseconds; absent means no limit.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct TimeoutsMessage {
    #[prost(uint64, optional, tag = "1")]
    pub request: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub response_start: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub idle: Option<u64>,
    #[prost(bool, tag = "4")]
    pub appends_late: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EntranceMessage {
    #[prost(oneof = "EntranceBody", tags = "1, 2")]
    pub entrance: Option<EntranceBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum EntranceBody {
    #[prost(string, tag = "1")]
    Host(String),
    #[prost(uint32, tag = "2")]
    Port(u32),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodsMessage {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(message, repeated, tag = "2")]
    pub pods: Vec<PodFactsMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodFactsMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    /// 1 pending, 2 running, 3 terminating.
    #[prost(uint32, tag = "2")]
    pub phase: u32,
    #[prost(bool, tag = "3")]
    pub leaving: bool,
    #[prost(uint64, optional, tag = "4")]
    pub ends_in: Option<u64>,
    #[prost(bool, optional, tag = "5")]
    pub platform_ready: Option<bool>,
    /// Address and port of requests.
    #[prost(string, tag = "6")]
    pub requests: String,
    #[prost(btree_map = "uint32, uint32", tag = "7")]
    pub exits: BTreeMap<u32, u32>,
    #[prost(message, optional, tag = "8")]
    pub link: Option<LinkAddressMessage>,
    #[prost(uint64, optional, tag = "9")]
    pub adoption: Option<u64>,
    #[prost(bool, tag = "10")]
    pub outdated: bool,
    #[prost(bool, tag = "11")]
    pub awaits_core: bool,
    #[prost(string, optional, tag = "12")]
    pub trouble: Option<String>,
    #[prost(string, optional, tag = "13")]
    pub trouble_without_output: Option<String>,
    #[prost(string, optional, tag = "14")]
    pub hold: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinkAddressMessage {
    #[prost(string, tag = "1")]
    pub socket: String,
    /// A keyed hash of the token, under which equal tokens are equal.
    #[prost(fixed64, optional, tag = "2")]
    pub token: Option<u64>,
    /// 1 plain, 2 TLS of a pod, 3 TLS of an activator.
    #[prost(uint32, tag = "3")]
    pub channel: u32,
}

/// The failure or the kill of a pod, without the lines that its app printed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodEndMessage {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(string, tag = "2")]
    pub pod: String,
    #[prost(uint64, tag = "3")]
    pub at: u64,
    #[prost(string, tag = "4")]
    pub reason: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivatorsMessage {
    #[prost(message, repeated, tag = "1")]
    pub activators: Vec<ActivatorMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivatorMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub link: Option<LinkAddressMessage>,
    /// 1 ready, 2 not ready, 3 terminating.
    #[prost(uint32, tag = "3")]
    pub life: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RouteMessage {
    #[prost(string, tag = "1")]
    pub revision: String,
    /// 1 direct, 2 through activators.
    #[prost(uint32, tag = "2")]
    pub routing: u32,
    #[prost(string, repeated, tag = "3")]
    pub activators: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OrderEndMessage {
    #[prost(uint64, tag = "1")]
    pub order: u64,
    #[prost(oneof = "OrderEndBody", tags = "2, 3, 4, 5, 6, 7, 8, 9")]
    pub outcome: Option<OrderEndBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum OrderEndBody {
    #[prost(message, tag = "2")]
    Done(NothingMessage),
    #[prost(message, tag = "3")]
    Superseded(NothingMessage),
    /// The count that was found.
    #[prost(uint32, tag = "4")]
    Conflict(u32),
    #[prost(message, tag = "5")]
    Gone(NothingMessage),
    #[prost(message, tag = "6")]
    NotOwner(NothingMessage),
    #[prost(string, tag = "7")]
    Refused(String),
    #[prost(string, tag = "8")]
    Forbidden(String),
    #[prost(string, tag = "9")]
    Retrying(String),
}
