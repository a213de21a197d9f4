//! How do objects come in? One task per kind ([`one_kind`]) lists and watches, reads each object into a small
//! record, and hands that on. A watch that breaks or expires lists anew, with growing waits; what is gone by
//! then is found by what the new list does not name.

mod custom;
mod expiry;
mod knative;
mod one_kind;
mod watch_waits;

use std::collections::BTreeSet;

use cluster::resources::kind::{CustomKind, WorkloadKind};
use cluster::resources::other_slice;
use cluster::resources::workload::objects;
use cluster::resources::{autoscaler, pod, service};
use cluster::{Installation, News, ShownPod, endpoints, read_lease};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use runtime::{OBSERVABILITY_CONFIG_MAP, Observability, vital};
use settings::CONFIG_MAP_NAME;
use tokio::sync::{mpsc, watch};
use vocabulary::{SLICE_WRITER, SLICE_WRITER_LABEL};

use one_kind::{everything, named, spawn};

/// Records that wait for the platform's task; watches wait when it is full.
const NEWS_MAX: usize = 1024;
/// The label of a node that names its zone.
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// Our own activators, in our own namespace.
const ACTIVATORS: &str = "app.kubernetes.io/name=ebb,app.kubernetes.io/component=activator";

/// The handle by which more watches are started and ended.
pub(crate) struct Watches {
    client: Client,
    news: mpsc::Sender<News>,
    /// Kinds that only the API server knows, for the task that looks for them.
    custom_kinds: watch::Sender<BTreeSet<CustomKind>>,
}

/// Starts all watches of an installation; they end when the receiver is dropped. In ebb's own, kinds other
/// than Deployments are watched from when they are asked for.
pub(crate) fn start(
    client: &Client,
    namespace: &str,
    installation: &Installation,
) -> (Watches, mpsc::Receiver<News>) {
    let (news, receiver) = mpsc::channel(NEWS_MAX);
    let custom_kinds = watch::Sender::default();
    let seeker = custom::KindSeeker::new(client.clone(), news.clone(), custom_kinds.subscribe());
    tokio::spawn(vital("the watches over custom resources", seeker.run()));
    let watches = Watches { client: client.clone(), news: news.clone(), custom_kinds };
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let data = |map: &ConfigMap| map.data.clone().unwrap_or_default();
    spawn(config_maps, named(CONFIG_MAP_NAME), news.clone(), data, News::Config);
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    // Of all buckets, also of those that only others count.
    spawn(leases, everything(), news.clone(), read_lease, News::Lease);
    match installation {
        Installation::Ebb { .. } => {
            watches.watch_kind(WorkloadKind::Deployment);
            start_in_ebbs(client, namespace, &news);
        }
        Installation::Knative { .. } => knative::start(client, namespace, &news),
    }
    (watches, receiver)
}

/// Starts what is watched in ebb's own installation alone.
fn start_in_ebbs(client: &Client, namespace: &str, news: &mpsc::Sender<News>) {
    let all_over = |client: &Client| client.clone();
    let ours = format!("{SLICE_WRITER_LABEL}={SLICE_WRITER}");
    let config_maps: Api<ConfigMap> = Api::namespaced(all_over(client), namespace);
    let findings = |map: &ConfigMap| Observability::messages(&map.data.clone().unwrap_or_default());
    spawn(config_maps, named(OBSERVABILITY_CONFIG_MAP), news.clone(), findings, News::Observability);
    spawn(Api::<Service>::all(all_over(client)), everything(), news.clone(), service::read, News::Service);
    // Pods without a queue-proxy too, for class hpa counts every pod that a selector selects.
    spawn(Api::<Pod>::all(all_over(client)), everything(), news.clone(), ShownPod::read, News::Pod);
    let activators: Api<Pod> = Api::namespaced(all_over(client), namespace);
    spawn(activators, everything().labels(ACTIVATORS), news.clone(), pod::read, News::Activator);
    let autoscalers = Api::<HorizontalPodAutoscaler>::all(all_over(client));
    spawn(autoscalers, everything(), news.clone(), autoscaler::read, News::Autoscaler);
    // The rest of a node is long, and changes all the time.
    let nodes = Api::<PartialObjectMeta<Node>>::all(all_over(client));
    spawn(nodes, everything(), news.clone(), read_zone, News::Zone);
    let slices = Api::<EndpointSlice>::all(all_over(client));
    spawn(slices, everything().labels(&ours), news.clone(), without_managed_fields, News::Slice);
    let others = format!("{SLICE_WRITER_LABEL}!={SLICE_WRITER}");
    let slices = Api::<EndpointSlice>::all(all_over(client));
    spawn(slices, everything().labels(&others), news.clone(), other_slice::read, News::OtherSlice);
    let ours = format!("{}={SLICE_WRITER}", endpoints::MANAGED_BY_LABEL);
    let kept = Api::<Endpoints>::all(all_over(client));
    let subsets = |endpoints: &Endpoints| endpoints.subsets.clone().unwrap_or_default();
    spawn(kept, everything().labels(&ours), news.clone(), subsets, News::Endpoints);
}

impl Watches {
    /// Watches all workloads of a kind from now on.
    pub(crate) fn watch_kind(&self, kind: WorkloadKind) {
        let (client, news) = (self.client.clone(), self.news.clone());
        match kind {
            WorkloadKind::Deployment => {
                let tell = |change| News::Workload(WorkloadKind::Deployment, change);
                spawn(Api::all(client), everything(), news, objects::deployment, tell);
            }
            WorkloadKind::StatefulSet => {
                let tell = |change| News::Workload(WorkloadKind::StatefulSet, change);
                spawn(Api::all(client), everything(), news, objects::stateful_set, tell);
            }
            WorkloadKind::ReplicaSet => {
                let tell = |change| News::Workload(WorkloadKind::ReplicaSet, change);
                spawn(Api::all(client), everything(), news, objects::replica_set, tell);
            }
            WorkloadKind::ReplicationController => {
                let tell = |change| News::Workload(WorkloadKind::ReplicationController, change);
                spawn(Api::all(client), everything(), news, objects::replication_controller, tell);
            }
            WorkloadKind::Custom(kind) => self.custom_kinds.send_modify(|kinds| {
                kinds.insert(kind);
            }),
        }
    }

    /// A kind of which only the API server knows need not be watched any more; once it is not, that is news.
    pub(crate) fn leave_kind(&self, kind: &WorkloadKind) {
        if let WorkloadKind::Custom(kind) = kind {
            self.custom_kinds.send_modify(|kinds| {
                kinds.remove(kind);
            });
        }
    }
}

fn without_managed_fields(slice: &EndpointSlice) -> Box<EndpointSlice> {
    let mut slice = Box::new(slice.clone());
    slice.metadata.managed_fields = None;
    slice
}

fn read_zone(node: &PartialObjectMeta<Node>) -> Option<String> {
    node.metadata.labels.as_ref()?.get(ZONE_LABEL).cloned()
}
