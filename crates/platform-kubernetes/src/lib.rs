//! Where pods live: as Kubernetes' objects.
//!
//! A Service that names a workload (`ebb.dev/revision`) and has no selector is *adopted*: the workload's
//! count is written through its `scale` subresource, and the route through `EndpointSlice`s of the Service.
//! There is no resource of our own. A Lease says which autoscaler may write; it is asked immediately before
//! each request. In an installed Knative the objects are Knative's.
//!
//! ```text
//!   API server ──watches──► ClusterState ──facts──► autoscaler
//!       ▲                        │                       │
//!       └──────requests──────── Task ◄──── inbox ◄─orders┘
//! ```
//!
//! Everything that reads or compares objects, and everything that is remembered of writes on their way, is
//! the pure crate `cluster`: a [`ClusterState`] decides what is told and written. This crate watches,
//! performs, keeps the clocks and writes the log; the metric APIs and the certificates of links are its own.

mod clocks;
mod cluster_inbox;
mod connection;
mod history_shelf;
mod knative;
mod metric_apis;
mod observation;
mod requests;
mod secrets;
mod task;
mod trust;
mod watches;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cluster::knative::holder_identity;
use cluster::{ClusterState, ClusterStateConfig, Installation, SeatNumber};
use kube::Client;
use platform::{HistoryShelf, MetricSource, Platform, Subscription};
use runtime::{Clock, vital};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use vocabulary::ReplicaName;

use crate::clocks::wall_seconds;
use crate::cluster_inbox::{ClusterInbox, KubernetesSeat, NewSeat};
use crate::history_shelf::ConfigMapShelf;
pub use crate::knative::{KnativePlace, KnativeRefusal};
use crate::metric_apis::MetricApis;
pub use crate::observation::ObservedTarget;
use crate::requests::Requests;
pub use crate::secrets::SecretError;
use crate::task::ClusterTask;
use crate::trust::Trust;
pub use crate::trust::{LinkCertificates, LinkKey, TrustError};

/// The number of facts that may wait for the autoscaler; further changes wait in the index as topics.
const FACTS_MAX: usize = 256;
/// Older API servers lack what this stands on (native sidecars, `trafficDistribution`).
const MINOR_MIN: u32 = 29;

/// The names, the number of buckets and the clock with which [`KubernetesPlatform::start`] begins.
#[derive(Clone, Debug)]
pub struct KubernetesConfig {
    /// This autoscaler's name, by which it holds the lease; its pod's name.
    pub name: ReplicaName,
    /// The namespace of our own programs.
    pub namespace: String,
    /// Into how many buckets revisions are hashed, each of which one autoscaler decides about; from 1. All
    /// autoscalers that run say the same. In an installed Knative its own configuration says it.
    pub buckets: u16,
    /// What the autoscaler has to know in the place of an installed Knative's; `None` in ebb's own
    /// installation.
    pub knative: Option<KnativePlace>,
    /// The clock of the process, by which leases and waits are measured.
    pub clock: Clock,
}

/// Why there is no platform.
#[derive(Debug, Error)]
pub enum StartError {
    /// There is no way to an API server.
    #[error("no way to an API server: neither a service account of a pod nor a kubeconfig")]
    Configuration(#[source] Box<kube::Error>),
    /// The API server was asked for its version, and did not say one.
    #[error("the API server did not say its version")]
    Unreachable(#[source] Box<kube::Error>),
    /// The API server is of a version that lacks objects or fields that ebb needs.
    #[error("the cluster runs Kubernetes {found}; ebb needs 1.{MINOR_MIN} or newer")]
    TooOld {
        /// The version that the API server says, such as `v1.28.3`.
        found: String,
    },
    /// A Secret with keys of ebb's programs could be neither read nor made.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The certificates of links could be neither read nor made.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The place of an installed Knative's autoscaler cannot be taken.
    #[error(transparent)]
    Knative(#[from] KnativeRefusal),
}

/// Pods as Kubernetes runs them.
#[derive(Debug)]
pub struct KubernetesPlatform {
    inbox: Arc<ClusterInbox>,
    metric_apis: Arc<MetricApis>,
    history_shelf: Arc<ConfigMapShelf>,
    seats_taken: AtomicU64,
    certificates: watch::Receiver<LinkCertificates>,
    /// Whether what is decided about a revision stands in one of its objects.
    shows_decisions: bool,
}

impl KubernetesPlatform {
    /// Connects and begins to watch, on the current tokio runtime. Nothing is written, but a Secret that is
    /// missing, before an autoscaler takes a seat.
    pub async fn start(config: KubernetesConfig) -> Result<Arc<Self>, StartError> {
        let client =
            connection::connect().await.map_err(|error| StartError::Configuration(Box::new(error)))?;
        Self::start_with(client, config).await
    }

    async fn start_with(client: Client, config: KubernetesConfig) -> Result<Arc<Self>, StartError> {
        require_version(&client).await?;
        let KubernetesConfig { name, namespace, buckets, knative, clock } = config;
        let installation = match &knative {
            None => Installation::Ebb { buckets },
            Some(place) => knative::installation(client.clone(), &namespace, place).await?,
        };
        let keys = secrets::find_or_make(client.clone(), &namespace).await?;
        let trust = Trust::new(client.clone(), &namespace);
        let (shown, certificates) = watch::channel(trust.settle(wall_seconds()).await?);
        tokio::spawn(vital("the keeper of the links' certificates", trust.keep(shown)));
        let (watches, news) = watches::start(&client, &namespace, &installation);
        let inbox = Arc::<ClusterInbox>::default();
        let metric_apis = Arc::new(MetricApis::new(client.clone(), clock, Arc::clone(&inbox)));
        let (rights, pod_rights) = (Arc::default(), Arc::default());
        let shown_pods = watch::Sender::new(None);
        let requests = Requests { client, namespace, clock, rights, pod_rights, shown_pods };
        let history_shelf = Arc::new(ConfigMapShelf::new(requests.clone(), Arc::clone(&inbox)));
        // By the name of its holder Knative's other programs know whose a Lease is.
        let holder = match &knative {
            None => name.clone(),
            Some(place) => ReplicaName::new(&holder_identity(name.as_str(), &place.address)),
        };
        let config = ClusterStateConfig { name: holder, installation, keys, salt: salt() };
        let state = ClusterState::new(config);
        let task = ClusterTask::new(name, state, requests, watches, Arc::clone(&inbox));
        tokio::spawn(vital("the platform's task", task.run(news)));
        let shows_decisions = knative.is_some();
        let seats_taken = AtomicU64::default();
        Ok(Arc::new(Self { inbox, metric_apis, history_shelf, seats_taken, certificates, shows_decisions }))
    }

    /// The certificates that an autoscaler shows on links, now and after each renewal.
    pub fn link_certificates(&self) -> watch::Receiver<LinkCertificates> {
        self.certificates.clone()
    }

    /// Returns once what was owned is free for others, after the seat was left.
    pub async fn given_up(&self) {
        self.inbox.given_up.notified().await;
    }
}

impl Platform for KubernetesPlatform {
    fn subscribe(&self, _owner: &ReplicaName) -> Subscription {
        let (facts_in, facts) = mpsc::channel(FACTS_MAX);
        let seat = SeatNumber(self.seats_taken.fetch_add(1, Ordering::Relaxed) + 1);
        self.inbox.update(|contents| contents.new_seat = Some(NewSeat { seat, facts: facts_in }));
        Subscription {
            facts,
            seat: Box::new(KubernetesSeat {
                id: seat,
                inbox: Arc::clone(&self.inbox),
                shows_decisions: self.shows_decisions,
            }),
            renew_every: Some(cluster::RENEW_EVERY),
        }
    }

    fn history_shelf(&self) -> Option<Arc<dyn HistoryShelf>> {
        Some(Arc::<ConfigMapShelf>::clone(&self.history_shelf))
    }

    fn metric_source(&self) -> Option<Arc<dyn MetricSource>> {
        Some(Arc::<MetricApis>::clone(&self.metric_apis))
    }
}

/// A number that no autoscaler had before, so that names of Events are unique.
fn salt() -> u64 {
    let since = runtime::wall_time().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

async fn require_version(client: &Client) -> Result<(), StartError> {
    let version =
        client.apiserver_version().await.map_err(|error| StartError::Unreachable(Box::new(error)))?;
    // Some vendors write "29+".
    let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    match (version.major.as_str(), digits.parse::<u32>()) {
        ("1", Ok(minor)) if minor < MINOR_MIN => Err(StartError::TooOld { found: version.git_version }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
