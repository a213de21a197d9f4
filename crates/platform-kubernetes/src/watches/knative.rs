//! What is watched in an installed Knative? (Contract §4.1.)
//!
//! Its own kinds are in no library: they are read untyped, and dropped as soon as a record is made of them.

use cluster::knative::pods::REVISION_UID_LABEL;
use cluster::knative::{
    MIRRORED_SLICES, PodAutoscalerRecord, ServerlessRecord, pod_autoscalers, public_slice,
    revision_deployment, serverless_services,
};
use cluster::resources::pod;
use cluster::{KnativeNews, News, ShownPod};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::DynamicObject;
use kube::{Api, Client};
use settings::progress_deadline_of;
use tokio::sync::mpsc;

use super::one_kind::{everything, named, spawn, spawn_kind};

/// The activators of the installation, Knative's and ebb's alike.
const ACTIVATORS: &str = "app=activator";
/// The autoscalers of the installation, Knative's and ebb's alike.
const AUTOSCALERS: &str = "app=autoscaler";
/// The ConfigMap with the progress deadline of revisions that name none.
const DEPLOYMENT_CONFIG: &str = "config-deployment";

/// Starts what is watched in an installed Knative alone.
pub(super) fn start(client: &Client, namespace: &str, news: &mpsc::Sender<News>) {
    let (autoscalers, services) = (pod_autoscalers(), serverless_services());
    let api = Api::<DynamicObject>::all_with(client.clone(), &autoscalers);
    let read = |object: &DynamicObject| Box::new(PodAutoscalerRecord::read(object));
    let tell = |change| News::Knative(KnativeNews::PodAutoscaler(change));
    spawn_kind(autoscalers.kind, api, everything(), news.clone(), (read, tell));
    let api = Api::<DynamicObject>::all_with(client.clone(), &services);
    let read = |object: &DynamicObject| Box::new(ServerlessRecord::read(object));
    let tell = |change| News::Knative(KnativeNews::ServerlessService(change));
    spawn_kind(services.kind, api, everything(), news.clone(), (read, tell));

    let of_revisions = || everything().labels(REVISION_UID_LABEL);
    let deployments = Api::<Deployment>::all(client.clone());
    let read = |object: &Deployment| revision_deployment(object).map(Box::new);
    let tell = |change| News::Knative(KnativeNews::Deployment(change));
    spawn(deployments, of_revisions(), news.clone(), read, tell);
    spawn(Api::<Pod>::all(client.clone()), of_revisions(), news.clone(), ShownPod::read, News::Pod);
    let slices = Api::<EndpointSlice>::all(client.clone());
    let tell = |change| News::Knative(KnativeNews::PublicSlice(change));
    spawn(slices, everything().labels(MIRRORED_SLICES), news.clone(), public_slice, tell);
    let activators: Api<Pod> = Api::namespaced(client.clone(), namespace);
    spawn(activators, everything().labels(ACTIVATORS), news.clone(), pod::read, News::Activator);
    let programs: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let read = |object: &Pod| Box::new(pod::read(object));
    let tell = |change| News::Knative(KnativeNews::AutoscalerPod(change));
    spawn(programs, everything().labels(AUTOSCALERS), news.clone(), read, tell);
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let read = |map: &ConfigMap| progress_deadline_of(&map.data.clone().unwrap_or_default());
    let tell = |change| News::Knative(KnativeNews::ProgressDeadline(change));
    spawn(config_maps, named(DEPLOYMENT_CONFIG), news.clone(), read, tell);
}
