//! The objects of one kind, as a proxy follows them: each as it is, and when it is gone.

use futures_util::StreamExt as _;
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::Value;

use super::objects::PlayedKind;

/// Notes each object with whether it is there, until the process ends.
pub(super) async fn watch_kind(client: Client, kind: PlayedKind, note: impl Fn(&Value, bool)) {
    let api: Api<DynamicObject> = Api::all_with(client, &kind.resource());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let (object, is_there) = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (object, true),
            Ok(Event::Delete(object)) => (object, false),
            // An object that goes while a watch is broken stays known: no test depends on it.
            Ok(Event::Init | Event::InitDone) => continue,
            Err(error) => {
                eprintln!("a watch over {kind:?} broke: {error}");
                continue;
            }
        };
        note(&serde_json::to_value(object).expect("an object is JSON"), is_there);
    }
}
