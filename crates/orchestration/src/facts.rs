//! What a platform tells. State, not edges: each fact says what is, whole, and one about a stranger is
//! ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scaling::{PodPhase, RevisionOrigin};
use serde::{Deserialize, Serialize};
use settings::{ClusterConfig, FloorCause, RevisionSettings};
use vocabulary::{
    AdoptionId, HopKey, LinkAddress, Ownership, PodCount, PodExits, PodName, ReplicaName, RequestTimeouts,
    RevisionName, Routing, Timestamp, WaitingPage,
};

use crate::order_outcome::{OrderId, OrderOutcome};

/// A fact about the platform.
#[derive(Clone, Debug)]
pub enum PlatformFact {
    /// `config-autoscaler` as it now applies.
    ConfigChanged(Arc<ClusterConfig>),
    /// What is wrong with a thing as it was written; the last good one stays. Nothing if the list is empty.
    ProblemsChanged {
        /// The object whose text is refused.
        about: Subject,
        /// The problems, one line of text each.
        problems: Vec<String>,
    },
    /// The buckets that are ours. What is not named is not ours any more. Before a bucket has a new epoch,
    /// the platform says the present count of each of its revisions: orders of the former epoch may be
    /// refused.
    OwnershipChanged(Ownership),
    /// A revision appeared or changed.
    RevisionChanged(Arc<RevisionFacts>),
    /// A revision is gone, with all its pods.
    RevisionRemoved(RevisionName),
    /// Others serve a revision from now on, and its pods go on: what waits for it is still served, and then
    /// it is forgotten.
    RevisionGivenBack(RevisionName),
    /// The pods of a revision, all of them.
    PodsChanged {
        /// All pods that are told are its own.
        revision: RevisionName,
        /// In the order of their names.
        pods: Vec<PodFacts>,
    },
    /// How a pod of a revision failed last; said again to every new subscriber, until the revision is gone.
    PodFailed {
        /// The one whose pod failed.
        revision: RevisionName,
        /// The instant, the reason and the app's last lines.
        failure: PodFailure,
    },
    /// How a pod of a revision was killed last because it did not end in time; said again like
    /// [`PlatformFact::PodFailed`].
    PodKilled {
        /// The one whose pod was killed.
        revision: RevisionName,
        /// The instant, and what outlived its time.
        kill: PodKill,
    },
    /// All activators that exist; one that is missing here is gone.
    ActivatorsChanged(Vec<ActivatorFacts>),
    /// The route that an earlier owner left in force, read from what is written.
    RouteFound {
        /// The one that is served so.
        revision: RevisionName,
        /// The routing and the activators that are written.
        route: RouteInForce,
    },
    /// How an order ended, or why it has not yet.
    OrderEnded {
        /// As the order was numbered.
        order: OrderId,
        /// The end of the order, unless it is [`OrderOutcome::Retrying`].
        outcome: OrderOutcome,
    },
    /// Everything that was there at the subscription has been said.
    Synced,
}

/// The object that a problem or a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The configuration as a whole.
    Configuration,
    /// The revision of this name, whole.
    Revision(RevisionName),
    /// One pod, by its own name.
    Pod(PodName),
    /// One activator, by its own name.
    Activator(ReplicaName),
}

/// A revision as the platform knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RevisionFacts {
    /// The revision's whole name, `namespace/kind/name`.
    pub name: RevisionName,
    /// Its own settings (annotations), checked.
    #[serde(with = "settings::whole_form")]
    pub settings: RevisionSettings,
    /// The most requests in one pod at once; 0 means no limit.
    pub container_concurrency: u32,
    /// How long its requests may take, by stage.
    pub timeouts: RequestTimeouts,
    /// How long a pod may take to get ready.
    pub progress_deadline: Duration,
    /// By which requests for it are known.
    pub entrances: Vec<Entrance>,
    /// Where a person's browser reaches it, if the platform knows.
    pub url: Option<String>,
    /// Prove to its queue-proxies that a request comes from an activator: the first is sent, all are taken.
    /// They outlive the autoscaler.
    #[serde(with = "vocabulary::exposed_hop_keys")]
    pub hop_keys: Vec<HopKey>,
    /// The replica count that the platform has written for it.
    pub wanted: PodCount,
    /// Whether the platform may write the count. Where it may not, everything is decided and nothing is
    /// ordered, as in shadow.
    pub may_write: bool,
    /// Whether traffic can arrive at all. A revision without traffic keeps no pod for its settings' sake.
    pub reachable: bool,
    /// The least count, whatever the settings say: the platform knows of clients that only pods serve. Zero
    /// for none.
    pub floor: PodCount,
    /// Why there is a floor; without meaning while that is zero.
    pub floor_cause: FloorCause,
    /// Why no request should wait for a pod, for people, while none is ready and none is wanted (`"paused"`);
    /// `None` while a wait may help.
    pub hold: Option<String>,
    /// Whether it had a life before: pods that were ready, or a count that a person or a manifest gave it.
    pub origin: RevisionOrigin,
    /// What a browser is shown while it would wait for a pod.
    pub waiting_page: WaitingPage,
    /// What people call its present template (locally `NAME-00001`).
    pub template: String,
    /// Another autoscaler that scales the same pods, such as Kubernetes' own; it is shown beside ours.
    pub other_autoscaler: Option<OtherAutoscaler>,
}

impl fmt::Display for Subject {
    /// As logs name the object.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration => to.write_str("the configuration"),
            Self::Revision(name) => name.fmt(to),
            Self::Pod(name) => write!(to, "pod {name}"),
            Self::Activator(name) => write!(to, "activator {name}"),
        }
    }
}

/// What another autoscaler says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherAutoscaler {
    /// Of the `HorizontalPodAutoscaler`, in the namespace of the revision.
    pub name: String,
    /// How many pods it wants.
    pub desired: PodCount,
    /// The number of pods that the other autoscaler found.
    pub current: PodCount,
    /// Each of its metrics beside its target.
    pub metrics: String,
    /// Why it wants what it wants, in its own words.
    pub why: String,
}

impl RevisionFacts {
    /// The hosts among its entrances.
    pub fn hosts(&self) -> Vec<String> {
        let hosts = self.entrances.iter().filter_map(|entrance| match entrance {
            Entrance::Host(host) => Some(host.clone()),
            Entrance::Port(_) => None,
        });
        hosts.collect()
    }

    /// The ports of activators among its entrances.
    pub fn ports(&self) -> BTreeSet<u16> {
        let ports = self.entrances.iter().filter_map(|entrance| match entrance {
            Entrance::Host(_) => None,
            Entrance::Port(port) => Some(*port),
        });
        ports.collect()
    }
}

/// The host or port by which an activator knows the revision of a request. The platform allocates them and
/// may give one to another revision only after [`crate::Order::ReleaseEntrance`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Entrance {
    /// The request's host: lower case, without port.
    Host(String),
    /// The port of the activator on which it came.
    Port(u16),
}

/// A pod as the platform knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFacts {
    /// Unique among the pods of its revision.
    pub name: PodName,
    /// How far its life has come.
    pub phase: PodPhase,
    /// The platform wants it gone and waits for [`crate::Order::ReleasePod`], for a while, before it ends it.
    pub leaving: bool,
    /// The platform ends it without waiting for us, in so long; `None` while it does not.
    pub ends_in: Option<Duration>,
    /// The platform's word on readiness; `None` where it has none.
    pub platform_ready: Option<bool>,
    /// Its queue-proxy's request port, once known.
    pub requests: Option<SocketAddr>,
    /// Where requests go in it that come by a port of an activator, if not there.
    pub exits: PodExits,
    /// Where its queue-proxy takes a link, once known.
    pub link: Option<LinkAddress>,
    /// The latest adoption of a Service of its revision, if the pod was there before it: its app's own ports
    /// may have clients from then.
    pub adoption: Option<AdoptionId>,
    /// Whether it runs an older template than the revision's present one.
    pub outdated: bool,
    /// Whether its start waits until starts of other pods use less of the machine's cores. It has no process
    /// yet.
    pub awaits_core: bool,
    /// Why it is in trouble, for people ("the app exited with code 3").
    pub trouble: Option<String>,
    /// The same without a word that its app printed ([`AppOutput::Withheld`]); `None` where `trouble` has no
    /// such word.
    pub trouble_without_output: Option<String>,
    /// Why no request should wait for it, as clients are told ("3 failures in a row: …"); `None` while a wait
    /// may help. With a word that its app printed only where clients are to read such words.
    pub hold: Option<String>,
    /// More for people and programs: pids, ports (`app_pid`, `queue_proxy_pid`, `app_port`, `metrics_port`,
    /// …).
    pub details: BTreeMap<String, String>,
}

/// Whether an answer repeats what apps printed: that may hold anything that an app knows, and is for those
/// who may read its logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppOutput {
    /// The answer repeats what apps printed.
    #[default]
    Shown,
    /// The answer says [`AppOutput::ADVICE`] instead.
    Withheld,
}

impl AppOutput {
    /// Stands where the last lines of an app would.
    pub const ADVICE: &str = "run as the user of ebb to see its last lines";

    /// A text of the platform as a client of the revision reads it: no command was run that could be run as
    /// another user, so the text names the command.
    pub(crate) fn advise_client(text: &str, revision: &RevisionName) -> String {
        text.replace(Self::ADVICE, &format!("`ebb explain {revision}` shows its last lines"))
    }
}

/// How a pod failed: what people look for when its successor runs already, or nothing does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFailure {
    /// The pod that failed, which may be gone by now.
    pub pod: PodName,
    /// The instant at which its process ended, or was seen to have.
    pub at: Timestamp,
    /// What happened ("the app exited with code 3").
    pub reason: String,
    /// The last lines of its standard error, oldest first; empty where the platform has none.
    pub last_lines: Vec<String>,
}

/// How a pod was killed that had been told to end and did not in the time that it had. That is no failure:
/// its requests were answered before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodKill {
    /// The pod that was killed, which may be gone by now.
    pub pod: PodName,
    /// The instant of the kill.
    pub at: Timestamp,
    /// What was killed, and how long after TERM ("the app was killed 10 s after TERM").
    pub reason: String,
}

/// An activator as the platform knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivatorFacts {
    /// As it names itself on its link.
    pub name: ReplicaName,
    /// Where it takes a link.
    pub link: LinkAddress,
    /// Whether routes may name the activator now.
    pub life: ActivatorLife,
}

/// How far an activator's life has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActivatorLife {
    /// The activator takes requests, and routes may name it.
    #[default]
    Ready,
    /// It does not serve now, and may again.
    NotReady,
    /// It is on its way out and finishes what it holds.
    Terminating,
}

/// The route of a revision, as the platform has it written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteInForce {
    /// Whether pods or activators take the requests.
    pub routing: Routing,
    /// The activators: those in the path, or those that stand in while no pod is ready. In the order of their
    /// names.
    pub activators: Vec<ReplicaName>,
}
