//! How do objects come in? One task per kind lists and watches, reads each object into a small record, and hands that on. A watch that breaks or expires lists
//! anew, with growing waits; what is gone by then is found by what the new list does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use runtime::vital;
use scaling::config::CONFIG_MAP_NAME;
use tokio::sync::mpsc;

use crate::lease::LeaseRecord;
use crate::port_book::PortNotes;
use crate::resources::autoscaler::AutoscalerRecord;
use crate::resources::pod::PodRecord;
use crate::resources::service::ServiceRecord;
use crate::resources::workload::WorkloadRecord;
use crate::resources::{ObjectKey, autoscaler, pod, service, workload};
use crate::slices::{MANAGED_BY, MANAGED_BY_LABEL};

/// Records that wait for the platform's task; watches wait when it is full.
const NEWS_MAX: usize = 1024;
/// Our own activators, in our own namespace.
const ACTIVATORS: &str = "app.kubernetes.io/name=ebb,app.kubernetes.io/component=activator";
/// The one bucket's.
pub(crate) const LEASE_NAME: &str = "ebb-autoscaler";

/// What a watch says.
#[derive(Debug)]
pub(crate) enum News {
    Config(Change<BTreeMap<String, String>>),
    Service(Change<ServiceRecord>),
    Workload(Change<Option<WorkloadRecord>>),
    Pod(Change<PodRecord>),
    Activator(Change<PodRecord>),
    Autoscaler(Change<AutoscalerRecord>),
    /// Boxed, for it is far larger than any other record.
    Slice(Change<Box<EndpointSlice>>),
    Lease(Change<LeaseRecord>),
}

/// What happened to objects of one kind.
#[derive(Debug)]
pub(crate) enum Change<Record> {
    /// It is there, as this.
    Put(ObjectKey, Record),
    Gone(ObjectKey),
    /// A list is complete, and these are all there are.
    Listed(BTreeSet<ObjectKey>),
}

/// Starts all watches; they end when nobody receives any more.
pub(crate) fn start(client: &Client, namespace: &str) -> mpsc::Receiver<News> {
    let (news, receiver) = mpsc::channel(NEWS_MAX);
    let everything = watcher::Config::default;
    let all_over = |client: &Client| client.clone();
    let named = |name: &str| everything().fields(&format!("metadata.name={name}"));
    let ours = format!("{MANAGED_BY_LABEL}={MANAGED_BY}");

    let config: Api<ConfigMap> = Api::namespaced(all_over(client), namespace);
    spawn(
        config,
        named(CONFIG_MAP_NAME),
        news.clone(),
        |map| map.data.clone().unwrap_or_default(),
        News::Config,
    );
    spawn(Api::<Service>::all(all_over(client)), everything(), news.clone(), service::read, News::Service);
    spawn(
        Api::<Deployment>::all(all_over(client)),
        everything(),
        news.clone(),
        workload::read,
        News::Workload,
    );
    // Those without a queue-proxy too, for class hpa counts whatever a selector selects.
    spawn(Api::<Pod>::all(all_over(client)), everything(), news.clone(), pod::read, News::Pod);
    let activators: Api<Pod> = Api::namespaced(all_over(client), namespace);
    spawn(activators, everything().labels(ACTIVATORS), news.clone(), pod::read, News::Activator);
    let autoscalers = Api::<HorizontalPodAutoscaler>::all(all_over(client));
    spawn(autoscalers, everything(), news.clone(), autoscaler::read, News::Autoscaler);
    let slices = Api::<EndpointSlice>::all(all_over(client));
    spawn(slices, everything().labels(&ours), news.clone(), without_managed_fields, News::Slice);
    let leases: Api<Lease> = Api::namespaced(all_over(client), namespace);
    spawn(leases, named(LEASE_NAME), news, read_lease, News::Lease);
    receiver
}

fn without_managed_fields(slice: &EndpointSlice) -> Box<EndpointSlice> {
    let mut slice = Box::new(slice.clone());
    slice.metadata.managed_fields = None;
    slice
}

pub(crate) fn read_lease(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds =
        spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default();
    LeaseRecord {
        holder: spec.holder_identity,
        transitions: spec.lease_transitions.unwrap_or_default(),
        lasts: Duration::from_secs(seconds),
        resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
        notes: PortNotes::among(lease.metadata.annotations.as_ref()),
    }
}

fn spawn<Object, Record>(
    api: Api<Object>,
    config: watcher::Config,
    news: mpsc::Sender<News>,
    read: fn(&Object) -> Record,
    tell: fn(Change<Record>) -> News,
) where
    Object: Resource<DynamicType = ()> + Clone + Debug + serde::de::DeserializeOwned + Send + 'static,
    Record: Send + 'static,
{
    let kind = Object::kind(&());
    let watch = async move {
        let mut events = std::pin::pin!(watcher(api, config).default_backoff());
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let change = match event {
                Ok(Event::Apply(object)) => Change::Put(ObjectKey::of(object.meta()), read(&object)),
                Ok(Event::Delete(object)) => Change::Gone(ObjectKey::of(object.meta())),
                Ok(Event::Init) => {
                    listed.clear();
                    continue;
                }
                Ok(Event::InitApply(object)) => {
                    let key = ObjectKey::of(object.meta());
                    listed.insert(key.clone());
                    Change::Put(key, read(&object))
                }
                Ok(Event::InitDone) => Change::Listed(std::mem::take(&mut listed)),
                Err(error) => {
                    tracing::warn!(%kind, error = &error as &dyn std::error::Error, "a watch broke; it is begun again");
                    continue;
                }
            };
            if news.send(tell(change)).await.is_err() {
                return;
            }
        }
    };
    tokio::spawn(vital("a watch over Kubernetes' objects", watch));
}
