//! The protobuf messages, proto3. Field numbers are never reused. Of every outermost message field 14 is the
//! dialler's token, in its first frame ([`Greeting`]), and field 15 a [`Fragment`].

use std::collections::BTreeMap;

use prost::{Message, Oneof};

/// The part of the dialler's first frame that is not its message: the token.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Greeting {
    #[prost(bytes = "vec", tag = "14")]
    pub token: Vec<u8>,
}

/// A part of a message that is longer than a frame.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Fragment {
    #[prost(bytes = "vec", tag = "15")]
    pub part: Vec<u8>,
    #[prost(bool, tag = "16")]
    pub last: bool,
}

/// A message that says all by its presence.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct EmptyMessage {}

/// One frame from a queue-proxy to the autoscaler.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodReport {
    #[prost(oneof = "PodReportBody", tags = "1, 2, 3, 4, 5, 6")]
    pub body: Option<PodReportBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum PodReportBody {
    #[prost(message, boxed, tag = "1")]
    Hello(Box<PodHello>),
    #[prost(message, tag = "2")]
    Load(Sample),
    #[prost(message, tag = "3")]
    State(StateChange),
    #[prost(message, tag = "4")]
    Present(Present),
    #[prost(message, tag = "5")]
    SettingsAcknowledged(Version),
    #[prost(message, tag = "6")]
    Adopted(AdoptedConnections),
}

/// Connections from before an adoption.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AdoptedConnections {
    #[prost(uint32, tag = "1")]
    pub count: u32,
    /// Nanoseconds since the oldest was first seen.
    #[prost(uint64, tag = "2")]
    pub age: u64,
    /// IP addresses of some clients.
    #[prost(string, repeated, tag = "3")]
    pub peers: Vec<String>,
    /// The kernel does not show them; the age is that of the first try.
    #[prost(bool, tag = "4")]
    pub unreadable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodHello {
    #[prost(string, tag = "1")]
    pub pod: String,
    #[prost(fixed64, tag = "2")]
    pub boot: u64,
    #[prost(uint32, tag = "3")]
    pub state: u32,
    #[prost(string, tag = "4")]
    pub detail: String,
    #[prost(uint32, tag = "5")]
    pub container_concurrency: u32,
    #[prost(message, optional, tag = "6")]
    pub timeouts: Option<Timeouts>,
    #[prost(uint64, tag = "7")]
    pub current_second: u64,
    #[prost(message, optional, tag = "8")]
    pub history: Option<PodHistory>,
    #[prost(uint32, tag = "9")]
    pub speaks: u32,
}

/// Past seconds by columns: 60 of them take 2 KiB, so that a hello fits a frame.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodHistory {
    /// How many seconds before the current one.
    #[prost(uint64, repeated, tag = "1")]
    pub ages: Vec<u64>,
    #[prost(double, repeated, tag = "2")]
    pub concurrency: Vec<f64>,
    #[prost(double, repeated, tag = "3")]
    pub proxied_concurrency: Vec<f64>,
    #[prost(double, repeated, tag = "4")]
    pub request_rate: Vec<f64>,
    #[prost(double, repeated, tag = "5")]
    pub proxied_request_rate: Vec<f64>,
    #[prost(uint32, repeated, tag = "6")]
    pub queued: Vec<u32>,
}

/// Nanoseconds; absent means no limit.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Timeouts {
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
pub(crate) struct StateChange {
    #[prost(uint32, tag = "1")]
    pub state: u32,
    #[prost(string, tag = "2")]
    pub detail: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(uint64, tag = "1")]
    pub second: u64,
    /// Absent when all is zero: a heartbeat.
    #[prost(message, optional, tag = "2")]
    pub load: Option<Load>,
    #[prost(message, optional, tag = "3")]
    pub usage: Option<ResourceUsage>,
    #[prost(message, optional, tag = "4")]
    pub late_bytes: Option<LateBytes>,
}

/// The count of connections on which the app sent bytes behind a whole response.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct LateBytes {
    /// Connections on which bytes came.
    #[prost(uint32, tag = "1")]
    pub connections: u32,
    /// Nanoseconds until connections are used again.
    #[prost(uint64, tag = "2")]
    pub reuse_in: u64,
}

/// The resources that an app used.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ResourceUsage {
    /// CPU in thousandths of a core.
    #[prost(uint64, tag = "1")]
    pub cpu: u64,
    /// Memory in use, in bytes.
    #[prost(uint64, tag = "2")]
    pub memory: u64,
    /// The time over which CPU was measured, in nanoseconds.
    #[prost(uint64, tag = "3")]
    pub window: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Load {
    #[prost(double, tag = "1")]
    pub concurrency: f64,
    #[prost(double, tag = "2")]
    pub proxied_concurrency: f64,
    #[prost(double, tag = "3")]
    pub request_rate: f64,
    #[prost(double, tag = "4")]
    pub proxied_request_rate: f64,
    #[prost(uint32, tag = "5")]
    pub queued: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Present {
    #[prost(uint32, tag = "1")]
    pub in_flight: u32,
    #[prost(uint32, tag = "2")]
    pub waiting: u32,
}

/// One frame from the autoscaler to a queue-proxy.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodOrder {
    #[prost(oneof = "PodOrderBody", tags = "1, 2")]
    pub body: Option<PodOrderBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum PodOrderBody {
    #[prost(message, tag = "1")]
    Settings(PodSettings),
    #[prost(message, tag = "2")]
    Heartbeat(EmptyMessage),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodSettings {
    #[prost(uint32, optional, tag = "1")]
    pub surge_threshold: Option<u32>,
    #[prost(uint32, tag = "2")]
    pub routing: u32,
    #[prost(string, repeated, tag = "3")]
    pub hop_keys: Vec<String>,
    #[prost(message, optional, tag = "4")]
    pub version: Option<Version>,
    /// Nanoseconds; absent while the pod stays.
    #[prost(uint64, optional, tag = "5")]
    pub leaving_within: Option<u64>,
    #[prost(bool, tag = "6")]
    pub released: bool,
    /// Absent while no Service that led to the pod was adopted, and from an owner that knows none.
    #[prost(uint64, optional, tag = "7")]
    pub adoption: Option<u64>,
    /// Bytes; absent where it is 131,072, and from an owner that knows no other.
    #[prost(uint32, optional, tag = "8")]
    pub head_size_limit: Option<u32>,
    #[prost(bool, tag = "9")]
    pub appends_late: bool,
}

/// One frame from an activator to an autoscaler.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivatorReport {
    #[prost(oneof = "ActivatorReportBody", tags = "1, 2, 3, 4, 5, 6")]
    pub body: Option<ActivatorReportBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ActivatorReportBody {
    #[prost(message, tag = "1")]
    Hello(ActivatorHello),
    #[prost(message, tag = "2")]
    Loads(Second),
    #[prost(message, tag = "3")]
    Present(RevisionPresent),
    #[prost(message, tag = "4")]
    Acknowledged(RevisionVersion),
    /// The name of a revision.
    #[prost(string, tag = "5")]
    Emptied(String),
    #[prost(message, tag = "6")]
    Draining(EmptyMessage),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivatorHello {
    #[prost(string, tag = "1")]
    pub activator: String,
    #[prost(fixed64, tag = "2")]
    pub boot: u64,
    #[prost(uint64, tag = "3")]
    pub current_second: u64,
    #[prost(message, repeated, tag = "4")]
    pub history: Vec<Second>,
    #[prost(message, repeated, tag = "5")]
    pub present: Vec<RevisionPresent>,
    #[prost(message, repeated, tag = "6")]
    pub routings: Vec<RevisionRouting>,
    #[prost(uint32, tag = "7")]
    pub speaks: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RevisionRouting {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(uint32, tag = "2")]
    pub routing: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Second {
    #[prost(uint64, tag = "1")]
    pub second: u64,
    #[prost(message, repeated, tag = "2")]
    pub loads: Vec<RevisionLoad>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RevisionLoad {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(message, optional, tag = "2")]
    pub load: Option<Load>,
    /// The wait of the oldest waiting request, in nanoseconds.
    #[prost(uint64, tag = "3")]
    pub oldest_wait: u64,
    #[prost(message, repeated, tag = "4")]
    pub callers: Vec<Caller>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Caller {
    #[prost(string, tag = "1")]
    pub user_agent: String,
    /// The IP address in its usual notation.
    #[prost(string, tag = "2")]
    pub address: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RevisionPresent {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(message, optional, tag = "2")]
    pub count: Option<Present>,
    /// The wait of the oldest waiting request, in nanoseconds.
    #[prost(uint64, tag = "3")]
    pub oldest_wait: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RevisionVersion {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(message, optional, tag = "2")]
    pub version: Option<Version>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Version {
    #[prost(uint64, tag = "1")]
    pub epoch: u64,
    #[prost(uint64, tag = "2")]
    pub counter: u64,
}

/// One frame from an autoscaler to an activator.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActivatorOrder {
    #[prost(oneof = "ActivatorOrderBody", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub body: Option<ActivatorOrderBody>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ActivatorOrderBody {
    #[prost(message, tag = "1")]
    SyncBegin(SyncBegin),
    #[prost(message, boxed, tag = "2")]
    Assign(Box<Assignment>),
    #[prost(message, tag = "3")]
    Remove(RevisionVersion),
    #[prost(message, tag = "4")]
    SyncEnd(EmptyMessage),
    #[prost(message, tag = "5")]
    Heartbeat(EmptyMessage),
    #[prost(message, tag = "6")]
    Forget(RevisionVersion),
    #[prost(message, tag = "7")]
    Released(Buckets),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SyncBegin {
    #[prost(string, tag = "1")]
    pub owner: String,
    #[prost(message, repeated, tag = "2")]
    pub owned: Vec<OwnedBucket>,
    /// How many there are in all; 0 from an owner that knows no buckets.
    #[prost(uint32, tag = "3")]
    pub buckets: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct OwnedBucket {
    #[prost(uint32, tag = "1")]
    pub bucket: u32,
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Buckets {
    #[prost(uint32, repeated, tag = "1")]
    pub buckets: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Assignment {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(message, optional, tag = "2")]
    pub version: Option<Version>,
    #[prost(string, repeated, tag = "3")]
    pub hosts: Vec<String>,
    #[prost(uint32, tag = "4")]
    pub routing: u32,
    #[prost(uint32, tag = "5")]
    pub container_concurrency: u32,
    #[prost(message, optional, tag = "6")]
    pub timeouts: Option<Timeouts>,
    #[prost(message, repeated, tag = "7")]
    pub pods: Vec<PodAssignment>,
    #[prost(string, repeated, tag = "8")]
    pub hop_keys: Vec<String>,
    #[prost(string, tag = "9")]
    pub waiting_for: String,
    #[prost(string, optional, tag = "10")]
    pub hold: Option<String>,
    #[prost(bool, tag = "11")]
    pub retired: bool,
    /// Absent where revisions are known by host, as before activators had ports for them.
    #[prost(uint32, repeated, tag = "12")]
    pub ports: Vec<u32>,
    /// Absent from an owner that knows none: the default is in force then.
    #[prost(message, optional, tag = "13")]
    pub ignored_user_agents: Option<UserAgents>,
    /// Bytes; absent where it is 131,072, and from an owner that knows no other.
    #[prost(uint32, optional, tag = "14")]
    pub head_size_limit: Option<u32>,
    /// The page in HTML, empty for the usual one; absent where browsers wait as programs do.
    #[prost(string, optional, tag = "15")]
    pub waiting_page: Option<String>,
}

/// User agents by how they begin.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserAgents {
    #[prost(string, repeated, tag = "1")]
    pub prefixes: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodAssignment {
    #[prost(string, tag = "1")]
    pub pod: String,
    #[prost(string, tag = "2")]
    pub address: String,
    #[prost(uint32, tag = "3")]
    pub state: u32,
    #[prost(uint32, tag = "4")]
    pub slots: u32,
    /// Absent while one activator alone uses the pod, as before there were several.
    #[prost(uint32, tag = "5")]
    pub slice: u32,
    /// Ports of the activator to ports of the pod.
    #[prost(btree_map = "uint32, uint32", tag = "6")]
    pub exits: BTreeMap<u32, u32>,
    /// Absent in an installation of ebb's own.
    #[prost(bool, tag = "7")]
    pub is_plain: bool,
}
