//! Where pods live: the one seam that is chosen at start. A platform tells facts ([`PlatformEvent`]) and takes orders
//! ([`PlatformCommand`]); the autoscaler holds an `Arc<dyn Platform>` and knows neither Kubernetes nor processes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scaling::{ClusterConfig, PodPhase, RevisionOrigin, RevisionSettings};
use serde::Serialize;
use tokio::sync::mpsc;
use vocabulary::{
    HopKey, LinkAddress, PodCount, PodName, PodState, ReplicaName, RequestTimeouts, RevisionName, Timestamp,
};

/// What runs the pods.
pub trait Platform: Send + Sync + 'static {
    /// The facts: first everything that is, closed by [`PlatformEvent::Synced`], then changes. A second call ends the
    /// former subscription (an autoscaler was rebuilt) and starts anew with everything that is.
    fn subscribe(&self) -> mpsc::Receiver<PlatformEvent>;

    /// Gives an order. Never blocks; orders about the same thing replace each other, the latest wins.
    fn execute(&self, command: PlatformCommand);
}

/// A fact about the platform. State, not edges: each says what is, whole.
#[derive(Clone, Debug)]
pub enum PlatformEvent {
    /// `config-autoscaler` as it now applies.
    ConfigChanged(Arc<ClusterConfig>),
    /// A configuration or manifest as written is refused and the last good one stays. An empty list: all is well again.
    ProblemsChanged(Vec<String>),
    /// A revision appeared or changed.
    RevisionChanged(Arc<RevisionFacts>),
    /// A revision is gone, with all its pods.
    RevisionRemoved(RevisionName),
    /// The pods of a revision, all of them.
    PodsChanged {
        /// Whose.
        revision: RevisionName,
        /// In the order of their names.
        pods: Vec<PodFacts>,
    },
    /// How a pod of a revision failed last; said again to every new subscriber, until the revision is gone.
    PodFailed {
        /// Whose.
        revision: RevisionName,
        /// How.
        failure: PodFailure,
    },
    /// The activators that exist.
    ActivatorsChanged(Vec<ActivatorFacts>),
    /// Everything that was there at the subscription has been said.
    Synced,
}

/// A revision as the platform knows it.
#[derive(Clone, Debug)]
pub struct RevisionFacts {
    /// Its name.
    pub name: RevisionName,
    /// Its own settings (annotations), checked.
    pub settings: RevisionSettings,
    /// The most requests in one pod at once; 0 means no limit.
    pub container_concurrency: u32,
    /// Its request timeouts.
    pub timeouts: RequestTimeouts,
    /// How long a pod may take to get ready.
    pub progress_deadline: Duration,
    /// Hosts (lower case, without port) whose requests are for it.
    pub hosts: Vec<String>,
    /// Where a person's browser reaches it, if the platform knows.
    pub url: Option<String>,
    /// Proves to its queue-proxies that a request comes from an activator; newest first. Outlives the autoscaler.
    pub hop_keys: Vec<HopKey>,
    /// The platform's replica count.
    pub wanted: PodCount,
    /// Whether it had a life before: pods that were ready, or a count that somebody gave it.
    pub origin: RevisionOrigin,
    /// What people call its present template (locally `NAME-00001`).
    pub template: String,
}

/// A pod as the platform knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodFacts {
    /// Its name.
    pub name: PodName,
    /// How far its life has come.
    pub phase: PodPhase,
    /// The platform wants it gone and waits for [`PlatformCommand::ReleasePod`] (or 5 s) before it ends it.
    pub leaving: bool,
    /// The platform's word on readiness; `None` where it has none.
    pub platform_ready: Option<bool>,
    /// Its queue-proxy's request port, once known.
    pub requests: Option<SocketAddr>,
    /// Where its queue-proxy takes a link, once known.
    pub link: Option<LinkAddress>,
    /// Whether it runs an older template than the revision's present one.
    pub outdated: bool,
    /// Why it is in trouble, for people ("the app exited with code 3").
    pub trouble: Option<String>,
    /// Why no request should wait for it, for people ("it failed 3 times in a row …"); `None` while a wait may help.
    pub hold: Option<String>,
    /// More for people and programs: pids, ports (`app_pid`, `queue_proxy_pid`, `app_port`, `metrics_port`, …).
    pub details: BTreeMap<String, String>,
}

/// How a pod failed: what people look for when its successor runs already, or nothing does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailure {
    /// The pod.
    pub pod: PodName,
    /// When.
    pub at: Timestamp,
    /// What happened ("the app exited with code 3").
    pub reason: String,
    /// The last lines of its standard error, oldest first; empty where the platform has none.
    pub last_lines: Vec<String>,
}

/// An activator as the platform knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivatorFacts {
    /// Its name.
    pub name: ReplicaName,
    /// Where it takes a link.
    pub link: LinkAddress,
}

/// An order to the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformCommand {
    /// Write the replica count.
    ScaleTo {
        /// Of which revision.
        revision: RevisionName,
        /// To this.
        count: PodCount,
        /// Which pods to end first if some must end (least loaded first); the platform may take it as a hint.
        end_first: Vec<PodName>,
    },
    /// Every activator has acknowledged that it picks the pod no more: it may be told to end.
    ReleasePod(PodName),
    /// What a pod said on its link. A platform without probes of its own (locally) goes by this in rollouts and back-offs.
    NotePodState {
        /// Which pod.
        pod: PodName,
        /// What it said.
        state: PodState,
        /// Why it is not ready, for people; empty when there is nothing to say.
        detail: String,
    },
}
