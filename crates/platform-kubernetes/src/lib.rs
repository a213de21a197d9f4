//! Where pods live: as Kubernetes' objects.
//!
//! A Service that names a workload (`ebb.dev/revision`) and has no selector is *adopted*: the workload's count is written through its `scale` subresource, and
//! who serves through `EndpointSlice`s of the Service. There is no resource of our own. Who may write is a Lease's word, asked immediately before each request.
//!
//! ```text
//!   API server ──watches──► Index (what is there) ──facts──► autoscaler
//!       ▲                     │                                  │
//!       └──────requests───── Task ◄────────── desk ◄───orders────┘
//! ```
//!
//! Everything that reads or compares objects is pure (`resources`, `index`, `slices`, `scale`, `lease`); `watches` and `requests` are the edge.

mod audience;
mod desk;
mod index;
mod lease;
mod metric_apis;
mod observation;
mod port_book;
mod requests;
mod resources;
mod routes;
mod scale;
mod secrets;
mod slices;
mod target;
mod task;
mod wall;
mod watches;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Client;
use platform::{MetricSource, Platform, Subscription};
use runtime::{Clock, vital};
use thiserror::Error;
use tokio::sync::mpsc;
use vocabulary::ReplicaName;

use crate::desk::{Arrival, Desk, KubernetesSeat, SeatId};
use crate::metric_apis::MetricApis;
pub use crate::observation::ObservedTarget;
use crate::requests::Requests;
pub use crate::secrets::SecretError;
use crate::secrets::Secrets;
use crate::task::Task;

/// Facts that may wait for the autoscaler; more are kept as "changed", not as facts.
const FACTS_MAX: usize = 256;
/// Older API servers lack what this stands on (native sidecars, `trafficDistribution`).
const MINOR_MIN: u32 = 29;

/// What [`KubernetesPlatform::start`] needs to know.
#[derive(Clone, Debug)]
pub struct KubernetesConfig {
    /// This autoscaler's name, by which it holds the lease; its pod's name.
    pub name: ReplicaName,
    /// The namespace of our own programs.
    pub namespace: String,
    /// This process's clock.
    pub clock: Clock,
}

/// Why there is no platform.
#[derive(Debug, Error)]
pub enum StartError {
    /// There is no way to an API server.
    #[error("no way to an API server: neither a service account of a pod nor a kubeconfig")]
    Configuration(#[source] Box<kube::Error>),
    /// It did not answer.
    #[error("the API server did not say its version")]
    Unreachable(#[source] Box<kube::Error>),
    /// It is too old.
    #[error("the cluster runs Kubernetes {found}; ebb needs 1.{MINOR_MIN} or newer")]
    TooOld {
        /// Its version.
        found: String,
    },
    /// What our programs must know could be neither read nor made.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// Pods as Kubernetes runs them.
#[derive(Debug)]
pub struct KubernetesPlatform {
    desk: Arc<Desk>,
    metric_apis: Arc<MetricApis>,
    seats_taken: AtomicU64,
}

impl KubernetesPlatform {
    /// Connects and begins to watch, on the current tokio runtime. Nothing is written, but a Secret that is missing, before somebody takes a seat.
    pub async fn start(config: KubernetesConfig) -> Result<Arc<Self>, StartError> {
        let client =
            Client::try_default().await.map_err(|error| StartError::Configuration(Box::new(error)))?;
        require_version(&client).await?;
        let secrets = Secrets::find_or_make(client.clone(), &config.namespace).await?;
        let news = watches::start(&client, &config.namespace);
        let desk = Arc::<Desk>::default();
        let KubernetesConfig { name, namespace, clock } = config;
        let metric_apis = Arc::new(MetricApis::new(client.clone(), clock, Arc::clone(&desk)));
        let requests = Requests { client, namespace, clock, right: Arc::default() };
        let task = Task::new(name, requests, secrets, Arc::clone(&desk));
        tokio::spawn(vital("the platform's task", task.run(news)));
        Ok(Arc::new(Self { desk, metric_apis, seats_taken: AtomicU64::default() }))
    }

    /// Returns once what was owned is free for others, after the seat was left.
    pub async fn given_up(&self) {
        self.desk.given_up.notified().await;
    }
}

impl Platform for KubernetesPlatform {
    fn subscribe(&self, _owner: &ReplicaName) -> Subscription {
        let (facts_in, facts) = mpsc::channel(FACTS_MAX);
        let seat = SeatId(self.seats_taken.fetch_add(1, Ordering::Relaxed) + 1);
        self.desk.leave(|left| left.arrival = Some(Arrival { seat, facts: facts_in }));
        Subscription {
            facts,
            seat: Box::new(KubernetesSeat { id: seat, desk: Arc::clone(&self.desk) }),
            renew_every: Some(lease::RENEW_EVERY),
        }
    }

    fn metric_source(&self) -> Option<Arc<dyn MetricSource>> {
        Some(Arc::<MetricApis>::clone(&self.metric_apis))
    }
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
