//! How are workloads of kinds watched of which only the API server knows? One task looks for all kinds that
//! are wanted: the API server says which groups there are, and of those that are wanted what they hold. A
//! kind that is there, can be scaled and may be listed is watched, and of each of its objects that changes
//! the `scale` is read, for only that says what its count is and which pods it has.
//!
//! Every client that may write a Service may name any kind. So a kind that is not there costs no request of
//! its own, and only a kind that is watched takes one of the places.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster::resources::ObjectKey;
use cluster::resources::kind::{CustomKind, WorkloadKind};
use cluster::resources::workload::objects;
use cluster::{Change, Failure, NOT_SCALABLE, News, Notice};
use futures_util::{StreamExt, stream};
use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::discovery::{self, ApiCapabilities, ApiGroup};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

use super::expiry::{LIST_AGAIN_AFTER, has_expired};
use super::watch_waits::WatchWaits;
use crate::requests::within_time;

/// The number of kinds that are watched at once. An administrator gave the right to each, so the limit is
/// rarely met.
const KINDS_MAX: usize = 32;
/// A kind that is not there may come: people install what they need in any order.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// Services that name other kinds again and again make no more looks than this.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// Groups that the API server is asked about at once: one whose server hangs holds up few others.
const GROUPS_AT_ONCE: usize = 8;
/// A request without an answer after this long has failed.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// A scale that cannot be read is asked for so often, and then at the object's next change.
const TRIES_MAX: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Looks for the kinds that are wanted, and watches those that are there.
pub(super) struct KindSeeker {
    client: Client,
    news: mpsc::Sender<News>,
    wanted: watch::Receiver<BTreeSet<CustomKind>>,
    watched: BTreeSet<CustomKind>,
    /// Why other wanted kinds are not watched, as the news said last.
    refused: BTreeMap<CustomKind, Notice>,
    watches: JoinSet<(CustomKind, KindWatchEnd)>,
}

/// Why a watch is over.
enum KindWatchEnd {
    /// The kind cannot be looked at any more.
    Refused(Notice),
    /// The kind is not wanted any more, or the news are not received.
    Left,
}

/// The news are not received any more.
struct NoReceiver;

impl KindSeeker {
    pub(super) fn new(
        client: Client,
        news: mpsc::Sender<News>,
        wanted: watch::Receiver<BTreeSet<CustomKind>>,
    ) -> Self {
        let (watched, refused) = (BTreeSet::new(), BTreeMap::new());
        Self { client, news, wanted, watched, refused, watches: JoinSet::new() }
    }

    /// Goes on until the news are not received any more.
    pub(super) async fn run(mut self) {
        while self.look().await.is_ok() && self.rest().await.is_ok() {}
    }

    /// Looks once for what is wanted and not watched.
    async fn look(&mut self) -> Result<(), NoReceiver> {
        let wanted = self.wanted.borrow_and_update().clone();
        let left: Vec<_> = self.refused.extract_if(.., |kind, _| !wanted.contains(kind)).collect();
        for (kind, _) in left {
            self.tell(News::KindLeft(WorkloadKind::Custom(kind))).await?;
        }
        let sought: Vec<CustomKind> = wanted.difference(&self.watched).cloned().collect();
        for (kind, found) in discover(&self.client, sought).await {
            let begun = match found {
                Ok(resource) => self.begin(&kind, resource).await,
                Err(why) => Err(why),
            };
            match begun {
                Ok(()) => drop(self.refused.remove(&kind)),
                Err(why) => self.refuse(kind, why).await?,
            }
        }
        Ok(())
    }

    /// Waits until another look may find something.
    async fn rest(&mut self) -> Result<(), NoReceiver> {
        tokio::time::sleep(LOOK_AT_MOST_EVERY).await;
        let again = tokio::time::sleep(LOOK_AGAIN_AFTER);
        tokio::pin!(again);
        loop {
            let is_complete = self.wanted.borrow().is_subset(&self.watched);
            // Every arm is cancel-safe: what was not taken stays where it is.
            tokio::select! {
                changed = self.wanted.changed() => return changed.map_err(|_| NoReceiver),
                Some(ended) = self.watches.join_next() => self.ended(ended).await?,
                () = &mut again, if !is_complete => return Ok(()),
            }
        }
    }

    /// Watches a kind from now on, or says why not.
    async fn begin(&mut self, custom: &CustomKind, resource: ApiResource) -> Result<(), Notice> {
        let kind = WorkloadKind::Custom(custom.clone());
        if self.watched.len() >= KINDS_MAX {
            return Err(refused(format!(
                "ebb looks at {KINDS_MAX} kinds of workloads that are not Kubernetes' own already"
            )));
        }
        // Before it takes a place: a Service that names a kind at which ebb may not look keeps none out.
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let first = ListParams::default().limit(1);
        match within_time(ANSWER_WITHIN, api.list(&first)).await {
            Ok(_) => {}
            Err(Failure::Forbidden(why)) => return Err(refused(forbidden(&kind, &why))),
            Err(failure) => {
                return Err(refused(format!("{kind} could not be looked at: {}", failure.words())));
            }
        }
        self.watched.insert(custom.clone());
        let watch = KindStream { client: self.client.clone(), kind, resource, news: self.news.clone() };
        let (custom, mut wanted) = (custom.clone(), self.wanted.clone());
        // A panic in it is ours; see where ends are taken.
        self.watches.spawn(async move {
            // Either may be cancelled: what was not sent yet when the kind is left concerns no workload.
            let end = tokio::select! {
                refused = watch.run() => refused.map_or(KindWatchEnd::Left, KindWatchEnd::Refused),
                _ = wanted.wait_for(|wanted| !wanted.contains(&custom)) => KindWatchEnd::Left,
            };
            (custom, end)
        });
        Ok(())
    }

    async fn ended(
        &mut self,
        ended: Result<(CustomKind, KindWatchEnd), JoinError>,
    ) -> Result<(), NoReceiver> {
        let (kind, end) = match ended {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // None is stopped but with this task.
            Err(_stopped) => return Ok(()),
        };
        self.watched.remove(&kind);
        match end {
            KindWatchEnd::Refused(why) => self.refuse(kind, why).await,
            KindWatchEnd::Left => self.tell(News::KindLeft(WorkloadKind::Custom(kind))).await,
        }
    }

    async fn refuse(&mut self, custom: CustomKind, why: Notice) -> Result<(), NoReceiver> {
        if self.refused.get(&custom) == Some(&why) {
            return Ok(());
        }
        let kind = WorkloadKind::Custom(custom.clone());
        tracing::warn!(%kind, reason = why.reason, "{}", why.text);
        self.refused.insert(custom, why.clone());
        self.tell(News::KindRefused(kind, why)).await
    }

    async fn tell(&self, news: News) -> Result<(), NoReceiver> {
        self.news.send(news).await.map_err(|_| NoReceiver)
    }
}

/// The resource of each kind at the API server, or why the kind cannot be scaled.
async fn discover(client: &Client, kinds: Vec<CustomKind>) -> Vec<(CustomKind, Result<ApiResource, Notice>)> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let groups = within_time(ANSWER_WITHIN, client.list_api_groups()).await;
    let groups = groups.map(|list| list.groups.into_iter().map(|group| group.name).collect::<BTreeSet<_>>());
    let mut by_group = BTreeMap::<String, Vec<CustomKind>>::new();
    for kind in kinds {
        by_group.entry(kind.group.clone()).or_default().push(kind);
    }
    let looks = by_group.into_iter().map(|(group, kinds)| {
        let groups = &groups;
        async move {
            let found = match groups {
                Ok(groups) if !groups.contains(&group) => {
                    Err(format!("the cluster has no API group {group}; install what brings it"))
                }
                Ok(_) => {
                    let found = within_time(ANSWER_WITHIN, discovery::group(client, &group)).await;
                    found.map_err(|failure| could_not(&group, &failure))
                }
                Err(failure) => Err(could_not(&group, failure)),
            };
            let found = found.map_err(refused);
            let found = kinds.into_iter().map(|kind| {
                let resource = found.as_ref().map_err(Clone::clone).and_then(|found| resource(&kind, found));
                (kind, resource)
            });
            found.collect::<Vec<_>>()
        }
    });
    stream::iter(looks).buffered(GROUPS_AT_ONCE).concat().await
}

fn could_not(group: &str, failure: &Failure) -> String {
    format!("API group {group} could not be looked at: {}", failure.words())
}

/// The resource of a kind in its group, if the kind can be scaled.
fn resource(kind: &CustomKind, found: &ApiGroup) -> Result<ApiResource, Notice> {
    let CustomKind { resource, group } = kind;
    let mut all = found.recommended_resources().into_iter();
    let (resource, capabilities) = all.find(|(one, _)| one.plural == *resource).ok_or_else(|| {
        refused(format!(
            "API group {group} has no {resource}; write its plural, as `kubectl api-resources` shows it"
        ))
    })?;
    if can_be_scaled(&capabilities) {
        Ok(resource)
    } else {
        Err(refused(format!("{}.{group} has no scale subresource, so it cannot be scaled", resource.plural)))
    }
}

fn refused(text: String) -> Notice {
    Notice::new(NOT_SCALABLE, text)
}

fn can_be_scaled(capabilities: &ApiCapabilities) -> bool {
    capabilities.subresources.iter().any(|(subresource, _)| subresource.plural == "scale")
}

struct KindStream {
    client: Client,
    kind: WorkloadKind,
    resource: ApiResource,
    news: mpsc::Sender<News>,
}

impl KindStream {
    /// Returns why the kind cannot be watched any more; `None` once the receiver is gone.
    async fn run(&self) -> Option<Notice> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &self.resource);
        let begin = || watcher(api.clone(), watcher::Config::default()).backoff(WatchWaits::new()).boxed();
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
                    tracing::warn!(kind = %self.kind, error = &error as &dyn std::error::Error, "a watch broke and is begun again");
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
            // The object went while its scale was read; the watch says so itself.
            Err(Failure::Gone(_)) => None,
            Err(Failure::Forbidden(why)) => {
                Some(Change::Put(key, Err(Notice::new(NOT_SCALABLE, forbidden(&self.kind, &why)))))
            }
            Err(failure) => {
                tracing::warn!(kind = %self.kind, name = key.name, failure = failure.words(), "a scale could not be read");
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
        "ebb may not look at {kind} or scale it: give it a ClusterRole with the label ebb.dev/aggregate-to-autoscaler: \"true\" (docs/operate/workloads.md); {why}"
    )
}
