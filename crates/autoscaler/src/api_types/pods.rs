//! What the API says of the pods of a revision, and of the last ones that failed or were killed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use vocabulary::{PodName, PodState};

/// One pod, by the platform's facts and by its own link.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own in the API")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodView {
    /// Unique among the pods of its revision.
    pub name: PodName,
    /// The pod's phase: `pending`, `running` or `terminating`.
    pub phase: String,
    /// Whether it may take requests.
    pub state: PodState,
    /// It is to end, and finishes what it holds.
    pub leaving: bool,
    /// It runs an older template.
    pub outdated: bool,
    /// Whether the autoscaler's link to it is up.
    pub linked: bool,
    /// Requests in flight in its last reported second, averaged, waiting ones included.
    pub in_flight: f64,
    /// Of them, those that waited for a slot.
    pub queued: u32,
    /// What its app sent behind whole responses; absent while its connections are used again as ever.
    #[serde(default)]
    pub late_bytes: Option<LateBytesView>,
    /// How long ago it was last heard; absent if never.
    pub heard_ms_ago: Option<u64>,
    /// How long ago the autoscaler that decides asked for it; absent if it did not.
    #[serde(default)]
    pub asked_ms_ago: Option<u64>,
    /// Since when the autoscaler that decides knows it; absent for a moment at first.
    #[serde(default)]
    pub known_ms_ago: Option<u64>,
    /// How long ago it was first known to run; absent while it did not.
    #[serde(default)]
    pub running_ms_ago: Option<u64>,
    /// How long ago it was first seen ready; absent while it was not.
    #[serde(default)]
    pub ready_ms_ago: Option<u64>,
    /// How long ago it was first seen on its way out; absent while it is not.
    #[serde(default)]
    pub ending_ms_ago: Option<u64>,
    /// The address on which its queue-proxy takes requests.
    pub requests: Option<SocketAddr>,
    /// Where it takes the autoscaler's link.
    pub link: Option<SocketAddr>,
    /// Whether its start waits until starts of other pods use less of the machine's cores.
    #[serde(default)]
    pub awaits_core: bool,
    /// Why it is in trouble or not ready: exit codes, probe failures, a link that cannot be opened.
    pub trouble: Option<String>,
    /// Pids, ports and more that the platform knows (`app_pid`, `queue_proxy_pid`, `app_port`,
    /// `metrics_port`, …).
    pub details: BTreeMap<String, String>,
}

/// A pod that is gone, and its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedPodView {
    /// The name that it had.
    pub name: PodName,
    /// How long ago the autoscaler asked for it; absent if it did not.
    #[serde(default)]
    pub asked_ms_ago: Option<u64>,
    /// How long ago the autoscaler first knew it.
    pub known_ms_ago: u64,
    /// How long ago it was first known to run; absent if it never did.
    #[serde(default)]
    pub running_ms_ago: Option<u64>,
    /// How long ago it was first seen ready; absent if it never was.
    pub ready_ms_ago: Option<u64>,
    /// How long ago it was first seen on its way out; absent if it was gone without that.
    pub ending_ms_ago: Option<u64>,
    /// How long ago it was first missing.
    pub gone_ms_ago: u64,
    /// Why it ended, as far as is known.
    pub why: String,
}

/// Bytes that an app sent behind whole responses over HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateBytesView {
    /// The connections on which they came since the queue-proxy started.
    pub connections: u32,
    /// For how long each further connection to the app is used for one request alone.
    pub reuse_in_ms: u64,
}

/// How a pod of the revision failed last, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureView {
    /// The pod that failed, which may be gone by now.
    pub pod: PodName,
    /// The age of the failure in milliseconds.
    pub age_ms: u64,
    /// What happened ("the app exited with code 3").
    pub reason: String,
    /// The last lines of its standard error, oldest first.
    pub last_lines: Vec<String>,
    /// Where these were left out: what to do to see them.
    #[serde(default)]
    pub withheld: Option<String>,
}

/// How a pod was killed that had been told to end and did not in its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillView {
    /// The pod that was killed, which may be gone by now.
    pub pod: PodName,
    /// The age of the kill in milliseconds.
    pub age_ms: u64,
    /// What was killed, and how long after TERM ("the app was killed 10 s after TERM").
    pub reason: String,
}
