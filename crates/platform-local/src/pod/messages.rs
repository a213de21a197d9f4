//! What `ebb pod` tells the supervisor: one JSON object per line on the socket that is its standard input.

use serde::{Deserialize, Serialize};
use vocabulary::LinkToken;

/// A fact about the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum PodMessage {
    /// Both processes run.
    Started {
        /// The app's process.
        app_pid: i32,
        /// The queue-proxy's process.
        queue_proxy_pid: i32,
        /// What the app was given as `$PORT`.
        app_port: u16,
    },
    /// The queue-proxy listens.
    Announced(Announcement),
    /// The queue-proxy logged a line.
    QueueProxyLogged {
        /// Without its end.
        line: String,
    },
    /// App or queue-proxy ended by itself, or could not be started; the other is being ended.
    Failed {
        /// What happened, for people.
        reason: String,
    },
}

/// The ports of a queue-proxy, and who may call it, as it prints them when it listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// Requests.
    pub(crate) requests: u16,
    /// Health and drain.
    pub(crate) admin: u16,
    /// The autoscaler's link.
    pub(crate) link: u16,
    /// Knative-compatible measurements.
    pub(crate) stat: u16,
    /// Prometheus.
    pub(crate) metrics: u16,
    /// What it wants to hear from whoever calls its link port.
    #[serde(default)]
    pub(crate) link_token: Option<LinkToken>,
}

/// The longest line in either direction: a specification with all its environment fits easily, and anything longer is not ours.
pub(crate) const LONGEST_LINE: usize = 1 << 20;
