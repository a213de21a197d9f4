//! How is one kind watched? A task lists and watches, reads each object into a small record, and hands that
//! on.

use std::collections::BTreeSet;
use std::fmt::Debug;

use cluster::resources::ObjectKey;
use cluster::{Change, News};
use futures_util::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use runtime::vital;
use tokio::sync::mpsc;

use super::expiry::{LIST_AGAIN_AFTER, has_expired};
use super::watch_waits::WatchWaits;

/// All objects of a kind.
pub(super) fn everything() -> watcher::Config {
    watcher::Config::default()
}

/// The one object of a kind that has this name.
pub(super) fn named(name: &str) -> watcher::Config {
    everything().fields(&format!("metadata.name={name}"))
}

/// Watches a kind until the news are not received any more.
pub(super) fn spawn<Object, Record>(
    api: Api<Object>,
    config: watcher::Config,
    news: mpsc::Sender<News>,
    read: fn(&Object) -> Record,
    tell: fn(Change<Record>) -> News,
) where
    Object: Resource<DynamicType = ()> + Clone + Debug + serde::de::DeserializeOwned + Send + 'static,
    Record: Send + 'static,
{
    spawn_kind(Object::kind(&()).into_owned(), api, config, news, (read, tell));
}

/// Takes what is to be known out of an object.
type ReadRecord<Object, Record> = fn(&Object) -> Record;

/// Makes news of a change.
type TellChange<Record> = fn(Change<Record>) -> News;

/// Watches a kind, which the log calls by the name `kind`, until the news are not received any more. This
/// program may have no type of the objects.
pub(super) fn spawn_kind<Object, Record>(
    kind: String,
    api: Api<Object>,
    config: watcher::Config,
    news: mpsc::Sender<News>,
    (read, tell): (ReadRecord<Object, Record>, TellChange<Record>),
) where
    Object: Resource + Clone + Debug + serde::de::DeserializeOwned + Send + 'static,
    Record: Send + 'static,
{
    let watch = async move {
        let begin = || watcher(api.clone(), config.clone()).backoff(WatchWaits::new()).boxed();
        let mut events = begin();
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let change = match event {
                Ok(Event::Apply(object)) => Change::Put(ObjectKey::of(object.meta()), read(&object)),
                Ok(Event::Delete(object)) => Change::Gone(ObjectKey::of(object.meta())),
                Ok(Event::Init) => {
                    // The list before this one may have broken off half way.
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
                    tracing::warn!(%kind, error = &error as &dyn std::error::Error, "a watch broke and is begun again");
                    if has_expired(&error) {
                        tokio::time::sleep(LIST_AGAIN_AFTER).await;
                        events = begin();
                    }
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
