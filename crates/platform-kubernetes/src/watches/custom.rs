//! How are workloads of a kind watched of which only the API server knows? It is asked what the kind is
//! called and whether it can be scaled, until that is so; then its objects are watched, and of each that
//! changes the `scale` is read, for only that says what its count is and which pods it has.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::autoscaling::v1::Scale;
use kube::core::{ApiResource, DynamicObject};
use kube::discovery::{self, ApiCapabilities};
use kube::error::DiscoveryError;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::mpsc;

use super::{Change, LIST_AGAIN_AFTER, News, has_expired};
use crate::notice::{NOT_SCALABLE, Notice};
use crate::requests::{Failure, within_time};
use crate::resources::ObjectKey;
use crate::resources::kind::{CustomKind, WorkloadKind};
use crate::resources::workload::objects;

/// A kind that is not there may come: people install what they need in any order.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// A request without an answer after this long has failed.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// A scale that cannot be read is asked for so often, and then at the object's next change.
const TRIES_MAX: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Goes on until nobody receives any more.
pub(super) async fn watch(client: Client, custom: CustomKind, news: mpsc::Sender<News>) {
    let kind = WorkloadKind::Custom(custom.clone());
    loop {
        let refused = match discover(&client, &custom).await {
            Ok(resource) => {
                let watch =
                    KindWatch { client: client.clone(), kind: kind.clone(), resource, news: news.clone() };
                watch.run().await
            }
            Err(why) => why,
        };
        let Some(why) = refused else { return };
        tracing::warn!(%kind, reason = why.reason, "{}", why.text);
        if news.send(News::KindRefused(kind.clone(), why)).await.is_err() {
            return;
        }
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    }
}

/// What the API server calls it.
async fn discover(client: &Client, kind: &CustomKind) -> Result<ApiResource, Option<Notice>> {
    let CustomKind { resource, group } = kind;
    let refused = |text: String| Some(Notice::new(NOT_SCALABLE, text));
    let look = async {
        match discovery::group(client, group).await {
            Err(kube::Error::Discovery(DiscoveryError::MissingApiGroup(_))) => Ok(None),
            found => found.map(Some),
        }
    };
    let found = within_time(ANSWER_WITHIN, look).await.map_err(|failure| {
        refused(format!("API group {group} could not be looked at: {}", failure.words()))
    })?;
    let found = found
        .ok_or_else(|| refused(format!("the cluster has no API group {group}; install what brings it")))?;
    let mut all = found.recommended_resources().into_iter();
    let (resource, capabilities) = all.find(|(one, _)| one.plural == *resource).ok_or_else(|| {
        refused(format!(
            "API group {group} has no {resource}; write its plural, as `kubectl api-resources` shows it"
        ))
    })?;
    if can_be_scaled(&capabilities) {
        Ok(resource)
    } else {
        let text = format!("{}.{group} has no scale subresource, so nobody can scale it", resource.plural);
        Err(refused(text))
    }
}

fn can_be_scaled(capabilities: &ApiCapabilities) -> bool {
    capabilities.subresources.iter().any(|(subresource, _)| subresource.plural == "scale")
}

struct KindWatch {
    client: Client,
    kind: WorkloadKind,
    resource: ApiResource,
    news: mpsc::Sender<News>,
}

impl KindWatch {
    /// Returns why the kind cannot be looked at any more; `None` once nobody receives.
    async fn run(&self) -> Option<Notice> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &self.resource);
        let begin = || watcher(api.clone(), watcher::Config::default()).default_backoff().boxed();
        let mut events = begin();
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let change = match event {
                Ok(Event::Apply(object)) => self.read(&object).await,
                Ok(Event::InitApply(object)) => {
                    listed.insert(ObjectKey::of(&object.metadata));
                    self.read(&object).await
                }
                Ok(Event::Delete(object)) => Some(Change::Gone(ObjectKey::of(&object.metadata))),
                Ok(Event::Init) => {
                    listed.clear();
                    None
                }
                Ok(Event::InitDone) => Some(Change::Listed(std::mem::take(&mut listed))),
                Err(error) => {
                    if let Some(why) = refusal(&self.kind, &error) {
                        return Some(why);
                    }
                    tracing::warn!(kind = %self.kind, error = &error as &dyn std::error::Error, "a watch broke; it is begun again");
                    if has_expired(&error) {
                        tokio::time::sleep(LIST_AGAIN_AFTER).await;
                        events = begin();
                    }
                    None
                }
            };
            if let Some(change) = change
                && self.news.send(News::Workload(self.kind.clone(), change)).await.is_err()
            {
                return None;
            }
        }
        None
    }

    /// `None` if its scale cannot be read for the time being: what is known of it stays.
    async fn read(&self, object: &DynamicObject) -> Option<Change<objects::WorkloadReading>> {
        let key = ObjectKey::of(&object.metadata);
        match self.scale(&key).await {
            Ok(scale) => {
                let reading = objects::custom(object, &scale, &self.kind, &self.resource);
                Some(Change::Put(key, reading))
            }
            // It went while we looked; that is news of its own.
            Err(Failure::Gone(_)) => None,
            Err(Failure::Forbidden(why)) => {
                Some(Change::Put(key, Err(Notice::new(NOT_SCALABLE, forbidden(&self.kind, &why)))))
            }
            Err(failure) => {
                tracing::warn!(kind = %self.kind, name = key.name, ?failure, "a scale could not be read");
                None
            }
        }
    }

    async fn scale(&self, key: &ObjectKey) -> Result<Scale, Failure> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &key.namespace, &self.resource);
        let mut scale = within_time(ANSWER_WITHIN, api.get_scale(&key.name)).await;
        for _ in 1..TRIES_MAX {
            let Err(Failure::Passing { .. }) = &scale else { break };
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
            scale = within_time(ANSWER_WITHIN, api.get_scale(&key.name)).await;
        }
        scale
    }
}

/// Why no watch of a kind will do, until something else changes.
fn refusal(kind: &WorkloadKind, error: &watcher::Error) -> Option<Notice> {
    let (watcher::Error::InitialListFailed(error)
    | watcher::Error::WatchStartFailed(error)
    | watcher::Error::WatchFailed(error)) = error
    else {
        return None;
    };
    let kube::Error::Api(status) = error else { return None };
    match status.code {
        401 | 403 => Some(Notice::new(NOT_SCALABLE, forbidden(kind, &status.message))),
        // Another version of it may be there, or none.
        404 => Some(Notice::new(NOT_SCALABLE, format!("{kind} is not there any more: {}", status.message))),
        _ => None,
    }
}

fn forbidden(kind: &WorkloadKind, why: &str) -> String {
    format!(
        "ebb may not look at {kind} or scale it: give it a ClusterRole with the label ebb.dev/aggregate-to-autoscaler: \"true\" (docs/kubernetes.md); {why}"
    )
}
