//! What `ebb pod` tells the supervisor: one JSON object per line on the socket that is its standard input.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};
use vocabulary::QueueProxyAnnouncement;

/// A fact about the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum PodMessage {
    /// The processes of all containers and the queue-proxy run.
    Started {
        app_pid: i32,
        queue_proxy_pid: i32,
        /// What the app was given as `$PORT`.
        app_port: u16,
        /// The containers beside the app's, in the order of the manifest.
        #[serde(default)]
        sidecars: Vec<SidecarProcess>,
    },
    /// The queue-proxy listens at these ports.
    Announced(QueueProxyAnnouncement),
    /// The queue-proxy logged a line.
    QueueProxyLogged {
        /// The line without its newline.
        line: String,
    },
    /// A container or the queue-proxy ended by itself, or could not be started; the others are being ended.
    Failed {
        /// What happened, as a sentence for people.
        reason: String,
        /// The container, where there are several and it was one of them.
        #[serde(default)]
        container: Option<String>,
    },
    /// The app answered a request, for the first time.
    Answered,
    /// The app listens, but not on the port that it was given; or that is over.
    ListensElsewhere {
        /// On which addresses it listens, as a sentence for people; `None` once that is over.
        trouble: Option<String>,
    },
    /// The image of the app could not be started in a network of its own, and begins in that of the host.
    BeganInHostNetwork,
    /// The container of an image is gone, and its engine holds nothing of it any more.
    ContainerRemoved,
    /// What is left of the containers when their time to end is over is killed.
    Killed {
        /// Which processes, and how long after TERM, for people.
        reason: String,
    },
}

/// A container beside the app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SidecarProcess {
    /// The name of the container in the manifest.
    pub(crate) name: String,
    /// The number of the container's first process.
    pub(crate) pid: i32,
    /// What it was given as `$PORT`.
    pub(crate) port: u16,
}

/// The longest line in either direction: a specification with all its environment fits easily, and anything
/// longer is not ours.
pub(crate) const LONGEST_LINE: usize = 1 << 20;

/// Tells the supervisor, at the other end of our standard input. If it does not listen any more, the end of
/// standard input says so too.
pub(super) fn tell(message: &PodMessage) {
    let mut line = serde_json::to_vec(message).expect("messages are plain data");
    line.push(b'\n');
    // Through a copy, because the standard library only reads from standard input.
    let _ = io::stdin().as_fd().try_clone_to_owned().and_then(|socket| File::from(socket).write_all(&line));
}
